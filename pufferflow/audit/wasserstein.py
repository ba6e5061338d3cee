"""W∞ between the distributions of a count along a chain, given one secret or another (Algorithm 1).

The query is N = Σ_t f(X_t) with integer weights f; the secrets are X_i = x. For integers

    W∞ ≤ w  if and only if  P(N ≤ n | s) ≤ P(N ≤ n + w | s') for all n and both orders of the
    secrets.

*Rounding.* Probabilities have small relative errors (:mod:`pufferflow.audit.count_distributions`),
however far out in a tail; a tail of 1e-600 moves quantiles. Each inequality is proved by P(N ≤ n)
or by P(N > n), whichever is the smaller: W is an upper bound, and nearly always exact.

*Ties.* P(N ≤ n | s) = P(N ≤ n + w | s') happens, for example where successive records are
independent: there rounding decides, and a change of the last digit of P changes W∞. Then mass is
moved explicitly: a plan that moves the distribution given s by at most w into (1 + 2^-30) times
that given s', and back, proves that Laplace noise of scale w / (ε − 2^-29) is ε-private, since it
adds at most log(1 + 2^-30) and rounding to the loss.

*Initial distributions.* With ``"any"`` the distribution given X_i = x is a mixture over X_1 whose
weights depend on that of X_1. The inequality above is a quadratic form in it, see
:func:`never_above`: exact for two states, an upper bound for more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations_with_replacement, permutations, product

import numpy as np
from tqdm import tqdm

from pufferflow._util.checks import check_list, check_type, longest, shown
from pufferflow._util.rounding import UNIT_ROUNDOFF, divide_up
from pufferflow._util.types import Bools, Floats
from pufferflow.audit._count_kernels import NOTHING, movable
from pufferflow.audit.count_distributions import (
    Numbers,
    add,
    counts_at_records,
    log2,
    numbers,
    relative_error,
    sums,
)
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
        Largest W∞, in units of the weights; never below the exact value, ties apart (see the
        module).
    strict : int
        Upper bound without transport plans; above W only where probabilities tie.
    length : int
        The segment length that decides.
    node : int or None
        The node that decides, from 1; None where W is 0.
    pair : tuple of int or None
        Its secrets, two states counted from 0; None where W is 0 or a transport plan decides.
    chain : int
        Index in the family, from 0, of the chain that decides.
    """

    W: int
    strict: int
    length: int
    node: int | None
    pair: tuple[int, int] | None
    chain: int = 0

    def scale(self, epsilon: float) -> float:
        """Laplace scale of the count, rounded up: W/ε, or for ties the proved one next to it."""
        strict = divide_up(self.strict, epsilon)
        if self.strict > self.W and epsilon > 2 * TIE:
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
    worst = max(found, key=lambda one: one.W)
    return replace(worst, strict=max(one.strict for one in found))


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
    W, strict, node, pair = 0, 0, None, None
    records = counts_at_records(chain, length, weights)
    for here in tqdm(
        records, desc="counts", total=length, unit=" nodes", delay=1, disable=None, leave=False
    ):
        given = {
            (u, x): here.distribution(u, x, x, weights[x])
            for u, x in np.argwhere(here.sizes > -np.inf).tolist()
        }
        upper, decisive = raised(_tails(given, here.sizes), here.sizes, W, tolerance)
        strict = max(strict, upper)
        if upper > W and error < 2.0**-35:
            moves = partial(_moves, given, here.sizes)
            w = bisect_left(range(upper), True, lo=W, key=moves)
            upper, decisive = w, decisive if w == upper else None
        if upper > W:
            W, node, pair = upper, here.node, decisive
    return ChainSensitivity(W, strict, length, node, pair)


def _tails(given: dict[tuple[int, int], Numbers], sizes: Floats) -> Floats:
    """log2 of P(N ≤ n) and, for n from the largest one down, of P(N > n).

    Of shape (2, starts, states, places): both are what a sum from one end is, the whole left out.
    """
    m, e = (np.array(part) for part in zip(*given.values(), strict=True))
    tails = np.full((2, *sizes.shape, m.shape[1] - 1), -np.inf)
    below, above = (log2(one)[:, :-1] for one in sums((m, e)))
    tails[0, sizes > -np.inf], tails[1, sizes > -np.inf] = below, above[:, ::-1]
    return tails


