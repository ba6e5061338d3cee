"""Release statistics of a table: count exactly, reserve the cost, draw the noise, write the folder.

*Why the noise suffices.* For two tables that differ in one reading, the integers of a release
differ by at most L_i in table i, so independent noise of scales s_i changes the probability of
every output by a factor of at most e^c, c = Σ L_i/s_i. That factor is all that the account uses
(docs/account.md): c ≤ C keeps the promise of a window at any length, and c · longest ≤ ε that of a
participant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pufferflow._checks import check_whole
from pufferflow._noise import open_dp
from pufferflow._options import takes_options
from pufferflow._protection import Level
from pufferflow.accounting.account import MOST_STEPS, Charge, Promise
from pufferflow.accounting.entries import Entry, Paid, Population, Terms
from pufferflow.accounting.ledger import Ledger, reserved, try_out
from pufferflow.errors import DataError, LedgerError, ParameterError, UselessError
from pufferflow.markov import Family, PeriodicChain
from pufferflow.models import PublicModel, number_of_states
from pufferflow.publish.calibrate import Calibration, calibrate
from pufferflow.publish.files import draft
from pufferflow.publish.noise import (
    TableError,
    add_noise,
    add_seeded_noise,
    cost_of,
    scales_of,
    table_error,
)
from pufferflow.publish.plan import Plan, plan_of, remedies
from pufferflow.publish.request import RECORDS, Request, Theta
from pufferflow.publish.result import NoisyTable, Release
from pufferflow.publish.statistics import Statistic, Sum, Table, check_covered
from pufferflow.records.read import Steps, parse_range, read, stamp
from pufferflow.records.schema import Fitted, Schema
from pufferflow.records.table import Source

LARGE_EPSILON = 10.0
OFFSETS = 14 * 3600
"""Seconds by which a local clock may differ from UTC."""
IN_TURN = (
    "No two participants have readings at the same time: if they are pieces of one record, they "
    "are not independent, and the noise is too small."
)


@takes_options(*RECORDS)
def release(
    source: Source,
    theta: Theta | None = None,
    epsilon: float = 1.0,
    *,
    dry_run: bool = False,
    **options: Any,
) -> Release | Plan:
    """Publish statistics of a table with noise that hides what ``protect`` names.

    The noise is drawn from the operating system's randomness, after its cost is reserved in the
    ledger.

    Parameters
    ----------
    source : path, Series or DataFrame
    theta : MixingFamily, MarkovChain, Family, fit or path of a model file, optional
        What is assumed of the readings, from outside the data; participants need nothing.
    epsilon : float
        ε > 0, of everything that this release publishes.
    dry_run : bool
        Check everything and return a Plan; nothing is drawn, written or paid for.
    {options}

    Returns
    -------
    Release, or Plan of a dry run

    Raises
    ------
    DataError
        The table is malformed; values are never shown.
    ParameterError
        An option is out of range, or Θ never forgets.
    UselessError
        Most numbers would be noise; nothing is paid for.
    BudgetError, LedgerError
        The account does not allow it; nothing is drawn.
    """
    request = Request.of(source, theta, epsilon, options)
    if request.how.seed is not None:
        return _simulate(prepare(request), request.how.seed)
    open_dp()  # where it is missing, that must show before anything is paid for
    prepared = prepare(request)
    if dry_run:
        return plan_of(prepared, try_out(request.how.ledger, prepared.terms()))
    prepared.require_useful()
    with ExitStack() as stack:
        folder = (
            None if request.how.output is None else stack.enter_context(draft(request.how.output))
        )
        if folder is not None:
            folder.rehearse(prepared.release(_zeros))
        paid = stack.enter_context(reserved(request.how.ledger, prepared.terms()))
        # nothing below may fail for a reason that could have been found above: it is paid for
        made = prepared.release(add_noise, paid)
        if folder is not None:
            folder.write(made)
    return made


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """A request, the exact counts for it and the noise that they get; its text shows no count."""

    request: Request
    family: Family | None
    model: PublicModel | None
    steps: Steps
    tables: tuple[Table, ...]
    level: Level
    calibration: Calibration
    scales: tuple[float, ...]
    period: tuple[int | None, int | None]
    """First and last second of the readings that are paid for; None for ever."""
    longest: int
    """Readings that a participant can have in it."""
    warnings: tuple[str, ...]

    @cached_property
    def errors(self) -> tuple[TableError, ...]:
        """Error of each table, from public facts."""
        return tuple(table_error(t, s) for t, s in zip(self.tables, self.scales, strict=True))

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What is published."""
        return tuple(table.statistic for table in self.tables)

    @property
    def cost(self) -> Fraction:
        """What one changed reading costs."""
        return cost_of(self.statistics, self.scales)

    def require_useful(self) -> None:
        """Raise UselessError where most numbers of a table would be noise."""
        if self.request.how.accept_noise:
            return
        for table, error in zip(self.tables, self.errors, strict=True):
            if error.is_useless:
                raise UselessError(remedies(self, table, error))

    def terms(self) -> Terms:
        """Return what the ledger has to know."""
        request, steps, level = self.request, self.steps, self.level
        how, calibration = request.how, self.calibration
        limit = request.epsilon if how.limit is None else how.limit
        if limit != request.epsilon:
            calibration = calibrate(self.family, level, limit)
        theta = None if level.whole or self.family is None else self.family.document()
        free = self.family is not None and not level.whole and number_of_states(self.family) is None
        states = None
        if steps.states is not None and not free:  # Θ of the ledger may be about states
            edges = set(steps.states.edges or ())
            if all(not isinstance(s, Sum) and {*(s.edges or ())} <= edges for s in self.statistics):
                states = list(steps.states.edges or steps.states.names)
        population = Population(
            steps.step_seconds,
            steps.clock,
            steps.columns["participant"],
            tuple(filter(None, [steps.columns["value"]])),
            states,
            how.cohort,
        )
        words = ", ".join(statistic.full_name for statistic in self.statistics)
        charge = Charge(self.cost, self.cost * self.longest, *self.period)
        entry = Entry(population, charge, level, request.epsilon, words, not how.alone)
        promise = (
            None if how.alone else Promise(level, limit, calibration.cost, calibration.certificate)
        )
        return Terms(entry, theta, promise, how.new_values)

    def release(
        self, draw: Callable[[Sequence[int], float], list[int]], paid: Paid | None = None
    ) -> Release:
        """Return the release with the noise that ``draw`` adds to integers."""
        request, steps, family = self.request, self.steps, self.family
        noisy = []
        for table, scale, error in zip(self.tables, self.scales, self.errors, strict=True):
            drawn = draw(table.counts.ravel().tolist(), scale)
            counts = np.array(drawn, dtype=np.int64).reshape(table.counts.shape)
            noisy.append(
                NoisyTable(
                    table.statistic,
                    table.cells,
                    table.columns,
                    table.sizes,
                    counts,
                    scale,
                    error,
                    table.ranges,
                )
            )
        records = None if self.model is None else self.model.records
        private = None if records is None else records.fitted_privately
        public = family is None or family.is_chosen or private is not None
        first, last = self.period
        return Release(
            tables=tuple(noisy),
            level=self.level,
            epsilon=request.epsilon,
            participants=len(steps.people),
            readings=len(steps.person),
            step_seconds=steps.step_seconds,
            first=None if first is None else stamp(steps, first),
            last=None if last is None else stamp(steps, last),
            clock=steps.clock,
            zone=steps.zone,
            groups=tuple(steps.groups) if steps.columns["group"] else (),
            unit=request.what.unit,
            cohort=request.how.cohort,
            theta_text="" if family is None else family.text(public),
            theta_origin=_origin(records),
            theta_is_public=public,
            theta_document=None if family is None else family.document(),
            certificate=self.calibration.certificate,
            outright=self.level.whole,
            ledger=request.how.ledger is not None,
            alone=request.how.alone,
            spent=None if paid is None else paid.spent,
            limit=None if paid is None else paid.limit,
            warnings=self.warnings,
            seed=request.how.seed,
            figure=request.how.figure,
        )

    def __repr__(self) -> str:
        return "Prepared(…)"


