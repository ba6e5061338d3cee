"""Max-influence of a set of variables on one variable of a network (Definition 4.1).

X_i divides the other variables into branches that are mutually independent given X_i (left and
right of a node of a chain). So for each pair of secrets (x, x') the largest log ratio of X_Q is the
sum, over branches, of those of the part of X_Q there, as eq. 5 has one term per side; the
max-influence is the largest sum. Joint distributions are computed by variable elimination.

Rounding. Only products and sums of non-negative numbers occur, so every entry of a result has a
relative error of at most a known number of roundings. Every intermediate entry is the probability
of an event under an intervention, hence at most 1, and underflowing terms add far less than a
rounding to entries of at least ``SAFE_MINIMUM``. The support distinguishes them from zeros.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from pufferflow._util.checks import check_list, check_type
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow._util.work import spend
from pufferflow.errors import NetworkError
from pufferflow.networks.network import BayesianNetwork

MAX_CELLS = 2**20
"""Largest number of entries of an intermediate table."""

TABLE_ROUNDINGS = 5
"""Roundings in an entry of a stored table, relative to one with rows that sum to exactly 1."""

SEARCH = ("the search for quilts", "protect fewer variables, or give smaller networks")
"""Subject and advice of messages about long computations."""


def max_influence(network: BayesianNetwork, node: str, quilt: Iterable[str]) -> float:
    """Return the largest log P(X_Q = x_Q | X_i = x) / P(X_Q = x_Q | X_i = x'), in nats, rounded up.

    ``quilt`` is any set of variables other than ``node``; the influence of the empty set is 0. It
    is +∞ if a value of X_Q is possible under one of two secrets x, x' of positive probability.

    Raises NetworkError: a name is unknown, ``quilt`` contains ``node``, or tables are too large.
    """
    check_type(network, "network", BayesianNetwork)
    i = network.index(node)
    inside = {network.index(name) for name in check_list(quilt, "quilt")}
    if i in inside:
        raise NetworkError(f"the quilt of {node!r} contains {node!r} itself; leave it out")
    influence = influence_of(network, i, mask_of(inside))
    if math.isnan(influence):
        raise NetworkError(f"the quilt of {node!r} needs too large tables; give a smaller one")
    return influence


def influence_of(network: BayesianNetwork, node: int, quilt: int) -> float:
    """Return the max-influence of a set, rounded up; NaN if the tables would be too large."""
    parts = [branch & quilt for branch in branches(network, node) if branch & quilt]
    total = sum((log_ratios(network, node, part) for part in parts), np.zeros(()))
    return float(total.max()) * (1 + 2 * len(parts) * UNIT_ROUNDOFF)


@lru_cache(maxsize=2**17)
def log_ratios(network: BayesianNetwork, node: int, part: int) -> Floats:
    """Return the largest log P(x_A | x) / P(x_A | x') for each pair (x, x'), rounded up."""
    single = joint_distribution(network, (node,))
    joint = joint_distribution(network, (node, *members(part)))
    if single is None or joint is None:
        return np.array(math.nan)
    (alone, positive, few), (values, support, more) = single, joint
    masses = alone[positive][:, None]
    table, possible = (of[positive].reshape(len(masses), -1) for of in (values, support))
    spend(30 * len(masses) * table.size, *SEARCH)
    # probabilities too small for floats: the smallest safe number in a numerator, else 0
    with np.errstate(divide="ignore"):
        upper = np.maximum(table, SAFE_MINIMUM) / np.where(masses < SAFE_MINIMUM, 0, masses)
        lower = np.where(table < SAFE_MINIMUM, 0, table) / np.maximum(masses, SAFE_MINIMUM)
        rows = zip(upper, possible, strict=True)
        largest = [(row[here] / lower[:, here]).max(axis=1) for row, here in rows]
    roundings = 2 * (few + more) + 8
    ratios: Floats = np.log(np.maximum(largest, 1.0)) * (1 + 4 * UNIT_ROUNDOFF)
    ratios += 1.01 * roundings * UNIT_ROUNDOFF
    np.fill_diagonal(ratios, 0.0)
    return ratios


@lru_cache(maxsize=4)  # each variable alone is used again and again
def joint_distribution(
    network: BayesianNetwork, kept: tuple[int, ...]
) -> tuple[Floats, Bools, int] | None:
    """Return P(X_A) for A = ``kept`` (distinct indices), its support, and a bound on the errors.

    The axes are in the order of A. In the support, where values may underflow, an entry is
    positive; the bound on the relative error of the others is in unit roundoffs. The variable that
    makes the smallest table is summed out first. None: a table would have more than
    :data:`MAX_CELLS` entries.
    """

    def cells(scope: Iterable[int]) -> int:
        # at least 2 states: allowed tables then have fewer than NumPy's 64 axes
        return math.prod(max(2, network.tables[v].shape[-1]) for v in scope)

    mask = 0  # the tables of variables without descendants in A sum to 1 and drop out
    for v in kept:
        mask |= network.ancestors[v]
    inside = members(mask)
    # some variables and a table: values and, 0 or 1, the support, then one axis per variable
    factors: list[tuple[tuple[int, ...], Floats]] = []
    around: dict[int, set[int]] = {v: set() for v in inside}  # variables with a factor in common
    for v in inside:
        scope, table = (*network.parents[v], v), network.tables[v]
        factors.append((scope, np.stack([table, table > 0])))
        for u in scope:
            around[u].update(scope)
    sizes = {v: cells(around[v]) for v in inside if v not in kept}
    while sizes:
        v = min(sizes, key=sizes.__getitem__)
        if sizes.pop(v) > MAX_CELLS:
            return None
        rest = sorted(around[v] - {v})
        touched = [factor for factor in factors if v in factor[0]]
        factors = [factor for factor in factors if v not in factor[0]]
        table = np.add.reduce(_product(touched, [v, *rest]), axis=1)
        np.minimum(table[1], 1, out=table[1])
        factors.append((tuple(rest), table))
        for u in rest:
            around[u] = around[u].union(rest) - {v}
            if u in sizes:
                sizes[u] = cells(around[u])
    if cells(kept) > MAX_CELLS:
        return None
    values, support = _product(factors, kept)
    # of each table, of the products (one fewer than tables) and of the sums
    sums = sum(network.tables[v].shape[-1] - 1 for v in inside if v not in kept)
    return values, support > 0, (TABLE_ROUNDINGS + 1) * len(inside) - 1 + sums


def _product(factors: Sequence[tuple[tuple[int, ...], Floats]], axes: Sequence[int]) -> Floats:
    product = np.ones(2)[(slice(None), *(None for _ in axes))]
    for scope, table in factors:
        # axes in the order of the result, those that the factor lacks of length 1
        order = (0, *(1 + scope.index(v) for v in axes if v in scope))
        lengths = (slice(None), *(slice(None) if v in scope else None for v in axes))
        product = product * table.transpose(order)[lengths]
    spend(len(factors) * (250_000 + 7 * product.size), *SEARCH)
    return product


@lru_cache(maxsize=2**12)
def branches(network: BayesianNetwork, node: int) -> list[int]:
    """Return the sets into which X_i divides the others: mutually independent given X_i.

    A trail that is active given X_i alone avoids i or passes it from a parent to a parent, so these
    are the connected components of the graph without i, those with parents of i joined.
    """
    left = (1 << len(network)) - 1 & ~(1 << node)
    found, first = [], mask_of(network.parents[node])
    while left:
        branch = frontier = first or left & -left
        first = 0
        while frontier:
            edges = [network.parents[v] + network.children[v] for v in members(frontier)]
            frontier = mask_of({u for ends in edges for u in ends}) & left & ~branch
            branch |= frontier
        found.append(branch)
        left &= ~branch
    return found


def members(mask: int) -> list[int]:
    """Return the elements of a set, increasing."""
    return [v for v, bit in enumerate(f"{mask:b}"[::-1]) if bit == "1"]


def mask_of(elements: Iterable[int]) -> int:
    """Return the set of distinct elements."""
    return sum(1 << v for v in elements)
