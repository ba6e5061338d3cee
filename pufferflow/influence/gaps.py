"""How far the bound of a family of intervals may be above the scale of the worst chain in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from pufferflow._checks import check_epsilon, check_whole, longest
from pufferflow._types import Floats
from pufferflow.influence.intervals import worst_of_family
from pufferflow.influence.search import worst_node
from pufferflow.influence.tables import influence_tables
from pufferflow.markov.bounds import TransitionBounds
from pufferflow.markov.chain import ANY, MarkovChain


@dataclass(frozen=True)
class IntervalGap:
    """An upper bound of the noise scale of a family beside that of a chain in it.

    Attributes
    ----------
    upper : float
        The scale that is used.
    lower : float
        The MQMExact scale of ``chain``; the scale of the family lies between the two.
    chain : MarkovChain
    """

    upper: float
    lower: float
    chain: MarkovChain

    @property
    def ratio(self) -> float:
        """Upper over lower: 1 where the bound is attained."""
        return self.upper / self.lower


def interval_gap(
    family: TransitionBounds, length: int, epsilon: float, evaluations: int, rng: np.random.Generator | None
) -> IntervalGap:
    """As :meth:`pufferflow.IntervalFamily.gap`."""
    length, epsilon = longest(length), check_epsilon(epsilon)
    chain = worst_chain(family, length, epsilon, evaluations, rng)
    upper = worst_of_family(family, length, epsilon).score
    return IntervalGap(upper, _scale(chain, length, epsilon), chain)


def worst_chain(
    family: TransitionBounds, length: int, epsilon: float, evaluations: int, rng: np.random.Generator | None
) -> MarkovChain:
    """As :meth:`pufferflow.IntervalFamily.worst_chain`."""
    length, epsilon, evaluations = longest(length), check_epsilon(epsilon), check_whole(evaluations, "evaluations")
    rng = np.random.default_rng(0) if rng is None else rng
    k = family.states
    states = list(range(k))
    corners = [_vertices(family, x) for x in states]
    starts = [
        np.array([_vertex(family, x, sorted(states, key=lambda z: sign * abs(z - x))) for x in states])
        for sign in (1, -1)
    ]
    best, highest = starts[0], 0.0
    used = 0
    while used < evaluations:
        matrix = starts.pop(0) if starts else np.array([c[rng.integers(len(c))] for c in corners])
        value = _scale(MarkovChain(matrix, ANY), length, epsilon)
        used += 1
        stale, x = 0, 0
        while stale < k and used < evaluations:
            stale += 1
            for corner in corners[x]:
                if used >= evaluations:
                    break
                if np.array_equal(corner, matrix[x]):
                    continue
                trial = matrix.copy()
                trial[x] = corner
                used += 1
                tried = _scale(MarkovChain(trial, ANY), length, epsilon)
                if tried > value:
                    matrix, value, stale = trial, tried, 0
            x = (x + 1) % k
        if value > highest:
            best, highest = matrix, value
        if all(len(c) == 1 for c in corners):
            break
    return MarkovChain(best, ANY)


def _scale(chain: MarkovChain, length: int, epsilon: float) -> float:
    return worst_node(influence_tables(chain, "exact"), length, epsilon).score


def _vertex(family: TransitionBounds, row: int, order: list[int] | tuple[int, ...]) -> Floats:
    """The distribution of a row with as much mass as possible on the first states of ``order``."""
    law: Floats = family.low[row].copy()
    left = 1 - math.fsum(law)
    for z in order:
        step = max(0.0, min(left, float(family.high[row, z] - law[z])))
        law[z] += step
        left -= step
    return law


def _vertices(family: TransitionBounds, row: int) -> list[Floats]:
    """Vertices of a row: all of them up to five states, beyond that those favouring or sparing one state each."""
    k = family.states
    if k <= 5:
        orders = list(permutations(range(k)))
    else:
        around = [tuple(np.argsort(np.abs(np.arange(k) - x), kind="stable").tolist()) for x in range(k)]
        orders = around + [order[::-1] for order in around]
    return [np.array(v) for v in dict.fromkeys(tuple(_vertex(family, row, order).tolist()) for order in orders)]
