"""Classical mechanisms, drawn exactly: randomised response, Laplace, exponential, majority."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from pufferflow._util.checks import (
    check_confidence,
    check_list,
    check_numbers,
    check_positive,
    check_whole,
)
from pufferflow._util.noise import randomness
from pufferflow._util.numbers import log_bound
from pufferflow._util.rounding import divide_up, float_up
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import DataError, ParameterError

_MORE = 1 + 1e-12
"""Margin for the rounding of a few elementary functions: losses are rounded up, rates down."""


@dataclass(frozen=True)
class RandomisedResponse:
    """Randomised response: the truth with probability ``truth``, else any other category.

    Parameters
    ----------
    categories : tuple of str
        At least two, all distinct; anything else is a ParameterError.
    truth : float
        At least 1/k, which reveals nothing, and below 1. Two fair coins, "heads: the truth, tails:
        the second coin", are two categories with ``truth`` = 3/4: ln 3-DP.
    """

    categories: tuple[str, ...]
    truth: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(check_list(self.categories, "categories")))
        strings = all(isinstance(category, str) for category in self.categories)
        if not strings or not 2 <= len(set(self.categories)) == len(self.categories):
            raise ParameterError("categories must be two or more distinct strings")
        object.__setattr__(self, "truth", check_positive(self.truth, "truth"))
        if not 1 / len(self.categories) <= self.truth < 1:
            raise ParameterError(f"truth is {self.truth}; it must be at least 1/k and below 1")

    @classmethod
    def for_epsilon(cls, categories: Sequence[str], epsilon: float) -> Self:
        """Return the most truthful response that is ``epsilon``-DP, rounded to less truth."""
        names = tuple(check_list(categories, "categories"))
        lie = math.exp(-check_positive(epsilon, "epsilon"))
        truth = math.nextafter(1 / (1 + (len(names) - 1) * lie), 0)
        while cls(names, truth).epsilon > epsilon:
            truth = math.nextafter(truth, 0)
        return cls(names, truth)

    @property
    def lie(self) -> float:
        """Probability of each answer that is not true."""
        return (1 - self.truth) / (len(self.categories) - 1)

    @property
    def epsilon(self) -> float:
        """ε in nats, rounded up."""
        truth, lie = (self.probability(self.categories[0], x) for x in self.categories[:2])
        return float_up(log_bound(max(truth / lie, lie / truth)))

    def probability(self, answer: str, truth: str) -> Fraction:
        """Return the exact probability of an answer given the true category."""
        self._check([answer, truth])
        kept = Fraction(self.truth)
        return kept if answer == truth else (1 - kept) / (len(self.categories) - 1)

    def release(self, values: Sequence[str], *, insecure_seed: int | None = None) -> list[str]:
        """Return exactly randomised values; raises DataError for one that is not a category."""
        source, values = randomness(insecure_seed), self._check(values)
        others = {x: [other for other in self.categories if other != x] for x in self.categories}
        kept = bernoulli(source, Fraction(self.truth), len(values))
        pairs = zip(values, kept, strict=True)
        return [value if truthful else source.choice(others[value]) for value, truthful in pairs]

    def estimate(self, answers: Sequence[str]) -> pd.DataFrame:
        """Return a table of category, unbiased count and standard error, from randomised answers.

        The standard error is that of a count between 0 and all.
        """
        answers, names = self._check(answers), list(self.categories)
        self.standard_error(0, len(answers))  # raises for a response that reveals nothing
        seen = np.array([answers.count(name) for name in names], float)
        counts = (seen - len(answers) * self.lie) / (self.truth - self.lie)
        inside = np.clip(counts, 0, len(answers))
        errors = [self.standard_error(count, len(answers)) for count in inside]
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
    """Noise Pr ∝ exp(−|z| ε/Δ) for a query with L1 sensitivity Δ, in units of the query."""

    def release(self, values: ArrayLike, *, insecure_seed: int | None = None) -> list[Any]:
        """Return noisy integers, or floats with noise in units of 2^−1074.

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
    """A choice of an outcome with Pr ∝ exp(ε u/(2Δ)), Δ the sensitivity of each utility u."""

    _times: ClassVar[int] = 2

    def probabilities(self, utilities: ArrayLike) -> Floats:
        """Return the probability of each outcome, shape (outcomes,)."""
        values = _finite(utilities, "the utilities")
        with np.errstate(over="ignore"):  # differences of halves are floats
            weights = np.exp((values / 2 - values.max() / 2) / (self.scale / 2))
        return np.asarray(weights / weights.sum())

    def release(
        self, utilities: ArrayLike, count: int = 1, *, insecure_seed: int | None = None
    ) -> list[int]:
        """Return ``count`` independent outcomes, as indices; each costs ε."""
        source, values = randomness(insecure_seed), _finite(utilities, "the utilities")
        costs = [-Fraction(u) / Fraction(self.scale) for u in values.tolist()]
        return [choice(source, costs) for _ in range(check_whole(count, "count"))]


