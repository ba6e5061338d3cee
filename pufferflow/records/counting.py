"""The one way from a table to counts: look at all rows, choose the step and the states, and count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from pufferflow._numbers import shortest
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.format import MOST_STATES, RecordFormat, StateSpace
from pufferflow.records.rows import Records
from pufferflow.records.sample import Participant
from pufferflow.records.scan import MOST_NAMES, Scan, scan_records
from pufferflow.records.states import States
from pufferflow.records.tally import Tally

DEFAULT_BINS = 20
FEW_NUMBERS = 12
"""A column of so few different numbers counts as categories, unless bins are asked for."""


@dataclass(frozen=True, repr=False)
class Counted:
    """The counts of a table, and how they were made."""

    scan: Scan
    form: RecordFormat
    participants: tuple[Participant, ...]
    """Those with a value, in order of first appearance."""


def count_records(
    records: Records,
    states: States,
    step_seconds: int | None = None,
    split_after_seconds: int | None = None,
    split_because: str | None = None,
) -> Counted:
    """Count the states and the transitions of a table.

    Raises DataError: the table is malformed, or no two records are one step apart; ParameterError: an option is out of
    range or has no use here.

    Parameters
    ----------
    records : Records
    states : States
        How values become states.
    step_seconds : int or None
        Time step; None takes the most common time between two records.
    split_after_seconds, split_because
        Of :class:`pufferflow.records.format.RecordFormat`.
    """
    scan = scan_records(records, states)
    step = _step(records, scan, step_seconds)
    form = RecordFormat(_space(records, scan, states), step, split_after_seconds, split_because=split_because)
    tally = Tally(form, transitions=True)
    tally.read(records)
    participants = tally.participants(records)
    if not any(participant.transition_counts.any() for participant in participants):
        raise DataError(
            f"{records.table.where}: {scan.rows:,} row(s), and no two with values that are one step ({step or 1} s) "
            "apart, so no transition to count; give longer records or another step"
        )
    return Counted(scan, form, participants)


def _step(records: Records, scan: Scan, asked: int | None) -> int | None:
    if records.columns["time"] is None:
        if asked is not None:
            raise ParameterError("step is for records with times; name their column (time)")
        return None
    if asked is None and not scan.waits:
        raise DataError(
            f"{records.table.where}: one record only for each participant, so no transition; give longer records"
        )
    # of several that are the most common, the shortest
    return asked or min(scan.waits, key=lambda wait: (-scan.waits[wait], wait))


def _space(records: Records, scan: Scan, states: States) -> StateSpace:
    where = records.table.where
    if states.edges is not None:
        return StateSpace.numeric(states.edges)
    if states.names is not None:
        return StateSpace.categories(states.names, other=states.other)
    names, numbers = scan.names, not states.categorical and scan.stray is None
    short = {name: shortest(name) for name in names}
    if None not in short.values():
        names = Counter[str]()
        for name, count in scan.names.items():
            names[short[name] or name] += count
    few = len(names) <= (MOST_STATES if states.categorical else MOST_NAMES)
    if states.numeric or (numbers and len(names) > FEW_NUMBERS):
        return StateSpace.numeric(_edges(where, scan, states))
    if states.top is not None:
        kept = [name for name, _ in sorted(names.items(), key=lambda item: (-item[1], item[0]))[: states.top]]
        return StateSpace.categories(_sorted(kept), other=states.other or len(names) > states.top)
    if not states.categorical and scan.stray is not None:
        row, value = scan.stray
        if 2 * sum(text is not None for text in short.values()) > len(short):
            what = "is no number as most others are; mend it, leave it empty if missing, or name the states if they are"
            raise records.fail(row, "value", value, f"{what} categories (states, top or other)")
        if not few:
            raise records.fail(row, "value", value, "is neither a number nor one of few categories")
    if not few:
        raise DataError(
            f"{where}: more than {MOST_STATES} different categories; keep the most frequent ones only (top)"
        )
    return StateSpace.categories(_sorted(names), other=states.other)


def _sorted(names: Iterable[str]) -> list[str]:
    """Numbers by value, other names by letter."""
    try:
        return sorted(names, key=float)
    except ValueError:
        return sorted(names)


def _edges(where: str, scan: Scan, states: States) -> list[float]:
    """Multiples of a width between the smallest and the largest value.

    Without a width given it is 1, 2 or 5 times a power of ten, so that the edges tell little more than the order of
    the range.
    """
    low, high = scan.low, scan.high
    if not low < high:
        raise DataError(f"{where}: all values are the same, so there is one state and nothing to release")
    if states.width is not None:
        edges = _multiples(low, high, states.width)
        if not edges:
            raise DataError(f"{where}: all values lie in one bin of width {states.width:g}; choose a smaller width")
        return edges
    width = (high - low) / (states.bins or DEFAULT_BINS)
    if not (math.isfinite(width) and width > 0):
        raise DataError(f"{where}: the values reach from {low:g} to {high:g}, too far for equal bins; give edges")
    exponent = math.floor(math.log10(width))
    steps = [float(f"{m}e{exponent + e}") for e in (0, 1) for m in (1, 2, 5)]
    fitting = [step for step in steps if step >= width * (1 - 1e-9)]
    edges = _multiples(low, high, fitting[0]) or _multiples(low, high, steps[steps.index(fitting[0]) - 1])
    if not edges or any(b <= a for a, b in pairwise(edges)):
        raise DataError(f"{where}: the values differ too little for their size; give edges, or fewer bins")
    return edges


def _multiples(low: float, high: float, width: float) -> list[float]:
    """Multiples of a width above the smallest and up to the largest value."""
    start, stop = math.floor(low / width) + 1, math.floor(high / width)
    if stop - start + 2 > MOST_STATES:
        raise ParameterError(f"width {width:g} makes {stop - start + 2} bins; choose a larger one")
    return [float(Fraction(repr(width)) * j) for j in range(start, stop + 1)]
