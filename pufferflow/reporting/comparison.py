"""The comparison table: every claim and number of the paper beside ours, with a verdict.

Verdicts
--------
reproduced
    Same setting as the paper's (worked examples, its own synthetic data) and within the tolerance.
same conclusion on other data or settings
    The paper's data could not be used, or the run was asked for another ε, α or length than the paper's; what was
    computed agrees with the claim, or with the number within the tolerance.
differs
    Neither.
not applicable
    There is nothing to compare (a mechanism that gives no number here or there).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from pufferflow.experiments.tidy import frame
from pufferflow.reporting.style import mechanism_style

REPRODUCED = "reproduced"
SAME = "same conclusion on other data or settings"
DIFFERS = "differs"
NOT_APPLICABLE = "not applicable"
VERDICTS = (REPRODUCED, SAME, DIFFERS, NOT_APPLICABLE)

COLUMNS = ["kind", "claim", "place", "reported", "ours", "standard_error", "difference", "tolerance", "verdict", "data"]

OTHER_DATA_FACTOR = 2.0
"""A number on other data supports the paper's when it lies within this factor of it."""


class _Setting(NamedTuple):
    epsilons: tuple[float, ...]
    length: int
    alphas: tuple[float, float]


FIGURE_4 = _Setting((0.2, 1.0, 5.0), 100, (0.1, 0.4))
"""The paper's settings of the upper row of Figure 4; α from the first to the second."""


class Row(NamedTuple):
    """One row of the comparison table."""

    kind: str
    claim: str
    place: str
    reported: str
    ours: str
    standard_error: float | None
    difference: float | None
    tolerance: str
    verdict: str
    data: str