@dataclass(frozen=True)
class WeightedMajority:
    """A choice of an expert with Pr ∝ exp(−η · its losses so far), η = ``rate``.

    Losses lie in [0, 1]; neighbouring loss tables differ in one round. A choice is an exponential
    mechanism: 2η-DP, and η²/2-zCDP as its range is bounded by 2η (Cesar and Rogers, ALT 2021). The
    T − 1 choices after the first are 2η(T−1)-DP, and for any δ > 0 (r + 2√(r ln(1/δ)), δ)-DP with
    r = (T−1)η²/2.
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_positive(self.rate, "rate"))

    def probabilities(self, losses_so_far: ArrayLike) -> Floats:
        """Return the probability of each expert given the sums of losses, shape (..., experts)."""
        sums = _finite(losses_so_far, "losses_so_far", rows=True)
        weights = np.exp(-self.rate * (sums - sums.min(axis=-1, keepdims=True)))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def release(self, losses_so_far: ArrayLike, *, insecure_seed: int | None = None) -> int:
        """Return an expert drawn given the sums of losses, exactly for these floats."""
        sums = _finite(losses_so_far, "losses_so_far")
        costs = [Fraction(self.rate) * Fraction(x) for x in sums.tolist()]
        return choice(randomness(insecure_seed), costs)

    def epsilon(self, rounds: int, delta: float = 0.0) -> float:
        """Return ε of all choices at this δ, in nats, rounded up."""
        later = check_whole(rounds, "rounds") - 1
        if delta == 0:
            return 2 * self.rate * later * _MORE
        r, log = later * self.rate**2 / 2, math.log(1 / check_confidence(delta, "delta"))
        return (r + 2 * math.sqrt(r * log)) * _MORE


def private_rate(epsilon: float, rounds: int, delta: float = 0.0) -> float:
    """Return the largest rate η whose ``rounds`` choices are (ε, δ)-DP, rounded down."""
    epsilon = check_positive(epsilon, "epsilon")
    later = max(check_whole(rounds, "rounds") - 1, 1)
    if delta == 0:
        return epsilon / (2 * later) / _MORE**2
    # √r = √(ln(1/δ) + ε) − √ln(1/δ), without cancellation
    log = math.log(1 / check_confidence(delta, "delta"))
    root = epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))
    return root * math.sqrt(2 / later) / _MORE**2


def _finite(numbers: Any, name: str, *, rows: bool = False) -> Floats:
    """Return finite numbers in one row, or also in several."""
    array = check_numbers(numbers, name)
    if not 1 <= array.ndim <= 1 + rows or array.size == 0 or not np.isfinite(array).all():
        raise DataError(f"{name} must be one row of finite numbers")
    return array


def bernoulli(source: random.Random, probability: Fraction, count: int) -> Bools:
    """Return ``count`` independent events of a rational probability.

    64 bits decide unless they equal the first ones of the probability; then the next bits decide.
    """
    if probability == 1:
        return np.ones(count, bool)
    leading, rest = divmod(probability.numerator << 64, probability.denominator)
    drawn = np.frombuffer(source.randbytes(8 * count), "<u8")
    events: Bools = drawn < np.uint64(leading)
    for i in np.flatnonzero(drawn == np.uint64(leading)):
        events[i] = bernoulli(source, Fraction(rest, probability.denominator), 1)[0]
    return events


def exp_event(source: random.Random, exponent: Fraction) -> bool:
    """Return an event of probability exp(−exponent), exponent ≥ 0.

    For x ≤ 1 the first failure of events of probability x, x/2, x/3, … has an odd index with
    probability exp(−x) (Canonne, Kamath, Steinke, NeurIPS 2020, Algorithm 1).
    """
    while exponent > 1:
        if not exp_event(source, Fraction(1)):
            return False
        exponent -= 1
    index = 1
    while source.randrange(index * exponent.denominator) < exponent.numerator:
        index += 1
    return index % 2 == 1


def choice(source: random.Random, costs: Sequence[Fraction]) -> int:
    """Return an index drawn with Pr ∝ exp(−cost), by rejection."""
    least = min(costs)
    while True:
        index = source.randrange(len(costs))
        if exp_event(source, costs[index] - least):
            return index


def discrete_laplace(source: random.Random, scale: Fraction) -> int:
    """Return an integer z drawn with Pr ∝ exp(−|z|/scale) (the same source, Algorithm 2)."""
    while True:
        part, whole = source.randrange(scale.numerator), 0
        if not exp_event(source, Fraction(part, scale.numerator)):
            continue
        while exp_event(source, Fraction(1)):
            whole += 1
        size = (part + scale.numerator * whole) // scale.denominator
        negative = source.randrange(2) == 1
        if size or not negative:
            return -size if negative else size


def laplace_probability(noise: ArrayLike, scale: float) -> Floats:
    """Return the probability (1 − p)/(1 + p)·p^|z| of each integer z, p = exp(−1/scale)."""
    decay = np.exp(-np.abs(np.asarray(noise, np.float64)) / scale)
    return np.asarray(math.tanh(0.5 / scale) * decay)
