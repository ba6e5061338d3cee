"""Tables 1 and 3 and the histograms of Figure 4: relative-frequency histograms of real data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from pufferflow.markov import MarkovChain
from pufferflow.mechanisms import compute_scale
from pufferflow.records.sample import (
    Participant,
    Sample,
    pooled_segment_lengths,
    pooled_state_counts,
)
from pufferflow.studies.scaling import RESULT_COLUMNS, scale_row
from pufferflow.studies.tidy import frame, mean_and_error, named_generator

KEYS = ["dataset", "label", "group", "task", "mechanism", "epsilon"]
SCALE_COLUMNS = [
    *KEYS,
    "participant",
    "participants",
    "bins",
    "observations",
    "length",
    "lipschitz",
    *RESULT_COLUMNS,
]

PARTICIPANT_DP = "dp"
"""Row "DP" of Table 1: hides a participant's whole record inside the group's histogram."""


def scales(
    sample: Sample,
    chains: Mapping[str, MarkovChain],
    epsilons: Sequence[float],
    mechanisms: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Noise scales for each group's histogram (``aggregate``) and each participant's (``individual``).

    A histogram of relative frequencies over n observations is 2/n-Lipschitz. Each scale covers all
    segments of the data it is for. ``dp`` in ``mechanisms`` stands for differential privacy of whole
    participants: group-dp on their total record lengths, of aggregate histograms only.
    """
    rows = []
    for group in sample.groups:
        members = sample.group(group)
        tasks: list[tuple[str, tuple[Participant, ...]]] = [("individual", (p,)) for p in members]
        if len(members) > 1:
            tasks.insert(0, ("aggregate", members))
        for task, people in tqdm(tasks, desc=f"{sample.dataset}/{group}", unit="histogram", disable=None, leave=False):
            observations = sum(p.observations for p in people)
            for mechanism in mechanisms:
                if mechanism == PARTICIPANT_DP and task != "aggregate":
                    continue
                for epsilon in epsilons:
                    if mechanism == PARTICIPANT_DP:
                        totals = [p.observations for p in people]
                        result = compute_scale("group-dp", chains[group], totals, epsilon)
                    else:
                        lengths = pooled_segment_lengths(people)
                        result = compute_scale(mechanism, chains[group], lengths, epsilon, **options.get(mechanism, {}))
                    place = {
                        "dataset": sample.dataset,
                        "label": sample.label,
                        "group": group,
                        "task": task,
                        "participant": people[0].name if task == "individual" else "",
                        "participants": len(people),
                        "bins": len(sample.states),
                        "observations": observations,
                        "lipschitz": 2 / observations,
                    }
                    rows.append(place | scale_row(result) | {"mechanism": mechanism})
    return frame(rows, SCALE_COLUMNS)


def errors_and_releases(
    sample: Sample, scale_table: pd.DataFrame, repetitions: int, count: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """:func:`errors` and :func:`releases`."""
    return errors(scale_table, repetitions, seed), releases(sample, scale_table, count, seed)


def errors(scale_table: pd.DataFrame, repetitions: int, seed: int) -> pd.DataFrame:
    """L1 error of released histograms: expected value, and mean over repetitions with its standard error.

    Over a group's individual histograms both are averaged; one histogram without a scale makes the
    row "not applicable".
    """
    rows = []
    for (dataset, group, task, mechanism), settings in scale_table.groupby(
        ["dataset", "group", "task", "mechanism"], sort=False
    ):
        people = settings["participant"].unique()
        bins = int(settings["bins"].iloc[0])
        # the same unit noise for every ε: one more ε changes no other number
        noise = {
            person: np.abs(
                named_generator(seed, f"{dataset}/{group}/{task}/{mechanism}/{person}").laplace(
                    size=(repetitions, bins)
                )
            ).sum(axis=1)
            for person in people
        }
        for epsilon, at_epsilon in settings.groupby("epsilon", sort=False):
            units = (at_epsilon["scale"] * at_epsilon["lipschitz"]).to_numpy()
            draws = [unit * noise[p] for unit, p in zip(units, at_epsilon["participant"], strict=True)]
            mean, standard_error = mean_and_error(np.mean(draws, axis=0))
            failed = at_epsilon[at_epsilon["status"] != "ok"]
            first = at_epsilon.iloc[0]
            rows.append(
                {
                    **{key: first[key] for key in KEYS},
                    "epsilon": epsilon,
                    "status": "ok" if failed.empty else "not applicable",
                    "reason": "" if failed.empty else failed["reason"].iloc[0],
                    "participants": int(at_epsilon["participants"].sum()),
                    "bins": bins,
                    "expected_error": bins * float(units.mean()),
                    "mean_error": mean,
                    "standard_error": standard_error,
                    "repetitions": repetitions,
                }
            )
    return frame(rows)


def releases(sample: Sample, scale_table: pd.DataFrame, count: int, seed: int) -> pd.DataFrame:
    """Exact histogram of each group and ``count`` noisy releases per mechanism and ε (Figure 4, lower row).

    For a group of one participant the histogram is that participant's.
    """
    rows = []
    for group in sample.groups:
        members = sample.group(group)
        counts = pooled_state_counts(members)
        exact = counts / counts.sum()
        task = "aggregate" if len(members) > 1 else "individual"
        wanted = scale_table[(scale_table["group"] == group) & (scale_table["task"] == task)]
        for row in wanted[wanted["status"] == "ok"].to_dict("records"):
            name = f"{sample.dataset}/{group}/releases/{row['mechanism']}"
            noise = named_generator(seed, name).laplace(size=(count, exact.size))
            released = exact + row["scale"] * row["lipschitz"] * noise
            for r in range(count):
                for s, state in enumerate(sample.states):
                    rows.append(
                        {
                            **{key: row[key] for key in KEYS},
                            "release": r + 1,
                            "state": state,
                            "exact_frequency": exact[s],
                            "released_frequency": released[r, s],
                        }
                    )
    return frame(rows)