def reported_values() -> pd.DataFrame:
    """Return the published numbers as printed, one row a number (reported.csv)."""
    with files("pufferflow.reporting").joinpath("reported.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream, dtype=str, keep_default_na=False)


def compare(
    worked: pd.DataFrame | None = None,
    synthetic: pd.DataFrame | None = None,
    limits: pd.DataFrame | None = None,
    histograms: Mapping[str, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Build the table from the error tables at hand: ordinal claims first, then numbers.

    Parameters
    ----------
    worked : DataFrame, optional
        Table of ``experiments.worked_examples``, with those of the related experiments below it.
    synthetic, limits : DataFrame, optional
        Tables of ``experiments.synthetic``.
    histograms : mapping of str to DataFrame, optional
        Error tables of ``experiments.histograms`` by data set ("activity", "electricity").
    """
    reported = reported_values()
    tables = dict(histograms or {})
    rows: list[Row] = []
    if synthetic is not None:
        rows += _synthetic_claims(synthetic, limits)
    for dataset in ("activity", "electricity"):
        if dataset in tables:
            rows += _histogram_claims(dataset, tables[dataset], reported)
    if worked is not None:
        rows += _stated_numbers(worked, reported)
    for dataset in ("activity", "electricity"):
        if dataset in tables:
            rows += _histogram_numbers(dataset, tables[dataset], reported)
    return frame((row._asdict() for row in rows), COLUMNS)


def compare_tables(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """:func:`compare` of tables by name: worked, <related>_claims, synthetic, limits, activity, electricity."""
    stated = [table for name, table in tables.items() if name == "worked" or name.endswith("_claims")]
    worked = pd.concat(stated, ignore_index=True) if stated else None
    single = {name: tables.get(name) for name in ("synthetic", "limits")}
    return compare(
        worked, **single, histograms={name: tables[name] for name in ("activity", "electricity") if name in tables}
    )


def _claim(
    claim: str, place: str, reported: str, ours: str, holds: bool, data: str, *, same_setting: bool = False
) -> Row:
    verdict = DIFFERS if not holds else REPRODUCED if same_setting else SAME
    return Row("claim", claim, place, reported, ours, None, None, "", verdict, data)


def _increasing(values: list[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _synthetic_claims(errors: pd.DataFrame, limits: pd.DataFrame | None) -> Iterator[Row]:
    place = "Figure 4, upper row"
    present = set(errors["mechanism"])
    alphas = errors["alpha"].astype(float)
    own_chains = bool((errors["length"] == FIGURE_4.length).all()) and (
        abs(alphas.min() - FIGURE_4.alphas[0]) < 1e-9 and abs(alphas.max() - FIGURE_4.alphas[1]) < 1e-9
    )
    for epsilon, at_epsilon in errors.groupby("epsilon", sort=False):
        own = own_chains and epsilon in FIGURE_4.epsilons
        wide = at_epsilon.pivot_table(index="alpha", columns="mechanism", values="expected_error", dropna=False)
        if {"mqm-exact", "mqm-approx"} <= present:
            below = wide["mqm-exact"] < wide["mqm-approx"]
            ours = f"at {int(below.sum())} of {len(below)} values of α"
            claim = f"MQMExact < MQMApprox, ε = {epsilon:g}"
            yield _claim(claim, place, "at every α", ours, bool(below.all()), "synthetic", same_setting=own)
        for mechanism in ("mqm-exact", "mqm-approx"):
            if mechanism in present and len(wide) > 1:
                curve = wide[mechanism].sort_index(ascending=False).to_list()
                claim = f"the error of {mechanism_style(mechanism).label} falls as α rises, ε = {epsilon:g}"
                ours = f"{curve[-1]:.4g} at α = {wide.index.min():g} down to {curve[0]:.4g} at α = {wide.index.max():g}"
                yield _claim(claim, place, "falls", ours, _increasing(curve), "synthetic", same_setting=own)
    if "gk16" in present and limits is not None and len(limits):
        limit = float(limits["alpha"].iloc[0])
        gk16 = errors[errors["mechanism"] == "gk16"]
        holds = bool(((gk16["alpha"] > limit) == (gk16["status"] == "ok")).all())
        ours = f"not applicable below α = {limit:.4f} at every ε"
        claim = "GK16 is not applicable left of the dashed line"
        yield _claim(claim, place, "not applicable", ours, holds, "synthetic", same_setting=own_chains)


def _histogram_claims(dataset: str, errors: pd.DataFrame, reported: pd.DataFrame) -> Iterator[Row]:
    place = "Table 1" if dataset == "activity" else "Table 3"
    label = f"{dataset}, {errors['label'].iloc[0]}"
    published = reported[reported["dataset"] == dataset]
    chain = [m for m in ("mqm-exact", "mqm-approx", "group-dp", "dp") if m in set(errors["mechanism"])]
    for (group, task, epsilon), found in errors.groupby(["group", "task", "epsilon"], sort=False):
        values = found.set_index("mechanism")["expected_error"]
        order = [m for m in chain if m in values.index]
        theirs = published[
            (published["group"] == group) & (published["task"] == task) & (published["epsilon"] == f"{epsilon:g}")
        ].set_index("mechanism")["value"]
        printed = [theirs[m] for m in order] if all(m in theirs.index for m in order) else []
        if len(order) > 1:
            yield _claim(
                f"{' < '.join(mechanism_style(m).label for m in order)}: {group}, {task}, ε = {epsilon:g}",
                place,
                " < ".join(printed) if printed else "same order at other ε",
                " < ".join(f"{values[m]:.4f}" for m in order),
                _increasing([values[m] for m in order]),
                label,
            )
    gk16 = errors[errors["mechanism"] == "gk16"]
    if len(gk16):
        failed = int((gk16["status"] != "ok").sum())
        ours = f"not applicable in {failed} of {len(gk16)} settings"
        yield _claim(f"GK16 is not applicable: {dataset}", place, "N/A", ours, failed == len(gk16), label)
    if len(errors["epsilon"].unique()) > 1:
        for mechanism, found in errors[errors["status"] == "ok"].groupby("mechanism", sort=False):
            curves = found.sort_values("epsilon", ascending=False).groupby(["group", "task"])["expected_error"]
            holds = all(_increasing(curve.to_list()) for _, curve in curves)
            name = mechanism_style(str(mechanism)).label
            yield _claim(
                f"the error of {name} falls as ε rises: {dataset}",
                place,
                "falls",
                "falls" if holds else "does not",
                holds,
                label,
            )


def _tolerance(printed: str) -> float:
    """Half a unit of the last printed digit; of a value printed in full (up to two decimals) only roundings."""
    decimals = len(printed.partition(".")[2])
    return 0.5 * 10.0**-decimals if decimals > 2 else 1e-9


def _stated_numbers(stated: pd.DataFrame, reported: pd.DataFrame) -> Iterator[Row]:
    printed = reported[reported["key"] != ""].set_index("key")
    for row in stated.itertuples():
        if row.key not in printed.index:
            continue
        theirs: Any = printed.loc[str(row.key)]
        ours = str(row.computed)
        try:
            difference = float(ours) - float(theirs["value"])
            tolerance = _tolerance(theirs["value"])
            agree, allowed, ours = abs(difference) <= tolerance * (1 + 1e-9), f"± {tolerance:g}", f"{float(ours):.6g}"
        except ValueError:
            difference, agree, allowed = None, ours == theirs["value"], "identical"
        # where the source is wrong, its note says why
        claim = theirs["claim"] if agree or not theirs["note"] else f"{theirs['claim']} ({theirs['note']})"
        verdict = REPRODUCED if agree else DIFFERS
        place, value = theirs["place"], theirs["value"]
        yield Row("number", claim, place, value, ours, None, difference, allowed, verdict, "worked example")


def _histogram_numbers(dataset: str, errors: pd.DataFrame, reported: pd.DataFrame) -> Iterator[Row]:
    label = f"{dataset}, {errors['label'].iloc[0]}"
    published = reported[(reported["dataset"] == dataset) & (reported["task"] != "seconds")]
    keyed = {(row.group, row.task, row.mechanism, f"{row.epsilon:g}"): row for row in errors.itertuples()}
    for theirs in published.itertuples():
        found: Any = keyed.get((theirs.group, theirs.task, theirs.mechanism, str(theirs.epsilon)))
        if found is None:
            continue
        mechanism = mechanism_style(str(theirs.mechanism)).label
        name = f"L1 error of {mechanism}: {theirs.group}, {theirs.task}, ε = {theirs.epsilon}"
        printed = str(theirs.value)
        if printed == "N/A" or found.status != "ok":
            agree = printed == "N/A" and found.status != "ok"
            ours = "N/A" if found.status != "ok" else f"{found.expected_error:.4f}"
            verdict = NOT_APPLICABLE if agree else DIFFERS
            yield Row("number", name, str(theirs.place), printed, ours, None, None, "", verdict, label)
            continue
        ratio = found.expected_error / float(printed)
        agree = 1 / OTHER_DATA_FACTOR <= ratio <= OTHER_DATA_FACTOR
        yield Row(
            "number",
            name,
            str(theirs.place),
            printed,
            f"{found.mean_error:.4f}",
            float(found.standard_error),
            float(found.mean_error) - float(printed),
            f"factor {OTHER_DATA_FACTOR:g}, other data",
            SAME if agree else DIFFERS,
            label,
        )
