"""Release statistics of a table: count exactly, reserve the cost, draw the noise, write the folder.

Why the noise suffices is proved in docs/account.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pufferflow._checks import check_whole
from pufferflow._noise import open_dp
from pufferflow._options import takes_options
from pufferflow.accounting.account import MOST_STEPS, Charge, Promise
from pufferflow.accounting.ledger import Entry, Ledger, Paid, Population, rehearsed, reserved
from pufferflow.errors import DataError, LedgerError, ParameterError, UselessError
from pufferflow.markov import Family, PeriodicChain
from pufferflow.models import number_of_states
from pufferflow.publish.calibrate import Calibration, calibrate
from pufferflow.publish.files import draft
from pufferflow.publish.noise import add_noise, add_seeded_noise, cost_of, scales_of
from pufferflow.publish.plan import Plan, plan_of, remedies
from pufferflow.publish.request import RECORDS, Request, Theta
from pufferflow.publish.result import Assumption, NoisyTable, Readings, Release
from pufferflow.publish.statistics import Statistic, check_covered
from pufferflow.records.read import Steps, parse_range, read, stamp
from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace
from pufferflow.records.table import Source

LARGE_EPSILON = 10.0
OFFSETS = 14 * 3600
"""Seconds by which a local clock may differ from UTC."""


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

    Raises DataError: the table is malformed (values are never shown); ParameterError: an option is
    out of range, or Θ never forgets; UselessError: most numbers would be noise; BudgetError,
    LedgerError: the account does not allow it. Nothing is drawn or paid for then.
    """
    request = Request.of(source, theta, epsilon, options)
    private, output = request.how.seed is None, request.how.output
    if private:
        open_dp()  # where it is missing, that must show before anything is paid for
    prepared = Prepared(request)
    if private and dry_run:
        return plan_of(prepared, prepared.pay(rehearsed))
    if private and not request.how.accept_noise:
        for table in prepared.zeros.tables:
            if table.error.is_useless:
                raise UselessError(remedies(prepared, table))
    with ExitStack() as stack:
        folder = None if output is None else stack.enter_context(draft(output))
        if folder is not None:
            folder.fill(prepared.zeros)
        paid = stack.enter_context(prepared.pay(reserved)) if private else None
        # nothing below may fail for a reason that could have been found above: it is paid for
        made = prepared.drawn(paid)
        if folder is not None:
            folder.write(made)
    return made


