"""A running count of a stream, paid for once: every line of what comes in gives one line of what may leave.

The noise of the tree (:mod:`pufferflow.publishing.running_count`) changes the law of *all* lines together by a factor
of at most e^c when one record changes, and c is what the mechanism allows for ε. So one entry of the ledger covers the
whole stream, and it is made before the first line. The noise is kept nowhere: a stream that was broken off cannot be
taken up again, for fresh noise on the same records would be a second release. A new run is one, and pays again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._checks import check_epsilon, check_whole, shown
from pufferflow._files import PathLike
from pufferflow._noise import open_dp
from pufferflow._protection import Level, Protection
from pufferflow._rounding import divide_down
from pufferflow._texts import as_unicode
from pufferflow.errors import LedgerError, ParameterError
from pufferflow.ledger import Ledger, Reservation
from pufferflow.models import PublicModel, number_of_states
from pufferflow.publishing.account import LedgerLike, account_of, open_ledger, try_on_copy
from pufferflow.publishing.assumptions import NO_TIMES, doubts
from pufferflow.publishing.calibration import GROUP, Calibration, calibrate
from pufferflow.publishing.noise import count_scale
from pufferflow.publishing.released import CONFIDENCE
from pufferflow.publishing.running_count import RunningCount
from pufferflow.publishing.statement import OUTSIDE, Statement, factor_text
from pufferflow.publishing.stream_values import BITS, Counted
from pufferflow.records.format import StateSpace

HEADER = "time,noisy_count,half_width_95"


@dataclass(frozen=True)
class StreamRequest:
    """A running count, as it was asked for.

    Attributes
    ----------
    model : PublicModel
        Θ, from outside the stream.
    length : int
        T, the most records that the stream has: public.
    epsilon : float
        ε > 0.
    counted : Counted
        What counts.
    level : Level
        What is hidden, and from whom.
    source : path or None
        The file that is read, where it is one.
    ledger : Ledger, path or None
        Where the whole stream is paid for.
    limit : float or None
        Of a new ledger (default: ``epsilon``).
    step_seconds : int or None
        Time between two records.
    start : str or None
        Time of the first record; without it records are numbered.

    Raises ParameterError: one of them is out of range.
    """

    model: PublicModel
    length: int
    epsilon: float
    counted: Counted
    level: Level
    source: PathLike | None = None
    ledger: LedgerLike | None = None
    limit: float | None = None
    step_seconds: int | None = None
    start: str | None = None

    def __post_init__(self) -> None:
        check_whole(self.length, "length")
        check_epsilon(self.epsilon)
        states, k = self.states, number_of_states(self.model.family)
        if k is not None and (states is None or states.count != k):
            given = "no states" if states is None else f"{states.count} states"
            raise ParameterError(
                f"the chain has {k} states and the stream {given}; give the names of those of the chain"
            )
        if self.start is not None:
            if self.step_seconds is None:
                raise ParameterError("start is a time, but no time step is known; give one too (step)")
            _first(self.start)

    @property
    def states(self) -> StateSpace | None:
        """What a record may be, where that is said: 0 and 1, or the states of the chain."""
        if self.model.records is not None:
            return self.model.records.states
        if self.counted.threshold is not None:
            return None
        return self.counted.states or StateSpace.categories(BITS)

    @property
    def form(self) -> dict[str, Any]:
        """How lines become steps, for the ledger."""
        states = None if self.states is None else self.states.to_dict()
        column = self.counted.column
        return {"stream": "one record a line", "states": states, "step_seconds": self.step_seconds, "column": column}


@dataclass(frozen=True)
class PreparedStream:
    """A running count with the noise it needs; nothing is drawn or paid for."""

    request: StreamRequest
    calibration: Calibration

    @property
    def scale(self) -> float:
        """Laplace scale of a 1-Lipschitz query that the stream is as good as, of 11 bits as that of every release."""
        return count_scale(self.calibration.scale, 1)

    @property
    def event_epsilon(self) -> float:
        """c, which all lines together may spend."""
        return divide_down(1.0, self.scale)

    @property
    def protection(self) -> Protection:
        """What is hidden, and from whom."""
        return self.request.level.over(self.request.length)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What weakens the guarantee."""
        request = self.request
        names = () if request.states is None else request.states.names
        said = list(doubts(request.model.family, names, request.epsilon, self.calibration.scale))
        if request.model.records is not None and request.model.records.fitted is not None:
            said.append(NO_TIMES)
        return *said, *account_of(request.source, request.ledger).warnings

    def half_width(self, records: int) -> float:
        """95 % half width of the noise of the count of so many records."""
        return self._counter.half_width(records, CONFIDENCE)

    @cached_property
    def _counter(self) -> RunningCount:
        """For its errors alone: the noise of this one is used nowhere."""
        return RunningCount(self.request.length, self.event_epsilon, rng=np.random.default_rng(0))

    def reserve(self, book: Ledger) -> Reservation:
        """Pay for all lines."""
        request, chosen = self.request, self.calibration.chosen
        return book.reserve(
            request.model.family,
            chosen.length,
            mechanism=chosen.mechanism,
            epsilon=request.epsilon,
            scale=self.scale,
            query=f"running count of {request.counted.said} over up to {request.length} records",
            certificate=self.calibration.certificate,
            form=request.form,
            **asdict(self.protection),
        )

    def tried(self) -> dict[str, Any]:
        """What would be left of the limit; raises what paying would raise."""
        assert self.request.ledger is not None
        return try_on_copy(self.request.ledger, lambda path: self._paid(path)[0])

    def _paid(self, ledger: LedgerLike) -> tuple[Ledger, Reservation]:
        limit = self.request.limit
        book = open_ledger(ledger, self.request.epsilon if limit is None else limit, limit is not None)
        return book, self.reserve(book)

    def lines(self, values: Iterable[int | None], warn: Callable[[str], object] = lambda said: None) -> Iterator[str]:
        """Pay, then yield the header and a line of CSV for each of the values, as they come; at most T of them.

        Raises
        ------
        BudgetError, LedgerError
            It cannot be paid for; nothing is drawn.
        """
        request = self.request
        open_dp()  # where it is missing, that must show before anything is paid for
        paid = None
        if request.ledger is not None:
            self.tried()  # a refused stream leaves no ledger behind
            paid = self._paid(request.ledger)
        counter = RunningCount(request.length, self.event_epsilon)
        yield HEADER
        if paid is not None:
            try:
                paid[0].record(paid[1])
            except LedgerError as error:  # what is paid for is not lost for want of a note
                warn(as_unicode(str(error)))
        times = _times(request)
        for number, value in enumerate(values, 1):
            count = counter.add(value or 0)
            yield f"{next(times)},{count:.2f},{counter.half_width(number, CONFIDENCE):.2f}"
            if number == request.length:
                return

    @property
    def caption(self) -> str:
        """What a figure says of the lines."""
        request, window = self.request, self.protection.window
        hidden = "all records" if request.level.whole else "any record" if window == 1 else f"any {window} in a row"
        mechanism = self.calibration.chosen.mechanism
        return f"Up to {request.length:,} records, ε = {request.epsilon:g} for {hidden}, {mechanism}"

    @property
    def statement(self) -> Statement:
        """What the lines promise."""
        return _statement(self)


