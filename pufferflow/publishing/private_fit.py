"""A family fitted to records of many participants with noise that hides each of them wholly, so that it may leave.

*What is protected.* Two tables are neighbours if they have the same participants, and all records of one of them (when,
how many and what) are any others. Let S be the pooled transition counts, of each participant the first N transitions
in time: a rule that looks at no other participant. S is a sum over participants of counts that are not negative and add
up to at most N, so neighbours differ by at most 2N in L1 norm. Independent discrete Laplace noise of a scale
s ≥ 2N/ε on each count therefore changes no probability by more than e^ε (the argument of
:mod:`pufferflow.publishing.release` with d = N), and all that is computed from the noisy counts is post-processing.
Public are the number of participants, ε, N, the confidence, and what the user says: the states, the time step, the
columns and the clock. None of these is ever read from the values, and nothing is said of the number of records.

*Why the first N.* Whether the n-th transition counts is known before it is made, so counting stops at a stopping time,
and the intervals hold as for whole records (:func:`pufferflow.confidence_family`). A random choice, or weights, would
need a new proof, and the same N. N as long as the usual record is best: below, transitions are lost; above, noise grows
for nothing.

*Coverage.* Half of 1 − confidence is for the noise: but with that probability all k² noises are at most ``margin``, and
all sums of k − 1 noises of a row at most ``others``. The first is the exact quantile of the law; the second a bound by
Chernoff, P(|Σ Z| > h) ≤ 2 M(t)^(k−1) e^(−t(h+1)) at any t < 1/s, with a union bound over all sums, or k − 1 margins
where these are less. The other half is for the draw of the participants: intervals of that coverage for every count
within these margins (:func:`pufferflow.interval_family.noisy_confidence_bounds`). Every step errs to wider intervals.
It is assumed that participants are independent draws of one chain, that a value is missing for no reason that depends
on the values, and, for the bounds backwards, that the chain is stationary.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import check_choice, check_confidence, check_epsilon, check_path, check_type, check_whole
from pufferflow._display import displayed
from pufferflow._files import PathLike, check_folder, workplace, write_atomic
from pufferflow._noise import open_dp
from pufferflow._options import takes_options
from pufferflow.errors import BudgetError, DataError, LedgerError, ParameterError
from pufferflow.interval_family import IntervalFamily, noisy_confidence_bounds
from pufferflow.ledger import Ledger
from pufferflow.markov import ANY, STATIONARY, Family
from pufferflow.models import PublicModel, model_json
from pufferflow.publishing.account import AccountOptions, LedgerLike, account_of, open_ledger, paid
from pufferflow.publishing.noise import DiscreteLaplace, add_noise, count_scale
from pufferflow.records.format import FittedPrivately, RecordFormat
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records, open_records
from pufferflow.records.tables import Source
from pufferflow.records.tally import Tally

USEFUL = 0.5
"""Noise on a count of at most so much of the mean visits to a state: beyond, little more is known than nothing."""

MECHANISM = "private-fit"


@dataclass(frozen=True)
class Margins:
    """How far noisy counts are from the true ones, but with a known probability.

    Attributes
    ----------
    scale : float
        Of the noise.
    margin, others : int
        Of each count, and of the sum of the others of its row.
    coverage : float
        That is left for the draw of the participants.
    """

    scale: float
    margin: int
    others: int
    coverage: float


@displayed()
@dataclass(frozen=True)
class PrivateFit:
    """A family that may leave; nothing else of the table is kept.

    Attributes
    ----------
    model : PublicModel
        Θ and how records become states.
    facts : dict
        What the summary says, as plain JSON types: public, or computed from the noisy counts.
    warnings : tuple of str
    """

    model: PublicModel
    facts: dict[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def family(self) -> Family:
        """Θ of the model."""
        return self.model.family

    def __repr__(self) -> str:
        return f"PrivateFit({self.facts['states']} states, epsilon={self.facts['epsilon']:g})"

    def save_chain(self, path: PathLike) -> Path:
        """Write the model file, which says that it may leave."""
        return write_atomic(path, model_json(self.model.family, self.model.records))

    def summary(self) -> str:
        """Return the facts for people, one a line."""
        f = self.facts
        lines = [
            (
                "participants",
                f"{f['participants']:,} (public), of each the first {f['most_transitions']:,} transitions",
            ),
            ("columns", ", ".join(f"{role} {name!r}" for role, name in f["columns"].items() if name is not None)),
            ("noise", f"discrete Laplace of scale {f['noise_scale']:g} on each of {f['states'] ** 2:,} counts"),
            ("intervals", f"together of confidence {f['confidence']:g}, noise included; {_ways(f['initial'])}"),
            ("widths", f"{f['median_width']:.3g} in the median, {f['largest_width']:.3g} at most"),
            *([("not known", f"what follows {', '.join(f['unknown_states'])}")] if f["unknown_states"] else []),
        ]
        return "\n".join(f"{name:<14}{value}" for name, value in lines)


@takes_options(AccountOptions)
def fit_privately(
    source: Source,
    form: RecordFormat,
    epsilon: float,
    *,
    most_transitions: int,
    reading: Reading | None = None,
    confidence: float = 0.95,
    initial_distribution: str = STATIONARY,
    **options: Unpack[AccountOptions],
) -> PrivateFit:
    """Fit a family of chains to many participants so that it tells next to nothing of any one of them.

    The noise is drawn from the operating system's randomness, after it is paid for in the ledger, where ε is added to
    what releases of the same records cost.

    Parameters
    ----------
    source : path, Series or DataFrame
        A table with a column of participants.
    form : RecordFormat
        States and time step, which must be public: nothing of them is read from the table.
    epsilon : float
        ε > 0, of everything there is of a participant.
    most_transitions : int
        N: of each participant the first so many transitions count. The noise grows with it.
    reading : Reading, optional
        Columns and clock; times on a local clock need a zone.
    confidence : float
        With which the family holds the chain.
    initial_distribution : {"stationary", "any"}
        Whether the chain is taken to be stationary, which bounds it backwards, too.
    {options}

    Returns
    -------
    PrivateFit

    Raises
    ------
    DataError
        The table is malformed, has no participants, or too few.
    ParameterError
        An option is out of range, or something that has to be public is not said.
    BudgetError, LedgerError
        It cannot be paid for; nothing is drawn.
    """
    ledger, limit, output = options["ledger"], options.get("limit"), options.get("output")
    epsilon, confidence = check_epsilon(epsilon), check_confidence(confidence)
    most = check_whole(most_transitions, "most_transitions", most=2**40)
    check_choice(initial_distribution, "initial_distribution", (STATIONARY, ANY))
    check_type(form, "form", RecordFormat)
    if form.states.count < 2:
        raise ParameterError("there is one state only, so there is nothing to fit; give more names or edges")
    if form.fitted is not None or form.fitted_privately is not None:
        raise ParameterError("form is of a model that was fitted; give one of its states and step alone")
    open_dp()  # where it is missing, that must show before anything is paid for
    target = None if output is None else _new(output)
    reading = Reading() if reading is None else reading
    check_type(reading, "reading", Reading)
    records, counts, participants = _count(source, form, reading, most)
    margins = _margins(form.states.count, most, epsilon, confidence)
    _check_enough(records.table.where, form.states.count, participants, most, margins)
    form = replace(
        form,
        reading=reading.given(),
        fitted_privately=FittedPrivately(epsilon, confidence, participants, most, margins.scale),
    )
    if target is not None:
        with workplace(target.parent):  # where nothing can be written, that must show before anything is paid for
            pass
    account = account_of(source, ledger)
    book = None if ledger is None else _opened(ledger, epsilon, limit)
    reservation = (
        None
        if book is None
        else book.reserve_participants(
            epsilon,
            mechanism=MECHANISM,
            scale=margins.scale,
            query=f"transitions between {form.states.count} states of {participants} participants",
        )
    )
    noisy = np.array(add_noise(counts.ravel().tolist(), margins.scale), dtype=np.int64).reshape(counts.shape)
    family = _family(noisy, margins, backward=initial_distribution == STATIONARY)
    fit = PrivateFit(
        PublicModel(family, form), _facts(family, form, records, initial_distribution), tuple(account.warnings)
    )
    if target is not None:
        with paid(reservation):
            fit.save_chain(target)
    if book is not None and reservation is not None:
        fit = _recorded(fit, book, reservation)
    return fit


def _opened(ledger: LedgerLike, epsilon: float, limit: float | None) -> Ledger:
    """The ledger, or a new one; a fit that its limit does not allow leaves none behind."""
    new = not isinstance(ledger, Ledger) and not os.path.lexists(ledger)
    if new and limit is not None and epsilon > check_epsilon(limit):
        raise BudgetError(f"epsilon = {epsilon:g} is above the limit {limit:g} of the new ledger", limit, limit)
    return open_ledger(ledger, epsilon if limit is None else limit, limit is not None)


def _new(output: PathLike) -> Path:
    """Path of a file that is not there yet: a fit is paid for, so none is overwritten."""
    path = check_path(output, "output")
    if path.exists() or path.is_symlink():
        raise DataError(f"{path} exists already; give another name, for a fit that was paid for is never overwritten")
    check_folder(path)
    return path


def _recorded(fit: PrivateFit, book: Ledger, reservation: Any) -> PrivateFit:
    try:
        book.record(reservation)
    except LedgerError as error:  # what is paid for is not lost for want of a note
        return replace(fit, warnings=(*fit.warnings, str(error)))
    return fit


def _count(source: Source, form: RecordFormat, reading: Reading, most: int) -> tuple[Records, NDArray[np.int64], int]:
    """Transition counts of the table, shape (k, k), and its participants; what is refused is refused here."""
    records = open_records(source, replace(reading, show_values=False))
    where, columns = records.table.where, records.columns
    if columns["participant"] is None:
        raise DataError(
            f"{where}: no column tells participants apart, and a private fit hides one of many; name it (participant)"
        )
    if columns["group"] is not None:
        raise DataError(
            f"{where}: there is a column of groups, and a private fit takes all participants for draws of one chain; "
            "give each group's records in a table of its own, without that column"
        )
    if columns["time"] is None and form.step_seconds is not None:
        raise DataError(f"{where}: a step of {form.step_seconds} s is given, but no column of times; name it (time)")
    if columns["time"] is not None and form.step_seconds is None:
        raise ParameterError(
            "the time step must be public, so it is not read from the times; give it (step_seconds), or say "
            "rows_are_steps if every row is one step"
        )
    tally = Tally(form, transitions=True, most_transitions=most)
    tally.read(records)
    if records.clock == "local" and reading.timezone is None:
        raise DataError(
            f"{where}: the times are on a local clock, which must be public; give its zone (timezone), or UTC if it "
            "never jumps"
        )
    assert tally.transition_counts is not None
    return records, tally.transition_counts.sum(axis=0), len(records.people)


def _margins(states: int, most: int, epsilon: float, confidence: float) -> Margins:
    """The noise, and how far it reaches but with half of what is left of the confidence."""
    scale = count_scale(most / epsilon)  # at least 2N/ε
    miss = (1 - confidence) / 2
    law = DiscreteLaplace(scale)
    if states == 2:  # the rest of a row is the other count
        margin = law.quantile(1 - miss, 4)
        return Margins(scale, margin, margin, 1 - miss)
    margin = law.quantile(1 - miss / 2, states**2)
    others = min((states - 1) * margin, _sum_margin(scale, states - 1, miss / 2 / states**2))
    return Margins(scale, margin, others, 1 - miss)


def _sum_margin(scale: float, terms: int, miss: float) -> int:
    """Number that the sum of so many noises passes, up or down, with probability at most ``miss``; rounded up."""
    theta = np.arange(1, 1000) / 1000  # t = θ/s
    log_mean = 2 * math.log(-math.expm1(-1 / scale)) - np.log(
        np.expm1((theta - 1) / scale) * np.expm1(-(theta + 1) / scale)
    )
    return math.ceil(float(((terms * log_mean + math.log(2 / miss)) * scale / theta).min()) * (1 + 1e-9))


def _check_enough(where: str, states: int, participants: int, most: int, margins: Margins) -> None:
    """Raise where the noise leaves nothing to know even if all states were visited alike; nothing private is used."""
    needed = math.ceil(states * margins.margin / (USEFUL * most))
    if participants < needed:
        raise DataError(
            f"{where}: {participants:,} participants are too few: the noise on a count reaches {margins.margin:,}, "
            f"more than half of the mean visits to one of {states} states, at most "
            f"{participants * most / states:,.0f}; {needed:,} participants would do, or more epsilon, or fewer states"
        )


def _family(noisy: NDArray[np.int64], margins: Margins, *, backward: bool) -> IntervalFamily:
    """All chains that the noisy counts leave possible."""
    ways = 1 + backward
    return IntervalFamily(
        *_possible(noisy, margins, ways),
        backward=IntervalFamily(*_possible(noisy.T, margins, ways)) if backward else None,
    )


def _possible(noisy: NDArray[np.int64], margins: Margins, ways: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of each row; none at all where no row lies between them, which shows that the noise was beyond margins."""
    low, high = noisy_confidence_bounds(noisy, margins.coverage, ways, margin=margins.margin, others=margins.others)
    none = (low > high).any(axis=1) | (low.sum(axis=1) > 1) | (high.sum(axis=1) < 1)
    low[none], high[none] = 0.0, 1.0
    return low, high


def _facts(family: IntervalFamily, form: RecordFormat, records: Records, initial: str) -> dict[str, Any]:
    widths = np.asarray(family.high) - np.asarray(family.low)
    terms = form.fitted_privately
    assert terms is not None
    return terms.to_dict() | {
        "states": form.states.count,
        "state_names": list(form.states.names),
        "initial": initial,
        "columns": records.columns,
        "median_width": float(np.median(widths)),
        "largest_width": float(widths.max()),
        "unknown_states": [name for name, row in zip(form.states.names, widths, strict=True) if row.min() >= 1],
    }


def _ways(initial: str) -> str:
    return "forwards, from any start" if initial == ANY else "forwards and backwards, if the chain is stationary"
