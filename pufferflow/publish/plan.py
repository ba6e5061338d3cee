"""How far off the numbers of a release would be, before it is paid for, and what would help."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferflow._checks import check_epsilon, check_whole
from pufferflow._display import displayed
from pufferflow._options import takes_options
from pufferflow._protection import Level, level_of
from pufferflow._units import seconds_of, steps_of, text_of
from pufferflow.accounting.ledger import Paid
from pufferflow.errors import ParameterError
from pufferflow.markov import Family
from pufferflow.mixing_family import MixingFamily
from pufferflow.publish.calibrate import calibrate
from pufferflow.publish.noise import TableError, scales_of, table_error
from pufferflow.publish.request import GuaranteeOptions, StatisticOptions, Theta, public_model
from pufferflow.publish.statistics import LABELS, Statistic, Table
from pufferflow.records.states import StateSpace

if TYPE_CHECKING:
    from pufferflow.publish.release import Prepared

HOUR, DAY = 3600, 86_400
NO_TIME = "no assumption about time"
GOALS = (0.5, 0.1)
"""Errors over the public range that remedies are computed for: HIGH and MEDIUM."""


@dataclass(frozen=True)
class PlanRow:
    """What one statistic would get at one level.

    Attributes
    ----------
    statistic, protect : str
    error : float
        Half-width that all values keep to with probability .95, of the value in the middle.
    impact : str
    note : str
    asked : bool
        Whether it is the level that was asked for.
    """

    statistic: str
    protect: str
    error: float | None
    impact: str
    note: str = ""
    asked: bool = False


@displayed("epsilon", "rows")
@dataclass(frozen=True)
class Plan:
    """Errors of the statistics that are asked for, at several levels of protection.

    Attributes
    ----------
    rows : tuple of PlanRow
    epsilon : float
    unit : str or None
    warnings : tuple of str
    paid : Paid or None
        What the ledger would hold after the release; of a dry run only.
    """

    rows: tuple[PlanRow, ...]
    epsilon: float
    unit: str | None = None
    warnings: tuple[str, ...] = ()
    paid: Paid | None = None

    def lines(self) -> list[str]:
        """Return the table for people, one part a statistic."""
        text: list[str] = []
        for name in dict.fromkeys(row.statistic for row in self.rows):
            rows = [row for row in self.rows if row.statistic == name]
            shown = [("protect", "error", "noise impact", "")]
            for row in rows:
                error = "-" if row.error is None else f"±{row.error:.3g} {self.unit or ''}".strip()
                note = "; ".join(filter(None, ("asked for" * row.asked, row.note)))
                shown.append((row.protect, error, row.impact, note))
            widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
            text += [f"{name}, epsilon {self.epsilon:g}:"]
            text += [
                "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
                for line in shown
            ]
        return text

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Plan({len(self.rows)} rows, epsilon={self.epsilon:g})"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON types."""
        return {
            "epsilon": self.epsilon,
            "unit": self.unit,
            "rows": [vars(row) for row in self.rows],
            "warnings": list(self.warnings),
        }


@takes_options(GuaranteeOptions, StatisticOptions, without=("statistics",))
def plan(
    theta: Theta | None,
    statistics: Sequence[str | Statistic] = ("histogram",),
    *,
    step: str | int,
    participants: int,
    period: str | int,
    epsilon: float = 1.0,
    states: int | None = None,
    groups: int = 1,
    **options: Any,
) -> Plan:
    """Say how far off the numbers of a release would be; no data are needed.

    Parameters
    ----------
    theta
        As for :func:`pufferflow.release`; None plans for participants alone.
    statistics : sequence of str
    step, period : str or int
        Time between two readings, and how long each participant has some, such as "30min" and "7d".
    participants : int
    epsilon : float
    states : int, optional
        How many, for histograms and transitions.
    groups : int
        How many, for cells by group.
    {options}

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        An option is out of range, or Θ never forgets.
    """
    what = StatisticOptions(statistics, **{k: v for k, v in options.items() if k in _WHAT})
    guarantee = GuaranteeOptions(**{k: v for k, v in options.items() if k not in _WHAT})
    seconds = seconds_of(step, "step")
    steps = steps_of(period, seconds, "period")
    participants, groups = check_whole(participants, "participants"), check_whole(groups, "groups")
    space = None
    if states is not None:
        space = StateSpace.numeric([float(j) for j in range(1, check_whole(states, "states", 2))])
    tables = []
    for statistic in what.parsed():
        if space is None and statistic.name in ("histogram", "transitions"):
            raise ParameterError(f"{statistic.full_name} needs the number of states; give states")
        columns = statistic.columns(space, seconds)
        sizes = _sizes(statistic, participants, steps, seconds, groups)
        cells = (
            tuple(map(str, range(len(sizes)))) if statistic.by == "group" else LABELS[statistic.by]
        )
        ranges = statistic.ranges(sizes, np.minimum(sizes, participants), len(columns))
        shape = (len(cells), len(columns))
        counts = np.zeros(shape, dtype=np.int64)
        tables.append(
            Table(statistic, cells, columns, sizes, counts, np.broadcast_to(ranges, shape))
        )
    family = None
    if theta is not None:
        family = public_model(theta).family
        if isinstance(family, MixingFamily):
            family = family.in_steps(seconds)
    asked = guarantee.level(seconds)
    rows = _rows(tables, family, asked, check_epsilon(epsilon), seconds, steps, Fraction(1))
    return Plan(rows, epsilon, what.unit)