class Prepared:
    """A request, the exact counts for it, and the release that they become, with zeros for numbers.

    ``period`` are the first and last second of the readings that are paid for, None for ever, and
    ``longest`` is how many a participant can have in it; ``family`` is Θ in steps, if there is one.
    """

    def __init__(self, request: Request) -> None:
        self.request, how, model = request, request.how, request.model()
        check_whole(0 if how.seed is None else how.seed, "seed", 0, None)
        records = Schema() if model is None or model.records is None else model.records
        schema, statistics = request.table.schema(records), request.what.parsed()
        first, last = parse_range(how.first, how.last, schema.timezone)
        self.steps = steps = read(request.source, schema, first=first, last=last)
        if not len(steps.person):
            raise DataError(f"{steps.where}: no value was recorded, so there is nothing to release")
        if how.longest is not None:
            self.steps = steps = _first_readings(steps, how.longest)
        level, epsilon = request.guarantee.level(steps.step_seconds), request.epsilon
        self.family = request.family(steps.step_seconds)
        assumed = None if level.whole else self.family
        warnings = _check_states(statistics, steps.states, assumed)
        if assumed is not None:
            warnings += _check_origin(request, assumed, records, steps)
        if epsilon >= LARGE_EPSILON:
            warnings.append(f"Epsilon = {epsilon:g} is large: odds may change by e^{epsilon:g}.")
        self.period, self.longest = _period(steps, first, last, how.longest)
        self.calibration = calibrate(self.family, level, epsilon)
        scales = scales_of(statistics, request.share_of * self.calibration.allowed(self.longest))
        self.tables = [statistic.tabulate(steps) for statistic in statistics]
        if empty := [table.statistic.full_name for table in self.tables if not table.sizes.any()]:
            raise DataError(f"{steps.where}: no reading counts for {empty[0]}; leave it out")
        tables = []
        for exact, scale in zip(self.tables, scales, strict=True):
            public = vars(exact) | {"counts": np.zeros_like(exact.counts)}
            tables.append(NoisyTable(**public, scale=scale, word=request.what.unit))
        self.zeros = Release(
            tables=tables,
            level=level,
            epsilon=epsilon,
            readings=Readings(
                len(steps.person),
                len(steps.people),
                steps.groups if steps.columns["group"] else (),
                steps.step_seconds,
                steps.clock,
                steps.zone,
                *(None if end is None else stamp(steps, end) for end in self.period),
            ),
            assumed=None if assumed is None else _assumption(assumed, records, self.calibration),
            how=replace(how, ledger=None, output=None),  # it names no file
            warnings=tuple(warnings),
        )

    def pay(self, way: Callable[..., Any]) -> Any:
        """Ask the ledger, by ``reserved`` or by ``rehearsed``."""
        request, how, steps, level = self.request, self.request.how, self.steps, self.zeros.level
        statistics = [table.statistic for table in self.tables]
        assumed, limit = None if level.whole else self.family, how.limit or request.epsilon
        allowed, states = self.calibration, None
        if limit != request.epsilon:
            allowed = calibrate(assumed, level, limit)
        if steps.states is not None and (assumed is None or number_of_states(assumed) is not None):
            with suppress(ParameterError):  # of what is finer, the ledger knows no states
                check_covered(statistics, steps.states)
                states = list(steps.states.edges or steps.states.names)
        theta = None if assumed is None else assumed.document()
        columns = steps.columns["participant"], tuple(filter(None, [steps.columns["value"]]))
        population = Population(steps.step_seconds, steps.clock, *columns, states, how.cohort)
        cost = cost_of(statistics, [table.scale for table in self.zeros.tables])
        charge = Charge(cost, cost * self.longest, *self.period)
        words = ", ".join(statistic.full_name for statistic in statistics)
        entry = Entry(charge, level, request.epsilon, words, promise=not how.alone)
        promise = None if how.alone else Promise(level, limit, allowed.cost)
        terms = population, theta, promise, allowed.certificate, entry
        return way(how.ledger, *terms, new_values=how.new_values)

    def drawn(self, paid: Paid | None) -> Release:
        """Return the release with noise, drawn from its seed where it is a simulation."""
        draw, seed = add_noise, self.request.how.seed
        if seed is not None:
            draw = partial(add_seeded_noise, rng=np.random.default_rng(seed))
        noisy = []
        for exact, table in zip(self.tables, self.zeros.tables, strict=True):
            drawn = np.array(draw(exact.counts.ravel().tolist(), table.scale), dtype=np.int64)
            noisy.append(replace(table, counts=drawn.reshape(exact.counts.shape)))
        if paid is not None:
            paid = None if paid.number is None else replace(paid, name="")
        return replace(self.zeros, tables=noisy, paid=paid)


def _check_states(
    statistics: Sequence[Statistic], states: StateSpace | None, assumed: Family | None
) -> list[str]:
    """Hold states and statistics against those that Θ is about; return warnings."""
    k = None if assumed is None else number_of_states(assumed)
    if states is None:
        if k is not None or any(s.name in ("histogram", "transitions") for s in statistics):
            raise ParameterError(
                "it is not said what the states are; give edges between them, or their names "
                "(states)"
            )
    elif k is not None:
        if k != states.count:
            raise ParameterError(
                f"{states.count} states are given, the chain has {k}; give one name a state"
            )
        check_covered(statistics, states)
    if assumed is None or assumed.occurring is None or assumed.occurring.all() or states is None:
        return []
    names = ", ".join(repr(states.names[j]) for j in np.flatnonzero(~assumed.occurring)[:5])
    return [
        f"By the chain {names} cannot occur: such a state is not hidden where it occurs after all."
    ]


