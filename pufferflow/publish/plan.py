"""Errors of a release before it consumes budget, and remedies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferflow._util.checks import check_whole
from pufferflow._util.options import reads, shows, split_options, takes_options
from pufferflow._util.protection import Level, level_of
from pufferflow._util.units import seconds_of, steps_of
from pufferflow.accounting.account import Promise
from pufferflow.accounting.entries import Paid
from pufferflow.errors import ParameterError
from pufferflow.models.families import Family
from pufferflow.publish.calibrate import calibrate
from pufferflow.publish.noise import Noise, TableError, choose_noise, table_error
from pufferflow.publish.request import GuaranteeOptions, Request, StatisticOptions, Theta
from pufferflow.publish.statistics import LABELS, Table
from pufferflow.records.states import StateSpace

if TYPE_CHECKING:
    from pufferflow.publish.release import Prepared

DAY = 86_400
PERIODS = {"hour": DAY, "weekday": 7 * DAY, "month": 365 * DAY}
"""Seconds in which every cell of a statistic occurs."""
GOALS = (0.5, 0.1)
"""Errors over the public range that remedies are computed for: HIGH and MEDIUM."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Public facts of a planned table."""

    step: str | int = reads(MISSING, "Time between two readings: 30min.", "TIME")
    period: str | int = reads(MISSING, "Time span of the readings: 7d.", "TIME")
    participants: int = reads(MISSING, "Number of participants.", "N")
    states: int | None = shows(None, "Number, for statistics of states.", "K")
    groups: int = reads(1, "Number of groups, for cells by group.", "N")


@dataclass(frozen=True)
class PlanRow:
    """The error of one statistic at one level, and whether that level was requested.

    The error is the median of the simultaneous half-widths with probability .95; None if no noise
    suffices, as the note states.
    """

    statistic: str
    protect: str
    error: float | None
    impact: str
    note: str = ""
    asked: bool = False


@dataclass(frozen=True)
class Plan:
    """Errors of the requested statistics at several levels of protection.

    Of a dry run ``paid`` is what the ledger would contain after the release.
    """

    rows: tuple[PlanRow, ...]
    epsilon: float
    unit: str | None = None
    warnings: tuple[str, ...] = ()
    paid: Paid | None = None

    def lines(self) -> list[str]:
        """Return the table as text, one part per statistic."""
        text: list[str] = []
        for name in dict.fromkeys(row.statistic for row in self.rows):
            shown = [("protect", "error", "noise impact", "")]
            for row in (row for row in self.rows if row.statistic == name):
                error = "-" if row.error is None else f"±{row.error:.3g} {self.unit or ''}".strip()
                note = "; ".join(filter(None, ("asked for" * row.asked, row.note)))
                shown.append((row.protect, error, row.impact, note))
            widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
            text += [f"{name}, epsilon {self.epsilon:g}:"]
            text += ["  ".join(map(str.ljust, line, widths)).rstrip() for line in shown]
        return text

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Plan({len(self.rows)} rows, epsilon={self.epsilon:g})"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON types."""
        document = {"epsilon": self.epsilon, "unit": self.unit, "warnings": list(self.warnings)}
        return document | {"rows": [vars(row) for row in self.rows]}


@takes_options(PlanOptions, StatisticOptions, GuaranteeOptions)
def plan(
    theta: Theta | None,
    statistics: Sequence[str] = ("histogram",),
    epsilon: float = 1.0,
    **options: Any,
) -> Plan:
    """Return the errors of a release at each level of protection; no data are needed.

    Parameters
    ----------
    theta
        As for :func:`pufferflow.release`; None plans for participants alone.
    statistics : sequence of str
    epsilon : float
    {options}

    Raises ParameterError: an option is out of range, or Θ does not mix.
    """
    known = PlanOptions(**split_options(options, PlanOptions)[0])
    asked = {name: value for name, value in options.items() if not hasattr(known, name)}
    request = Request.of("a plan", theta, epsilon, asked | {"statistics": statistics})
    step = seconds_of(known.step, "step")
    steps = steps_of(known.period, step, "period")
    participants = check_whole(known.participants, "participants")
    groups, space = check_whole(known.groups, "groups"), None
    if known.states is not None:
        space = StateSpace.numeric([*range(1, check_whole(known.states, "states", 2))])
    tables = []
    for statistic in request.what.parsed():
        if steps * step < PERIODS.get(statistic.by, 0):
            raise ParameterError(
                f"the period is too short for {statistic.full_name}: it must have every "
                f"{statistic.by}; give a longer `period`"
            )
        cells = LABELS.get(statistic.by, tuple(map(str, range(groups))))
        each = (steps - (statistic.name == "transitions")) * participants // len(cells)
        sizes = np.full(len(cells), max(1, each))
        stretches = np.minimum(sizes, participants)
        tables.append(statistic.table(cells, statistic.columns(space, step), sizes, stretches))
    level, family = request.guarantee.level(step), request.family(step)
    return Design(request, tables, family, level, steps, step).plan()


