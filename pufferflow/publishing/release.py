"""A private histogram: exact counts in, noisy counts out, with what is guaranteed.

*Why integer noise keeps the guarantee.* Let h(x) be the counts of the states in records x, and let M(x) add to each
count independent noise with P(Z = z) ∝ exp(−|z|/s). For two data sets that differ in d records, h differs by at most
2d in L1 norm, so for every output w

    P(M(x) = w) / P(M(x') = w) = exp( Σ_j (|w_j − h_j(x')| − |w_j − h_j(x)|) / s ) ≤ exp(2d/s) = e^(c·d),  c = 2/s.

This factor, e^c for each changed record, is all that the mechanisms use of the noise. Markov quilts (Theorem 4.3): with
X_N the nearby nodes of X_i, P(w | x_i) = Σ P(w | x) P(x | x_i); given the quilt the remote nodes are independent of
X_i, the nearby ones change w's probability by at most e^(c·card), the quilt's law by at most e^(e_Q), so the loss is at
most e_Q + c·card ≤ ε as soon as 1/c = s/2 ≥ card/(ε − e_Q). Group privacy is the case d = T; leakage and GK16 start
from e^c too. Summation over outputs takes the place of integrals, and nothing asks for a density. So s ≥ 2σ suffices,
σ being the mechanism's scale for a 1-Lipschitz query, and :func:`pufferflow.publishing.noise.count_scale` rounds up.

Relative frequencies are the noisy counts over n, which is public: post-processing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

import numpy as np

from pufferflow._checks import check_whole
from pufferflow._files import PathLike
from pufferflow._noise import open_dp
from pufferflow._options import takes_options
from pufferflow._protection import Level, Protection
from pufferflow._texts import as_unicode
from pufferflow.errors import LedgerError, ParameterError
from pufferflow.ledger import Ledger, Reservation
from pufferflow.markov.simulation import MOST_RECORDS
from pufferflow.publishing.account import Account, LedgerLike, account_of, open_ledger, paid, try_on_copy
from pufferflow.publishing.calibration import GROUP, Calibration, calibrate, mechanism_for_histograms
from pufferflow.publishing.exact import ExactCounts, count_records, simulated_counts
from pufferflow.publishing.folder import Draft, draft
from pufferflow.publishing.histogram import PrivateHistogram
from pufferflow.publishing.levels import level_costs
from pufferflow.publishing.noise import DiscreteLaplace, add_noise, add_seeded_noise, joint_scale
from pufferflow.publishing.released import CONFIDENCE, PrivateRelease
from pufferflow.publishing.request import (
    Model,
    NoiseOptions,
    ReleaseOptions,
    ReleaseRequest,
    StatisticsOptions,
)
from pufferflow.publishing.statistics import Histogram, Statistic, StatisticOptions, parse_statistics
from pufferflow.publishing.statistics.base import Table
from pufferflow.records.tables import Source


@takes_options(ReleaseOptions, ReleaseRequest)
def release_histogram(
    source: Source, model: Model, epsilon: float, **options: Unpack[ReleaseOptions]
) -> PrivateHistogram:
    """Release the histogram of a table.

    The noise is drawn from the operating system's randomness; there is no seed. It is paid for in the ledger before it
    is drawn, and recorded after the output is written.

    Parameters
    ----------
    source : path, Series or DataFrame
    model : PublicModel, Fit, Family, MarkovChain or path
        Θ, from outside the data.
    epsilon : float
        ε > 0.
    {options}

    Returns
    -------
    PrivateHistogram

    Raises
    ------
    DataError
        The table is malformed, its step is not the chain's, or the chain was fitted to its time; values are never
        shown.
    ParameterError
        An option is out of range.
    BudgetError
        The ledger's limit would be passed; nothing is released.
    LedgerError
        The ledger cannot be used.
    """
    made = release(ReleaseRequest(source, model, epsilon, **options))
    assert isinstance(made, PrivateHistogram)
    return made


@takes_options(StatisticsOptions, ReleaseRequest)
def release_statistics(
    source: Source,
    model: Model,
    epsilon: float,
    statistics: Sequence[str | Statistic],
    **options: Unpack[StatisticsOptions],
) -> PrivateRelease:
    """Release one or several statistics of a table under one ε, as one entry of the ledger.

    Parameters
    ----------
    source, model, epsilon
        As for :func:`release_histogram`, which raises the same errors.
    statistics : sequence of str or Statistic
        ``"histogram"``, ``"mean"``, ``"sum"``, ``"above"``, ``"runs"``, ``"transitions"``, each also by hour, weekday,
        month or group as in ``"mean-by-hour"`` (runs and transitions: by group), and with a weight as in
        ``"mean-by-hour:2"``.
    {options}

    Returns
    -------
    PrivateRelease
    """
    shared: dict[str, Any] = dict(options)
    own = {name: shared.pop(name) for name in StatisticOptions.__annotations__ if name in shared}
    asked = parse_statistics(statistics, options=own)
    return release(ReleaseRequest(source, model, epsilon, statistics=asked, **shared))


@takes_options(ReleaseOptions, ReleaseRequest)
def rehearse_release(source: Source, model: Model, epsilon: float, **options: Unpack[ReleaseOptions]) -> dict[str, Any]:
    """Check all that :func:`release_histogram` needs and say what it would do; nothing is drawn, written or paid for.

    Parameters
    ----------
    source, model, epsilon
        As for :func:`release_histogram`, which raises the same errors.
    {options}

    Returns
    -------
    dict
        Facts that are public, as for a release, as plain JSON types: no count of a state is among them, as long as
        the columns have the roles they are given (participants are counted exactly). ``limit`` and ``left`` are those
        of the ledger after the release, None without one; ``levels`` is what each level of protection would cost.
    """
    return rehearse(ReleaseRequest(source, model, epsilon, **options))


@takes_options(NoiseOptions, ReleaseRequest)
def simulate_release(
    source: Source | None,
    model: Model,
    epsilon: float,
    *,
    seed: int,
    length: int | None = None,
    **options: Unpack[NoiseOptions],
) -> PrivateHistogram:
    """Seeded twin of :func:`release_histogram`, for planning; **not private**, and it says so on everything.

    Parameters
    ----------
    source : path, Series, DataFrame or None
        None simulates ``length`` steps of the first chain of the family.
    model, epsilon
        As for :func:`release_histogram`.
    seed : int
    length : int, optional
    {options}

    Raises
    ------
    ParameterError
        An option is out of range, or neither or both of ``source`` and ``length`` are given.
    DataError
        The table is malformed.
    """
    made = simulate(ReleaseRequest(source, model, epsilon, **options), seed, length)
    assert isinstance(made, PrivateHistogram)
    return made


def release(request: ReleaseRequest) -> PrivateRelease:
    """Release what is asked for; see :func:`release_histogram`."""
    open_dp()  # where it is missing, that must show before anything is paid for
    with _drafted(request) as making:
        prepared = _prepare(request)
        account = account_of(request.source, request.ledger, prepared.exact.extent)
        if isinstance(request.ledger, str | os.PathLike) and not os.path.lexists(request.ledger):
            prepared.tried()  # a refused release leaves no ledger behind
        if making is not None:
            making.rehearse(prepared.noisy(_no_noise, account), figure=request.figure)
        book = None if request.ledger is None else prepared.opened(request.ledger)
        reservation = None if book is None else prepared.reserve(book)
        # nothing below may fail for a reason that could have been found above: the release is paid for
        with paid(reservation):
            released = prepared.noisy(add_noise, account)
            if making is not None:
                released = making.write(released, figure=request.figure)
                making.finish()
        if book is not None and reservation is not None:
            try:
                book.record(reservation)
            except LedgerError as error:  # what is paid for is not lost for want of a note
                return replace(released, warnings=(*released.warnings, as_unicode(str(error))))
    return released


def rehearse(request: ReleaseRequest) -> dict[str, Any]:
    """Say what a release would do; see :func:`rehearse_release`."""
    open_dp()
    with _drafted(request) as making:
        prepared = _prepare(request)
        account = account_of(request.source, request.ledger, prepared.exact.extent)
        if making is not None:
            making.rehearse(prepared.noisy(_no_noise, account), figure=request.figure)
    exact, calibration, scales = prepared.exact, prepared.calibration, prepared.scales
    form = exact.model.records
    costs = level_costs(
        exact.model.family,
        exact.epsilon,
        longest_segment=exact.longest_segment,
        longest_record=exact.longest_record,
        records=exact.records,
        step_seconds=None if form is None else form.step_seconds,
        asked=prepared.level,
    )
    left = {"limit": None, "left": None} if request.ledger is None else prepared.tried()
    return {
        "records": exact.records,
        "participants": exact.participants,
        "segments": exact.segments,
        "longest_segment": exact.longest_segment,
        "columns": exact.columns,
        "unused_columns": exact.unused_columns,
        "states": exact.states.count,
        "epsilon": exact.epsilon,
        "mechanism": calibration.chosen.mechanism,
        **asdict(prepared.protection),
        "whole_participant": prepared.level.whole,
        "scale": prepared.scale,
        "certified": calibration.certificate is not None,
        "noise_scale": scales[0],
        "error_95": DiscreteLaplace(scales[0]).quantile(CONFIDENCE) / exact.records,
        "statistics": [_expected(table, scale) for table, scale in zip(exact.tables, scales, strict=True)],
        "levels": [asdict(cost) for cost in costs],
        "warnings": (*exact.said(calibration), *account.warnings),
        **left,
    }


def simulate(request: ReleaseRequest, seed: int, length: int | None = None) -> PrivateRelease:
    """Make a seeded twin of a release; see :func:`simulate_release`."""
    if (request.source is None) == (length is None):
        raise ParameterError("give either a table or a length, the number of steps to simulate")
    rng = np.random.default_rng(seed := check_whole(seed, "seed", 0, None))

    def draw(counts: Sequence[int], scale: float) -> list[int]:
        return add_seeded_noise(counts, scale, rng)

    if length is None:
        prepared = _prepare(request)
    else:
        length = check_whole(length, "length", most=MOST_RECORDS)
        prepared = _calibrated(request, simulated_counts(request, length, rng))
    return replace(prepared.noisy(draw), private=False, seed=seed)


@dataclass(frozen=True)
class _Prepared:
    """A request, the exact counts for it and the noise that they need."""

    request: ReleaseRequest
    exact: ExactCounts
    calibration: Calibration

    @property
    def scales(self) -> list[float]:
        """Of the noise on each table."""
        return self.exact.noise_scales(self.calibration.scale)

    @property
    def scale(self) -> float:
        """Scale of a 1-Lipschitz query that the noise is as good as."""
        statistics = [table.statistic for table in self.exact.tables]
        return joint_scale([(s.lipschitz, scale) for s, scale in zip(statistics, self.scales, strict=True)])

    @property
    def level(self) -> Level:
        """What is asked to be hidden."""
        return _level(self.request, self.exact)

    @property
    def protection(self) -> Protection:
        """What is hidden, and from whom."""
        return self.level.over(self.exact.longest_record)

    def opened(self, ledger: LedgerLike) -> Ledger:
        """Open the ledger, or make one."""
        limit = self.request.limit
        return open_ledger(ledger, self.exact.epsilon if limit is None else limit, limit is not None)

    def noisy(
        self, draw: Callable[[Sequence[int], float], list[int]], account: Account | None = None
    ) -> PrivateRelease:
        """Return the release with the noise that ``draw`` adds to counts, and where its cost is kept."""
        made = self.exact.noisy(draw, self.calibration, self.request)
        warnings = made.warnings if account is None else (*made.warnings, *account.warnings)
        return replace(made, account=account, warnings=warnings)

    @property
    def query(self) -> str:
        """What is released, in words."""
        of = f"{self.exact.states.count} states over {self.exact.records} records"
        if self.request.statistics == (Histogram(),):
            return f"histogram of {of}"
        return f"{', '.join(statistic.full_name for statistic in self.request.statistics)} of {of}"

    def reserve(self, book: Ledger) -> Reservation:
        """Pay for the release."""
        return book.reserve(
            self.exact.model.family,
            self.calibration.chosen.length,
            mechanism=self.calibration.chosen.mechanism,
            epsilon=self.exact.epsilon,
            scale=self.scale,
            query=self.query,
            certificate=self.calibration.certificate,
            form=self.exact.form,
            extent=self.exact.extent,
            **asdict(self.protection),
        )

    def tried(self) -> dict[str, Any]:
        """What the release would leave of the limit, tried on a copy of the ledger; raises what the release would."""
        assert self.request.ledger is not None

        def pay(path: PathLike) -> Ledger:
            self.reserve(book := self.opened(path))
            return book

        return try_on_copy(self.request.ledger, pay)


def _prepare(request: ReleaseRequest) -> _Prepared:
    """Count the records, and find the scale of the noise for them."""
    return _calibrated(request, count_records(request))


def _calibrated(request: ReleaseRequest, exact: ExactCounts) -> _Prepared:
    level = _level(request, exact)
    mechanism, length = request.mechanism, exact.longest_segment
    if level.whole:
        # pauses make no segments of their own here: all that a participant did counts as one
        if mechanism not in (None, GROUP):
            mechanism_for_histograms(mechanism, f"leave mechanism out for {GROUP}")
            raise ParameterError(f"{mechanism} does not hide a whole participant; leave mechanism out for {GROUP}")
        mechanism, length = GROUP, exact.longest_record
    calibration = calibrate(exact.model.family, length, exact.epsilon, mechanism, level.over(exact.longest_record))
    prepared = _Prepared(request, exact, calibration)
    assert prepared.scale >= calibration.scale
    return prepared


def _level(request: ReleaseRequest, exact: ExactCounts) -> Level:
    return request.level(None if exact.model.records is None else exact.model.records.step_seconds)


def _expected(table: Table, scale: float) -> dict[str, Any]:
    """Errors of a statistic in its cell of the fewest records, from public facts alone."""
    law, scaling, kind = DiscreteLaplace(scale), table.statistic.scaling, table.statistic
    size = min((size for size in table.sizes if size), default=1)
    per, rounding = (size, scaling.rounding) if scaling.relative else (1, scaling.rounding * size)
    return {
        "name": kind.full_name,
        "lipschitz": kind.lipschitz,
        "noise_scale": scale,
        "expected_error": scaling.unit * law.mean_absolute / per + rounding,
        "error_95": scaling.unit * law.quantile(CONFIDENCE) / per + rounding,
    }


def _no_noise(counts: Sequence[int], scale: float) -> list[int]:
    """Zeros, not the counts: to try whether a release can be written."""
    return [0] * len(counts)


@contextmanager
def _drafted(request: ReleaseRequest) -> Iterator[Draft | None]:
    """A place for the release where one is to be written."""
    if request.output is None:
        yield None
        return
    with draft(request.output) as making:
        yield making
