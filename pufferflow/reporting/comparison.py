"""The comparison table: every claim and number of the sources beside ours, with a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from pufferflow.errors import ParameterError

REPRODUCED = "reproduced"
RESTORED = "agrees with the restored value"
SAME = "same conclusion on other data or settings"
NOT_COMPARABLE = "not comparable"
TYPO = "typo in the source"
DIFFERS = "differs"
NOT_APPLICABLE = "not applicable"
UNJUDGED = "no verdict"
MEANINGS = {
    REPRODUCED: "the source's own setting (its examples, its own synthetic data, bounds that no data enter), and "
    "within the tolerance; never of a value that was restored or derived here",
    RESTORED: "the same of a restored value: two derivations of ours agree, the printed value was not seen",
    SAME: "an order or an applicability that holds on other data, or at other ε, α or lengths than the source's",
    NOT_COMPARABLE: "a number on other data: how close it is says nothing of the computation; the reason says what the "
    "difference is made of",
    TYPO: "the source misprints what it proves",
    DIFFERS: "the same was computed and another value came out, or a claim does not hold here; the reason says why",
    NOT_APPLICABLE: "there is no number on either side, with the source",
    UNJUDGED: "a worked value, an illustration or a diagnosis: nothing reported that could agree",
}
"""What each verdict says."""

VERDICTS = tuple(MEANINGS)

ORIGIN_MEANINGS = {
    "printed": "it stands in the source",
    "restored": "the formulas of the source were lost when it was turned into plain text; the value was worked out "
    "again from them",
    "author's code": "a program of an author prints it; the place names repository and file",
    "other code": "a program of others prints it; the place names repository and file",
    "derived here": "the source states no value",
}
"""Where a reported value comes from."""

ORIGINS = tuple(ORIGIN_MEANINGS)

PAPERS = {
    "pufferfish": "Song, Wang and Chaudhuri 2017",
    "noisy_max": "Liu, Wang and Zhang 2022",
    "base2_exponential": "Ilvento 2020",
    "alpha_beta": "Rastogi, Suciu and Hong 2007",
    "classical": "Differential privacy basics",
}
"""Our sources, by the names of their files of reported values."""

UNJUDGED_KINDS = ("worked value", "illustration", "diagnosis")

WORKED = "worked example"
"""Data of a number that follows from definitions."""


class Row(NamedTuple):
    """One row of the comparison table."""

    paper: str
    kind: str
    claim: str
    place: str
    source: str
    reported: str
    ours: str
    standard_error: float | None
    difference: float | None
    tolerance: str
    verdict: str
    reason: str
    data: str


COLUMNS = list(Row._fields)


@cache
def _reported() -> pd.DataFrame:
    folder = files("pufferflow.reporting").joinpath("reported")
    tables = []
    for name, paper in PAPERS.items():
        with folder.joinpath(f"{name}.csv").open(encoding="utf-8") as stream:
            tables.append(pd.read_csv(stream, dtype=str, keep_default_na=False).assign(paper=paper))
    return pd.concat(tables, ignore_index=True).fillna("")


def reported_values() -> pd.DataFrame:
    """Return what the sources report, one row a value (the files in ``reported``).

    Columns: ``key``, which finds the computed value; ``source``, one of :data:`ORIGINS`; ``kind``, empty or one of
    :data:`UNJUDGED_KINDS`; ``place``, ``claim``, ``value``; ``disagreement``, the verdict if ours is another (empty:
    differs); ``reason``, what a reader should know of the row; ``paper``; and of the first paper's tables ``dataset``,
    ``group``, ``task``, ``mechanism`` and ``epsilon``.
    """
    return _reported().copy()


def compare(rows: Iterable[Row]) -> pd.DataFrame:
    """Table of all rows, paper by paper: claims first, then numbers, those of worked examples before those of data.

    Raises
    ------
    ParameterError
        A row says less or more than it may: a difference without a reason, or "reproduced" of a value that no source
        prints.
    """
    papers = list(PAPERS.values())
    ordered = sorted(
        rows,
        key=lambda row: (papers.index(row.paper), row.kind != "claim", row.kind == "number" and row.data != WORKED),
    )
    for row in ordered:
        if row.verdict in (DIFFERS, NOT_COMPARABLE, TYPO) and not row.reason:
            raise ParameterError(f"comparison: {row.claim!r} reads {row.verdict!r} without a reason; give one")
        if row.verdict == REPRODUCED and row.source in ("restored", "derived here"):
            raise ParameterError(f"comparison: {row.claim!r} cannot read {REPRODUCED!r}, its value is {row.source}")
    return pd.DataFrame([row._asdict() for row in ordered], columns=COLUMNS)


def verdicts_of(table: pd.DataFrame, column: str = "paper") -> dict[str, dict[str, int]]:
    """Count the verdicts by ``paper`` or by ``source``, in the order of :data:`PAPERS`, :data:`ORIGINS` and verdicts.

    One number over all papers would say nothing: they differ in what could be checked.
    """
    counts = table.groupby([column, "verdict"]).size()
    return {
        name: {verdict: int(counts[name, verdict]) for verdict in VERDICTS if (name, verdict) in counts.index}
        for name in (PAPERS.values() if column == "paper" else ORIGINS)
        if name in counts.index
    }


def claim(
    text: str,
    place: str,
    reported: str,
    ours: str,
    holds: bool,
    data: str,
    reason: str,
    *,
    same_setting: bool = False,
) -> Row:
    """Row of a claim of the paper in words, which holds or does not; ``reason``: why it may not."""
    verdict = (REPRODUCED if same_setting else SAME) if holds else DIFFERS
    paper, why = PAPERS["pufferfish"], "" if holds else reason
    return Row(paper, "claim", text, place, "printed", reported, ours, None, None, "", verdict, why, data)


def agreement(source: str) -> str:
    """Verdict of a value that agrees in the source's own setting."""
    return RESTORED if source == "restored" else REPRODUCED


