"""Results of a release: noisy tables, public facts of the readings, and its files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._util.types import Bools, Floats
from pufferflow.accounting.account import Level, percent
from pufferflow.accounting.entries import Paid
from pufferflow.publish import statement as statements
from pufferflow.publish.files import PUBLISH, SIMULATION
from pufferflow.publish.noise import CONFIDENCE, LIMITS, Noise, impact_label, shortfall
from pufferflow.publish.page import page_of
from pufferflow.publish.request import ReleaseOptions
from pufferflow.publish.statistics import GRID, MostFrequent, Table
from pufferflow.publish.texts import factor, number, plural, spreadsheet_csv, visible


@dataclass(frozen=True, eq=False, repr=False)
class NoisyTable(Table):
    """A table whose ``counts`` are noisy integers, which may be negative.

    ``other`` is noise of the other kind, if it was possible; ``word`` is the unit of the readings.
    Not all ``sizes`` are 0.
    """

    noise: Noise
    other: Noise | None = None
    word: str | None = None

    @cached_property
    def half_width(self) -> Floats:
        """Simultaneous errors of the values, in their unit, from public facts alone.

        With probability .95 the errors of all values are at most this, rounding included; infinite
        in cells without readings. Shape (cells, columns).
        """
        kind, size = self.statistic, self.sizes.astype(np.float64)
        cells, columns = max(1, int((size > 0).sum())), len(self.columns)
        if isinstance(kind, MostFrequent):
            width: float = shortfall(self.noise.scale, kind.top, columns, cells)
        else:
            width = kind.unit * self.noise.quantile(CONFIDENCE, cells * columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            widths = width / size + kind.rounding if kind.relative else width + kind.rounding * size
        return np.where(size > 0, widths, np.inf)[:, np.newaxis] * np.ones(self.ranges.shape)

    @property
    def impact(self) -> Floats:
        """The half-widths over the public ranges of the values."""
        return self.half_width / self.ranges

    @property
    def middle(self) -> tuple[float, float]:
        """Median half-width and impact of all published values."""
        half, impact = (np.median(of[self.published]) for of in (self.half_width, self.impact))
        return float(half), float(impact)

    @property
    def is_useless(self) -> bool:
        """Whether more than half of the values are VERY HIGH."""
        return bool((self.impact[self.published] >= LIMITS[-1]).mean() > 0.5)

    @property
    def values(self) -> Floats:
        """Values of the integers, shape (cells, columns); NaN in cells without readings."""
        values = self.statistic.values(self.sizes, self.counts)
        return np.where(self.sizes[:, np.newaxis] > 0, values, np.nan)

    @property
    def published(self) -> Bools:
        """Mask of the published values, shape (cells, columns)."""
        return ~np.isnan(self.values)

    @property
    def estimates(self) -> Floats:
        """The possible values nearest to the noisy ones: shares have sum 1."""
        is_share = self.statistic.relative and not self.statistic.in_unit
        return nearest_shares(self.values) if is_share else self._cut(self.values)

    @property
    def band(self) -> Floats:
        """Ends of the band, cut to possible values, shape (2, cells, columns)."""
        half = self.half_width
        return self._cut(np.stack([self.values - half, self.values + half]))

    def _cut(self, values: Floats) -> Floats:
        """Return values cut to the possible ones of their cells."""
        most = self.sizes[:, np.newaxis] * (GRID if self.statistic.in_unit else 1)
        low, high = (self.statistic.values(self.sizes, end) for end in (0 * most, most))
        return np.clip(values, low, high)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per value, as :meth:`Release.to_frame`."""
        i, j = np.nonzero(self.published)
        if names := isinstance(self.statistic, MostFrequent):  # in the order of their ranks
            order = np.lexsort((self.values[i, j], i))
            i, j = i[order], j[order]
        value, error = self.values[i, j], self.half_width[i, j]
        ends = np.array([(column.low, column.high) for column in self.columns], dtype=float)[j]
        cells = np.array(self.cells, dtype=object)[i]
        labels = named = np.array([column.label for column in self.columns], dtype=object)[j]
        if names:
            labels = value.astype(int).astype(str).astype(object)
        if self.statistic.by != "all":
            labels = cells + " / " + labels if len(self.columns) > 1 else cells
        columns = {
            "statistic": self.statistic.full_name,
            "cell": labels,
            "low": ends[:, 0],
            "high": ends[:, 1],
            "value": value,
            "estimate": self.estimates[i, j],
            "error": error,
            "band_low": self.band[0, i, j],
            "band_high": self.band[1, i, j],
            "unit": self.unit,
            "impact": [impact_label(impact) for impact in self.impact[i, j]],
        }
        if names:
            columns |= {"value": named, "estimate": named, "band_low": np.nan, "band_high": np.nan}
        return pd.DataFrame(columns)

    @property
    def heading(self) -> str:
        """Title with the cells."""
        return f"{self.statistic.title} by {self.statistic.by}".removesuffix(" by all")

    @property
    def unit(self) -> str:
        """Unit of the values."""
        if self.statistic.in_unit:
            return self.word or ""
        kind = self.statistic.quantity.removeprefix("number of ")
        return "share" if self.statistic.relative else kind

    @property
    def suffix(self) -> str:
        """What follows a number: a space and the unit, or nothing for shares."""
        unit = visible(self.unit)
        return f" {unit}" * (unit not in ("", "share"))

    @property
    def quantity(self) -> str:
        """Quantity of the values, with the unit of the readings if it applies."""
        kind = self.statistic
        return f"{kind.quantity} ({self.word})" if kind.in_unit and self.word else kind.quantity

    @property
    def error_text(self) -> str:
        """Smallest and largest error of the values, and the impact."""
        half = self.half_width[self.published]
        most = " to ".join(dict.fromkeys(f"±{number(end)}" for end in (half.min(), half.max())))
        which = f"all {half.size:,} values" if half.size > 1 else "its value"
        if isinstance(self.statistic, MostFrequent):
            which = "the share of each rank"
        return f"{most}{self.suffix} on {which} (95 %), noise impact {impact_label(self.middle[1])}"

    @property
    def indistinguishable(self) -> bool:
        """Whether one constant per column fits the noisy values of all cells within the band.

        With a single cell: whether one constant fits all its columns. False without any comparison.
        """
        used = self.sizes > 0
        values, half = self.values[used], self.half_width[used]
        if len(values) == 1:
            values, half = values.T, half.T
        fits = (values - half).max(axis=0) <= (values + half).min(axis=0)
        return len(values) > 1 and bool(fits.all())


