"""W∞ between the distributions of a count along a chain, given one secret or another (Algorithm 1).

The query is N = Σ_t f(X_t) with integer weights f; the secrets are X_i = x. For integers

    W∞ ≤ w  if and only if  P(N ≤ n | s) ≤ P(N ≤ n + w | s') for all n and both orders of the
    secrets.

*Rounding.* Probabilities have small relative errors (:mod:`pufferflow.audit.counts`)
even far out in a tail; a tail of 1e-600 moves quantiles. Each inequality is proved by the smaller
one of P(N ≤ n) and P(N > n), and for all initial distributions if any is possible
(:mod:`pufferflow.audit._count_kernels`): W is an upper bound, and nearly always exact.

*Ties.* P(N ≤ n | s) = P(N ≤ n + w | s') occurs, for example for independent records: then W∞
depends on rounding of the last digit of P. In this case mass is moved explicitly: a plan that moves
the distribution given s by at most w into (1 + 2^-30) times that given s', and back, proves that
Laplace noise of scale w / (ε − 2^-29) is ε-private, since it adds at most log(1 + 2^-30) and
rounding to the loss.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations_with_replacement, permutations, product

import numpy as np

from pufferflow._util.checks import Lengths, longest, shown
from pufferflow._util.rounding import UNIT_ROUNDOFF, divide_up
from pufferflow._util.types import Floats
from pufferflow.audit import counts
from pufferflow.audit._count_kernels import NOTHING, Numbers, movable, prepend_record, raise_shift
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, finite_chains

TIE = 2.0**-29
"""Loss by an explicit transport plan."""


@dataclass(frozen=True)
class ChainSensitivity:
    """W of an integer count along a chain, and the node and pair that attain it.

    Attributes
    ----------
    W : int
        Largest W∞, in units of the weights; never below the exact value, except for ties (see the
        module).
    strict : int
        Upper bound without transport plans; above W only for ties.
    length : int
        The worst segment length.
    node : int or None
        The worst node, from 1; None if W is 0.
    pair : tuple of int or None
        Its secrets, two states from 0; None if W is 0 or by a transport plan.
    chain : int
        Index in the family, from 0, of the worst chain.
    """

    W: int
    strict: int
    length: int
    node: int | None
    pair: tuple[int, int] | None
    chain: int = 0

    def scale(self, epsilon: float) -> float:
        """Return the Laplace scale of the count, rounded up: W/ε, or slightly more for ties."""
        strict = divide_up(self.strict, epsilon)
        if self.strict > self.W and epsilon > 2 * TIE:
            return min(strict, self.W / (epsilon - TIE) * (1 + 4 * UNIT_ROUNDOFF))
        return strict


def chain_sensitivity(
    family: AnyFamily, lengths: Lengths, weights: Sequence[int]
) -> ChainSensitivity:
    """Return W of N = Σ_t weights[X_t] over a finite family, all nodes and all pairs of states.

    All segments count: W may be larger for a short one than for a long one (two alternating states:
    the number of visits to one of them is constant over even lengths). A sum over independent
    segments has at most the largest W of all segments, as the other segments add the same
    distribution on both sides.

    Parameters
    ----------
    family : MarkovChain or ChainFamily
        Θ.
    lengths : int or sequence of int
        Segment lengths; each takes about T³ (range of the weights)² / 6 operations per state, and k
        times as many with start "any".
    weights : sequence of int, shape (k,)
        Addend of a visit to each state.

    Raises
    ------
    ParameterError
        The weights are not one integer per state, or a length is below 1.
    ChainError
        The family is not a finite one, or an initial probability is beyond the range of floats.
    """
    chains, values = finite_chains(family, "W"), np.asarray(weights)
    longest(lengths)
    k, segments = chains[0].states, sorted({int(n) for n in np.atleast_1d(lengths)})
    if values.shape != (k,) or values.dtype.kind not in "iu":
        raise ParameterError(f"weights are {shown(weights)}; give one integer per state ({k})")
    # a constant in each record moves no distribution
    gains = tuple(int(value) - int(values.min()) for value in values)
    each = product(enumerate(chains), segments)
    found = [replace(_sensitivity(chain, n, gains), chain=index) for (index, chain), n in each]
    worst = max(found, key=lambda one: one.W)
    return replace(worst, strict=max(one.strict for one in found))


def work(chain: MarkovChain, length: int, weights: Sequence[int]) -> float:
    """Return roughly the multiplications of :func:`chain_sensitivity` for a chain and length."""
    starts = chain.states if chain.start == "any" else 1
    span = length * max(max(weights) - min(weights), 1)
    tables = chain.states**2 * starts * length * span
    # the convolutions, the passes, and the comparisons of all pairs, worth tens of multiplications
    return chain.states * starts * length * span**2 / 6 + tables + 50 * tables * starts


@lru_cache(maxsize=256)  # the same for all ε
def _sensitivity(chain: MarkovChain, length: int, weights: tuple[int, ...]) -> ChainSensitivity:
    """Return :func:`chain_sensitivity` for one chain and length, with smallest weight 0."""
    error = counts.relative_error(chain, length, length * max(weights) + 1)
    W, strict, node, pair = 0, 0, None, None
    secrets = [(x, x, own) for x, own in enumerate(weights)]
    records = counts.counts_at_records(chain, length, weights, secrets)
    for here, (sizes, given) in enumerate(records, 1):
        decisive = np.empty(2, dtype=np.int64)
        upper = raise_shift(sizes, *counts.log_sums(given), W, 2.0**-40 + 10 * error, decisive)
        strict, reach = max(strict, upper), upper
        if upper > W and error < 2.0**-35:
            reach = bisect_left(range(upper), True, lo=W, key=partial(_moves, given, sizes))
        if reach > W:
            W, node, (x, y) = reach, here, decisive.tolist()
            pair = (x, y) if reach == upper else None
    return ChainSensitivity(W, strict, length, node, pair)


def _moves(given: Numbers, sizes: Floats, reach: int) -> bool:
    """Return whether plans move every distribution by at most ``reach`` into every other.

    For all mixtures of starts at once: with weights q the probabilities given s, times P(s) P(s'),
    are Σ q_u q_v P_u(·, s) P_v(s'), so it is enough to move, for each pair of starts, P_u(·, s)
    P_v(s') + P_v(·, s) P_u(s') into P_u(s) P_v(·, s') + P_v(s) P_u(·, s').
    """
    starts, states = sizes.shape

    def mixed(rows: list[int], state: int, logs: Floats) -> Numbers:
        """Return the sum of the distributions from two starts times e^log."""
        m, e = counts.empty_numbers(1, 1, given[0].shape[2])
        whole = np.floor(np.maximum(logs / math.log(2.0), NOTHING))
        weights = np.exp(logs - whole * math.log(2.0))[None], whole.astype(np.int64)[None]
        both = given[0][rows, state][None], given[1][rows, state][None]
        prepend_record(weights, np.zeros(2, dtype=np.int64), both, (m, e))
        return m[0, 0], e[0, 0]

    couples = list(combinations_with_replacement(range(starts), 2))
    for (x, y), (u, v) in product(permutations(range(states), 2), couples):
        logs = sizes[[u, v], x] + sizes[[v, u], y]
        if logs.max() > -np.inf:
            mass, room = mixed([u, v], x, logs), mixed([v, u], y, logs)
            # relative errors of mass and room are far below 2^-33 each
            if not movable(mass, room, 1 + 2.0**-31, reach):
                return False
    return True