@dataclass(frozen=True, eq=False)
class Design:
    """The public facts that determine the errors of a release: of tables only the sizes."""

    request: Request
    tables: Sequence[Table]
    family: Family | None
    level: Level
    longest: int
    step_seconds: int | None

    def noise(self, promise: Promise) -> list[tuple[Noise, Noise | None]]:
        """Return the noise of each table, and that of the other kind, if it is possible."""
        return choose_noise(self.tables, *self.request.allowed(promise, self.longest))

    def errors(self, level: Level) -> list[TableError]:
        """Return those of each table; raises ParameterError: no noise keeps ε at this level."""
        request = self.request
        promise = calibrate(self.family, level, request.epsilon, request.delta)
        pairs = zip(self.tables, self.noise(promise), strict=True)
        return [table_error(table, noise) for table, (noise, _) in pairs]

    def plan(self, warnings: tuple[str, ...] = (), paid: Paid | None = None) -> Plan:
        """Return the errors of each statistic at the requested level and the usual ones."""
        side, rows = self.level.side_information, []
        levels = {self.level, Level(1, side), Level(None, side)}
        if self.step_seconds is not None:
            levels.add(level_of("1d", side, self.step_seconds))
        for level in sorted(levels, key=lambda one: one.window or math.inf):
            words, note = level.words(self.step_seconds), "no assumption about time" * level.whole
            found: list[tuple[float | None, str]] = [(None, "-")] * len(self.tables)
            try:
                found = [(error.middle[0], error.label) for error in self.errors(level)]
            except ParameterError as error:
                note = str(error)
            for table, (half, label) in zip(self.tables, found, strict=True):
                name = table.statistic.full_name
                rows.append(PlanRow(name, words, half, label, note, level == self.level))
        return Plan(tuple(rows), self.request.epsilon, self.request.what.unit, warnings, paid)


def remedies(prepared: Prepared, place: int) -> str:
    """Return one sentence: the table at this place is useless, and computed remedies."""
    design, table = prepared.design, prepared.zeros.tables[place]
    statistic, level, step = table.statistic, design.level, design.step_seconds
    noise, people = table.noise, len(prepared.steps.people)
    unit = f" {prepared.request.what.unit or ''}".rstrip() * statistic.in_unit
    (enough, half), (plenty, small) = (_participants(table, noise, people, goal) for goal in GOALS)
    helps = [
        f"more participants (at least {enough:,} for ±{half:.3g}{unit}, "
        f"{plenty:,} for ±{small:.3g}{unit})"
    ]
    for words in ("1h", "reading"):
        with suppress(ParameterError):  # no noise keeps ε, or no step is known
            narrower = level_of(words, level.side_information, step)
            fewer = level.whole or (narrower.window or 0) < (level.window or 0)
            if fewer and not design.errors(narrower)[place].is_useless:
                helps.append(f"`protect` {narrower.words(step)}")
                break
    if statistic.by != "all":
        coarse = replace(statistic, by="all").tabulate(prepared.steps)
        if not table_error(coarse, noise).is_useless:
            helps.append(f"no cells ({statistic.name})")
    if not level.whole and step is not None:
        days = math.ceil(enough / people * design.longest * step / DAY)
        helps.append(f"a longer period (at least {days:,} days)")
    low = statistic.offset if statistic.relative else 0.0
    high = low + float(np.median(table.ranges))
    return (
        f"the error of {statistic.full_name} would be ±{table.error.middle[0]:.3g}{unit} where "
        f"values lie between {low:g} and {high:g}: pure noise. What helps: {', '.join(helps)}; "
        "`accept_noise` publishes it nevertheless"
    )


def _participants(table: Table, noise: Noise, now: int, goal: float) -> tuple[int, float]:
    """Return how many participants with as many readings reach an impact, and the error then."""
    needed = math.ceil(now * table_error(table, noise).middle[1] / goal)
    while True:
        sizes = table.sizes * needed // now
        ranges = table.ranges if table.statistic.relative else table.ranges * (needed / now)
        error = table_error(replace(table, sizes=sizes, ranges=ranges), noise)
        half, impact = error.middle
        if impact < goal and not error.is_useless:
            return needed, half
        needed += max(1, needed // 50)