def prepare(request: Request) -> Prepared:
    """Read the table, count it exactly, and find the noise; only counts look at values."""
    model = request.model()
    records = None if model is None else model.records
    schema, statistics = request.table.schema(records), request.what.parsed()
    if schema.states is None and any(s.name in ("histogram", "transitions") for s in statistics):
        raise ParameterError(
            "it is not said what the states are; give edges between them, or their names (states)"
        )
    _check_states(model, schema, statistics, request.guarantee.protect == "participant")
    first, last = parse_range(request.how.first, request.how.last, schema.timezone)
    steps = read(request.source, schema, first=first, last=last)
    if request.how.longest is not None:
        steps = _first_readings(steps, request.how.longest)
    if not len(steps.person):
        raise DataError(f"{steps.where}: no value was recorded, so there is nothing to release")
    family, level = request.family(steps.step_seconds), request.guarantee.level(steps.step_seconds)
    warnings = [] if level.whole else _check_origin(request, steps, records)
    if isinstance(family, PeriodicChain) and steps.clock == "local" and not level.whole:
        raise DataError(
            f"{steps.where}: a chain that follows the clock needs times in UTC or with a fixed "
            "offset, for where a local clock jumps it skips a phase; give timezone UTC, or times "
            "with offsets"
        )
    period, longest = _period(steps, first, last, request.how.longest)
    calibration = calibrate(family, level, request.epsilon)
    scales = scales_of(statistics, request.share_of * calibration.allowed(longest))
    if len(steps.people) > 1 and steps.clock != "none" and _are_in_turn(steps):
        warnings.append(IN_TURN)
    if request.epsilon >= LARGE_EPSILON:
        warnings.append(
            f"Epsilon = {request.epsilon:g} is large: odds may change by e^{request.epsilon:g}."
        )
    if family is not None and family.occurring is not None and steps.states is not None:
        names = [steps.states.names[j] for j in np.flatnonzero(~family.occurring)]
        if names and not level.whole:
            warnings.append(
                f"By the chain {', '.join(map(repr, names[:5]))} cannot occur: such a state is not "
                "hidden where it occurs after all."
            )
    tables = tuple(statistic.tabulate(steps) for statistic in statistics)
    if empty := [table.statistic.full_name for table in tables if not table.sizes.any()]:
        raise DataError(f"{steps.where}: no reading counts for {empty[0]}; leave it out")
    return Prepared(
        request,
        family,
        model,
        steps,
        tables,
        level,
        calibration,
        scales,
        period,
        longest,
        tuple(warnings),
    )


