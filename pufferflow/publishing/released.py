"""What a release is: noisy tables of its statistics, everything that was decided without the data, and its files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._display import displayed
from pufferflow._optional import require
from pufferflow._texts import spreadsheet_csv
from pufferflow.models import PublicModel, model_json
from pufferflow.publishing.account import Account
from pufferflow.publishing.calibration import Calibration
from pufferflow.publishing.folder import INTERNAL, PUBLISH, draft
from pufferflow.publishing.noise import DiscreteLaplace, joint_scale
from pufferflow.publishing.quantiles import quantile_rows
from pufferflow.publishing.statement import Statement, statement_of
from pufferflow.publishing.statistics.base import Column, Statistic
from pufferflow.records.format import FittedPrivately

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIDENCE = 0.95


@dataclass(frozen=True)
class NoisyTable:
    """The table of a statistic with noise.

    Attributes
    ----------
    statistic : Statistic
    cells : tuple of str
    columns : tuple of Column
    sizes : tuple of int
        Records that count in each cell: public.
    counts : tuple of int
        Noisy integers by cell and then column, as they were drawn; they may be negative.
    noise_scale : float
        s, of the discrete Laplace noise on each.
    """

    statistic: Statistic
    cells: tuple[str, ...]
    columns: tuple[Column, ...]
    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    noise_scale: float

    @property
    def by_cell(self) -> NDArray[np.int64]:
        """Noisy integers, shape (cells, columns)."""
        return np.array(self.counts, dtype=np.int64).reshape(len(self.cells), len(self.columns))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row a number: its value, expected error and 95 % interval; cells without records have none.

        The interval is that of the noise, and of rounding to the grid where there is one.
        """
        law, scaling = DiscreteLaplace(self.noise_scale), self.statistic.scaling
        half = law.quantile(CONFIDENCE)
        for cell, size, noisy in zip(self.cells, self.sizes, self.by_cell.tolist(), strict=True):
            if not size:
                continue
            per = size if scaling.relative else 1
            rounding = scaling.rounding * size / per
            for column, count in zip(self.columns, noisy, strict=True):
                value = (scaling.offset * size + scaling.unit * count) / per
                width = scaling.unit * half / per + rounding
                yield {
                    "statistic": self.statistic.name,
                    "by": self.statistic.by,
                    "cell": cell,
                    "bin": column.label,
                    "low": column.low,
                    "high": column.high,
                    "size": size,
                    "noisy_count": count,
                    "value": value,
                    "expected_error": scaling.unit * law.mean_absolute / per + rounding,
                    "low_95": value - width,
                    "high_95": value + width,
                }

    def to_dict(self) -> dict[str, Any]:
        """Return what is public of it as plain JSON types."""
        scaling = self.statistic.scaling
        return self.statistic.to_dict() | {
            "title": self.statistic.title,
            "quantity": self.statistic.quantity,
            "noise": {"law": "discrete Laplace on each number", "scale": self.noise_scale, "unit": scaling.unit},
            "cells": list(self.cells),
            "sizes": list(self.sizes),
            "columns": [column.label for column in self.columns],
            "noisy_counts": self.by_cell.tolist(),
        }