def nearest_shares(values: Floats) -> Floats:
    """Return the shares nearest to each row: x − t if that is ≥ 0, else 0, with sum 1.

    Exact shares are in that convex set, so they are at least as close to it as to the row.
    """
    ordered = -np.sort(-values, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, values.shape[1] + 1)
    positive = np.maximum((ordered > excess).sum(axis=1, keepdims=True), 1)
    return np.maximum(values - np.take_along_axis(excess, positive - 1, axis=1), 0.0)


@dataclass(frozen=True)
class Readings:
    """Public facts of the readings: their number, participants and range.

    ``first`` and ``last`` end their range in ISO format, None if it is unbounded; hours and days
    are those of ``zone``.
    """

    number: int
    participants: int
    groups: tuple[str, ...] = ()
    step_seconds: int | None = None
    time_base: str = "none"
    zone: str | None = None
    first: str | None = None
    last: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Noisy tables with all public facts of the release.

    ``assumed`` states the assumptions in sentences; ``documents`` has Θ and the certificate of the
    noise, by names of files, if they may be published; ``how`` has the options, without names of
    files; ``paid`` is the entry in the ledger, None without one.
    """

    tables: Sequence[NoisyTable]
    level: Level
    epsilon: float
    delta: float = 0.0
    readings: Readings
    how: ReleaseOptions
    assumed: tuple[str, ...]
    documents: dict[str, Any] = field(default_factory=dict)
    paid: Paid | None = None
    warnings: tuple[str, ...] = ()
    date: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")

    def __repr__(self) -> str:
        kind = "" if self.private else "NOT PRIVATE: "
        return f"{kind}Release({self.title}, epsilon={self.epsilon:g}, noise impact {self.impact})"

    @property
    def private(self) -> bool:
        """Whether it is private; a simulation is not."""
        return self.how.seed is None

    @property
    def title(self) -> str:
        """Headings of all tables."""
        return " and ".join(table.heading for table in self.tables)

    @property
    def impact(self) -> str:
        """The largest over all tables of the median impact of the noise."""
        return impact_label(max(table.middle[1] for table in self.tables))

    @property
    def statement(self) -> str:
        """The statement as Markdown."""
        return statements.statement_of(self)

    @property
    def band(self) -> pd.DataFrame:
        """The band that contains all exact values of a table with probability 95 %."""
        return self.to_frame()[["statistic", "cell", "band_low", "band_high"]].dropna()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per number; cells without readings have none.

        Columns are statistic, cell, low and high (ends of a bin), value, estimate (the nearest
        possible one), error (of all values of a table at once, with probability 95 %), band_low,
        band_high, unit, impact and epsilon. For the most frequent states ``cell`` ends with the
        rank, ``value`` is the name of the state, and the error is that of its share.
        """
        frame = pd.concat([table.to_frame() for table in self.tables], ignore_index=True)
        marked = self.epsilon if self.private else f"NOT PRIVATE ({self.epsilon:g})"
        return frame.assign(epsilon=marked)

    def to_dict(self) -> dict[str, Any]:
        """Return the publishable content as plain JSON types."""
        return {
            "private": self.private,
            "warnings": list(statements.warnings_of(self)),
            "statement": dict(statements.sections_of(self)),
            "epsilon": self.epsilon,
            **({"delta": self.delta} if self.delta else {}),
            "window_steps": self.level.window,
            "side_information": "any" if self.level.whole else self.level.side_information,
            "noise_scales": {table.statistic.full_name: table.noise.scale for table in self.tables},
            "rows": self.to_frame().replace({np.nan: None}).to_dict("records"),
        }

    def lines(self, ledger: str, output: str) -> list[str]:
        """Return at most six lines for a terminal, given the names of ledger and folder."""
        lines = []
        for table in self.tables[:2]:
            silent = "; differences indistinguishable from noise" if table.indistinguishable else ""
            lines.append(f"{table.statistic.full_name}: {table.error_text}{silent}")
        if left := len(self.tables) - len(lines):
            lines.append(f"and {plural(left, 'table')} more")
        delta = f", delta {self.delta:g}" if self.delta else ""
        odds = f"odds change by at most {factor(self.epsilon)} x (epsilon {self.epsilon:g}{delta})"
        lines.append(f"protects {statements.secret_of(self)}: {odds}")
        if not self.private:
            seed = f"NOT PRIVATE: a simulation with seed {self.how.seed}"
            return [*lines, f"{seed}, in {output}/{SIMULATION}/"]
        if self.paid is None:
            lines.append("no ledger: releases of these readings are not added up")
        elif self.how.alone:
            lines.append(f"ledger    {ledger}: recorded, but its guarantee covers itself alone")
        else:
            used = percent(self.paid.spent)
            span = "" if self.level.whole else statements.span_of(self)
            now = "now fully used" if used >= 100 else f"now {used} % used"
            status = f"{span} {now}; later readings are untouched" if span else f"{now} for ever"
            lines.append(f"ledger    {ledger}: {status}")
        return [*lines, f"safe to publish: {output}/{PUBLISH}/"]

    def files(self) -> dict[str, str]:
        """Return the content of each file by its path in the folder of the release."""
        plain = self.to_frame().map(lambda v: visible(v) if isinstance(v, str) else v)
        texts = {
            "index.html": page_of(self),
            "statement.md": self.statement,
            "values.csv": spreadsheet_csv(plain),
            "release.json": json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n",
        }
        texts |= {name: json.dumps(document) + "\n" for name, document in self.documents.items()}
        if self.how.registry is not None:
            texts["registry.yaml"] = statements.registry_record(self, self.how.registry)
        folder = PUBLISH if self.private else SIMULATION
        return {f"{folder}/{name}": text for name, text in texts.items()}