def _check_origin(request: Request, assumed: Family, records: Schema, steps: Steps) -> list[str]:
    """Refuse a chain of a clock that jumps, or one fitted to these readings; return warnings."""
    if isinstance(assumed, PeriodicChain) and steps.clock == "local":
        raise DataError(
            f"{steps.where}: a chain that follows the clock needs times in UTC or with a fixed "
            "offset, for where a local clock jumps it skips a phase; give timezone UTC, or times "
            "with offsets"
        )
    others, ledger, fitted = request.how.fitted_to_others, request.how.ledger, records.fitted
    if records.fitted_privately is not None:
        if ledger is not None and not others:
            check_fit_is_paid(records.fitted_privately.token, ledger)
        return []
    if fitted is None:
        return []
    if fitted.period is not None and steps.extent is not None:
        slack = 0 if fitted.is_local == (steps.clock == "local") else OFFSETS
        (first, last), (begin, end) = fitted.period, steps.extent
        if begin > last + slack or end < first - slack:
            return []
        if not others:
            raise DataError(
                f"{steps.where}: the chain was fitted to readings of the same time, and says much "
                "about them if they are these: give a chain of another time, or say "
                "fitted_to_others if they are of other participants"
            )
    return ["Nothing shows that the chain was not fitted to these same readings, and reveals them."]


def check_fit_is_paid(token: str, ledger: Ledger | str | os.PathLike[str]) -> None:
    """Raise LedgerError unless the private fit of this token has a row in the ledger."""
    rows = Ledger(ledger).entries() if os.path.lexists(ledger) else []
    if not any(token in row.content.get("query", "") for row in rows):
        raise LedgerError(
            "the chain was fitted privately, and that fit is not in this ledger, so what it cost "
            "would not be added; use the ledger of the fit, or say fitted_to_others"
        )


def _period(
    steps: Steps, first: int | None, last: int | None, longest: int | None
) -> tuple[tuple[int | None, int | None], int]:
    """Return the range that is paid for, and how many readings a participant can have in it.

    Both are the user's words or the public grid of times, so they say nothing of one participant.
    """
    start, end, most = None, None, int(steps.step.max()) + 1
    if steps.extent is not None and steps.step_seconds is not None:
        start = steps.extent[0] if first is None else first
        end = steps.extent[1] if last is None else last
        most = (end - start) // steps.step_seconds + 1
    if most > MOST_STEPS:
        raise DataError(
            f"{steps.where}: {most:,} steps from the first reading to the last, and the noise is "
            f"proved for {MOST_STEPS:,}; give a shorter range (from, to) or longer steps"
        )
    return (start, end), most if longest is None else min(longest, most)


def _first_readings(steps: Steps, longest: int) -> Steps:
    """Keep the first readings of each participant."""
    starts = np.flatnonzero(np.diff(steps.person, prepend=-1))
    place = np.arange(len(steps.person)) - np.repeat(starts, np.diff([*starts, len(steps.person)]))
    own = {name: getattr(steps, name) for name in ("person", "step", "value", "state")}
    return replace(steps, **{k: a[place < longest] for k, a in own.items() if a is not None})


def _assumption(family: Family, records: Schema, found: Calibration) -> Assumption:
    """Say what is assumed; of a chain that was fitted without noise publish no number."""
    private, fitted, origin = records.fitted_privately, records.fitted, ""
    if private is not None:
        origin = (
            f"It was fitted to {private.participants} participants with noise that hides each of "
            f"them (epsilon = {private.epsilon:g}) and holds their chain with confidence "
            f"{private.confidence:g}, if they are independent draws of it."
        )
    elif fitted is not None:
        origin = f"It was fitted to {fitted.records} readings from {fitted.first} to {fitted.last}."
    if family.is_chosen or private is not None:
        documents = {"theta.json": family.document(), "certificate.json": found.certificate}
        return Assumption(family.text(True), origin, documents)
    return Assumption(family.text(False), origin)