def _check_states(
    model: PublicModel | None, schema: Schema, statistics: Sequence[Statistic], whole: bool
) -> None:
    """Hold states and statistics against those that Θ is about."""
    if model is None or whole or (k := number_of_states(model.family)) is None:
        return
    if schema.states is None:
        raise ParameterError(
            "the model does not say what its states are; give edges between them, or names (states)"
        )
    if k != schema.states.count:
        raise ParameterError(
            f"{schema.states.count} states are given, the chain has {k}; give one name a state"
        )
    check_covered(statistics, schema.states)


def _check_origin(request: Request, steps: Steps, records: Schema | None) -> list[str]:
    """Refuse a chain that was fitted to these readings outside the account; return warnings."""
    if records is None:
        return []
    others = request.how.fitted_to_others
    if records.fitted_privately is not None:
        if others or request.how.ledger is None:
            return []
        given, known = request.how.ledger, None
        if isinstance(given, Ledger):
            known = given
        elif os.path.lexists(given):
            known = Ledger(given)
        token = records.fitted_privately.token
        fits = [] if known is None else known.book.releases.values()
        if not any(token in entry.query for entry in fits):
            raise LedgerError(
                "the chain was fitted privately, and that fit is not in this ledger, so what it "
                "cost would not be added; use the ledger of the fit, or say fitted_to_others"
            )
        return []
    fitted: Fitted | None = records.fitted
    if fitted is None:
        return []
    if fitted.period is None or steps.extent is None:
        return [
            "Without times nobody can tell whether the chain was fitted to these same readings."
        ]
    slack = 0 if fitted.is_local == (steps.clock == "local") else OFFSETS
    if steps.extent[0] > fitted.period[1] + slack or steps.extent[1] < fitted.period[0] - slack:
        return []
    if not others:
        raise DataError(
            f"{steps.where}: the chain was fitted to readings of the same time, and says much "
            "about them if they are these: give a chain of another time, or say fitted_to_others "
            "if they are of other participants"
        )
    return [
        "The chain was fitted to readings of the same time, of other participants as the publisher "
        "says; had they been of these, the chain would give them away."
    ]


