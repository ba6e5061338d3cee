"""W∞ between the distributions of a count along a chain, given one secret or another (Algorithm 1).

The query is N = Σ_t f(X_t) with integer weights f; the secrets are X_i = x. For integers

    W∞ ≤ w  if and only if  P(N ≤ n | s) ≤ P(N ≤ n + w | s') for all n and both orders of the
    secrets.

*Rounding.* Probabilities have small relative errors (:mod:`pufferflow.audit.count_distributions`),
however far out in a tail; a tail of 1e-600 moves quantiles. Lower tails are compared by P(N ≤ n),
upper ones by P(N > n): ``W`` is proved to be an upper bound, ``lower`` to be a lower bound. Where
they meet, and that is nearly always, W is exact.

*Ties.* P(N ≤ n | s) = P(N ≤ n + w | s') happens, for example where successive records are
independent: there rounding decides, and a change of the last digit of P changes W∞. Then mass is
moved explicitly: a plan that moves the distribution given s by at most w into (1 + 2^-30) times
that given s', and back, proves that Laplace noise of scale w / (ε − 2^-29) is ε-private, since it
adds at most log(1 + 2^-30) and rounding to the loss.

*Initial distributions.* With ``"any"`` the distribution given X_i = x is a mixture over X_1 whose
weights depend on that of X_1. The inequality above is a quadratic form in it, see ``never_above``
in ``_count_kernels.py``: exact for two states, an upper bound for more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement, permutations

import numpy as np
from tqdm import tqdm

from pufferflow._util.checks import check_list, check_type, longest, shown
from pufferflow._util.rounding import UNIT_ROUNDOFF, divide_up
from pufferflow._util.types import Floats
from pufferflow.audit._count_kernels import cumulate, movable, raise_shift
from pufferflow.audit.count_distributions import Numbers, counts_at_records, relative_error
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain

TIE = 2.0**-29
"""Loss that an explicit transport plan may add."""


@dataclass(frozen=True)
class ChainSensitivity:
    """W of an integer count along a chain, and where it is attained.

    Attributes
    ----------
    W : int
        Largest W∞, in units of the weights; never below the exact value, ties apart (``tied``).
    lower : int
        A lower bound of the exact value; ``W == lower`` proves that W is exact.
    tied : bool
        Whether probabilities that agree up to rounding were compared by a transport plan (see the
        module).
    strict : int
        Upper bound without such plans; the same as W unless ``tied``.
    length : int
        The segment length that decides.
    node : int or None
        The node that decides, from 1; None where W is 0.
    pair : tuple of int or None
        Its secrets, two states counted from 0.
    chain : int
        Index in the family, from 0, of the chain that decides.
    """

    W: int
    lower: int
    tied: bool
    strict: int
    length: int
    node: int | None
    pair: tuple[int, int] | None
    chain: int = 0

    def scale(self, epsilon: float) -> float:
        """Laplace scale of the count, rounded up: W/ε, or for ties the proved one next to it."""
        strict = divide_up(self.strict, epsilon)
        if self.tied and epsilon > 2 * TIE:
            return min(strict, self.W / (epsilon - TIE) * (1 + 4 * UNIT_ROUNDOFF))
        return strict


def chain_sensitivity(
    chains: Sequence[MarkovChain] | MarkovChain,
    lengths: Sequence[int] | int,
    weights: Sequence[int],
) -> ChainSensitivity:
    """W of the query N = Σ_t weights[X_t] over a finite family, all nodes and all pairs of states.

    All segments count: W may be larger for a short one than for a long one (two alternating states:
    the number of visits to one of them is constant over even lengths). A sum over independent
    segments has the largest of their W at most, for the other segments add the same distribution on
    both sides.

    Parameters
    ----------
    chains : MarkovChain or sequence of MarkovChain
        Θ.
    lengths : int or sequence of int
        Segment lengths; each costs about T³ (range of the weights)² / 6 operations a state, and k
        times as many with start "any".
    weights : sequence of int, shape (k,)
        What a visit to each state adds.

    Returns
    -------
    ChainSensitivity

    Raises
    ------
    ParameterError
        The weights are not one integer a state, or a length is below 1.
    ChainError
        An initial probability is beyond the range of floats.
    """
    family = [chains] if isinstance(chains, MarkovChain) else check_list(chains, "chains")
    if not family:
        raise ParameterError("chains is empty; give at least one chain")
    longest(lengths)
    values = np.asarray(weights)
    found = []
    for index, chain in enumerate(family):
        check_type(chain, "a chain", MarkovChain)
        if values.shape != (chain.states,) or values.dtype.kind not in "iu":
            raise ParameterError(
                f"weights are {shown(weights)}; give one integer for each of {chain.states} states"
            )
        # a constant in each record moves no distribution
        gains = tuple(int(value) - int(values.min()) for value in values)
        for length in sorted({int(n) for n in np.atleast_1d(lengths)}):
            found.append(replace(_sensitivity(chain, length, gains), chain=index))
    return replace(
        max(found, key=lambda one: one.W),
        lower=max(one.lower for one in found),
        strict=max(one.strict for one in found),
        tied=any(one.tied for one in found),
    )


def work(chain: MarkovChain, length: int, weights: Sequence[int]) -> float:
    """Multiplications that :func:`chain_sensitivity` takes for one chain and length, roughly."""
    starts = chain.states if chain.start == "any" else 1
    span = length * max(max(weights) - min(weights), 1)
    tables = chain.states**2 * starts * length * span
    # the convolutions, the passes, and the comparisons of all pairs, worth tens of multiplications
    return chain.states * starts * length * span**2 / 6 + tables + 50 * tables * starts


@lru_cache(maxsize=256)  # the same for all ε
def _sensitivity(chain: MarkovChain, length: int, weights: tuple[int, ...]) -> ChainSensitivity:
    """As :func:`chain_sensitivity` for one chain and one length, the smallest weight being 0."""
    error = relative_error(chain, length, length * max(weights) + 1)
    tolerance = 2.0**-40 + 10 * error
    best = ChainSensitivity(0, 0, False, 0, length, None, None)
    certain, possible = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    records = counts_at_records(chain, length, weights)
    for here in tqdm(
        records, desc="counts", total=length, unit=" nodes", delay=1, disable=None, leave=False
    ):
        sizes = np.ascontiguousarray(here.sizes.T)
        given = {
            (x, u): here.distribution(u, x, x, weights[x])
            for x, u in np.argwhere(sizes > -np.inf).tolist()
        }
        below, above = np.full((2, chain.states, here.width, sizes.shape[1]), -np.inf)
        for (x, u), numbers in given.items():
            low, high = np.empty((2, here.width))
            cumulate(numbers[0], numbers[1], low, high)
            below[x, :, u], above[x, :, u] = low, high
        known, lower = best.W, best.lower
        upper = raise_shift(below, above, sizes, known, tolerance, possible)
        if upper > lower:  # otherwise it is proved that no bound rises here
            lower = raise_shift(below, above, sizes, lower, -tolerance, certain)
            if lower > known:
                known = lower
                upper = raise_shift(below, above, sizes, known, tolerance, possible)
        raised, pair = upper, possible if upper > known else certain
        tied = upper > known and error < 2.0**-35 and _moves(given, sizes, known)
        if tied:
            raised, pair = known, certain
        best = replace(best, lower=lower, strict=max(best.strict, upper), tied=best.tied or tied)
        if raised > best.W:
            best = replace(best, W=raised, node=here.node, pair=(int(pair[0]), int(pair[1])))
    return best


def _moves(given: dict[tuple[int, int], Numbers], sizes: Floats, reach: int) -> bool:
    """Whether plans move every distribution by at most ``reach`` into every other.

    For all mixtures of starts at once: with weights q the probabilities given s, times P(s) P(s'),
    are Σ q_u q_v P_u(·, s) P_v(s'), so it is enough to move, for each pair of starts, P_u(·, s)
    P_v(s') + P_v(·, s) P_u(s') into P_u(s) P_v(·, s') + P_v(s) P_u(·, s').
    """
    states, starts = sizes.shape
    for x, y in permutations(range(states), 2):
        for u, v in combinations_with_replacement(range(starts), 2):
            one, other = sizes[x, u] + sizes[y, v], sizes[x, v] + sizes[y, u]
            mass = _sum(((one, given.get((x, u))), (other, given.get((x, v)))))
            room = _sum(((one, given.get((y, v))), (other, given.get((y, u)))))
            # relative errors of mass and room are far below 2^-33 each
            if mass and room and not movable(mass, room, 1 + 2.0**-31, reach):
                return False
    return True


def _sum(terms: Sequence[tuple[float, Numbers | None]]) -> Numbers | None:
    """Sum of distributions times 2^size; None where all sizes are −∞."""
    total: Numbers | None = None
    for size, numbers in terms:
        if numbers is None or size == -math.inf:
            continue
        whole = math.floor(size)
        m, power = np.frexp(numbers[0] * 2.0 ** (size - whole))
        e = np.where(m > 0, numbers[1] + whole + power, -(2**40))
        if total is not None:
            top = np.maximum(e, total[1])
            old, new = np.maximum(total[1] - top, -2000), np.maximum(e - top, -2000)
            m, e = np.ldexp(total[0], old) + np.ldexp(m, new), top
        total = m, e
    return total
