"""Exact distributions on finitely many rational numbers, and distances between them."""

import math
from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeAlias

from pufferflow._util.checks import named_type, shown_name
from pufferflow._util.numbers import log_bound, written_number
from pufferflow._util.rounding import SUM_TOLERANCE, float_up
from pufferflow.errors import ParameterError

Distribution: TypeAlias = dict[Fraction, Fraction]
"""Positive probabilities of values, by increasing value."""

MAX_BITS = 10**8
"""Largest size of the probabilities of a distribution over one denominator."""


def wasserstein_infinity(p: Distribution, q: Distribution) -> Fraction:
    """Return W∞, the largest gap between the quantile functions (Algorithm 1)."""
    (xs, below), (ys, others) = ((list(d), list(accumulate(d.values()))) for d in (p, q))
    # both quantile functions are constant between these levels
    levels = {*below, *others}
    return max(abs(xs[bisect_left(below, u)] - ys[bisect_left(others, u)]) for u in levels)


def max_divergence(p: Distribution, q: Distribution) -> float:
    """Return D∞(p‖q) = max log p(x)/q(x) in nats, rounded up; ∞ if p has a value that q lacks."""
    if not q.keys() >= p.keys():
        return math.inf
    return float_up(log_bound(max((p[value] / q[value] for value in p), default=Fraction(1))))


def distribution(given: Any, name: str = "the distribution") -> Distribution:
    """Return a mapping from value to probability exactly; raises as :func:`probabilities`."""
    exact = probabilities(given, name)
    values = {value: written_number(value, f"a value of {name}") for value in exact}
    if len(set(values.values())) < len(values):
        raise ParameterError(f"{name} has the same value twice; give each once")
    return {values[v]: exact[v] for v in sorted(exact, key=values.__getitem__) if exact[v]}


def probabilities(given: Any, name: str) -> dict[Any, Fraction]:
    """Return a mapping to probabilities exactly, divided by their sum.

    Raises ParameterError: ``given`` is not a mapping, a number is not a probability, their sum is
    not 1 up to rounding, or their common denominator is too large.
    """
    if not isinstance(given, Mapping):
        raise ParameterError(f"{name} is {named_type(given)}; give a mapping to probabilities")
    exact = {key: written_number(p, f"a probability of {name}") for key, p in given.items()}
    if not all(0 <= number <= 1 + Fraction(SUM_TOLERANCE) for number in exact.values()):
        raise ParameterError(f"a probability of {name} lies outside 0 to 1; correct it")
    unit = 1
    for number in exact.values():
        unit = math.lcm(unit, number.denominator)
        if unit.bit_length() * len(exact) > MAX_BITS:
            raise ParameterError(f"the probabilities of {name} need decimals or one denominator")
    total = sum(exact.values(), Fraction(0))
    if abs(total - 1) > SUM_TOLERANCE:
        raise ParameterError(f"the probabilities of {name} sum to {float(total):.10g}, not to 1")
    return exact if total == 1 else normalised(exact)


def normalised(weights: Mapping[Any, Fraction]) -> dict[Any, Fraction]:
    """Return weights divided by their sum."""
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def named(name: object) -> str:
    """Return the name of a secret or a scenario for messages."""
    return shown_name(" = ".join(map(str, name)) if isinstance(name, tuple) else name)
