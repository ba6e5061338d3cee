"""A first look at all rows of a table: its times, its values, and what is missing."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pufferflow.errors import DataError
from pufferflow.records.format import MOST_STATES, StateSpace
from pufferflow.records.rows import NEVER, Chunk, Records, missing_texts
from pufferflow.records.states import States

MOST_NAMES = 200
MOST_STEPS = 100_000
"""Different waits between two records at most."""


@dataclass(repr=False)
class Scan:
    """What a first look at all rows tells."""

    rows: int = 0
    first: int = 0
    last: int = 0
    low: float = math.inf
    high: float = -math.inf
    stray: tuple[int, object] | None = None
    """Row and value of the first that is no number."""
    hole: tuple[int, object] | None = None
    """Row and text of the first value that is missing."""
    missing: int = 0
    missing_texts: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    """How often each category occurs, in order of first appearance; not all of them where there are too many."""
    waits: Counter[int] = field(default_factory=Counter)
    """How often the records of a participant are so many seconds apart."""


def scan_records(records: Records, states: States) -> Scan:
    """Look at all rows.

    Raises DataError: a line is wrong, or there is no row or no value at all.
    """
    scan, where = Scan(), records.table.where
    declared = None if states.names is None else StateSpace.categories(states.names, other=states.other)
    for chunk in records.chunks("looking"):
        _add_waits(scan.waits, chunk, where)
        low, high = int(chunk.seconds.min()), int(chunk.seconds.max())
        scan.first, scan.last = (min(scan.first, low), max(scan.last, high)) if scan.rows else (low, high)
        scan.rows += len(chunk.rows)
        if states.numeric:
            numbers, _ = records.numbers(chunk, finite=True)
            _miss(scan, chunk, np.isnan(numbers))
            _range(scan, numbers)
            continue
        codes, names = records.names(chunk, declared)
        _miss(scan, chunk, codes < 0)
        if not states.categorical:
            numbers, bad = records.numbers(chunk, strict=False, finite=True)
            _range(scan, numbers)
            if bad.any() and scan.stray is None:
                at = int(bad.argmax())
                scan.stray = int(chunk.rows[at]), chunk.value.iloc[at]
        if len(scan.names) <= max(MOST_STATES, MOST_NAMES):
            seen = np.bincount(codes[codes >= 0], minlength=len(names))
            scan.names.update({name: int(n) for name, n in zip(names, seen, strict=True) if n})
    if not scan.rows:
        raise DataError(f"{where}: a header and no data; check that its download or export finished")
    if scan.missing == scan.rows:
        raise DataError(f"{where}: all {scan.rows:,} values are missing; check the column of the values")
    return scan


def _add_waits(waits: Counter[int], chunk: Chunk, where: str) -> None:
    known = chunk.before != NEVER
    different, counts = np.unique(chunk.seconds[known] - chunk.before[known], return_counts=True)
    waits.update(dict(zip(different.tolist(), counts.tolist(), strict=True)))
    if len(waits) > MOST_STEPS:
        raise DataError(
            f"{where}: the times follow no common step; resample the records to one, for example to whole minutes"
        )


def _miss(scan: Scan, chunk: Chunk, missing: NDArray[np.bool_]) -> None:
    scan.missing += int(missing.sum())
    if missing.any() and scan.hole is None:
        at = int(missing.argmax())
        scan.hole = int(chunk.rows[at]), chunk.value.iloc[at]
    if len(scan.missing_texts) <= MOST_NAMES:
        scan.missing_texts.update(missing_texts(chunk.value[missing]))


def _range(scan: Scan, numbers: NDArray[np.float64]) -> None:
    finite = numbers[np.isfinite(numbers)]
    if finite.size:
        scan.low, scan.high = min(scan.low, float(finite.min())), max(scan.high, float(finite.max()))
