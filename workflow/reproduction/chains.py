"""The Markov chain of each group, fitted, described and stored, and its noise scales."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pufferflow._util.files import write_atomic
from pufferflow.errors import DataError
from pufferflow.mechanisms import compute_scale
from pufferflow.models.chain import MarkovChain
from pufferflow.models.estimation import fit_chain
from pufferflow.models.families import as_family
from pufferflow.models.files import parse_model
from reproduction import tidy
from reproduction.data.sample import Sample, pooled
from reproduction.tidy import scale_row


def fit_chains(
    sample: Sample, smoothing: float, initial_distribution: str
) -> dict[str, MarkovChain]:
    """Fit a chain to the pooled transition counts of each group, in the order of the sample.

    ``smoothing`` is added to every count (0: maximum likelihood); starts are "stationary" or "any".
    """
    counts = {group: pooled(sample.group(group)).transition_counts for group in sample.groups}
    options: Any = {"smoothing": smoothing, "initial_distribution": initial_distribution}
    chains = {group: fit_chain(own, **options)[0] for group, own in counts.items()}
    if alone := [group for group, chain in chains.items() if chain.states == 1]:
        raise DataError(f"{sample.dataset}: {alone[0]!r} is in one state; correct its unit or bins")
    return chains


def describe_chains(sample: Sample, chains: Mapping[str, MarkovChain]) -> pd.DataFrame:
    """Return the tidy table "chains": size of each group's data, properties of its chain."""
    rows = []
    for group, chain in chains.items():
        people, irreducible = sample.group(group), chain.is_irreducible
        own = pooled(people)
        least = chain.stationary_distribution.min() if irreducible else None
        row = {
            "dataset": sample.dataset,
            "label": sample.label,
            "group": group,
            "participants": len(people),
            "observations": own.observations,
            "segments": len(own.segment_lengths),
            "longest_segment": max(own.segment_lengths),
            "states": chain.states,
            "transitions": int(own.transition_counts.sum()),
            "smallest_stationary_probability": least,
            "irreducible": irreducible,
            "period": chain.period if irreducible else None,
            "reversible": chain.is_reversible,
            "eigengap_general": chain.eigengap("general") if chain.is_aperiodic else None,
        }
        rows.append(row)
    return tidy.frame(rows, "chains")


def save_chains(chains: Mapping[str, MarkovChain], path: str | Path) -> None:
    """Write an object from group to model, in one step.

    Each value is a model for the command line: ``jq .household FILE | pufferflow scale - …``.
    """
    models = {group: as_family(chain).document() for group, chain in chains.items()}
    write_atomic(path, json.dumps(models, ensure_ascii=False) + "\n")


def load_chains(path: str | Path) -> dict[str, MarkovChain]:
    """Read the chains of :func:`save_chains`; raises DataError: the file is missing or damaged."""
    try:
        models = json.loads(Path(path).read_text(encoding="utf-8"))
        return {group: parse_model(model).family.chains[0] for group, model in models.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{path} has no fitted chains ({error}); delete it and rerun") from error


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
