"""Counts along a chain: their distribution given one record, and W∞ between two of them.

X_i = x splits a chain: the records before i and those after it are independent given it. The joint
probabilities of X_i = x and the count of the past follow by one forward pass over P, those of the
future by one backward pass. Nothing is subtracted or truncated, so relative errors only add up, in
far tails too.

For a count N with integer addends, W∞ ≤ w (Algorithm 1) if and only if P(N ≤ n | s) ≤
P(N ≤ n + w | s') for all n and both orders of the secrets X_i = s, s'.

*Rounding.* A tail of 1e-600 moves quantiles. Each inequality is proved by the smaller one of
P(N ≤ n) and P(N > n), and for all initial distributions if any is possible
(:mod:`pufferflow.audit._count_kernels`): W is an upper bound, and nearly always exact.

*Ties.* P(N ≤ n | s) = P(N ≤ n + w | s') occurs, for example for independent records: then W∞
depends on rounding of the last digit of P. In this case mass is moved explicitly: a plan that moves
the distribution given s by at most w into (1 + 2^-30) times that given s', and back, proves that
Laplace noise of scale w / (ε − 2^-29) is ε-private, since it adds at most log(1 + 2^-30) and
rounding to the loss.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate, combinations_with_replacement, islice, permutations, product

import numpy as np
from tqdm import tqdm

from pufferflow._util.checks import Lengths, longest, shown
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF, divide_up
from pufferflow._util.types import Floats
from pufferflow.audit import _count_kernels as kernels
from pufferflow.audit._count_kernels import NOTHING, Numbers, prepend_record
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, finite_chains

TIE = 2.0**-29
"""Loss by an explicit transport plan."""


def starts_of(chain: MarkovChain) -> Floats:
    """Return the initial distributions as rows: the chain's own, or every single state.

    Raises ChainError: a probability is positive and beyond the range of floats.
    """
    own = chain.initial_distribution
    if own is None:
        return np.eye(chain.states)
    if own[chain.initial_support].min() < SAFE_MINIMUM:
        raise ChainError(
            f"a state has a positive probability below {SAFE_MINIMUM}, beyond the range of floats; "
            "use a chain without such rare states"
        )
    return own[None, :].copy()


def roundings(chain: MarkovChain, count: float) -> float:
    """Return a bound of the relative error by ``count`` roundings and a stationary start."""
    start = 2 * chain.stationary_error if chain.start == "stationary" else 0.0
    return 1.1 * (UNIT_ROUNDOFF * count + start)


def relative_error(chain: MarkovChain, length: int, most: int) -> float:
    """Return a bound of the relative error of each probability, and of each sum of them.

    Each pass makes at most 2k + 8 roundings per record, the rows of P another k + 8, the
    convolution and the sums two for each of the ``most`` values of the count; so does their
    divisor.
    """
    return roundings(chain, length * (6.0 * chain.states + 40) + 6.0 * most + 64)


def counts_at_records(
    chain: MarkovChain,
    length: int,
    weights: Sequence[int],
    secrets: Sequence[tuple[int, int, int]],
    window: int = 1,
) -> Iterator[tuple[Floats, Numbers]]:
    """Yield the distributions of Σ_t weights[X_t] at every record i that begins a window.

    A secret is the first and the last state of a window, and its addend; each state adds its
    weight, at least 0. First come log P(X_i = first), of shape (starts, secrets), −∞ if impossible,
    then the distributions, of shape (starts, secrets, counts), zeros if impossible.
    """
    moves, matrix, most = np.array(weights, dtype=np.int64), chain.transition_matrix, max(weights)
    rows, columns, own = numbers(matrix), numbers(matrix.T), np.array(secrets, dtype=np.int64)
    first = numbers(np.ones((1, chain.states, 1)))
    futures = _last_first(first, lambda given: prepend_record(rows, moves, given), length - 1)
    nodes, total = islice(futures, window - 1, None), length + 1 - window
    past = numbers(starts_of(chain)[:, :, None])
    for m, e in tqdm(nodes, "exact counts", total, delay=1, disable=None, leave=False):
        yield kernels.distributions(past, (m[0], e[0]), own, length * most + 1)
        past = prepend_record(columns, moves, past)


def _last_first(
    first: Numbers, step: Callable[[Numbers], Numbers], count: int
) -> Iterator[Numbers]:
    """Yield ``first`` after ``count``, …, 1 and 0 steps, keeping about 2 √count of them."""
    stride, kept = math.isqrt(count) + 1, [first]

    def following(begin: Numbers, steps: int) -> list[Numbers]:
        return list(accumulate(range(steps), lambda given, _: step(given), initial=begin))

    for _ in range(count // stride):
        kept.append(following(kept[-1], stride)[-1])
    while kept:
        begin = kept.pop()
        yield from reversed(following(begin, min(stride - 1, count - stride * len(kept))))


def numbers(values: Floats) -> Numbers:
    """Return floats as mantissas and exponents."""
    m, e = np.frexp(np.ascontiguousarray(values))
    return m, np.where(m > 0, e.astype(np.int64), NOTHING)


@dataclass(frozen=True)
class ChainSensitivity:
    """W of an integer count along a chain, and the node that attains it.

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
    chain : int
        Index in the family, from 0, of the worst chain.
    """

    W: int
    strict: int
    length: int
    node: int | None
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

    Raises ParameterError: the weights are not one integer per state, or a length is below 1;
    ChainError: the family is not a finite one, or an initial probability is beyond floats.
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


@lru_cache(maxsize=256)  # the same for all ε
def _sensitivity(chain: MarkovChain, length: int, weights: tuple[int, ...]) -> ChainSensitivity:
    """Return :func:`chain_sensitivity` for one chain and length, with smallest weight 0."""
    error = relative_error(chain, length, length * max(weights) + 1)
    W, strict, node = 0, 0, None
    secrets = [(x, x, own) for x, own in enumerate(weights)]
    records = counts_at_records(chain, length, weights, secrets)
    for here, (sizes, given) in enumerate(records, 1):
        upper = kernels.raise_shift(sizes, kernels.log_sums(given, 1.0), W, 2.0**-40 + 10 * error)
        strict, reach = max(strict, upper), upper
        if upper > W and error < 2.0**-35:
            reach = bisect_left(range(upper), True, lo=W, key=partial(_moves, given, sizes))
        if reach > W:
            W, node = reach, here
    return ChainSensitivity(W, strict, length, node)


def _moves(given: Numbers, sizes: Floats, reach: int) -> bool:
    """Return whether plans move every distribution by at most ``reach`` into every other.

    For all mixtures of starts at once: with weights q the probabilities given s, times P(s) P(s'),
    are Σ q_u q_v P_u(·, s) P_v(s'), so it is enough to move, for each pair of starts, P_u(·, s)
    P_v(s') + P_v(·, s) P_u(s') into P_u(s) P_v(·, s') + P_v(s) P_u(·, s').
    """
    starts, states = sizes.shape

    def mixed(rows: list[int], state: int, logs: Floats) -> Numbers:
        """Return the sum of the distributions from two starts times e^log."""
        whole = np.floor(np.maximum(logs / math.log(2.0), NOTHING))
        weights = np.exp(logs - whole * math.log(2.0))[None], whole.astype(np.int64)[None]
        both = given[0][rows, state][None], given[1][rows, state][None]
        m, e = prepend_record(weights, np.zeros(2, dtype=np.int64), both)
        return m[0, 0], e[0, 0]

    couples = list(combinations_with_replacement(range(starts), 2))
    for (x, y), (u, v) in product(permutations(range(states), 2), couples):
        logs = sizes[[u, v], x] + sizes[[v, u], y]
        if logs.max() > -np.inf:
            mass, room = mixed([u, v], x, logs), mixed([v, u], y, logs)
            # relative errors of mass and room are far below 2^-33 each
            if not kernels.movable(mass, room, 1 + 2.0**-31, reach):
                return False
    return True
