"""Errors of a release before it consumes budget, and remedies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, replace
from typing import Any

import numpy as np

from pufferflow._util.checks import check_whole
from pufferflow.accounting.account import Level, Promise
from pufferflow.accounting.entries import Paid
from pufferflow.errors import ParameterError
from pufferflow.models.families import Family
from pufferflow.publish.noise import Noise, calibrate, deviation, impact_label, noise_scale
from pufferflow.publish.request import GuaranteeOptions, Request, StatisticOptions, Theta
from pufferflow.publish.result import NoisyTable
from pufferflow.publish.statistics import LABELS, Table
from pufferflow.publish.texts import number, plural
from pufferflow.records.options import made_from, reads, shows, takes_options
from pufferflow.records.states import StateSpace
from pufferflow.records.units import seconds_of, steps_of, text_of

DAY = 86_400
PERIODS = {"hour": DAY, "weekday": 7 * DAY, "month": 365 * DAY}
"""Seconds in which every cell of a statistic occurs."""
GOALS = (0.5, 0.1)
"""Errors over the public range for which remedies are computed: HIGH and MEDIUM."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Public facts of a planned table."""

    step: str | int = reads(MISSING, "Time between two readings: 30min.", "TIME")
    period: str | int = reads(MISSING, "Time span of the readings: 7d.", "TIME")
    participants: int = reads(MISSING, "Number of participants.", "N")
    states: int | None = shows(None, "Number of states (default: those of the chain).", "K")
    groups: int = reads(1, "Number of groups, for cells by group.", "N")


