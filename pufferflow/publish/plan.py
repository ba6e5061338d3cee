"""How far off the numbers of a release would be, before it is paid for, and what would help."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferflow._checks import check_epsilon, check_whole
from pufferflow._display import displayed
from pufferflow._options import takes_options
from pufferflow._protection import Level
from pufferflow._units import seconds_of, steps_of, text_of
from pufferflow.accounting.ledger import Paid
from pufferflow.errors import ParameterError
from pufferflow.markov import Family
from pufferflow.mixing_family import MixingFamily
from pufferflow.publish.calibrate import calibrate
from pufferflow.publish.noise import TableError, noise_scale, table_error
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
    return Plan(tuple(rows), epsilon, what.unit)


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
    return Plan(tuple(rows), request.epsilon, request.what.unit, prepared.warnings, paid)


def remedies(prepared: Prepared, table: Table, error: TableError) -> str:
    """Say in one sentence that a release is useless, and what was computed to help."""
    statistic = table.statistic
    unit = (
        f" {prepared.request.what.unit}" if prepared.request.what.unit and statistic.in_unit else ""
    )
    half, span = _middle(error.half_width), float(np.median(table.ranges))
    low = statistic.offset if statistic.in_unit and statistic.relative else 0.0
    enough = [_more_participants(prepared, table, goal) for goal in GOALS]
    helps = [
        f"more participants (at least {enough[0][0]:,} for ±{enough[0][1]:.3g}{unit}, "
        f"{enough[1][0]:,} for ±{enough[1][1]:.3g}{unit})"
    ]
    narrower = (Level(1, prepared.level.side_information), "reading")
    step = prepared.steps.step_seconds
    hour = (
        [(Level(steps_of("1h", step, "protect"), prepared.level.side_information), "1h")]
        if step is not None and step < HOUR
        else []
    )
    for level, words in (*hour, narrower):
        if not _is_below(level, prepared.level):
            continue
        scale_there = _scale(prepared, level, statistic)
        if scale_there is not None and not table_error(table, scale_there).is_useless:
            helps.append(f"--protect {words}")
            break
    if statistic.by != "all":
        coarse = replace(statistic, by="all").tabulate(prepared.steps)
        scale = prepared.scales[prepared.statistics.index(statistic)]
        if not table_error(coarse, scale).is_useless:
            helps.append(f"no cells ({statistic.name})")
    if not prepared.level.whole and step is not None:
        factor = enough[0][0] / len(prepared.steps.people)
        days = math.ceil(factor * prepared.longest * step / DAY)
        helps.append(f"a longer period (at least {days:,} days)")
    return (
        f"the error of {statistic.full_name} would be ±{half:.3g}{unit} where values lie between "
        f"{low:g} and {low + span:g}: pure noise. What helps: {', '.join(helps)}; "
        "accept_noise publishes it all the same"
    )


def _more_participants(prepared: Prepared, table: Table, goal: float) -> tuple[int, float]:
    """Return how many participants with as many readings reach an impact, and the error."""
    now = len(prepared.steps.people)
    scale = prepared.scales[prepared.statistics.index(table.statistic)]
    needed = math.ceil(now * _middle(table_error(table, scale).impact) / goal)
    while True:
        sizes = table.sizes * needed // now
        ranges = table.ranges if table.statistic.relative else table.ranges * (needed / now)
        error = table_error(replace(table, sizes=sizes, ranges=ranges), scale)
        if _middle(error.impact) < goal and not error.is_useless:
            return needed, _middle(error.half_width)
        needed += max(1, needed // 50)


def _scale(prepared: Prepared, level: Level, statistic: Statistic) -> float | None:
    """Return the scale that a statistic would have at another level."""
    try:
        allowed = calibrate(prepared.family, level, prepared.request.epsilon).cost
    except ParameterError:
        return None
    share = prepared.request.share_of * allowed
    return noise_scale(share, statistic.lipschitz, len(prepared.statistics))


def _is_below(level: Level, other: Level) -> bool:
    return other.window is None or (level.window is not None and level.window < other.window)


def _middle(values: Any) -> float:
    """The value in the middle of those that are finite."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else math.inf


def _rows(
    tables: Sequence[Table],
    family: Family | None,
    asked: Level,
    epsilon: float,
    step_seconds: int | None,
    longest: int,
    share: Fraction,
) -> Iterator[PlanRow]:
    """Yield what each statistic gets at the level asked for, and at the usual ones."""
    side = asked.side_information
    levels = [Level(1, side), Level(None, side)]
    if step_seconds is not None and step_seconds < DAY:
        levels.append(Level(steps_of("1d", step_seconds, "protect"), side))
    levels = sorted(
        {*levels, asked}, key=lambda level: math.inf if level.whole else level.window or 0
    )
    for table in tables:
        for level in levels:
            words = _words(level, step_seconds)
            note = NO_TIME if level.whole else ""
            try:
                allowed = (
                    Fraction(epsilon) / longest
                    if level.whole
                    else calibrate(family, level, epsilon).cost
                )
                scale = noise_scale(share * allowed, table.statistic.lipschitz, len(tables))
            except ParameterError as error:
                yield PlanRow(
                    table.statistic.full_name, words, None, "-", str(error), level == asked
                )
                continue
            found = table_error(table, scale)
            yield PlanRow(
                table.statistic.full_name,
                words,
                _middle(found.half_width),
                found.label,
                note,
                level == asked,
            )


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
