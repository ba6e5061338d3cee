"""Attacks on the exponential mechanism in floating point, and the exact mechanism under the same attacks.

The attacks are those of Ilvento, "Implementing the Exponential Mechanism with Base-2 Differential Privacy" (CCS 2020),
and of the author's public demonstration (cilvento/b2_exponential_mechanism, demo/demo.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pufferflow._types import Floats
from pufferflow.related.dp.base2_exponential import Base2Exponential, Eta, Number

NAIVE, BASE2 = "naive", "base-2"
WITH, WITHOUT = "with Alice", "without Alice"


class Attack(NamedTuple):
    """Two neighbouring databases chosen by the attacker; every utility differs by at most 1.

    Attributes
    ----------
    name : str
    epsilon : float
        Privacy parameter the mechanism claims.
    utilities : dict of str to list
        By database; the first outcome is the one the attacker looks at.
    watched : int
        Its index.
    y : int
        Bits of η that come close to ``epsilon``.
    """

    name: str
    epsilon: float
    utilities: dict[str, list[Number]]
    watched: int
    y: int


# --- the naive mechanism ------------------------------------------------------------------------------------------


def naive_cumulative(utilities: Sequence[Number], epsilon: float) -> Floats:
    """Cumulative probabilities of the exponential mechanism with weights e^(−ε·u/2), in doubles from left to right."""
    sums = np.cumsum(np.exp(-(epsilon / 2) * np.array(utilities, dtype=np.float64)))
    return np.asarray(sums / sums[-1])


def naive_law(utilities: Sequence[Number], epsilon: float) -> list[float]:
    """Probability of each outcome under a uniform number compared with :func:`naive_cumulative`."""
    return list(np.diff(naive_cumulative(utilities, epsilon), prepend=0.0))


def naive_draws(utilities: Sequence[Number], epsilon: float, count: int, rng: np.random.Generator) -> list[int]:
    """Draw from the naive mechanism; reproduces the leaks, never to be used."""
    return list(np.searchsorted(naive_cumulative(utilities, epsilon), rng.random(count), side="right"))


# --- the attacks --------------------------------------------------------------------------------------------------


def zero_rounding(outcomes: int) -> Attack:
    """Attack of the demonstration: utility x for all; with Alice x + 1 for all but the first, and weight 0."""
    x, rest = last_positive(0.5), outcomes - 1
    return Attack("zero rounding", 0.5, {WITH: [x, *[x + 1] * rest], WITHOUT: [x] * outcomes}, 0, 16)


def swapped_zero_rounding() -> Attack:
    """Attack of the article: two outcomes of utility x and x + 1, exchanged when Alice leaves.

    The weight of x + 1 underflows, so each database has one possible output, and not the same.
    """
    x = last_positive(0.5)
    return Attack("zero rounding, two outcomes", 0.5, {WITH: [x, x + 1], WITHOUT: [x + 1, x]}, 0, 16)


def last_positive(epsilon: float) -> int:
    """Last integer x for which the weight e^(−εx/2) is a positive double."""
    return next(i for i in range(1, 10_000) if np.exp(-(epsilon / 2) * i) == 0) - 1


def truncated_addition(*, watched_first: bool = True) -> Attack:
    """One heavy outcome and 999 light ones whose positive weights vanish when added to the heavy one.

    Without Alice the utilities are 1 closer, and nothing vanishes. Added up in the other order, the light ones first,
    nothing vanishes either. A light outcome must weigh 2^−53 of the heavy one to vanish, and k = 2^53·e^−ε outcomes e^ε
    closer are needed to be seen: with few outcomes the attack needs a large ε.
    """
    epsilon, heavy, outcomes = 30.0, -0.5, 1000
    weight = np.exp(-(epsilon / 2) * heavy)
    light = next(x for x in range(10_000) if weight + np.exp(-(epsilon / 2) * x) == weight)
    there: list[Number] = [heavy, *[light] * (outcomes - 1)]
    absent: list[Number] = [heavy + 1, *[light - 1] * (outcomes - 1)]
    if watched_first:
        return Attack("truncated addition", epsilon, {WITH: there, WITHOUT: absent}, 0, 40)
    return Attack(
        "truncated addition, heavy outcome last", epsilon, {WITH: there[::-1], WITHOUT: absent[::-1]}, outcomes - 1, 40
    )


# --- what they achieve --------------------------------------------------------------------------------------------


def laws(attack: Attack, mechanism: str) -> dict[str, list[Any]]:
    """Law of the output by database: doubles as the naive mechanism has them, exact fractions for base 2."""
    if mechanism == NAIVE:
        return {name: naive_law(utilities, attack.epsilon) for name, utilities in attack.utilities.items()}
    return {name: exact_mechanism(attack).probabilities(utilities) for name, utilities in attack.utilities.items()}


def exact_mechanism(attack: Attack, insecure_seed: int | None = None) -> Base2Exponential:
    """Return the exact mechanism with the attack's privacy parameter (or a little less), smallest public range."""
    values = [u for utilities in attack.utilities.values() for u in utilities]
    eta = Eta.for_epsilon(attack.epsilon, y=attack.y)
    low, high = math.floor(min(values)), math.ceil(max(values))
    return Base2Exponential(eta, low, high, len(attack.utilities[WITH]), insecure_seed=insecure_seed)


def privacy_loss(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Largest |log of the ratio| of two laws, in nats; infinite if an outcome is possible under one alone."""
    worst = 0.0
    for p, q in zip(first, second, strict=True):
        if (p == 0) != (q == 0):
            return math.inf
        if p != 0:
            worst = max(worst, abs(_log(p) - _log(q)))
    return worst


def rounding_loss(eta: Eta, outcomes: int, sensitivity: Fraction) -> float:
    """Exact base-2 loss, in bits, on a bad pair of neighbours with utilities rounded at random.

    The first outcome has utility 1 against 1 − α, all others 1 − α against 1, α = ``sensitivity`` in (0, 1].
    """
    q, alpha, rest = eta.base, Fraction(sensitivity), outcomes - 1
    worse = sum(
        (
            math.comb(rest, ups) * (1 - alpha) ** ups * alpha ** (rest - ups) * q / (q + ups * q + rest - ups)
            for ups in range(rest + 1)
        ),
        Fraction(0),
    )
    better = (1 - alpha) / outcomes + alpha / (1 + rest * q)
    return (_log(better) - _log(worse)) / math.log(2)


def _log(value: Any) -> float:
    """Logarithm of a positive double or fraction, of any size."""
    if isinstance(value, Fraction):
        return math.log(value.numerator) - math.log(value.denominator)
    return math.log(value)
