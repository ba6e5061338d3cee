"""How much noise each mechanism asks for, how little would do, and what the noise really gives away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from tqdm import tqdm

from pufferflow.accounting import Accountant
from pufferflow.audit import CountQuery, privacy_losses
from pufferflow.coupling import lower_bound
from pufferflow.markov import MarkovChain
from pufferflow.mechanisms import compute_scale, find_mechanism
from pufferflow.records.sample import Sample, pooled_segment_lengths
from pufferflow.studies.scaling import RESULT_COLUMNS, scale_row, without_proofs
from pufferflow.studies.tidy import frame

KEYS = ["dataset", "label", "group", "mechanism", "epsilon"]
COLUMNS = [
    *KEYS,
    "length",
    "bins",
    "observations",
    *RESULT_COLUMNS,
    "expected_error",
    "relative_noise",
    "lower_bound",
    "gap",
    "counted",
    "actual_loss",
]
BOUNDS = ("theorem_4_4", "quilts", "leakage")


class Case(NamedTuple):
    """One chain and the data it is of."""

    dataset: str
    label: str
    group: str
    chain: MarkovChain
    length: int
    observations: int


def cases(**data: Any) -> list[Case]:
    """Cases of a fitted ``sample`` and its ``chains``, or the synthetic ones of ``stay`` and ``length``."""
    return sample_cases(**data) if "sample" in data else synthetic_cases(**data)


def synthetic_cases(stay: Iterable[Sequence[float]], length: int) -> list[Case]:
    """Stationary binary chains by (P(0|0), P(1|1))."""
    return [
        Case(
            "synthetic",
            "synthetic",
            f"P(0|0) = {zero:g}, P(1|1) = {one:g}",
            MarkovChain([[zero, 1 - zero], [1 - one, one]]),
            length,
            length,
        )
        for zero, one in stay
    ]


def sample_cases(sample: Sample, chains: Mapping[str, MarkovChain]) -> list[Case]:
    """The groups of a sample, each with its fitted chain and its longest segment."""
    return [
        Case(
            sample.dataset,
            sample.label,
            group,
            chains[group],
            max(pooled_segment_lengths(sample.group(group))),
            sum(p.observations for p in sample.group(group)),
        )
        for group in sample.groups
    ]


def least_noise(
    epsilons: Sequence[float],
    mechanisms: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    exact_loss: Mapping[str, Any],
    **data: Any,
) -> pd.DataFrame:
    """Scales of all mechanisms beside the lower bound and what they give away, for the :func:`cases` of ``data``.

    ``expected_error`` is that of the relative-frequency histogram, L1 norm; none for ``wasserstein``, whose scale is
    for one count, unless that decides the histogram, as with two states. ``actual_loss`` is that of the count of
    the states ``counted``, those that the lower bound found to leak most, at the mechanism's scale: the exact loss,
    rounded up; computed at the ``epsilons`` of ``exact_loss`` for segments of up to its ``longest`` records. ``gap``
    is scale / lower bound.
    """
    rows: list[dict[str, Any]] = []
    plain = without_proofs(options)
    settings = [(case, epsilon) for case in cases(**data) for epsilon in epsilons]
    for case, epsilon in tqdm(settings, desc="least noise", disable=None, leave=False):
        least = lower_bound(case.chain, case.length, epsilon, alternating=False)
        bins = case.chain.states
        place = {
            "dataset": case.dataset,
            "label": case.label,
            "group": case.group,
            "bins": bins,
            "observations": case.observations,
            "lower_bound": least.scale,
            "counted": " ".join(str(state) for state in sorted(least.states)),
        }
        count = {"states": sorted(least.states)}  # the one that leaks most, for mechanisms of one query
        results = {
            name: compute_scale(
                name,
                case.chain,
                case.length,
                epsilon,
                **(plain.get(name, {}) if find_mechanism(name).every_query else count),
            )
            for name in mechanisms
        }
        paper = results["mqm-exact"].scale if "mqm-exact" in results else None
        losses: dict[float, float] = {}
        if case.length <= exact_loss["longest"] and epsilon in exact_loss["epsilons"]:
            scales = sorted({result.scale for result in results.values() if result.scale is not None})
            of_scales = privacy_losses(case.chain, case.length, scales, CountQuery(least.states))
            losses = {scale: one.loss for scale, one in zip(scales, of_scales, strict=True)}
        for result in results.values():
            row = place | scale_row(result)
            if result.scale is not None:
                if find_mechanism(result.mechanism).every_query or bins <= 2:
                    row["expected_error"] = bins * result.scale * 2 / case.observations
                row["relative_noise"] = None if paper is None else result.scale / paper
                row["gap"] = result.scale / least.scale if least.scale > 0 else None
                row["actual_loss"] = losses.get(result.scale)
            rows.append(row)
    return frame(rows, COLUMNS)


def composition(epsilon: float, releases: int, **data: Any) -> pd.DataFrame:
    """Total cost of 1, 2, … releases at MQMExact's scale for ε, by every bound, for the :func:`cases` of ``data``."""
    rows = []
    for case in cases(**data):
        scale = compute_scale("mqm-exact", case.chain, case.length, epsilon).scale
        assert scale is not None  # mqm-exact always applies
        accountant = Accountant(case.chain, case.length)
        for count in range(1, releases + 1):
            accountant.add(scale)
            cost = accountant.cost()
            rows += [
                {
                    "dataset": case.dataset,
                    "label": case.label,
                    "group": case.group,
                    "bound": bound,
                    "epsilon": epsilon,
                    "length": case.length,
                    "scale": scale,
                    "releases": count,
                    "total_epsilon": getattr(cost, bound),
                }
                for bound in BOUNDS
            ]
    return frame(rows)
