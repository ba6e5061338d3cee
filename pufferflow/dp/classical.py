"""Classical mechanisms: randomised response, Laplace, exponential and weighted majority.

>>> from pufferflow import dp
>>> dp.RandomisedResponse(("yes", "no"), truth=0.75).probability("yes", truth="no")
Fraction(1, 4)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from pufferflow._checks import (
    check_choice,
    check_confidence,
    check_list,
    check_numbers,
    check_positive,
    check_whole,
)
from pufferflow._noise import discrete_laplace as laplace_probability
from pufferflow._rounding import divide_up
from pufferflow._types import Floats
from pufferflow.dp.draws import choice, discrete_laplace, randomness
from pufferflow.dp.finite import Exact, check_exact, log_up
from pufferflow.errors import DataError, ParameterError

Account: TypeAlias = Literal["pure", "published", "zcdp"]
ACCOUNTS: tuple[Account, ...] = ("pure", "published", "zcdp")
Answer = TypeVar("Answer", int, "NDArray[np.int64]")

_MORE = 1 + 1e-12
"""Covers the rounding of a few elementary functions: losses are rounded up, rates down."""


@dataclass(frozen=True)
class RandomisedResponse:
    """Answer truthfully with probability ``truth``, else with another category, all equally likely.

    Parameters
    ----------
    categories : tuple of str
        At least two, all distinct; anything else is a ParameterError.
    truth : float
        At least 1/k, which reveals nothing, and below 1. Two fair coins, "heads: the truth, tails:
        what the second coin shows", are two categories with ``truth`` = 3/4: ln 3-DP.
    """

    categories: tuple[str, ...]
    truth: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(check_list(self.categories, "categories")))
        texts = all(isinstance(category, str) for category in self.categories)
        if not texts or not 2 <= len(set(self.categories)) == len(self.categories):
            raise ParameterError("categories must be two or more distinct strings")
        object.__setattr__(self, "truth", check_positive(self.truth, "truth"))
        if not 1 / len(self.categories) <= self.truth < 1:
            raise ParameterError(f"truth is {self.truth}; it must be at least 1/k and below 1")

    @classmethod
    def for_epsilon(cls, categories: Sequence[str], epsilon: float) -> RandomisedResponse:
        """Return the most truthful response that is ``epsilon``-DP, rounded to less truth."""
        response = cls(tuple(check_list(categories, "categories")), math.nextafter(1, 0))
        least = 1 / len(response.categories)
        lie = math.exp(-check_positive(epsilon, "epsilon"))
        truth = 1 / (1 + (len(response.categories) - 1) * lie)
        while response.epsilon > epsilon and response.truth > least:
            truth = max(least, math.nextafter(truth, 0))
            response = cls(response.categories, truth)
        return response

    @property
    def lie(self) -> float:
        """Probability of each answer that is not true."""
        return (1 - self.truth) / (len(self.categories) - 1)

    @property
    def epsilon(self) -> float:
        """ε in nats, rounded up."""
        truth, lie = (self.probability(self.categories[0], x) for x in self.categories[:2])
        return log_up(max(truth / lie, lie / truth))

    def probability(self, answer: str, truth: str) -> Fraction:
        """Return the exact probability of an answer given the true category."""
        self._check([answer, truth])
        kept = Fraction(self.truth)
        return kept if answer == truth else (1 - kept) / (len(self.categories) - 1)

    def release(self, values: Sequence[str], *, insecure_seed: int | None = None) -> list[str]:
        """Randomise every value; raises DataError for one that is not a category."""
        source, kept, released = randomness(insecure_seed), Fraction(self.truth), []
        for value in self._check(values):
            others = [category for category in self.categories if category != value]
            truthful = source.randrange(kept.denominator) < kept.numerator
            released.append(value if truthful else source.choice(others))
        return released

    def estimate(self, answers: Sequence[str]) -> pd.DataFrame:
        """Return a table of category, unbiased count and standard error, from randomised answers.

        The standard error is that of a count between 0 and all.
        """
        total, names = len(self._check(answers)), list(self.categories)
        self.standard_error(0, total)  # refuses a response that reveals nothing
        seen = np.array([list(answers).count(name) for name in names], float)
        counts = (seen - total * self.lie) / (self.truth - self.lie)
        errors = [self.standard_error(count, total) for count in np.clip(counts, 0, total)]
        return pd.DataFrame({"category": names, "count": counts, "standard_error": errors})

    def standard_error(self, count: float, total: int) -> float:
        """Return the standard error for a category with ``count`` of ``total`` people."""
        count = check_positive(count, "count", or_zero=True)
        others, truth, lie = check_whole(total, "total", 0) - count, self.truth, self.lie
        if others < 0 or truth <= lie:
            raise ParameterError("count must be at most total, and truth above 1/k")
        return math.sqrt(count * truth * (1 - truth) + others * lie * (1 - lie)) / (truth - lie)

    def _check(self, values: Sequence[Any]) -> list[str]:
        answers = check_list(values, "answers")
        if not all(value in self.categories for value in answers):
            raise DataError(f"every answer must be one of the categories {self.categories}")
        return answers


@dataclass(frozen=True)
class _Scaled:
    """Sensitivity Δ > 0 in units of the query or the utility, and ε > 0 in nats."""

    sensitivity: float
    epsilon: float
    _times: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for name in ("sensitivity", "epsilon"):
            object.__setattr__(self, name, check_positive(getattr(self, name), name))
        check_positive(self.scale, "sensitivity / epsilon")

    @property
    def scale(self) -> float:
        """Laplace scale Δ/ε, or temperature 2Δ/ε of the exponential mechanism, rounded up."""
        return divide_up(self._times * self.sensitivity, self.epsilon)


@dataclass(frozen=True)
class Laplace(_Scaled):
    """Add noise Pr ∝ exp(−|z| ε/Δ) to a query whose L1 sensitivity is Δ, in units of the query."""

    def release(self, values: ArrayLike, *, insecure_seed: int | None = None) -> list[Any]:
        """Release a list of integers, or of floats with noise in units of 2^−1074.

        Every float is a multiple of that unit, so its noise is exact as well; the sum is rounded.
        Raises DataError for anything else than finite numbers of one kind.
        """
        exact = values.tolist() if isinstance(values, np.ndarray | pd.Series) else values
        exact = check_list(exact, "values")
        whole = all(type(value) is int for value in exact)
        if not whole and not all(type(v) is float and math.isfinite(v) for v in exact):
            raise DataError("the values to release must be all integers or all finite floats")
        source, unit = randomness(insecure_seed), Fraction(1, 1 if whole else 2**1074)
        scale = Fraction(self.sensitivity) / Fraction(self.epsilon) / unit
        released = (Fraction(v) + unit * discrete_laplace(source, scale) for v in exact)
        return [int(number) if whole else float(number) for number in released]

    def probability(self, noise: int) -> float:
        """Return the probability of this noise on an integer."""
        return float(laplace_probability(check_whole(noise, "noise", None), self.scale))

    def standard_error(self) -> float:
        """Return the root-mean-square noise on an integer."""
        return 1 / (math.sqrt(2) * math.sinh(0.5 / self.scale))


@dataclass(frozen=True)
class Exponential(_Scaled):
    """Choose an outcome with Pr ∝ exp(ε u/(2Δ)); Δ is the sensitivity of each utility u."""

    _times: ClassVar[int] = 2

    def probabilities(self, utilities: ArrayLike) -> Floats:
        """Return the probability of each outcome, shape (outcomes,)."""
        values = _utilities(utilities)
        with np.errstate(over="ignore"):  # differences of halves are floats
            weights = np.exp((values / 2 - values.max() / 2) / (self.scale / 2))
        return np.asarray(weights / weights.sum())

    def release(
        self, utilities: ArrayLike, count: int = 1, *, insecure_seed: int | None = None
    ) -> list[int]:
        """Draw ``count`` outcomes independently, as indices; each costs ε."""
        source, count = randomness(insecure_seed), check_whole(count, "count")
        costs = [-Fraction(u) / Fraction(self.scale) for u in _utilities(utilities).tolist()]
        return [choice(source, costs) for _ in range(count)]

    def expected_shortfall(self, utilities: ArrayLike) -> float:
        """Return the expected distance from the largest utility."""
        values = _utilities(utilities)
        return 2 * float(self.probabilities(values) @ (values.max() / 2 - values / 2))

    def shortfall_bound(self, outcomes: int) -> float:
        """Return the textbook bound (2Δ/ε) ln k on the expected shortfall of k outcomes."""
        return float(self.scale * np.log(check_whole(outcomes, "outcomes")))

    def worst_shortfall(self, outcomes: int) -> float:
        """Return the largest expected shortfall of k outcomes, (2Δ/ε) W((k−1)/e), W Lambert's.

        The shortfall λ solves Σ (g_i − λ) exp(−g_i/τ) = λ over the gaps g_i, τ = 2Δ/ε; each term
        is largest at g_i = λ + τ, so equal gaps are worst.
        """
        from scipy.special import lambertw

        others = check_whole(outcomes, "outcomes") - 1
        return float(self.scale * lambertw(others / np.e).real)


@dataclass(frozen=True)
class WeightedMajority:
    """Follow one of ``experts`` with Pr ∝ exp(−η · its losses so far), η = ``rate``.

    Losses lie in [0, 1]; neighbouring loss tables differ in one round. A choice is an exponential
    mechanism, 2η-DP and of bounded range 2η. Accounts of the T − 1 choices after the first:

    - ``pure``: their sum, 2η(T−1), with δ = 0;
    - ``published``: ε = η √(32 T ln(1/δ)) by advanced composition (Dwork and Roth 2014, section
      11.2), refused if that does not reach so far;
    - ``zcdp``: each is η²/2-zCDP (Cesar and Rogers, ALT 2021), all r = (T−1)η²/2, hence
      ε = r + 2√(r ln(1/δ)), about a quarter of the published one.
    """

    experts: int
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "experts", check_whole(self.experts, "experts"))
        object.__setattr__(self, "rate", check_positive(self.rate, "rate"))

    @classmethod
    def tuned(cls, experts: int, rounds: int) -> WeightedMajority:
        """Return the rate √(ln k/T) that minimises η + ln k/(ηT), for at least two experts."""
        experts = check_whole(experts, "experts", 2)
        return cls(experts, math.sqrt(math.log(experts) / check_whole(rounds, "rounds")))

    def probabilities(self, losses_so_far: ArrayLike) -> Floats:
        """Return the probability of each expert given the sums of losses, shape (..., experts)."""
        sums = check_numbers(losses_so_far, "losses_so_far")
        if sums.shape[-1:] != (self.experts,) or not np.isfinite(sums).all():
            raise DataError(f"losses_so_far must have {self.experts} finite numbers in each row")
        weights = np.exp(-self.rate * (sums - sums.min(axis=-1, keepdims=True)))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def release(self, losses_so_far: ArrayLike, *, insecure_seed: int | None = None) -> int:
        """Draw an expert given the sums of losses, exactly for these floats."""
        if self.probabilities(losses_so_far).ndim != 1:
            raise DataError("losses_so_far must be one row of sums")
        rate, sums = Fraction(self.rate), check_numbers(losses_so_far, "losses_so_far")
        return choice(randomness(insecure_seed), [rate * Fraction(x) for x in sums.tolist()])

    def regret(self, losses: ArrayLike) -> float:
        """Return the expected loss per round minus the best expert's."""
        table = self._table(losses)
        before = np.vstack([np.zeros(self.experts), np.cumsum(table, axis=0)[:-1]])
        expected = float((self.probabilities(before) * table).sum())
        return (expected - float(table.sum(axis=0).min())) / len(table)

    def regret_bound(self, rounds: int) -> float:
        """Return the bound η + ln k/(ηT) on the regret."""
        return self.rate + math.log(self.experts) / (self.rate * check_whole(rounds, "rounds"))

    def epsilon(self, rounds: int, delta: float = 0.0, *, account: Account = "zcdp") -> float:
        """Return ε of all choices at this δ, in nats, rounded up."""
        log, later = _log(account, delta), check_whole(rounds, "rounds") - 1
        if account == "pure":
            return 2 * self.rate * later * _MORE
        if account == "zcdp":
            r = later * self.rate**2 / 2
            return (r + 2 * math.sqrt(r * log)) * _MORE
        loss, each = self.rate * math.sqrt(32 * rounds * log) * _MORE, 2 * self.rate
        if each * math.sqrt(2 * rounds * log) + rounds * each * math.expm1(each) > loss:
            raise ParameterError("the published account fails here; use the zcdp account")
        return loss

    def _table(self, losses: ArrayLike) -> Floats:
        table = check_numbers(losses, "the losses")
        if table.ndim != 2 or table.shape[1] != self.experts or len(table) == 0:
            raise DataError(f"the losses must have shape (rounds, {self.experts})")
        if not ((table >= 0) & (table <= 1)).all():
            raise DataError("every loss must lie in [0, 1]")
        return table