def prepare_stream(request: StreamRequest) -> PreparedStream:
    """Find the noise of a running count.

    Raises
    ------
    ParameterError
        An option is out of range, or the noise would hide every count.
    """
    mechanism = GROUP if request.level.whole else None
    protection = request.level.over(request.length)
    prepared = PreparedStream(
        request, calibrate(request.model.family, request.length, request.epsilon, mechanism, protection)
    )
    prepared.half_width(request.length)  # raises where the noise is too large
    return prepared


def _first(start: str) -> pd.Timestamp:
    try:
        first = pd.to_datetime([start])[0]
    except (ValueError, TypeError, OverflowError):
        first = None
    if not isinstance(first, pd.Timestamp):  # nor is the empty text one
        raise ParameterError(f"start is {shown(start)}; give a time such as 2024-01-01T00:00")
    return first.as_unit("s")


def _times(request: StreamRequest) -> Iterator[str]:
    """The time of each record, from what was said; otherwise its number."""
    at = None if request.start is None else _first(request.start)
    number = 1
    while True:
        yield str(number) if at is None else at.isoformat()
        number += 1
        if at is not None:
            assert request.step_seconds is not None
            at += pd.Timedelta(seconds=request.step_seconds)


def _statement(made: PreparedStream) -> Statement:
    request, factor = made.request, factor_text(made.request.epsilon)
    family = request.model.family
    theta = family.text(False)
    whole, window = request.level.whole, made.protection.window
    others = made.protection.knows != "nothing"
    step = request.step_seconds
    seconds = "" if step is None else f" ({step * window} s)"
    hidden = (
        f"courses of the whole stream (up to {request.length} records)"
        if whole
        else f"what one record is{seconds}"
        if window == 1
        else f"courses of any {window} records in a row{seconds}"
    )
    whom = "also from those who know any others" if others else "from those who know no other record"
    beyond = "that there is a stream, and when" if whole else "a whole stream, a day or a habit"
    account = account_of(request.source, request.ledger)
    added = "no account is kept of them here" if account.ledger is None else f"in the ledger {account.ledger}"
    subject = "all lines of the running count together"
    return Statement(
        "",
        protects=(
            f"{hidden[0].upper()}{hidden[1:]}: who sees {subject} changes the odds between any two possibilities by a "
            f"factor of at most {factor}, {whom}.",
        ),
        not_protected=(
            f"More than that, such as {beyond}.",
            "How many lines came in, and when each of them did: a line leaves as soon as one came.",
            *(f"{point[0].upper()}{point[1:]}." for point in OUTSIDE),
        ),
        beliefs=(
            *(() if whole else (f"The records follow {theta}.",)),
            "The stream is of one participant, or of several whose records tell nothing of each other's.",
            "What the records are does not depend on the lines that were put out before.",
            f"All releases of these records are added up: {added}.",
            *(f"{said[0].upper()}{said[1:]}." for said in made.warnings),
        ),
        formal=(
            f"Guarantee: the odds between any two {hidden} change by a factor of at most e^epsilon = {factor} on "
            f"seeing {subject} (Pufferfish privacy, epsilon = {request.epsilon:g} nats), whatever the model is."
            if whole
            else f"Guarantee: whoever believes that the records follow {theta}, and knows "
            f"{'any others' if others else 'none of them'}, changes the odds between any two possibilities of {hidden} "
            f"by a factor of at most e^epsilon = {factor} on seeing {subject} (Pufferfish privacy, epsilon = "
            f"{request.epsilon:g} nats).",
            f"All lines together may change by a factor of e^{made.event_epsilon:.6g} with one record: the inverse of "
            f"the Laplace scale {made.scale:.6g} of a query that changes by 1, "
            f"{'of which there is a certificate' if made.calibration.certificate else 'without a certificate'}.",
            f"Counted are {request.counted.said}. The noise is that of a tree of counts with "
            f"{len(made._counter.arities)} levels, discrete Laplace noise of scale {made._counter.scale:.6g} on each "
            "of them, exactly drawn from the operating system's randomness; half widths are bounds that hold with a "
            "probability of at least 95 % each.",
            f"Public, and not protected: the most records there may be ({request.length}), how many there are, when "
            "each comes, and what is counted. A line that holds no value counts as one that is not counted, and "
            "nothing tells which lines those are.",
            "The noise is kept nowhere, so a stream that ended cannot be taken up again: a new run is a new release of "
            "its records, and costs as much again.",
            account.statement,
            f"Outside any such guarantee: {'; '.join(OUTSIDE)}.",
        ),
    )


__all__ = ["HEADER", "PreparedStream", "StreamRequest", "prepare_stream"]
