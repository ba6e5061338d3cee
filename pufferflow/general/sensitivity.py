"""Algorithm 1 of Song et al.: the largest W∞ of the query given two secrets; what noise really loses."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from tqdm import tqdm

from pufferflow._checks import check_epsilon
from pufferflow._rounding import UNIT_ROUNDOFF, divide_up
from pufferflow._types import Floats
from pufferflow._work import afford
from pufferflow.divergences import Law, quantile_gap
from pufferflow.errors import ParameterError

A_STEP = 1e4
"""Operations that a value of a distribution takes, in a coupling or beside another value: exact fractions."""

FEWER = "give fewer pairs of secrets, or round the query"
"""What takes less."""

MOST_LOSS = 1e100
"""Nats beyond which no loss is computed."""

Pair = tuple[Hashable, Hashable]
Laws = Mapping[Hashable, Mapping[Hashable, Law]]


@dataclass(frozen=True)
class WassersteinSensitivity:
    """W of Algorithm 1, and what decides it.

    Attributes
    ----------
    W : float
        In units of the query, rounded up; 0 where no pair of secrets has positive probability under a distribution.
    law : hashable or None
        The distribution θ that decides, its index or its name; None where W is 0.
    pair : tuple or None
        Names of its two secrets.
    """

    W: float
    law: Hashable | None
    pair: Pair | None

    def scale(self, epsilon: float) -> float:
        """Laplace scale W/ε of the query, rounded up."""
        return divide_up(self.W, check_epsilon(epsilon))


def possible_values(laws: Laws) -> list[Fraction]:
    """Return the values that the query has under Θ, increasing."""
    return sorted({value for given in laws.values() for law in given.values() for value, _ in law.pairs})


def widest_pair(laws: Laws, pairs: Iterable[Pair]) -> tuple[Fraction, Hashable | None, Pair | None]:
    """W exactly, with the distribution and the pair that decide it; None where W is 0.

    Raises ParameterError: the couplings of all pairs are more work than is allowed.
    """
    asked = tuple(pairs)
    steps = sum(len(p.values) + len(q.values) for _, _, p, q in _laws_of(laws, asked))
    afford(steps * A_STEP, "the couplings of all pairs", FEWER)
    widest: tuple[Fraction, Hashable | None, Pair | None] = Fraction(0), None, None
    for name, pair, first, second in tqdm(
        _laws_of(laws, asked), desc="couplings", unit=" pairs", delay=1, disable=None, leave=False
    ):
        gap = quantile_gap(first, second)
        if gap > widest[0]:
            widest = gap, name, pair
    return widest


def laplace_loss(laws: Laws, pairs: Iterable[Pair], scale: float) -> float:
    """Largest log-ratio of the densities of F + Lap(scale) given the two secrets of a pair, in nats, rounded up.

    Between two neighbouring values of F the ratio is (A e^2x + B)/(C e^2x + D), monotone in x, and beyond the last
    ones it is constant: the largest stands at a value of F. The same holds for discrete noise on a lattice.
    """
    asked = tuple(pairs)
    points = {name: possible_values({name: given}) for name, given in laws.items()}
    steps = sum(len(points[n]) * len(law.values) for n in laws for law in laws[n].values())
    afford(steps * A_STEP, "the densities of all pairs", FEWER)
    widest = max((float(points[name][-1] - points[name][0]) for name in points if points[name]), default=0.0)
    if widest / scale > MOST_LOSS:
        raise ParameterError(f"scale is {scale:g}, and the query varies by {widest:g}; give a scale nearer to that")
    named = {secret for pair in asked for secret in pair}
    logs = {
        (name, secret): _log_density(law, points[name], scale)
        for name, given in laws.items()
        for secret, law in tqdm(given.items(), desc="densities", unit=" secrets", delay=1, disable=None, leave=False)
        if secret in named
    }
    worst = 0.0
    for name, (first, second), _, _ in _laws_of(laws, asked):
        (one, error), (other, also) = logs[name, first], logs[name, second]
        worst = max(worst, float(np.abs(one - other).max()) + error + also)
    return worst


def _laws_of(laws: Laws, pairs: tuple[Pair, ...]) -> Iterator[tuple[Hashable, Pair, Law, Law]]:
    """Each θ with each pair that it gives positive probability, and the two distributions."""
    for name, given in laws.items():
        for pair in pairs:
            if pair[0] in given and pair[1] in given:
                yield name, pair, given[pair[0]], given[pair[1]]


def _log_density(law: Law, points: list[Fraction], scale: float) -> tuple[Floats, float]:
    """Log of E[exp(−|w − F|/scale)] at each point w, and a bound of its error."""
    logs = np.array([math.log(mass) for mass in law.masses]) - math.log(law.total)
    distances = np.array([[float(abs(w - value)) for value in law.values] for w in points])
    terms = logs - distances / scale
    largest = terms.max(axis=1)
    sums = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
    # each logarithm of a mass, each distance and quotient, the difference, the exponential; the sum of n terms
    size = float(np.abs(terms).max()) + math.log(law.total) + len(law.values) + 8
    return sums, 8 * UNIT_ROUNDOFF * size
