"""How large the error of a release will be, before it is made; no data are needed.

The noise on the counts has a known law, so errors are exact quantiles: of one bin, |Z|; of all k bins at once,
P(|Z| ≤ h) to the power k; of their sum, the law of Σ|Z_j| (see :mod:`pufferflow.publishing.noise`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

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
from pufferflow._progress import progress
from pufferflow._protection import Knowledge, Protect, check_level, check_protection
from pufferflow.accounting import MOST_RELEASES, guarantee
from pufferflow.errors import ChainError, ParameterError
from pufferflow.markov import Family, MarkovChain, as_family
from pufferflow.mechanisms import compute_scale, find_mechanism, leakage_loss
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


def plan_release(
    family: Family | MarkovChain,
    accuracy: float,
    *,
    confidence: float = 0.95,
    kind: ErrorKind = "bin",
    length: int | None = None,
    records: int | None = None,
    epsilon: float | None = None,
    mechanisms: Sequence[str] | None = None,
    states: int | None = None,
    protect: Protect | None = None,
    window: int = 1,
    knows: Knowledge = "nothing",
    releases: int = 1,
) -> list[Plan]:
    """What every mechanism needs so that the error stays below ``accuracy`` with probability ``confidence``.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ.
    accuracy : float
        Wanted error of relative frequencies.
    confidence : float
    kind : {"bin", "bins", "total"}
    length : int, optional
        Longest segment T. With it (and no ``epsilon``) the ε is found.
    records : int, optional
        n (default: ``length``, one segment).
    epsilon : float, optional
        With it and no ``length`` a length that suffices is found, one segment; with both, the number of records in
        segments of at most that length.
    mechanisms : sequence of str, optional
        Default: all.
    states : int, optional
        k, where Θ is of any number of states (``kind`` "bin" does not need it).
    protect : "record", "participant" or int, optional
        What is to be hidden: one record, so many in a row, or everything of one participant, who has at most ``length``
        records (by group-dp alone).
    window, knows
        What is to be hidden, and from whom: as for :func:`pufferflow.leakage`.
    releases : int
        Releases of the same records, with noise alike, that ε is for together; the error is that of each.

    Returns
    -------
    list of Plan
        ε is rounded up, a length up to three digits.

    Raises
    ------
    ParameterError
        An argument is out of range, or neither a length nor ε is given.
    """
    theta, level = as_family(family), check_level(protect, window, knows)
    accuracy, error = check_positive(accuracy, "accuracy"), _Error(kind, confidence, _bins(theta, kind, states))
    if length is None and (epsilon is None or records is not None):
        raise ParameterError("give a length (to find epsilon), epsilon (to find the length), or both (to find records)")
    if length is not None:
        length = longest([length])
        if records is not None:
            records = check_whole(records, "records")
    epsilon = None if epsilon is None else check_epsilon(epsilon)
    releases = check_whole(releases, "releases", most=MOST_RELEASES)
    plans = []
    # without a length one is looked for, and group-dp has the same scale whatever the window
    options = asdict(level.over(length or 1))
    names = _named([GROUP] if level.whole and mechanisms is None else mechanisms)
    for name in progress(names, desc="plan", unit=" mechanisms", delay=1):
        if level.whole and name != GROUP:
            raise ParameterError(f"{name} does not hide a whole participant; leave mechanisms out for {GROUP}")
        note = "" if find_mechanism(name).private else NOT_PRIVATE
        try:
            if epsilon is None:
                assert length is not None
                scale = largest_scale(error.noise(accuracy, records or length))
                plans.append(_epsilon(theta, name, note, scale, length, records or length, options, releases))
            elif length is None:
                plans.append(_length(theta, name, note, accuracy, error, epsilon, options, releases))
            else:
                n = error.records(_scale(theta, name, length, epsilon, options, releases), accuracy)
                if n > LONGEST:
                    plans.append(Plan(name, epsilon, length, None, "no number of records reaches it"))
                    continue
                if records is not None and n > records:
                    note = f"more than the {records} records there are"
                plans.append(Plan(name, epsilon, length, n, note))
        except (ChainError, ParameterError) as reason:
            plans.append(Plan(name, epsilon, length, records, f"not applicable: {reason}"))
    return [plan if _failed(plan) else _each(theta, plan, releases, options) for plan in plans]


def _failed(plan: Plan) -> bool:
    return plan.epsilon is None or plan.length is None or plan.records is None or plan.reason.startswith("not applic")


def error_curves(
    family: Family | MarkovChain,
    epsilons: Sequence[float],
    *,
    length: int,
    records: int | None = None,
    confidence: float = 0.95,
    kind: ErrorKind = "bin",
    mechanisms: Sequence[str] | None = None,
    states: int | None = None,
    window: int = 1,
    knows: Knowledge = "nothing",
    releases: int = 1,
) -> pd.DataFrame:
    """Error of every mechanism at every ε: columns mechanism, epsilon, error (missing where not applicable).

    Raises ParameterError: an argument is out of range, or a mechanism unknown.
    """
    theta, options = as_family(family), asdict(check_protection(window, knows))
    wanted = _Error(kind, confidence, _bins(theta, kind, states))
    length, releases = longest(length), check_whole(releases, "releases", most=MOST_RELEASES)
    records = length if records is None else check_whole(records, "records")
    budgets = [check_epsilon(epsilon) for epsilon in check_list(epsilons, "epsilons")]
    rows: list[dict[str, Any]] = []
    for name in _named(mechanisms):
        for epsilon in budgets:
            try:
                scale = _scale(theta, name, length, epsilon, options, releases)
            except (ChainError, ParameterError):  # not applicable, or noise beyond all counts
                error = math.nan
            else:
                error = wanted.quantile(scale, records)
            rows.append({"mechanism": name, "epsilon": epsilon, "error": error})
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


def _scale(theta: Family, name: str, length: int, epsilon: float, options: dict[str, Any], releases: int) -> float:
    """Scale of the noise of each of so many releases that cost ε together.

    Releases of scales σ_k amount to one of scale 1/Σ 1/σ_k (:mod:`pufferflow.accounting`), so R equal ones to one of
    σ/R: each needs R times the scale of ε. The scale of ε/R may be more (quilts) or not enough (leakage, whose
    bound grows faster than 1/σ).
    """
    needed = compute_scale(name, theta, length, epsilon, **options)
    if needed.scale is None:
        raise ChainError(needed.reason)
    return count_scale(needed.scale * releases)


def _each(theta: Family, plan: Plan, releases: int, options: dict[str, Any]) -> Plan:
    """The plan with the ε to ask for in each release, rounded down to four digits."""
    if releases == 1 or plan.epsilon is None or plan.length is None:
        return replace(plan, releases=releases, each=plan.epsilon)
    scale = compute_scale(plan.mechanism, theta, plan.length, plan.epsilon, **options).scale
    assert scale is not None
    each = guarantee(theta, plan.length, scale * releases, mechanism=plan.mechanism, **options) * (1 - 1e-9)
    unit = Fraction(10) ** (math.floor(math.log10(each)) - 3)
    return replace(plan, releases=releases, each=float(Fraction(each) // unit * unit))


def _epsilon(
    theta: Family,
    name: str,
    note: str,
    scale: float,
    length: int,
    records: int,
    options: dict[str, Any],
    releases: int,
) -> Plan:
    scale = math.nextafter(scale / releases, 0.0) if releases > 1 else scale  # what they all amount to
    epsilon = _leakage(theta, length, scale, options) if name == "leakage" else None
    if epsilon is None:
        epsilon = guarantee(theta, length, scale, mechanism=name, **options)
    if math.isinf(epsilon):
        needed = compute_scale(name, theta, length, 1.0, **options)
        return Plan(name, None, length, records, f"not applicable: {needed.reason or 'no epsilon reaches it'}")
    return Plan(name, epsilon, length, records, note)


def _leakage(theta: Family, length: int, scale: float, options: dict[str, Any]) -> float | None:
    """What :func:`guarantee` finds by bisection, directly; None where that does not do."""
    if theta.bounds is not None:
        return None
    epsilon = leakage_loss(theta, length, scale, **options) * (1 + 1e-6)
    needed = compute_scale("leakage", theta, length, epsilon, **options).scale
    return epsilon if needed is not None and needed <= scale else None


def _length(
    theta: Family,
    name: str,
    note: str,
    accuracy: float,
    error: _Error,
    epsilon: float,
    options: dict[str, Any],
    releases: int,
) -> Plan:
    def needed(length: int) -> int:
        """Records for the noise of segments of that length; it suffices where it is no more than the length."""
        return error.records(_scale(theta, name, length, epsilon, options, releases), accuracy)

    # no exact scale falls when segments grow: what the noise of a longer record needs suffices for a shorter one
    try:
        length = needed(LONGEST_PLANNED)
    except ParameterError:  # noise beyond all counts
        length = LONGEST_PLANNED + 1
    if length > LONGEST_PLANNED:
        return Plan(name, epsilon, None, None, "no length reaches it")
    while (shorter := needed(length)) < 0.999 * length:
        length = shorter
    while (longer := needed(length)) > length:  # scales found may fall by a thousandth
        length = longer
    unit = 10 ** max(len(str(length)) - 3, 0)
    rounded = -(-length // unit) * unit
    length = rounded if needed(rounded) <= rounded else length
    return Plan(name, epsilon, length, length, note)