_WHAT = {"bounds", "threshold", "duration_edges", "unit"}


def plan_of(prepared: Prepared, paid: Paid) -> Plan:
    """Return the plan of a table that is there, and of its ledger."""
    request, steps = prepared.request, prepared.steps
    rows = _rows(
        prepared.tables,
        prepared.family,
        prepared.level,
        request.epsilon,
        steps.step_seconds,
        prepared.longest,
        request.share_of,
    )
    return Plan(rows, request.epsilon, request.what.unit, prepared.warnings, paid)


def remedies(prepared: Prepared, table: Table, error: TableError) -> str:
    """Say in one sentence that a release is useless, and what was computed to help."""
    statistic, request, level = table.statistic, prepared.request, prepared.level
    place, step = prepared.statistics.index(statistic), prepared.steps.step_seconds
    scale, people = prepared.scales[place], len(prepared.steps.people)
    unit = f" {request.what.unit}" if request.what.unit and statistic.in_unit else ""
    low = statistic.offset if statistic.in_unit and statistic.relative else 0.0
    (enough, half), (plenty, small) = (_participants(table, scale, people, goal) for goal in GOALS)
    helps = [
        f"more participants (at least {enough:,} for ±{half:.3g}{unit}, "
        f"{plenty:,} for ±{small:.3g}{unit})"
    ]
    for words in ("1h", "reading") if step is not None and step < HOUR else ("reading",):
        narrower = level_of(words, level.side_information, step)
        if not level.whole and (narrower.window or 0) >= (level.window or 0):
            continue
        with suppress(ParameterError):
            allowed = calibrate(prepared.family, narrower, request.epsilon).allowed(1)
            there = scales_of(prepared.statistics, request.share_of * allowed)[place]
            if not table_error(table, there).is_useless:
                helps.append(f"--protect {words}")
                break
    if statistic.by != "all":
        coarse = replace(statistic, by="all").tabulate(prepared.steps)
        if not table_error(coarse, scale).is_useless:
            helps.append(f"no cells ({statistic.name})")
    if not level.whole and step is not None:
        days = math.ceil(enough / people * prepared.longest * step / DAY)
        helps.append(f"a longer period (at least {days:,} days)")
    high = low + float(np.median(table.ranges))
    return (
        f"the error of {statistic.full_name} would be ±{error.middle[0]:.3g}{unit} where values "
        f"lie between {low:g} and {high:g}: pure noise. What helps: {', '.join(helps)}; "
        "accept_noise publishes it all the same"
    )


def _participants(table: Table, scale: float, now: int, goal: float) -> tuple[int, float]:
    """Return how many participants with as many readings reach an impact, and the error then."""
    needed = math.ceil(now * table_error(table, scale).middle[1] / goal)
    while True:
        sizes = table.sizes * needed // now
        ranges = table.ranges if table.statistic.relative else table.ranges * (needed / now)
        error = table_error(replace(table, sizes=sizes, ranges=ranges), scale)
        half, impact = error.middle
        if impact < goal and not error.is_useless:
            return needed, half
        needed += max(1, needed // 50)


def _rows(
    tables: Sequence[Table],
    family: Family | None,
    asked: Level,
    epsilon: float,
    step_seconds: int | None,
    longest: int,
    share: Fraction,
) -> tuple[PlanRow, ...]:
    """Return what each statistic gets at the level asked for, and at the usual ones."""
    side = asked.side_information
    levels = {asked, Level(1, side), Level(None, side)}
    if step_seconds is not None and step_seconds < DAY:
        levels.add(level_of("1d", side, step_seconds))
    statistics, rows = [table.statistic for table in tables], []
    for level in sorted(levels, key=lambda one: one.window or math.inf):
        words, note, scales = _words(level, step_seconds), NO_TIME if level.whole else "", None
        try:
            allowed = calibrate(family, level, epsilon).allowed(longest)
            scales = scales_of(statistics, share * allowed)
        except ParameterError as error:
            note = str(error)
        for place, table in enumerate(tables):
            half, label = None, "-"
            if scales is not None:
                found = table_error(table, scales[place])
                half, label = found.middle[0], found.label
            name = table.statistic.full_name
            rows.append(PlanRow(name, words, half, label, note, level == asked))
    return tuple(rows)


def _words(level: Level, step_seconds: int | None) -> str:
    if level.window is None:
        return "participant"
    if level.window == 1:
        return "reading"
    return (
        f"{level.window} readings" if step_seconds is None else text_of(level.window * step_seconds)
    )


def _sizes(
    statistic: Statistic, participants: int, steps: int, step_seconds: int, groups: int
) -> Any:
    """Readings of each cell, where participants have one at every step of the period."""
    cells = {"all": 1, "group": groups, "hour": 24, "weekday": 7, "month": 12}[statistic.by]
    cycle = {"hour": DAY, "weekday": 7 * DAY, "month": 365 * DAY}.get(statistic.by, 0)
    if steps * step_seconds < cycle:
        raise ParameterError(
            f"period is too short for {statistic.full_name}: it must have every {statistic.by}"
        )
    readings = steps - 1 if statistic.name == "transitions" else steps
    return np.full(cells, max(1, participants * readings // cells), dtype=np.int64)
