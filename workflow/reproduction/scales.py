"""Noise scales of a data set's histograms, for one mechanism."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pufferflow.mechanisms import compute_scale
from pufferflow.models.chain import MarkovChain
from reproduction.data.sample import Sample, pooled
from reproduction.tidy import scale_row


def histogram_scales(
    sample: Sample,
    chains: Mapping[str, MarkovChain],
    mechanism: str,
    epsilons: Sequence[float],
    options: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield rows of the schema "scales" for each group's histogram and those of its members.

    The row "DP" of Table 1, ``mechanism`` "participant-dp", protects a participant's whole record
    in the histogram of a group: group privacy with all records of a participant as one chain.
    """
    for group, chain in chains.items():
        members = sample.group(group)
        histograms = [("aggregate", members)] if len(members) > 1 else []
        histograms += [("individual", (person,)) for person in members]
        for task, people in histograms:
            own = pooled(people)
            name, lengths = mechanism, own.segment_lengths
            if name == "participant-dp":
                if task == "individual":
                    continue
                name, lengths = "group-dp", tuple(person.observations for person in people)
            place = {"dataset": sample.dataset, "label": sample.label, "group": group, "task": task}
            place["participant"] = people[0].name if task == "individual" else ""
            # of relative frequencies: one record changes two of them by 1/n
            lipschitz = 2 / own.observations
            for epsilon in epsilons:
                scale = scale_row(compute_scale(name, chain, lengths, epsilon, **options))
                yield place | scale | {"mechanism": mechanism, "lipschitz": lipschitz}