def private_rate(
    epsilon: float, rounds: int, delta: float = 0.0, *, account: Account = "zcdp"
) -> float:
    """Return the largest rate η whose ``rounds`` choices are (ε, δ)-DP, rounded down."""
    epsilon, log = check_positive(epsilon, "epsilon"), _log(account, delta)
    later = max(check_whole(rounds, "rounds") - 1, 1)
    if account == "pure":
        return epsilon / (2 * later) / _MORE**2
    if account == "zcdp":
        # √r = √(ln(1/δ) + ε) − √ln(1/δ), without cancellation
        root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))
        return root * math.sqrt(2 / later) / _MORE**2
    rate = epsilon / math.sqrt(32 * rounds * log) / _MORE**2
    WeightedMajority(1, rate).epsilon(rounds, delta, account="published")
    return rate


def difference_guess(everybody: Answer, without: Answer) -> Answer:
    """Return the best guess of a person's bit from noisy counts with and without that person."""
    return (everybody - without >= 1) * 1


def differencing_success(ratio: Exact) -> Fraction:
    """Return the probability that this guess of an even bit is right, exactly.

    With noise Pr ∝ ratio^|z|, ratio in [0, 1), on both counts their difference is the bit plus
    noise D, symmetric and falling away from 0: ½ + ½·Pr[D = 0] = ½ + (1−r)(1+r²)/(2(1+r)³).
    """
    r = check_exact(ratio, "ratio", 0, 1)
    if r == 1:
        raise ParameterError("ratio is 1; it must be below 1")
    return Fraction(1, 2) + (1 - r) * (1 + r**2) / (2 * (1 + r) ** 3)


def _utilities(utilities: ArrayLike) -> Floats:
    values = check_numbers(utilities, "the utilities")
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise DataError("the utilities must be one row of finite numbers, at least one")
    return values


def _log(account: str, delta: float) -> float:
    """Return ln(1/δ), for accounts with a δ."""
    check_choice(account, "account", ACCOUNTS)
    if account == "pure":
        if delta != 0:
            raise ParameterError("delta must be 0 for the pure account")
        return math.inf
    return math.log(1 / check_confidence(delta, "delta", 1e-6))