def increasing(values: list[float]) -> bool:
    """Say whether each value is larger than the one before."""
    return all(a < b for a, b in pairwise(values))


def _tolerance(printed: str) -> float:
    """Half a unit of the last printed digit; of a value printed in full (up to two decimals) only roundings."""
    decimals = len(printed.partition(".")[2])
    return 0.5 * 10.0**-decimals if decimals > 2 else 1e-9


def _shortened(computed: str) -> str:
    """Return a number in six digits, anything else as it is."""
    try:
        return f"{float(computed):.6g}"
    except ValueError:
        return computed


def stated_numbers(stated: pd.DataFrame, data: str = WORKED) -> Iterator[Row]:
    """Rows of the values that a source reports, beside those of a table of ``studies.values`` made from ``data``."""
    reported = reported_values()
    printed = reported[reported["key"] != ""].set_index("key")
    for row in stated.itertuples():
        if row.key not in printed.index:
            continue
        theirs: Any = printed.loc[str(row.key)]
        ours = str(row.computed)
        difference, allowed, agree = None, "identical", ours == theirs["value"]
        try:
            difference = float(ours) - float(theirs["value"])
            tolerance = _tolerance(theirs["value"])
            agree, allowed, ours = abs(difference) <= tolerance * (1 + 1e-9), f"± {tolerance:g}", f"{float(ours):.6g}"
        except ValueError:
            pass
        kind, verdict = "number", agreement(theirs["source"]) if agree else theirs["disagreement"] or DIFFERS
        if theirs["kind"]:
            kind, verdict, difference, allowed = theirs["kind"], UNJUDGED, None, ""
            ours = _shortened(ours)
        yield Row(
            theirs["paper"],
            kind,
            theirs["claim"],
            theirs["place"],
            theirs["source"],
            theirs["value"],
            ours,
            None,
            difference,
            allowed,
            verdict,
            theirs["reason"] or ("" if agree or theirs["kind"] else "another value came out than the source states"),
            data,
        )
