"""Release statistics of a table: count exactly, reserve the cost, draw the noise, write the folder.

docs/account.md proves that the noise suffices.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pufferflow._util.checks import check_whole
from pufferflow._util.noise import open_dp
from pufferflow.accounting.account import MAX_STEPS, Charge
from pufferflow.accounting.entries import Entry, Paid, Population, Terms
from pufferflow.accounting.ledger import Ledger, reserved, try_out
from pufferflow.errors import DataError, LedgerError, ParameterError, UselessError
from pufferflow.models.mixing import MixingFamily
from pufferflow.models.processes import PeriodicChain
from pufferflow.publish.files import draft
from pufferflow.publish.noise import calibrate, most_frequent
from pufferflow.publish.plan import Design, Plan
from pufferflow.publish.request import RECORDS, Request, Theta
from pufferflow.publish.result import Readings, Release
from pufferflow.publish.statement import assumption_of
from pufferflow.publish.statistics import Histogram, MostFrequent, Statistic, check_covered
from pufferflow.records.options import takes_options
from pufferflow.records.read import Steps, parse_range, read, stamp
from pufferflow.records.table import Source

OFFSETS = 14 * 3600
"""Largest difference of local time from UTC, in seconds."""


@takes_options(*RECORDS)
def release(
    source: Source, theta: Theta | None = None, epsilon: float = 1.0, **options: Any
) -> Release | Plan:
    """Return statistics of a table with noise that protects the secrets of ``protect``.

    The noise is drawn from the operating system's randomness, after its cost is reserved in the
    ledger.

    Parameters
    ----------
    source : path, Series or DataFrame
    theta : MixingFamily, MarkovChain, Family, fit or path of a model file, optional
        Class of distributions of the readings, not fitted to them; participants need none.
    epsilon : float
        ε > 0 of the whole release.
    {options}

    Returns
    -------
    Release, or Plan of a dry run

    Raises DataError: the table is malformed (values are never shown); ParameterError: an option is
    out of range, or Θ does not mix; UselessError: most numbers would be noise; BudgetError,
    LedgerError: the account does not allow it. Nothing is drawn or charged then.
    """
    request = Request(theta, epsilon, options)
    how, private = request.how, request.how.seed is None
    if private:
        open_dp()  # fails before any charge if it is missing
    prepared, ledger = Prepared(source, request), how.ledger if private else None
    if how.dry_run:
        return prepared.design.plan(prepared.warnings, try_out(ledger, prepared.bill))
    if private and not how.accept_noise:
        for table in prepared.zeros.tables:
            if table.is_useless:
                raise UselessError(prepared.design.remedies(table))
    output = how.output
    place = nullcontext() if output is None else draft(output, prepared.zeros.files())
    with place as write, reserved(ledger, prepared.bill) as paid:
        # charged from here on: all checks that can fail are above
        made = prepared.drawn(paid)
        if write is not None:
            write(made.files())
    return made


class Agreement:
    """The promise about readings with the public facts of ``steps``, and its cost.

    ``family`` is Θ in steps, if there is one, and ``assumed`` the same if the level needs it.
    """

    def __init__(self, request: Request, steps: Steps, statistics: Sequence[Statistic]) -> None:
        self.request, self.steps, self.statistics = request, steps, statistics
        self.level = request.level(steps.step_seconds)
        self.family = request.family(steps.step_seconds)
        self.assumed = None if self.level.whole else self.family
        self.warnings = tuple(self._checked())
        self.promise = calibrate(self.family, self.level, request.epsilon, request.delta)

    def _checked(self) -> Iterator[str]:
        """Raise if the promise would be false; yield warnings."""
        how, steps, theta = self.request.how, self.steps, self.assumed
        for one in self.statistics:
            if one.by == "group" and steps.columns["group"] is None:
                raise ParameterError(f"{one.full_name} needs `group`; name the column of groups")
        k = None if theta is None else theta.states
        if steps.states is None:
            if k is not None or any(isinstance(one, Histogram) for one in self.statistics):
                raise ParameterError("the states are missing; give `edges` or `states`")
        elif k is not None:
            if k != steps.states.count:
                why = f"{steps.states.count} states are given, the chain has {k}"
                raise ParameterError(f"{why}; give one name per state")
            check_covered(self.statistics, steps.states)
        if theta is None:
            return
        if isinstance(theta, PeriodicChain) and steps.time_base == "local":
            raise DataError(
                f"{steps.where}: where local time jumps, a periodic chain skips a phase; "
                "give `timezone` UTC, or times with offsets"
            )
        if not how.fitted_to_others:
            self._check_fit()
        if steps.states is not None and theta.occurring is not None and not theta.occurring.all():
            never = ", ".join(repr(steps.states.names[j]) for j in np.flatnonzero(~theta.occurring))
            yield f"The chain excludes {never}: if it occurs nevertheless, it is not protected."

    def _check_fit(self) -> None:
        """Refuse a chain that was fitted to the same readings, unless the fit is charged."""
        ledger, steps, fitted = self.request.how.ledger, self.steps, self.request.records.fitted
        if ledger is not None and (private := self.request.records.fitted_privately) is not None:
            fits = Ledger(ledger).book.releases.values() if os.path.lexists(ledger) else []
            if not any(private.token in fit.query for fit in fits):
                raise LedgerError(
                    "the chain was fitted privately, and that fit is not in this ledger, so "
                    "its cost would not be added; use the ledger of the fit, or `fitted_to_others`"
                )
        if fitted is not None:
            then, now = fitted.period, steps.extent
            slack = 0 if fitted.is_local == (steps.time_base == "local") else OFFSETS
            if not then or not now or (now[0] <= then[1] + slack and now[1] >= then[0] - slack):
                raise DataError(
                    f"{steps.where}: nothing shows that the chain was fitted to readings of other "
                    "times, and it discloses these if it was fitted to them; give a chain of "
                    "another time, or `fitted_to_others` if it was fitted to other participants"
                )

    def terms(self, charge: Charge, words: str) -> Terms:
        """Return the terms of an entry in the ledger."""
        request, how, steps, assumed = self.request, self.request.how, self.steps, self.assumed
        promise, states = self.promise, None
        if how.limit not in (None, request.epsilon):
            promise = calibrate(assumed, self.level, how.limit, request.delta)
        if steps.states is not None and (assumed is None or assumed.states is not None):
            with suppress(ParameterError):  # finer statistics have no states in the ledger
                check_covered(self.statistics, steps.states)
                states = list(steps.states.edges or steps.states.names)
        theta = None if assumed is None else assumed.document()
        columns = steps.columns["participant"], tuple(filter(None, [steps.columns["value"]]))
        population = Population(steps.step_seconds, steps.time_base, *columns, states, how.cohort)
        entry = Entry(population, charge, self.level, request.epsilon, words)
        return Terms(entry, theta, None if how.alone else promise, how.new_values)


class Prepared(Agreement):
    """The exact counts of a request, and the release that they become, with zeros for numbers."""

    def __init__(self, source: Source, request: Request) -> None:
        how, records, schema = request.how, request.records, request.schema
        check_whole(0 if how.seed is None else how.seed, "seed", 0, None)
        first, last = parse_range(how.first, how.last, schema.timezone)
        steps = read(source, schema, first=first, last=last)
        if not len(steps.person):
            raise DataError(f"{steps.where}: no value was recorded, so there is nothing to release")
        if how.longest is not None:
            steps = steps[steps.first(np.ones(len(steps.person), dtype=bool), how.longest)]
        super().__init__(request, steps, request.statistics)
        # the charged range and the most readings of a participant in it: from options and the
        # public grid of times, not from any participant
        start, end, longest = None, None, int(steps.seconds.max()) + 1
        if steps.extent is not None and steps.step_seconds is not None:
            start = steps.extent[0] if first is None else first
            end = steps.extent[1] if last is None else last
            longest = (end - start) // steps.step_seconds + 1
        if longest > MAX_STEPS:
            raise DataError(
                f"{steps.where}: {longest:,} steps from first to last reading, and noise is proved "
                f"for {MAX_STEPS:,}; give a shorter range (`first`, `last`) or a longer `step`"
            )
        longest, period = min(longest, how.longest or longest), (start, end)
        self.tables = [statistic.tabulate(steps) for statistic in self.statistics]
        if empty := [table.statistic.full_name for table in self.tables if not table.sizes.any()]:
            raise DataError(f"{steps.where}: no reading counts for {empty[0]}; leave it out")
        zeros = [replace(exact, counts=np.zeros_like(exact.counts)) for exact in self.tables]
        people, step = len(steps.people), steps.step_seconds
        self.design = Design(request, zeros, self.family, self.level, people, longest, step)
        tables = self.design.noisy(self.promise)
        costs = zip(*(table.noise.cost(table.statistic) for table in tables), strict=True)
        cost, rho = (sum(each, Fraction(0)) for each in costs)
        words = ", ".join(statistic.full_name for statistic in self.statistics)
        self.bill = self.terms(Charge.of(cost, rho, longest, period), words)
        ends = (None if end is None else stamp(steps, end) for end in period)
        groups = steps.groups if steps.columns["group"] else ()
        grid = step, steps.time_base, steps.zone
        # Θ and the certificate, unless they reveal more of readings than the release does
        theta, documents = self.assumed, {}
        certificate = self.promise.certificate
        if isinstance(theta, MixingFamily) or (theta and records.fitted_privately):
            if rho and isinstance(certificate, dict):
                spent = {"delta": str(request.delta), "event_delta": "0", "rho": str(rho)}
                certificate = certificate | {"approximate": spent}
            documents = {"theta.json": theta.document(), "certificate.json": certificate}
        self.zeros = Release(
            tables=tables,
            level=self.level,
            epsilon=request.epsilon,
            delta=request.delta if rho else 0.0,
            readings=Readings(len(steps.person), people, groups, *grid, *ends),
            assumed=tuple(assumption_of(theta, records)),
            documents=documents,
            how=replace(how, ledger=None, output=None),  # a release names no file
            warnings=self.warnings + self.design.noisier(tables),
        )

    def drawn(self, paid: Paid | None) -> Release:
        """Return the release with noise; that of a simulation is drawn from its seed."""
        seed, noisy = self.request.how.seed, []
        rng = None if seed is None else np.random.default_rng(seed)
        for exact, table in zip(self.tables, self.zeros.tables, strict=True):
            if isinstance(kind := table.statistic, MostFrequent):
                named = most_frequent(exact.counts, kind.top, table.noise.scale, rng)
                drawn = np.full_like(exact.counts, -1)
                np.put_along_axis(drawn, named, np.arange(kind.top), axis=1)
            else:
                drawn = table.noise.add(exact.counts, rng)
            noisy.append(replace(table, counts=drawn))
        return replace(self.zeros, tables=noisy, paid=paid)
