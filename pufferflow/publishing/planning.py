"""How large the error of a release will be, before it is made; no data are needed.

The noise on the counts has a known law, so errors are exact quantiles: of one bin, |Z|; of all k bins at once,
P(|Z| ≤ h) to the power k; of their sum, the law of Σ|Z_j| (see :mod:`pufferflow.publishing.noise`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd

from pufferflow._checks import (
    EPSILON_RANGE,
    LONGEST,
    check_choice,
    check_confidence,
    check_epsilon,
    check_list,
    check_positive,
    check_scale,
    check_whole,
    longest,
)
from pufferflow._display import displayed
from pufferflow._options import takes_options
from pufferflow._progress import progress
from pufferflow._protection import Knowledge, Level, LevelOptions, Protect, check_level
from pufferflow.accounting import MOST_RELEASES, guarantee
from pufferflow.errors import ChainError, ParameterError
from pufferflow.markov import Family, MarkovChain, as_family
from pufferflow.mechanisms import NoiseScale, compute_scale, find_mechanism, leakage_loss
from pufferflow.models import number_of_states
from pufferflow.publishing.calibration import GROUP, histogram_mechanisms, mechanism_for_histograms
from pufferflow.publishing.noise import LARGEST, DiscreteLaplace, count_scale, largest_scale
from pufferflow.records.format import MOST_STATES

ErrorKind: TypeAlias = Literal["bin", "bins", "total"]
KINDS = {
    "bin": "error of one bin",
    "bins": "largest error of all bins",
    "total": "summed error of all bins",
}
LONGEST_PLANNED = 2**44
NOT_PRIVATE = "not private for correlated records"


@dataclass(frozen=True)
@displayed("mechanism", "epsilon", "length", "records", "reason")
class Plan:
    """What a mechanism needs to reach the wanted error.

    Attributes
    ----------
    mechanism : str
    epsilon : float or None
        None where no ε reaches it.
    length : int or None
        Longest segment; None where no length reaches it.
    records : int or None
        n.
    reason : str
        Why it is not reached, or a warning.
    releases : int
        How many releases ε is for.
    each : float or None
        What to ask for in each of them.
    """

    mechanism: str
    epsilon: float | None
    length: int | None
    records: int | None
    reason: str = ""
    releases: int = 1
    each: float | None = None


@dataclass(frozen=True)
class _Error:
    """Which error of the relative frequencies of ``bins`` states is meant, and how surely it is kept to."""

    kind: ErrorKind
    confidence: float
    bins: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", check_confidence(self.confidence))
        check_choice(self.kind, "kind", KINDS)

    def quantile(self, noise_scale: float, records: int) -> float:
        """Error that is not exceeded with that probability."""
        law = DiscreteLaplace(noise_scale)
        if self.kind == "total":
            return law.total_quantile(self.confidence, self.bins) / records
        return law.quantile(self.confidence, self.bins if self.kind == "bins" else 1) / records

    def records(self, noise_scale: float, accuracy: float) -> int:
        """Records whose relative frequencies have an error of at most ``accuracy``."""
        return max(1, math.ceil(Fraction(self.quantile(noise_scale, 1)) / Fraction(accuracy)))

    def noise(self, accuracy: float, records: int) -> float:
        """Largest scale of the noise whose error is at most ``accuracy``, rounded down; at most what can be drawn."""
        low, high = 1e-3, 2.0  # a scale of 0.001 leaves every count as it is
        while self.quantile(high, records) <= accuracy:
            if high >= LARGEST:
                return LARGEST
            low, high = high, 2 * high
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            fits = self.quantile(middle, records) <= accuracy
            low, high = (middle, high) if fits else (low, middle)
        return low


class PlanOptions(LevelOptions, total=False):
    """Which error is meant, and of what."""

    confidence: Annotated[float, "float", "Probability with which the error stays below."]
    kind: Annotated[
        ErrorKind,
        '{"bin", "bins", "total"}',
        "Of one bin, of the worst of all bins, or summed over all bins (L1).",
    ]
    mechanisms: Annotated[Sequence[str] | None, "sequence of str, optional", "Default: all."]
    states: Annotated[
        int | None,
        "int, optional",
        'k, where Θ is of any number of states (``kind`` "bin" does not need it).',
    ]
    releases: Annotated[
        int,
        "int",
        "Releases of the same records, with noise alike, that ε is for together; the error is that of each.",
    ]


@dataclass(frozen=True)
class _Terms:
    """What is asked of every mechanism: the options with their defaults."""

    theta: Family
    confidence: float = 0.95
    kind: ErrorKind = "bin"
    mechanisms: Sequence[str] | None = None
    states: int | None = None
    releases: int = 1
    protect: Protect | None = None
    window: int = 1
    knows: Knowledge = "nothing"

    level: Level = field(init=False)
    error: _Error = field(init=False)

    def __post_init__(self) -> None:
        checked = {
            "level": check_level(self.protect, self.window, self.knows),
            "error": _Error(self.kind, self.confidence, _bins(self.theta, self.kind, self.states)),
            "releases": check_whole(self.releases, "releases", most=MOST_RELEASES),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def candidates(self, length: int) -> Iterator[_Candidate]:
        """The mechanisms, for segments and records of at most ``length``."""
        whole, options = self.level.whole, asdict(self.level.over(length))
        for name in _named([GROUP] if whole and self.mechanisms is None else self.mechanisms):
            if whole and name != GROUP:
                raise ParameterError(f"{name} does not hide a whole participant; leave mechanisms out for {GROUP}")
            yield _Candidate(name, self.theta, self.error, self.releases, options)


@dataclass(frozen=True)
class _Candidate:
    """A mechanism, and what is asked of it."""

    name: str
    theta: Family
    error: _Error
    releases: int
    options: dict[str, Any]

    @property
    def note(self) -> str:
        return "" if find_mechanism(self.name).private else NOT_PRIVATE

    def scale(self, length: int, epsilon: float) -> float:
        """Scale of the noise of each of so many releases that cost ε together.

        Releases of scales σ_k amount to one of scale 1/Σ 1/σ_k (:mod:`pufferflow.accounting`), so R equal ones to one
        of σ/R: each needs R times the scale of ε. The scale of ε/R may be more (quilts) or not enough (leakage, whose
        bound grows faster than 1/σ).
        """
        needed = self._needed(length, epsilon)
        if needed.scale is None:
            raise ChainError(needed.reason)
        return count_scale(needed.scale * self.releases)

    def each(self, plan: Plan) -> Plan:
        """The plan with the ε to ask for in each release, rounded down to four digits."""
        if _failed(plan):
            return plan
        assert plan.length is not None
        assert plan.epsilon is not None
        if self.releases == 1:
            return replace(plan, each=plan.epsilon)
        scale = self._needed(plan.length, plan.epsilon).scale
        assert scale is not None
        each = self._guarantee(plan.length, scale * self.releases) * (1 - 1e-9)
        unit = Fraction(10) ** (math.floor(math.log10(each)) - 3)
        return replace(plan, releases=self.releases, each=float(Fraction(each) // unit * unit))

    def plan_epsilon(self, accuracy: float, length: int, records: int) -> Plan:
        """The least ε for records in segments of a length."""
        scale = largest_scale(self.error.noise(accuracy, records))
        if self.releases > 1:
            scale = math.nextafter(scale / self.releases, 0.0)  # what they all amount to
        epsilon = self._leakage(length, scale) if self.name == "leakage" else None
        if epsilon is None:
            epsilon = self._guarantee(length, scale)
        if math.isinf(epsilon):
            reason = self._needed(length, 1.0).reason or "no epsilon reaches it"
            return Plan(self.name, None, length, records, f"not applicable: {reason}")
        return Plan(self.name, epsilon, length, records, self.note)

    def plan_length(self, accuracy: float, epsilon: float) -> Plan:
        """A length of one segment that suffices."""

        def needed(length: int) -> int:
            """Records for the noise of segments of that length; it suffices where it is no more than the length."""
            return self.error.records(self.scale(length, epsilon), accuracy)

        # no exact scale falls when segments grow: what the noise of a longer record needs suffices for a shorter one
        try:
            length = needed(LONGEST_PLANNED)
        except ParameterError:  # noise beyond all counts
            length = LONGEST_PLANNED + 1
        if length > LONGEST_PLANNED:
            return Plan(self.name, epsilon, None, None, "no length reaches it")
        while (shorter := needed(length)) < 0.999 * length:
            length = shorter
        while (longer := needed(length)) > length:  # scales found may fall by a thousandth
            length = longer
        unit = 10 ** max(len(str(length)) - 3, 0)
        rounded = -(-length // unit) * unit
        length = rounded if needed(rounded) <= rounded else length
        return Plan(self.name, epsilon, length, length, self.note)

    def plan_records(self, accuracy: float, epsilon: float, length: int, records: int | None) -> Plan:
        """How many records in segments of at most that length suffice."""
        n = self.error.records(self.scale(length, epsilon), accuracy)
        if n > LONGEST:
            return Plan(self.name, epsilon, length, None, "no number of records reaches it")
        few = records is not None and n > records
        return Plan(self.name, epsilon, length, n, f"more than the {records} records there are" if few else self.note)

    def _needed(self, length: int, epsilon: float) -> NoiseScale:
        return compute_scale(self.name, self.theta, length, epsilon, **self.options)

    def _guarantee(self, length: int, scale: float) -> float:
        return guarantee(self.theta, length, scale, mechanism=self.name, **self.options)

    def _leakage(self, length: int, scale: float) -> float | None:
        """What :func:`guarantee` finds by bisection, directly; None where that does not do."""
        if self.theta.bounds is not None:
            return None
        epsilon = leakage_loss(self.theta, length, scale, **self.options) * (1 + 1e-6)
        needed = self._needed(length, epsilon).scale
        return epsilon if needed is not None and needed <= scale else None


def error_quantile(
    noise_scale: float, bins: int, records: int, *, confidence: float = 0.95, kind: ErrorKind = "bin"
) -> float:
    """Error of relative frequencies that is not exceeded with the given probability; exact.

    Parameters
    ----------
    noise_scale : float
        s, of the discrete Laplace noise on each count.
    bins, records : int
        k and n.
    confidence : float
    kind : {"bin", "bins", "total"}
        Of one bin, of the worst of all bins, or summed over all bins (L1).

    Raises
    ------
    ParameterError
        An argument is out of range.
    """
    noise_scale = check_scale(noise_scale, (EPSILON_RANGE[0], LARGEST))
    bins, records = check_whole(bins, "bins", most=MOST_STATES), check_whole(records, "records")
    return _Error(kind, confidence, bins).quantile(noise_scale, records)


@takes_options(PlanOptions, _Terms)
def plan_release(
    family: Family | MarkovChain,
    accuracy: float,
    *,
    length: int | None = None,
    records: int | None = None,
    epsilon: float | None = None,
    **options: Unpack[PlanOptions],
) -> list[Plan]:
    """What every mechanism needs so that the error stays below ``accuracy`` with probability ``confidence``.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ.
    accuracy : float
        Wanted error of relative frequencies.
    length : int, optional
        Longest segment T, and longest record where all of it is hidden. With it (and no ``epsilon``) the ε is found.
    records : int, optional
        n (default: ``length``, one segment).
    epsilon : float, optional
        With it and no ``length`` a length that suffices is found, one segment; with both, the number of records in
        segments of at most that length.
    {options}

    Returns
    -------
    list of Plan
        ε is rounded up, a length up to three digits.

    Raises
    ------
    ParameterError
        An argument is out of range, or neither a length nor ε is given.
    """
    terms = _Terms(as_family(family), **options)
    accuracy = check_positive(accuracy, "accuracy")
    if length is None and (epsilon is None or records is not None):
        raise ParameterError("give a length (to find epsilon), epsilon (to find the length), or both (to find records)")
    if length is not None:
        length = longest([length])
        if records is not None:
            records = check_whole(records, "records")
    epsilon = None if epsilon is None else check_epsilon(epsilon)
    plans = []
    # without a length one is looked for, and group-dp has the same scale whatever the window
    candidates = list(terms.candidates(length or 1))
    for candidate in progress(candidates, desc="plan", unit=" mechanisms", delay=1):
        try:
            if length is None:
                assert epsilon is not None
                plan = candidate.plan_length(accuracy, epsilon)
            elif epsilon is None:
                plan = candidate.plan_epsilon(accuracy, length, records or length)
            else:
                plan = candidate.plan_records(accuracy, epsilon, length, records)
        except (ChainError, ParameterError) as reason:
            plan = Plan(candidate.name, epsilon, length, records, f"not applicable: {reason}")
        plans.append(candidate.each(plan))
    return plans


def _failed(plan: Plan) -> bool:
    return plan.epsilon is None or plan.length is None or plan.records is None or plan.reason.startswith("not applic")


@takes_options(PlanOptions, _Terms)
def error_curves(
    family: Family | MarkovChain,
    epsilons: Sequence[float],
    *,
    length: int,
    records: int | None = None,
    **options: Unpack[PlanOptions],
) -> pd.DataFrame:
    """Error of every mechanism at every ε: columns mechanism, epsilon, error (missing where not applicable).

    Raises ParameterError: an argument is out of range, or a mechanism unknown.

    Parameters
    ----------
    family, length, records
        As for :func:`plan_release`.
    epsilons : sequence of float
    {options}
    """
    terms = _Terms(as_family(family), **options)
    length = longest(length)
    records = length if records is None else check_whole(records, "records")
    budgets = [check_epsilon(epsilon) for epsilon in check_list(epsilons, "epsilons")]
    rows: list[dict[str, Any]] = []
    for candidate in terms.candidates(length):
        for epsilon in budgets:
            try:
                scale = candidate.scale(length, epsilon)
            except (ChainError, ParameterError):  # not applicable, or noise beyond all counts
                error = math.nan
            else:
                error = terms.error.quantile(scale, records)
            rows.append({"mechanism": candidate.name, "epsilon": epsilon, "error": error})
    return pd.DataFrame(rows)


def _bins(theta: Family, kind: str, states: int | None) -> int:
    """States of the histogram; the error of one bin does not depend on how many others there are."""
    known = number_of_states(theta)
    if states is not None and check_whole(states, "states", most=MOST_STATES) != (known or states):
        raise ParameterError(f"states is {states}, the chains have {known}; leave it out")
    if known is None and states is None and kind != "bin":
        raise ParameterError(f"the family is of any number of states; give states for the {KINDS.get(kind, kind)}")
    return known or states or 1


def grid_around(epsilon: float, points: int = 9) -> list[float]:
    """Values of ε from a tenth to ten times ``epsilon``."""
    return [float(e) for e in epsilon * np.logspace(-1, 1, points)]


def _named(mechanisms: Sequence[str] | None) -> list[str]:
    if mechanisms is None:
        return histogram_mechanisms()
    names = check_list(mechanisms, "mechanisms")
    if not names:
        raise ParameterError("mechanisms is empty; name at least one, or leave it out")
    for name in names:
        mechanism_for_histograms(name, "name other mechanisms")
    return names