def raised(
    tails: Floats, sizes: Floats, shift: int, tolerance: float
) -> tuple[int, tuple[int, int] | None]:
    """Smallest w ≥ ``shift`` proved to have P(N ≤ n | s) ≤ P(N ≤ n + w | s') for all n, s and s'.

    Parameters
    ----------
    tails : float array, shape (2, starts, states, places)
        Of P(N ≤ n) for n from 0 and of P(N > n) for n from the largest one down, log2.
    sizes : float array, shape (starts, states)
        log2 P(state | start).
    tolerance : float
        How far off two logarithms may be together.

    Returns
    -------
    w : int
    pair : tuple of int, or None
        Two states for which a smaller one is not proved; None where w is ``shift``.
    """
    possible = sizes > -np.inf
    lowest = np.where(possible[..., None], tails, np.inf).min(axis=1)
    highest = _with_margin(tails.max(axis=1), tolerance)
    skipped = ~np.logical_and.outer(*[possible.any(axis=0)] * 2)
    np.fill_diagonal(skipped, True)

    def open_pairs(w: int) -> Bools:
        """Pairs of states with an n at which the inequality is not proved."""
        places = tails.shape[-1] - w
        lower = lowest[0][:, w:] >= highest[0][:, None, :places]
        upper = lowest[1][:, None, w:] >= highest[1][:, :places]
        held = lower | upper[..., ::-1] | skipped[..., None]  # the same n
        entries, some = np.argwhere(~held & (len(sizes) > 1)), 1 + 10**6 // len(sizes) ** 2
        for begin in range(0, len(entries), some):
            x, y, n = entries[begin : begin + some].T
            last = places - 1 - n
            both = (  # of the lower and of the upper tail
                (sizes[:, x], sizes[:, y]),
                (sizes[:, y], sizes[:, x]),
                (tails[0][:, x, n], tails[1][:, y, last]),
                (tails[0][:, y, n + w], tails[1][:, x, last + w]),
            )
            p, q, f, g = (np.concatenate(pair, axis=1).T for pair in both)
            proved = never_above(p, q, f, g, tolerance)
            held[x, y, n] = proved[: len(x)] | proved[len(x) :]
        return np.asarray(~held.all(axis=-1))

    if not open_pairs(shift).any():
        return shift, None
    larger = range(tails.shape[-1])
    w = bisect_left(larger, True, lo=shift + 1, key=lambda w: not open_pairs(w).any())
    x, y = np.argwhere(open_pairs(w - 1))[0].tolist()
    return w, (x, y)


def _with_margin(b: Floats, tolerance: float) -> Floats:
    """What a must reach to prove 2^a ≥ 2^b."""
    size = np.where(b > -np.inf, np.abs(b), 0.0)
    return np.asarray(b + tolerance * (1 + 2.0**-8 * size))


def never_above(p: Floats, q: Floats, f: Floats, g: Floats, tolerance: float) -> Bools:
    """Whether surely F ≤ G for all mixtures of starts, probabilities given one and another secret.

    Parameters
    ----------
    p, q : float arrays, shape (n, starts)
        log2 P(secret | start), of the first and of the second secret.
    f, g : float arrays, shape (n, starts)
        log2 of the two probabilities given secret and start.
    tolerance : float
        As for :func:`raised`.

    Notes
    -----
    With weights r of the starts this is Σ r_u r_v c_uv ≥ 0, c_uv = 2^(p_u + q_v) (2^g_v − 2^f_u),
    that is copositivity of the symmetric part s. Sufficient, and for two starts necessary: s_uu ≥ 0
    and s_uv ≥ −√(s_uu s_vv / d_u d_v) for all u, v, d_u the number of negative s_uv, v ≠ u. Then
    the form is at least the sum of (r_u √(s_uu/d_u) − r_v √(s_vv/d_v))² over the negative pairs.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        one = p[:, :, None] + q[:, None, :]
        other = one.transpose(0, 2, 1)
        # log2 of the positive and of the negative part of 2 s_uv
        more = np.logaddexp2(one + g[:, None, :], other + g[:, :, None])
        less = np.logaddexp2(one + f[:, :, None], other + f[:, None, :])
        less = _with_margin(less, tolerance)
        holds = more >= less
        margin = np.where(f > -np.inf, tolerance * (1 + 2.0**-8 * np.abs(f)), 0.0)
        rest = 1.0 - 2.0 ** np.minimum(f - g + margin, 1.0) - margin
        size = np.where(rest > 0, p + q + g + np.log2(rest), -np.inf)  # of s_uu
        size -= np.log2(np.maximum((~holds).sum(axis=2), 1))
        root = 1.0 + (size[:, :, None] + size[:, None, :]) / 2
        return np.asarray((holds | (np.logaddexp2(more, root) >= less)).all(axis=(1, 2)))


def _moves(given: dict[tuple[int, int], Numbers], sizes: Floats, reach: int) -> bool:
    """Whether plans move every distribution by at most ``reach`` into every other.

    For all mixtures of starts at once: with weights q the probabilities given s, times P(s) P(s'),
    are Σ q_u q_v P_u(·, s) P_v(s'), so it is enough to move, for each pair of starts, P_u(·, s)
    P_v(s') + P_v(·, s) P_u(s') into P_u(s) P_v(·, s') + P_v(s) P_u(·, s').
    """
    starts, states = sizes.shape
    couples = combinations_with_replacement(range(starts), 2)
    for (x, y), (u, v) in product(permutations(range(states), 2), list(couples)):
        one, other = sizes[u, x] + sizes[v, y], sizes[v, x] + sizes[u, y]
        terms = [(one, (u, x), (v, y)), (other, (v, x), (u, y))]
        mass = [_times(given[first], size) for size, first, _ in terms if size > -np.inf]
        room = [_times(given[second], size) for size, _, second in terms if size > -np.inf]
        # relative errors of mass and room are far below 2^-33 each
        if mass and not movable(_total(mass), _total(room), 1 + 2.0**-31, reach):
            return False
    return True


def _times(given: Numbers, size: float) -> Numbers:
    """Numbers times 2^size."""
    whole = int(np.floor(size))
    m, e = numbers(given[0] * 2.0 ** (size - whole))
    return m, np.where(m > 0, e + given[1] + whole, NOTHING)


def _total(terms: list[Numbers]) -> Numbers:
    return terms[0] if len(terms) == 1 else add(*terms)