@displayed()
@dataclass(frozen=True, kw_only=True)
class PrivateRelease:
    """Noisy statistics with everything that was decided without the data.

    Attributes
    ----------
    tables : tuple of NoisyTable
        One a statistic.
    states : tuple of str
    records : int
        n, the number of records counted.
    segments, longest_segment, longest_record, participants : int
        The longest record is that of the participant with the most steps, in all segments together.
    epsilon : float
        ε, of all of them together.
    calibration : Calibration
        Mechanism, its scale σ for a 1-Lipschitz query, and the certificate.
    model : PublicModel
    quantiles : tuple of float
        Which are read off each histogram of numbers; costs nothing.
    private : bool
        False for a simulation.
    chain_is_public : bool
        Whether the records that the chain was fitted to are public, so that it may leave with the release; always of
        a forgetting family, which is fitted to none, and of one that was fitted privately.
    unused_columns : int
        Columns of the table that have no role.
    warnings : tuple of str
        What may be right but weakens the guarantee where it is not.
    columns : dict
        Name of the column of each role; it is in no file.
    figure_fault : str
        What went wrong with a figure that is missing although it was asked for.
    seed : int or None
        Of a simulation.
    account : Account or None
        Where the cost is kept; None of a simulation.
    """

    tables: tuple[NoisyTable, ...]
    states: tuple[str, ...]
    records: int
    segments: int
    longest_segment: int
    longest_record: int
    participants: int
    epsilon: float
    calibration: Calibration
    model: PublicModel
    quantiles: tuple[float, ...] = ()
    private: bool = True
    chain_is_public: bool = False
    unused_columns: int = 0
    warnings: tuple[str, ...] = ()
    columns: dict[str, str | None] = field(default_factory=dict, repr=False)
    figure_fault: str = ""
    seed: int | None = None
    account: Account | None = None

    stem: ClassVar[str] = "statistics"
    """Name of its files."""
    subject: ClassVar[str] = "this release"
    """What the statement calls it."""

    def __post_init__(self) -> None:
        if self.theta_is_chosen or self.fitted_privately is not None:
            object.__setattr__(self, "chain_is_public", True)

    def __repr__(self) -> str:
        names = ", ".join(table.statistic.full_name for table in self.tables)
        kind = "" if self.private else "NOT PRIVATE: "
        return f"{kind}PrivateRelease({names}, {self.records} records, epsilon={self.epsilon:g}, {self.mechanism})"

    @property
    def theta_is_chosen(self) -> bool:
        """Whether Θ is a choice of two numbers, which tells nothing of any record."""
        return self.model.family.is_chosen

    @property
    def fitted_privately(self) -> FittedPrivately | None:
        """How Θ was fitted, where that was done so that it may leave."""
        return None if self.model.records is None else self.model.records.fitted_privately

    @property
    def scale(self) -> float:
        """Laplace scale of a 1-Lipschitz query that this noise is as good as: never below the mechanism's σ."""
        return joint_scale([(table.statistic.lipschitz, table.noise_scale) for table in self.tables])

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        return self.calibration.chosen.mechanism

    @property
    def privacy(self) -> str:
        """What every row of a table says."""
        return ("epsilon = " + repr(self.epsilon)) if self.private else "NOT PRIVATE: a simulation"

    def to_frame(self) -> pd.DataFrame:
        """One row a number: statistic, cell, bin, value, expected error and the ends of its 95 % interval."""
        rows = [row for table in self.tables for row in table.rows()]
        edges = None if self.model.records is None else self.model.records.states.edges
        if self.quantiles and edges is not None:
            for table in self.tables:
                if table.statistic.name == "histogram":
                    rows += quantile_rows(table, edges, self.quantiles)
        return pd.DataFrame(rows).assign(privacy=self.privacy).astype({"noisy_count": "Int64"})

    # -- the statement -------------------------------------------------------------------------------

    @property
    def noise_text(self) -> str:
        """Which noise was added, without a full stop."""
        parts = "; ".join(
            f"of scale {table.noise_scale!r} on each number of {table.statistic.said}, of which one record changes all "
            f"together by at most {table.statistic.lipschitz}" + (" steps" if table.statistic.numeric_steps else "")
            for table in self.tables
        )
        return (
            f"Noise: independent discrete Laplace noise {parts}; all together it is as good as scale {self.scale:.6g} "
            f"on what one record changes by 1, and {self.mechanism} asks for no more with {self.length_text}"
        )

    @property
    def length_text(self) -> str:
        """How long the records are that the noise is for."""
        if self.calibration.chosen.length > self.longest_segment:
            return f"records of up to {self.longest_record} steps"
        return f"segments of up to {self.longest_segment} steps"

    @property
    def public_points(self) -> tuple[str, ...]:
        """What is published exactly."""
        kinds = {table.statistic.by for table in self.tables}
        cells = "" if kinds == {"all"} else ", and so how many records each hour, weekday, month or group has"
        groups = ("Which groups there are.",) if "group" in kinds else ()
        return (
            f"How many records there are ({self.records}) and participants ({self.participants}), when there is a "
            f"record, and when one is missing{cells}.",
            *groups,
        )

    @property
    def afterwards(self) -> tuple[str, ...]:
        """What was done to the noisy numbers."""
        if not self.quantiles:
            return ()
        return ("Quantiles were read off the noisy histograms, which costs no privacy.",)

    @property
    def promise(self) -> Statement:
        """What is protected, what not and what has to be believed for it, and the formal text."""
        return statement_of(self)

    @property
    def statement(self) -> str:
        """The formal text as one paragraph: what is guaranteed, to whom and under which Θ, and what is not."""
        return self.promise.formal_text

    # -- files ---------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return what may be published as plain JSON types: nothing from which Θ can be read.

        Of Θ it has the mechanism's name and the noise scales. A reader needs those for error bars; each has
        :data:`~pufferflow.publishing.noise.DIGITS` bits, so that each further ε tells no more than those.
        """
        rows = self.to_frame().drop(columns="privacy").astype(object)
        return self._head("statistics", 1) | {
            "statistics": [table.to_dict() for table in self.tables],
            "rows": rows.where(rows.notna(), None).to_dict("records"),
            **self._tail(),
        }

    def _head(self, kind: str, version: int) -> dict[str, Any]:
        chosen = self.calibration.chosen
        return {
            kind: "pufferflow",
            "version": version,
            "private": self.private,
            **self.promise.to_dict(),
            "epsilon": self.epsilon,
            "mechanism": self.mechanism,
            "window": chosen.window,
            "knows": chosen.knows,
            "scale": self.scale,
            "certified": self.calibration.certificate is not None,
            "records": self.records,
            "participants": self.participants,
            "segments": self.segments,
            "longest_segment": self.longest_segment,
            "longest_record": self.longest_record,
            "unused_columns": self.unused_columns,
            "warnings": list(self.warnings),
            "confidence": CONFIDENCE,
        }

    def _tail(self) -> dict[str, Any]:
        form = self.model.records
        tail: dict[str, Any] = {
            "states": {"names": list(self.states)} if form is None else form.states.to_dict(),
            "step_seconds": None if form is None else form.step_seconds,
            "split_after_seconds": None if form is None else form.split_after_seconds,
        }
        if not self.private:
            tail |= {"warning": "NOT PRIVATE: a simulation, for planning", "seed": self.seed}
        return tail

    def to_json(self) -> str:
        """Return the release as JSON text."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def to_csv(self) -> str:
        """Return the rows of :meth:`to_frame` as CSV text, names such as ``=1+1`` with an apostrophe before them."""
        return spreadsheet_csv(self.to_frame())

    def figures(self) -> Iterator[tuple[str, Callable[[], Figure]]]:
        """Name of each figure's file, and what draws it (needs matplotlib)."""
        require("matplotlib", "a figure")
        from pufferflow.drawing.releases import statistic

        frame, caption = self.to_frame(), self.caption
        for table in self.tables:
            kind = table.statistic
            rows = frame[(frame["statistic"] == kind.name) & (frame["by"] == kind.by)]

            def draw(rows: pd.DataFrame = rows, kind: Statistic = kind) -> Figure:
                return statistic(rows, kind.title, kind.quantity, caption)

            yield kind.full_name, draw

    @property
    def caption(self) -> str:
        """What a figure says of the release."""
        said = f"{self.records:,} records, ε = {self.epsilon:g}, {self.mechanism}"
        return said if self.private else f"NOT PRIVATE: a simulation for planning; {said}"

    def files(self) -> dict[str, str]:
        """Return the text of each file by its path in the folder of the release; ``internal/`` must not leave."""
        proof = self.calibration.certificate
        results = {
            f"{self.stem}.json": self.to_json(),
            f"{self.stem}.csv": self.to_csv(),
            "statement.txt": self.promise.text(),
            "statement.md": self.promise.markdown(),
        }
        sources = {"chain.json": model_json(self.model.family, self.model.records)}
        if proof is not None:
            sources["certificate.json"] = json.dumps(proof) + "\n"
        if not self.private:
            return _within(INTERNAL, results | sources)
        return _within(PUBLISH, results | (sources if self.chain_is_public else {})) | _within(INTERNAL, sources)

    def save(self, folder: str | os.PathLike[str], *, figure: bool = True) -> Path:
        """Write the release to a new folder, which appears with all its files at once or not at all.

        Raises
        ------
        DataError
            Something of that name exists, or the folder that it is to be in does not.
        """
        with draft(folder) as making:
            making.write(self, figure=figure)
            return making.finish()


def _within(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def shares(statistics: tuple[Statistic, ...]) -> list[Fraction]:
    """The part of the noise's budget that each of several statistics has; they sum to 1."""
    total = sum(Fraction(statistic.weight) for statistic in statistics)
    return [Fraction(statistic.weight) / total for statistic in statistics]