def _period(
    steps: Steps, first: int | None, last: int | None, longest: int | None
) -> tuple[tuple[int | None, int | None], int]:
    """Return the range that is paid for, and how many readings a participant can have in it.

    Both are the user's words or the public grid of times, so they say nothing of one participant.
    """
    if steps.extent is None or steps.step_seconds is None:
        period: tuple[int | None, int | None] = (None, None)
        most = int(steps.step.max()) + 1
    else:
        start = steps.extent[0] if first is None else first
        end = steps.extent[1] if last is None else last
        period, most = (start, end), (end - start) // steps.step_seconds + 1
    if most > MOST_STEPS:
        raise DataError(
            f"{steps.where}: {most:,} steps from the first reading to the last, and the noise is "
            f"proved for {MOST_STEPS:,}; give a shorter range (from, to) or longer steps"
        )
    return period, most if longest is None else min(longest, most)


def _first_readings(steps: Steps, longest: int) -> Steps:
    """Keep the first readings of each participant."""
    place = np.arange(len(steps.person))
    start = np.maximum.accumulate(np.where(np.diff(steps.person, prepend=-1) != 0, place, 0))
    kept = place - start < longest
    own = {name: getattr(steps, name) for name in ("person", "step", "value", "state")}
    return replace(steps, **{name: a[kept] for name, a in own.items() if a is not None})


def _are_in_turn(steps: Steps) -> bool:
    """Whether no two participants have readings during the same time."""
    starts = np.flatnonzero(np.diff(steps.person, prepend=-1))
    ends = np.append(starts[1:], len(steps.person)) - 1
    first, last = steps.seconds[starts], steps.seconds[ends]
    order = np.argsort(first)
    return len(order) > 1 and bool((last[order][:-1] < first[order][1:]).all())


def _origin(records: Schema | None) -> str:
    """Say where a chain comes from."""
    if records is None:
        return ""
    if (fit := records.fitted_privately) is not None:
        return (
            f"It was fitted to {fit.participants} participants with noise that hides each of them "
            f"(epsilon = {fit.epsilon:g}) and holds their chain with confidence "
            f"{fit.confidence:g}, if they are independent draws of it."
        )
    if (fitted := records.fitted) is not None:
        return f"It was fitted to {fitted.records} readings from {fitted.first} to {fitted.last}."
    return ""


def _zeros(counts: Sequence[int], scale: float) -> list[int]:
    """Zeros, not the counts: to try whether a release can be written."""
    return [0] * len(counts)


def _simulate(prepared: Prepared, seed: int) -> Release:
    """Make a seeded twin of a release: not private, not paid for, and nothing in publish/."""
    rng = np.random.default_rng(check_whole(seed, "seed", 0, None))
    made = prepared.release(lambda counts, scale: add_seeded_noise(counts, scale, rng))
    if prepared.request.how.output is not None:
        with draft(prepared.request.how.output) as folder:
            folder.write(made)
    return made