@dataclass(frozen=True)
class Plan:
    """Errors of the requested statistics at several levels of protection.

    Rows have the keys ``statistic``, ``protect``, ``error`` (the median of the simultaneous
    half-widths with probability .95; None if no noise suffices), ``unit``, ``impact``, ``note``,
    and ``asked``: whether the level was requested. A warning names what would be pure noise, and
    remedies; ``paid`` of a dry run is the entry of the release in the ledger.
    """

    rows: tuple[dict[str, Any], ...]
    epsilon: float
    warnings: tuple[str, ...] = ()
    paid: Paid | None = None

    def lines(self) -> list[str]:
        """Return the table as lines, one part per statistic."""
        text: list[str] = []
        for name in dict.fromkeys(row["statistic"] for row in self.rows):
            shown = [("protect", "error", "noise impact", "")]
            for row in (row for row in self.rows if row["statistic"] == name):
                error = "-" if row["error"] is None else f"±{number(row['error'])} {row['unit']}"
                note = "; ".join(filter(None, ("requested" * row["asked"], row["note"])))
                shown.append((row["protect"], error.rstrip(), row["impact"], note))
            widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
            text += [f"{name}, epsilon {self.epsilon:g}:"]
            text += ["  ".join(map(str.ljust, line, widths)).rstrip() for line in shown]
        return text

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *self.warnings])

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON types."""
        return {"epsilon": self.epsilon, "warnings": [*self.warnings], "rows": [*self.rows]}


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
    (known,) = made_from(options, PlanOptions)
    asked = {name: value for name, value in options.items() if not hasattr(known, name)}
    request = Request(theta, epsilon, asked | {"statistics": statistics})
    step = seconds_of(known.step, "step")
    steps = steps_of(known.period, step, "period")
    participants = check_whole(known.participants, "participants")
    groups, space = check_whole(known.groups, "groups"), request.records.states
    if known.states is not None:
        states = check_whole(known.states, "states", 2)
        if space is not None and space.count != states:
            raise ParameterError("the model contradicts `states`; leave it out")
        space = space or StateSpace.numeric([*range(1, states)])
    tables = []
    for statistic in request.statistics:
        whole = PERIODS.get(statistic.by, 1)
        if steps * step < whole:
            raise ParameterError(
                f"the period is too short for {statistic.full_name}: it must have every "
                f"{statistic.by}; give a longer `period`"
            )
        cells = LABELS.get(statistic.by, tuple(map(str, range(groups))))
        if whole > 1:  # with steps of 2h every other hour occurs
            cells = cells[: whole // math.gcd(step, whole)]
        if whole > 1 and len(cells) == 1:
            same = f"with a `step` of {text_of(step)} all readings have the same {statistic.by}"
            raise ParameterError(f"{same}; plan {statistic.name} instead, or give a shorter one")
        each = (steps - (statistic.name == "transitions")) * participants // len(cells)
        sizes = np.full(len(cells), max(1, each))
        stretches = np.minimum(sizes, participants)
        tables.append(statistic.table(cells, statistic.columns(space, step), sizes, stretches))
    level, family = request.level(step), request.family(step)
    return Design(request, tables, family, level, participants, steps, step).plan()


@dataclass(frozen=True, eq=False)
class Design:
    """The public facts that determine the errors of a release, with sizes of tables only."""

    request: Request
    tables: Sequence[Table]
    family: Family | None
    level: Level
    participants: int
    longest: int
    step_seconds: int | None

    def noisy(self, promise: Promise) -> list[NoisyTable]:
        """Return the tables with the noise that a promise allows them, in equal parts.

        It is Gaussian if that is allowed and has a smaller error over the public ranges.
        """
        cost, rho = promise.allowed(self.longest, self.request.share)
        kinds, several = [table.statistic for table in self.tables], len(self.tables)
        laplace = [Noise(noise_scale(cost, one.lipschitz, several)) for one in kinds]
        ways: list[tuple[Sequence[Noise], Sequence[Noise | None]]] = [(laplace, [None] * several)]
        if rho and all(one.square for one in kinds):
            gaussian = [Noise(deviation(one.square * several, rho), True) for one in kinds]
            ways = [(laplace, gaussian), (gaussian, laplace)]
        made = []
        for noise, other in ways:
            public = zip(map(vars, self.tables), noise, other, strict=True)
            word = self.request.unit
            made.append([NoisyTable(**own, noise=n, other=o, word=word) for own, n, o in public])
        return min(made, key=lambda tables: sum(table.middle[1] for table in tables))

    def at(self, level: Level) -> list[NoisyTable]:
        """Return the tables at a level; raises ParameterError: no noise keeps ε there."""
        request = self.request
        return self.noisy(calibrate(self.family, level, request.epsilon, request.delta))

    def plan(self, warnings: tuple[str, ...] = (), paid: Paid | None = None) -> Plan:
        """Return the errors of each statistic at the requested level and the usual ones."""
        step, rows = self.step_seconds, []
        usual = ("reading", "participant", *["1d"] * (step is not None))
        levels = {self.level, *(self.request.level(step, one) for one in usual)}
        for level in sorted(levels, key=lambda one: one.window or math.inf):
            asked, note = level == self.level, "no assumption about time" * level.whole
            none: dict[str, Any] = {"error": None, "unit": "", "impact": "-"}
            found = [none] * len(self.tables)
            try:
                tables = self.at(level)
                found = [
                    {"error": half, "unit": table.suffix.strip(), "impact": impact_label(impact)}
                    for table, (half, impact) in ((table, table.middle) for table in tables)
                ]
                if asked:
                    warnings += tuple(self.remedies(table) for table in tables if table.is_useless)
                    warnings += self.noisier(tables)
            except ParameterError as error:
                note = str(error)
            for table, facts in zip(self.tables, found, strict=True):
                row = {"statistic": table.statistic.full_name, "protect": level.description(step)}
                rows.append(row | facts | {"note": note, "asked": asked})
        return Plan(tuple(rows), self.request.epsilon, warnings, paid)

    def noisier(self, tables: Sequence[NoisyTable]) -> tuple[str, ...]:
        """Return a sentence if less noise than that of these tables protects participants."""
        least, own = (sum(t.middle[1] for t in each) for each in (self.at(Level(None)), tables))
        protecting = "Protecting all readings of a participant would take less noise than"
        known = self.level.description(self.step_seconds)
        return (f"{protecting} {known}, and no assumption about time.",) * (least < own)

    def remedies(self, table: NoisyTable) -> str:
        """Return one sentence: this table of the release is useless, and computed remedies."""
        statistic, unit = table.statistic, table.suffix
        level, step = self.level, self.step_seconds
        (enough, half), (plenty, small) = (self._participants(table, goal) for goal in GOALS)
        helps = [
            f"more participants (at least {enough:,} for ±{number(half)}{unit}, "
            f"{plenty:,} for ±{number(small)}{unit})"
        ]
        place = [own.statistic for own in self.tables].index(statistic)
        for words in ("participant", "1h", "reading"):  # of short records the first needs less
            with suppress(ParameterError):  # no noise keeps ε, or no step is known
                other = self.request.level(step, words)
                useful = level.whole or (other.window or 0) < (level.window or 0)
                if useful and not self.at(other)[place].is_useless:
                    helps.append(f"`protect` {other.description(step)}")
                    break
        if statistic.by != "all":
            sizes, zeros = table.sizes.sum(keepdims=True), table.counts[:1]
            ranges = table.ranges[:1] if statistic.relative else table.ranges.sum(0, keepdims=True)
            if not replace(table, sizes=sizes, counts=zeros, ranges=ranges).is_useless:
                helps.append(f"no cells ({statistic.name})")
        if self.request.share < 1:
            helps.append("a larger `share`")
        if not level.whole:
            longer = math.ceil(enough / self.participants * self.longest)
            if self.request.how.longest is not None:
                helps.append(f"a larger `longest` (at least {longer:,})")
            elif step is not None:
                days = math.ceil(longer * step / DAY)
                helps.append(f"a longer period (at least {plural(days, 'day')})")
        error, size = number(table.middle[0]), number(float(np.median(table.ranges)))
        return (
            f"the error of {statistic.full_name} would be ±{error}{unit} on a public range of "
            f"{size}{unit}: pure noise. Remedies: {', '.join(helps)}; `accept_noise` publishes "
            "it nevertheless"
        )

    def _participants(self, table: NoisyTable, goal: float) -> tuple[int, float]:
        """Return the participants, with as many readings each, for an impact, and the error."""
        now = self.participants
        needed = math.ceil(now * table.middle[1] / goal)
        while True:
            sizes = table.sizes * needed // now
            ranges = table.ranges if table.statistic.relative else table.ranges * (needed / now)
            larger = replace(table, sizes=sizes, ranges=ranges)
            half, impact = larger.middle
            if impact < goal and not larger.is_useless:
                return needed, half
            needed += max(1, needed // 50)
