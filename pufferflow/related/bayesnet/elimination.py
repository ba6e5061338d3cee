"""Exact joint laws of a few variables of a network, by variable elimination.

Rounding. Only products and sums of non-negative numbers occur, so every entry of a result has a relative error
of at most a known number of roundings. Every intermediate entry is the probability of some event under an
intervention (a product of tables of distinct variables, summed over some of them), hence at most 1, and what
underflows adds far less than a rounding to entries of at least ``SAFE_MINIMUM``. Entries too small for floats
are told from zeros by the support, computed beside the values where a table has zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferflow._types import Bools, Floats
from pufferflow._work import spend
from pufferflow.related.bayesnet.network import BayesianNetwork

MOST_CELLS = 2**20
"""Largest intermediate table, in entries."""

TABLE_ROUNDINGS = 5
"""Roundings in an entry of a stored table, relative to the table with rows that sum to exactly 1."""


class TooLargeError(Exception):
    """The tables of an elimination would have more than ``MOST_CELLS`` entries."""


class JointLaw(NamedTuple):
    """P(X_A), one axis a variable.

    Attributes
    ----------
    values : float array
    support : bool array
        Which entries are positive; ``values`` may underflow there.
    roundings : int
        Bound on the relative error of each entry that does not underflow, in unit roundoffs.
    """

    values: Floats
    support: Bools
    roundings: int


class _Factor(NamedTuple):
    scope: tuple[int, ...]
    values: NDArray[Any]
    roundings: int


def joint_law(network: BayesianNetwork, variables: Sequence[int]) -> JointLaw:
    """P(X_A) for A = ``variables`` (distinct indices), its axes in that order.

    Raises TooLargeError: the intermediate tables would be too large.
    """
    relevant = 0  # the tables of variables without descendants in A sum to 1 and drop out
    for v in variables:
        relevant |= network.ancestors[v]
    inside = members(relevant)
    order = _elimination_order(network, inside, variables)
    factors = [_Factor((*network.parents[v], v), network.tables[v], TABLE_ROUNDINGS) for v in inside]
    values = _eliminate(factors, order, variables, np.add)
    if all(network.tables[v].all() for v in inside):
        return JointLaw(values.values, np.ones(values.values.shape, dtype=np.bool_), values.roundings)
    supports = [_Factor(f.scope, f.values > 0, 0) for f in factors]
    return JointLaw(values.values, _eliminate(supports, order, variables, np.logical_or).values, values.roundings)


def spend_search(work: float) -> None:
    """Count operations of the search for quilts; raises ParameterError where they pass what is taken on."""
    spend(work, "the search for quilts", "protect fewer variables (secrets), or give smaller networks")


def members(mask: int) -> list[int]:
    """Elements of a set of small integers given as a bit mask, increasing."""
    elements = []
    while mask:
        low = mask & -mask
        elements.append(low.bit_length() - 1)
        mask ^= low
    return elements


def _elimination_order(network: BayesianNetwork, inside: Sequence[int], kept: Sequence[int]) -> list[int]:
    """Variables to sum out, each time the one that makes the smallest table; checks the sizes."""
    # at least ½: tables within the limit then have fewer axes than numpy's most, 64, also with one-state variables
    weights = {v: max(0.5, math.log2(len(network.states[v]))) for v in inside}
    neighbours = dict.fromkeys(inside, 0)  # in the graph that joins all variables of one factor; with themselves
    for v in inside:
        scope = 1 << v
        for p in network.parents[v]:
            scope |= 1 << p
        for u in members(scope):
            neighbours[u] |= scope

    def cost(v: int) -> float:
        return sum(weights[u] for u in members(neighbours[v]))

    costs = {v: cost(v) for v in set(inside).difference(kept)}
    largest = sum(weights[v] for v in kept)
    order = []
    queue = [(costs[v], v) for v in costs]
    heapify(queue)
    while costs:
        known, v = heappop(queue)
        if costs.get(v) != known:  # it has another cost by now, or is gone
            continue
        largest = max(largest, costs.pop(v))
        order.append(v)
        rest = neighbours.pop(v) & ~(1 << v)
        for u in members(rest):
            neighbours[u] = (neighbours[u] | rest) & ~(1 << v)
        for u in members(rest):
            if u in costs:
                costs[u] = cost(u)
                heappush(queue, (costs[u], u))
    if largest > math.log2(MOST_CELLS):
        raise TooLargeError
    return order


def _eliminate(factors: list[_Factor], order: Sequence[int], kept: Sequence[int], add: np.ufunc) -> _Factor:
    """Product of all factors, summed over the variables in ``order``; axes as ``kept``."""
    left = dict(enumerate(factors))
    places: dict[int, list[int]] = {}  # of the factors that a variable is in, also of those that are gone
    for place, factor in left.items():
        for u in factor.scope:
            places.setdefault(u, []).append(place)
    for place, v in enumerate(order, len(factors)):
        touched = [left.pop(i) for i in places.pop(v) if i in left]
        product = _product(touched, sorted({u for f in touched for u in f.scope}))
        axis = product.scope.index(v)
        scope = product.scope[:axis] + product.scope[axis + 1 :]
        additions = product.values.shape[axis] - 1
        left[place] = _Factor(scope, add.reduce(product.values, axis=axis), product.roundings + additions)
        for u in scope:
            places[u].append(place)
    return _product(list(left.values()), kept)


def _product(factors: Sequence[_Factor], scope: Sequence[int]) -> _Factor:
    sizes = {v: n for factor in factors for v, n in zip(factor.scope, factor.values.shape, strict=True)}
    cells = math.prod(sizes.values())
    spend_search(len(factors) * (250_000 + 15 * cells))
    place = {v: axis for axis, v in enumerate(scope)}
    first, *others = (_aligned(f, place) for f in factors)
    for other in others:
        first = first * other
    return _Factor(tuple(scope), first, sum(f.roundings for f in factors) + len(others))


def _aligned(factor: _Factor, place: dict[int, int]) -> NDArray[Any]:
    """Values with the axes of a larger scope, of length 1 where the factor does not depend on a variable."""
    axes = sorted(range(len(factor.scope)), key=lambda axis: place[factor.scope[axis]])
    shape = [1] * len(place)
    for axis, v in enumerate(factor.scope):
        shape[place[v]] = factor.values.shape[axis]
    return factor.values.transpose(axes).reshape(shape)
