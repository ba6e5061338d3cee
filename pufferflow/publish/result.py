"""What a release is: noisy tables, what was decided without the readings, and its files."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._display import displayed
from pufferflow._protection import Level
from pufferflow._texts import spreadsheet_csv
from pufferflow._types import Floats, Ints
from pufferflow.accounting.account import percent
from pufferflow.publish.files import PUBLISH, SIMULATION, draft
from pufferflow.publish.noise import IMPACTS, USELESS, TableError, impact_label
from pufferflow.publish.page import page_of
from pufferflow.publish.statement import secret_of, sections_of, span_of, statement_of, warnings_of
from pufferflow.publish.statistics import Column, Statistic
from pufferflow.publish.texts import factor, number, plural, visible


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """The table of a statistic with noise.

    Attributes
    ----------
    sizes : int array, shape (cells,)
        Readings that count in each cell: public, and not all 0.
    counts : int array, shape (cells, columns)
        Noisy integers as they were drawn; they may be negative.
    ranges : float array, shape (cells, columns)
        Public range of each value.
    """

    statistic: Statistic
    cells: tuple[str, ...]
    columns: tuple[Column, ...]
    sizes: Ints
    counts: Ints
    scale: float
    error: TableError
    ranges: Floats

    @property
    def values(self) -> Floats:
        """What the integers stand for, shape (cells, columns); NaN in cells without readings."""
        values = self.statistic.values(self.sizes, self.counts)
        return np.where(self.sizes[:, np.newaxis] > 0, values, np.nan)

    def to_frame(self, unit: str | None) -> pd.DataFrame:
        """Return one row a value, as :meth:`Release.to_frame`, given the unit of the readings."""
        values = self.values
        i, j = np.nonzero(~np.isnan(values))
        value, error = values[i, j], self.error.half_width[i, j]
        labels = [column.label for column in self.columns]
        grouped = self.statistic.by != "all"
        many = len(labels) > 1 or not grouped
        ends = np.array([(column.low, column.high) for column in self.columns], dtype=float)[j]
        columns = {
            "statistic": self.statistic.full_name,
            "cell": [
                " / ".join([self.cells[a]] * grouped + [labels[b]] * many)
                for a, b in zip(i, j, strict=True)
            ],
            "low": ends[:, 0],
            "high": ends[:, 1],
            "value": value,
            "error": error,
            "band_low": value - error,
            "band_high": value + error,
            "unit": self.unit(unit),
            "impact": [impact_label(impact) for impact in self.error.impact[i, j]],
        }
        return pd.DataFrame(columns)

    @property
    def heading(self) -> str:
        """Title with the cells, for people."""
        return f"{self.statistic.title} by {self.statistic.by}".removesuffix(" by all")

    def unit(self, word: str | None) -> str:
        """Return the unit of the values, given that of the readings."""
        if self.statistic.in_unit:
            return word or ""
        kind = self.statistic.quantity.removeprefix("number of ")
        return "share" if self.statistic.relative else kind

    def quantity(self, word: str | None) -> str:
        """Return what the values are, given the unit of the readings."""
        kind = self.statistic
        return f"{kind.quantity} ({word})" if kind.in_unit and word else kind.quantity

    def error_text(self, word: str | None) -> str:
        """Return how far the values may be off, from the least to the most, and the impact."""
        half = self.error.half_width[self.sizes > 0]
        ends = " to ".join(dict.fromkeys(f"±{number(end)}" for end in (half.min(), half.max())))
        unit = self.unit(word)
        most = f"{ends} {visible(unit)}" if unit not in ("", "share") else ends
        which = f"all {half.size:,} values" if half.size > 1 else "its value"
        return f"{most} on {which} (95 %), noise impact {self.error.label}"

    @property
    def nothing_to_tell(self) -> bool:
        """Whether one constant a column fits the noisy values of all cells within the band.

        Of one cell: one constant fits all its columns. False where there is nothing to compare.
        """
        used = self.sizes > 0
        values, half = self.values[used], self.error.half_width[used]
        if len(values) == 1:
            values, half = values.T, half.T
        fits = (values - half).max(axis=0) <= (values + half).min(axis=0)
        return len(values) > 1 and bool(fits.all())


@displayed("epsilon", "participants", "readings", "impact")
@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Noisy tables with everything that was decided without the readings.

    Attributes
    ----------
    first, last : str or None
        Ends of the public range in ISO format; None where it is for ever.
    theta_text, theta_origin : str
        What the readings follow, as a noun, and where that comes from: no number of a fitted Θ.
    theta_is_public : bool
        Whether ``theta_document`` and ``certificate`` may be published.
    outright : bool
        Whether the noise hides everything of a participant, whatever Θ is.
    spent, limit : Fraction or None, float or None
        The share of the limit that is used in its range, and the ε of the limit.
    """

    tables: tuple[NoisyTable, ...]
    level: Level
    epsilon: float
    participants: int
    readings: int
    step_seconds: int | None = None
    first: str | None = None
    last: str | None = None
    clock: str = "none"
    zone: str | None = None
    unit: str | None = None
    cohort: str | None = None
    groups: tuple[str, ...] = ()
    theta_text: str = ""
    theta_origin: str = ""
    theta_is_public: bool = False
    theta_document: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    outright: bool = False
    ledger: bool = False
    alone: bool = False
    spent: Fraction | None = None
    limit: float | None = None
    warnings: tuple[str, ...] = ()
    seed: int | None = None
    figure: bool = True
    date: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")

    def __repr__(self) -> str:
        kind = "" if self.private else "NOT PRIVATE: "
        return f"{kind}Release({self.title}, epsilon={self.epsilon:g}, noise impact {self.impact})"

    @property
    def private(self) -> bool:
        """False of a simulation."""
        return self.seed is None

    @property
    def title(self) -> str:
        """Headings of all tables."""
        return " and ".join(table.heading for table in self.tables)

    @property
    def impact(self) -> str:
        """The largest impact of the noise on the middle value of a table."""
        labels = [*(label for _, label in IMPACTS), USELESS]
        return max((table.error.label for table in self.tables), key=labels.index)

    @property
    def nothing_to_tell(self) -> bool:
        """Whether no difference between the cells of any table can be told from noise."""
        return all(table.nothing_to_tell for table in self.tables)

    @property
    def statement(self) -> str:
        """What is promised, as Markdown."""
        return statement_of(self)

    @property
    def band(self) -> pd.DataFrame:
        """The band that holds all exact values of a table at once with probability 95 %."""
        return self.to_frame()[["statistic", "cell", "band_low", "band_high"]]

    def to_frame(self) -> pd.DataFrame:
        """Return one row a number; cells without readings have none.

        Columns are statistic, cell, low and high (ends of a bin), value, error (of all numbers of a
        table at once, with probability 95 %), band_low, band_high, unit, impact and epsilon.
        """
        frame = pd.concat([table.to_frame(self.unit) for table in self.tables], ignore_index=True)
        marked = self.epsilon if self.private else f"NOT PRIVATE ({self.epsilon:g})"
        return frame.assign(epsilon=marked)

    def to_csv(self) -> str:
        """Return :meth:`to_frame` as CSV text that no spreadsheet computes with."""
        frame = self.to_frame().map(lambda v: visible(v) if isinstance(v, str) else v)
        return spreadsheet_csv(frame)

    def to_dict(self) -> dict[str, Any]:
        """Return what may be published as plain JSON types."""
        return {
            "private": self.private,
            "warnings": list(warnings_of(self)),
            "statement": dict(sections_of(self)),
            "epsilon": self.epsilon,
            "window_steps": None if self.outright else self.level.window,
            "side_information": "any" if self.outright else self.level.side_information,
            "noise_scales": {table.statistic.full_name: table.scale for table in self.tables},
            "rows": self.to_frame().replace({np.nan: None}).to_dict("records"),
        }

    def lines(self, ledger: str = "", output: str = "") -> list[str]:
        """Return at most six lines for a terminal, given the names of ledger and folder."""
        lines = []
        for table in self.tables[:2]:
            silent = "; no difference can be told from noise" if table.nothing_to_tell else ""
            lines.append(f"{table.statistic.full_name}: {table.error_text(self.unit)}{silent}")
        if left := len(self.tables) - len(lines):
            lines.append(f"and {plural(left, 'table')} more")
        odds = f"odds change by at most {factor(self.epsilon)} x (epsilon {self.epsilon:g})"
        lines.append(f"protects {secret_of(self)}: {odds}")
        if not self.private:
            where = f"in {output}/{SIMULATION}/" if output else "for planning"
            return [*lines, f"NOT PRIVATE: a simulation with seed {self.seed}, {where}"]
        used = percent(self.spent or Fraction(0))
        now = "now fully used" if used >= 100 else f"now {used} % used"
        account = f"ledger    {ledger}: {now} for ever"
        if not self.ledger:
            account = "no ledger: nobody adds up what is published of these readings"
        elif self.alone:
            account = f"ledger    {ledger}: recorded, but its guarantee speaks of itself alone"
        elif not self.level.whole:
            span = span_of(self)
            account += "; with times, new readings are free"
            if span:
                account = f"ledger    {ledger}: {span} {now}; later readings are untouched"
        return [*lines, account, *([f"safe to publish: {output}/{PUBLISH}/"] if output else [])]

    def files(self) -> dict[str, str]:
        """Return the text of each file by its path in the folder of the release."""
        texts = {
            "index.html": page_of(self),
            "statement.md": self.statement,
            "values.csv": self.to_csv(),
            "release.json": json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n",
        }
        if self.theta_is_public and not self.outright:
            documents = {"theta.json": self.theta_document, "certificate.json": self.certificate}
            texts |= {name: json.dumps(doc) + "\n" for name, doc in documents.items() if doc}
        folder = PUBLISH if self.private else SIMULATION
        return {f"{folder}/{name}": text for name, text in texts.items()}

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the release to a new folder, which appears whole or not at all.

        Raises DataError: something of that name exists, or the folder that it is to be in does not.
        """
        with draft(folder) as making:
            return making.write(self)
