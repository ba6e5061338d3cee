"""The comparison as a person reads it: source by source, and in each the verdicts in one order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pufferflow.errors import ParameterError
from pufferflow.reporting.comparison import VERDICTS
from pufferflow.reporting.tables import Table

TOLD = ("place", "source", "reported", "ours", "standard error", "difference", "tolerance", "reason", "data")
"""What opens under a claim, with the words for it where they are others."""

WORDS = {"source": "where the value comes from", "kind": "kind of row"}


@dataclass(frozen=True)
class Judged:
    """One row of the comparison.

    Attributes
    ----------
    anchor : str
    claim, verdict, reported, ours : str
    details : dict
        Everything else that the row says, by its name; what it does not say is left out.
    """

    anchor: str
    claim: str
    verdict: str
    reported: str
    ours: str
    details: dict[str, str]


@dataclass(frozen=True)
class Source:
    """One source: its rows verdict by verdict."""

    name: str
    anchor: str
    rows: list[Judged]

    def count(self, verdict: str) -> int:
        """Return the number of rows with a verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    def first(self, verdict: str) -> str:
        """Return the anchor of the first row with a verdict, ``""`` without one."""
        return next((row.anchor for row in self.rows if row.verdict == verdict), "")


def sources_of(comparison: Table) -> list[Source]:
    """Return the sources of a printed comparison (:func:`~pufferflow.reporting.tables.comparison`), in its order.

    Raises
    ------
    ParameterError
        A verdict is none of ``comparison.VERDICTS``.
    """
    names = [str(name) for name in comparison.display.columns]
    rows = [
        dict(zip(names, map(str, row), strict=True)) for row in comparison.display.itertuples(index=False, name=None)
    ]
    if unknown := {row["verdict"] for row in rows} - set(VERDICTS):
        raise ParameterError(f"verdict {min(unknown)!r} is none of {', '.join(VERDICTS)}")
    sources = []
    for name in dict.fromkeys(row["paper"] for row in rows):
        anchor = f"from-{re.sub('[^a-z0-9]+', '-', name.lower())}"
        own = sorted((row for row in rows if row["paper"] == name), key=lambda row: VERDICTS.index(row["verdict"]))
        sources.append(Source(name, anchor, list(_judged(own, anchor))))
    return sources


def _judged(rows: list[dict[str, str]], anchor: str) -> Iterator[Judged]:
    for number, row in enumerate(rows, start=1):
        told = {WORDS.get(name, name): row[name] for name in TOLD if row[name] not in ("", "–")}
        yield Judged(f"{anchor}-{number}", row["claim"], row["verdict"], row["reported"], row["ours"], told)
