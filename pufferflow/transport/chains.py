"""W∞ between the laws of a count along a Markov chain, given one secret or another (Song et al., Algorithm 1).

The query is N = Σ_t f(X_t) with integer weights f; the secrets are X_i = x. For every node i and state x the law
P(N = n, X_i = x) is a convolution of a forward and a backward table. For two laws on the integers

    W∞ ≤ w  if and only if  F_s(n) ≤ F_s'(n + w) for all n and both orders of the secrets.

*Rounding.* Only non-negative numbers are added and multiplied, so every entry is relatively accurate, down to a
cutoff; what falls below it is bounded and carried along. Far tails matter as much as the middle (a tail of 1e-600
moves quantiles), so they are computed again under tilts: f weighted by 2^(s n), which brings them into the range of
floats, as in importance sampling. Lower tails are compared by P(N ≤ n), upper ones by P(N > n), each with both its
bounds: ``W`` is proved to be an upper bound, ``lower`` to be a lower bound. Where they meet, and that is nearly always,
W is exact.

*Ties.* F_s(n) = F_s'(n + w) happens, for example where successive records are independent: there rounding decides,
and a change of the last digit of P changes W∞. Then mass is moved explicitly: a plan that moves the law
given s by at most w into (1 + 2^-30) times the law given s', and back, proves that Laplace noise of scale
w / (ε − 2^-29) is ε-private, since it adds at most log(1 + 2^-30) and rounding to the loss.

*Initial distributions.* With ``"any"`` the law given X_i = x is a mixture over X_1 whose weights depend on q. The
inequality above is a quadratic form in q; see ``holds`` in ``_kernels.py``: exact for two states, an upper bound for
more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pufferflow._checks import check_list, check_type, longest, shown
from pufferflow._jit import constant
from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF, divide_up
from pufferflow._types import Bools, Floats, Ints
from pufferflow.errors import ParameterError
from pufferflow.markov.chain import MarkovChain
from pufferflow.transport._kernels import UNREACHED, advance, cumulate_laws, fill_laws, movable, raise_shift, reach_sums

CUTOFF = 2.0**-500
"""Entries below, relative to the largest of their row, are dropped: products then never underflow."""

TIE = 2.0**-29
"""Loss that an explicit transport plan may add."""

TILTS = (*range(1, 5), *(base << n for n in range(1, 8) for base in (3, 4)))
"""Tilts |s| tried one after the other: in steps of a factor 2 first, up to 2^512 for tiny transition probabilities."""


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
        Whether laws that agree up to rounding were compared by a transport plan (module docstring).
    strict : int
        Upper bound without such plans; the same as W unless ``tied``.
    length : int
        The segment length that decides.
    node : int or None
        The node that decides, 1-based; None where W is 0.
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
        """Laplace scale of the count, rounded up: W/ε, or for tied laws the proved one next to it."""
        strict = divide_up(self.strict, epsilon)
        if self.tied and epsilon > 2 * TIE:
            return min(strict, self.W / (epsilon - TIE) * (1 + 4 * UNIT_ROUNDOFF))
        return strict


def chain_sensitivity(
    chains: Sequence[MarkovChain] | MarkovChain, lengths: Sequence[int] | int, weights: Sequence[int]
) -> ChainSensitivity:
    """W of the query N = Σ_t weights[X_t] over a finite family, all nodes and all pairs of states.

    All segments count: W may be larger for a short one than for a long one (two alternating states: the number
    of visits to one of them is constant over even lengths). A sum over independent segments has the largest of their W
    at most, for the other segments add the same law on both sides.

    Parameters
    ----------
    chains : MarkovChain or sequence of MarkovChain
        Θ.
    lengths : int or sequence of int
        Segment lengths; each costs about T³ (range of the weights)² / 6 operations a state, and k times as many with
        start "any".
    weights : sequence of int, shape (k,)
        What a visit to each state adds.

    Returns
    -------
    ChainSensitivity

    Raises
    ------
    ParameterError
        The weights are not one integer a state, or a length is below 1.
    """
    family = [chains] if isinstance(chains, MarkovChain) else check_list(chains, "chains")
    if not family:
        raise ParameterError("chains is empty; give at least one chain")
    longest(lengths)
    segments = sorted({int(n) for n in np.atleast_1d(lengths)})
    values = np.asarray(weights)
    for chain in family:
        check_type(chain, "a chain", MarkovChain)
        if values.shape != (chain.states,) or values.dtype.kind not in "iu":
            raise ParameterError(f"weights are {shown(weights)}; give one integer for each of {chain.states} states")
    # a constant in each record moves no law
    gains = tuple(int(value) - int(values.min()) for value in values)
    best: ChainSensitivity | None = None
    for index, chain in enumerate(family):
        for length in segments:
            own = replace(_sensitivity(chain, length, gains), chain=index)
            if best is None:
                best = own
                continue
            lower, strict, tied = max(best.lower, own.lower), max(best.strict, own.strict), best.tied or own.tied
            best = replace(own if own.W > best.W else best, lower=lower, strict=strict, tied=tied)
    assert best is not None
    return best


def work(chain: MarkovChain, length: int, weights: Sequence[int]) -> float:
    """Multiplications that :func:`chain_sensitivity` takes for one chain and length, roughly."""
    starts = chain.states if chain.start == "any" else 1
    span = length * max(max(weights) - min(weights), 1)
    laws = chain.states * starts * length * span**2 / 6
    tables = chain.states**2 * starts * length * span
    return laws + tables + 50 * tables * starts  # the comparisons of all pairs, each worth tens of multiplications


def memory(chain: MarkovChain, length: int, weights: Sequence[int]) -> float:
    """Bytes of the backward tables under one tilt, roughly; a handful of tilts are needed."""
    return 4.0 * chain.states * length**2 * max(max(weights) - min(weights), 1)


class _Table(NamedTuple):
    """Rows of a dynamic program for each start: see :func:`advance`."""

    rows: Floats
    exponents: Ints
    errors: Floats


class _Steps(NamedTuple):
    """What :func:`advance` needs of a matrix."""

    mantissas: Floats
    powers: Ints
    shift_in: Ints
    shift_out: Ints

    def apply(self, table: _Table, width: int) -> _Table:
        shape = table.exponents.shape
        out = _Table(np.empty((*shape, width)), np.empty(shape, dtype=np.int64), np.empty(shape))
        advance((*table,), (*self,), CUTOFF, (*out,))
        return out


class _Tilt:
    """Forward and backward tables of a chain, a path with sum n weighted by 2^(s n / m), m the largest weight."""

    def __init__(self, chain: MarkovChain, length: int, gains: Ints, s: int) -> None:
        self.s = s
        self.most = max(int(gains.max()), 1)
        self.gains = gains
        k = chain.states
        weights = np.exp2(s * gains / self.most)
        mantissas, powers = np.frexp(chain.transition_matrix)
        factors, more = np.frexp(weights)
        mantissas, powers = mantissas * factors, powers.astype(np.int64) + more
        nothing = np.zeros(k, dtype=np.int64)
        self.forward = _Steps(mantissas, powers, nothing, gains)
        backward = _Steps(np.ascontiguousarray(mantissas.T), np.ascontiguousarray(powers.T), gains, nothing)
        one = _Table(np.full((1, k, 1), 0.5), np.ones((1, k), dtype=np.int64), np.zeros((1, k)))
        self.backward = [one]
        for step in range(1, length):
            self.backward.append(backward.apply(self.backward[-1], step * self.most + 1))
        law = chain.initial_distribution
        laws = np.eye(k) if law is None else law[None, :]
        self.node = 1
        rows, errors = np.zeros((len(laws), k, self.most + 1)), np.zeros((len(laws), k))
        exponents = np.full((len(laws), k), UNREACHED, dtype=np.int64)
        for u, x in np.argwhere((laws > 0) | (chain.initial_support & (len(laws) == 1))).tolist():
            if laws[u, x] >= SAFE_MINIMUM:
                mantissa, power = math.frexp(laws[u, x] * weights[x])
            else:  # a probability out of the range of floats is known by its error alone; 1e-290 < 2^-963
                mantissa, power, errors[u, x] = 0.5, -963 + math.ceil(s * gains[x] / self.most), 1.0
            rows[u, x, gains[x]], exponents[u, x] = mantissa, power
        self.past = _Table(rows, exponents, errors)

    def go_to(self, node: int) -> None:
        """Move the forward tables on to ``node``."""
        while self.node < node:
            self.node += 1
            self.past = self.forward.apply(self.past, self.node * self.most + 1)


class _Reach:
    """Least and largest N of the paths through each node and state, from each start: shape (length, starts, k)."""

    def __init__(self, chain: MarkovChain, length: int, gains: Ints) -> None:
        k = chain.states
        support = np.eye(k, dtype=np.bool_) if chain.start == "any" else chain.initial_support[None, :]
        low, high = np.empty((2, length, *support.shape), dtype=np.int64)
        least, most = np.empty((2, length, k), dtype=np.int64)
        reach_sums(constant(chain.transition_matrix > 0), constant(support), gains, (low, high), (least, most))
        reached = low != UNREACHED
        self.least = np.where(reached, low + least[::-1, None, :], 0)
        self.most = np.where(reached, high + most[::-1, None, :], -1)
        self.supported: Bools = np.asarray(reached.any(axis=1))


class _Laws:
    """Laws of N at one node, with the bounds of their distribution functions."""

    def __init__(self, k: int, starts: int, width: int) -> None:
        self.lower = np.zeros((k, starts, width))
        self.upper = np.zeros((k, starts, width))
        self.exponents = np.zeros((k, starts, width), dtype=np.int64)
        self.entries = self.lower, self.upper, self.exponents
        self.known = np.empty((starts, k), dtype=np.int64), np.empty((starts, k), dtype=np.int64)
        self.below = np.empty((k, starts, 2, width))
        self.above = np.empty((k, starts, 2, width))
        self.totals = np.empty((k, starts, 2))


@lru_cache(maxsize=256)
def _sensitivity(chain: MarkovChain, length: int, weights: tuple[int, ...]) -> ChainSensitivity:
    """As :func:`chain_sensitivity` for one chain and one length, the smallest weight being 0; the same for all ε."""
    k = chain.states
    gains = np.array(weights, dtype=np.int64)
    width = length * max(int(gains.max()), 1) + 1
    reach = _Reach(chain, length, gains)
    tilts = {0: _Tilt(chain, length, gains, 0)}
    starts = tilts[0].past.rows.shape[0]
    laws = _Laws(k, starts, width)
    roundings = 2 * (length * (k + 12) + width + 20) * UNIT_ROUNDOFF
    if chain.start == "stationary":
        roundings += 2 * chain.stationary_error
    slack = 1.5 * roundings  # in units of log2

    lower, strict, best, tied = 0, 0, 0, False
    node: int | None = None
    pair: tuple[int, int] | None = None
    certain, possible = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    for i in _watched(length):
        supported = reach.supported[i - 1]
        _fill(laws, reach, tilts, chain, length, gains, i, slack)
        arguments = laws.below, laws.above, laws.totals, supported
        here = best
        above = raise_shift(*arguments, here, True, possible)
        if above > lower:  # otherwise it is proved that no bound rises here
            lower = raise_shift(*arguments, lower, False, certain)
            if lower > here:
                here = lower
                above = raise_shift(*arguments, here, True, possible)
        if above > here and slack < 2.0**-34 and movable(laws.entries, laws.totals, supported, here):
            tied, raised = True, here
        else:
            raised = above
        strict = max(strict, above)
        if raised > best:
            x, y = possible if raised > here else certain
            best, node, pair = raised, i, (int(x), int(y))
    return ChainSensitivity(best, lower, tied, strict, length, node, pair)


def _watched(length: int) -> Iterator[int]:
    """Nodes from 1 on, with a progress bar where somebody watches and it takes longer than a second."""
    from tqdm import tqdm

    nodes = range(1, length + 1)
    return iter(tqdm(nodes, desc="law of the count", unit=" nodes", disable=None, leave=False, delay=1))


def _fill(
    laws: _Laws,
    reach: _Reach,
    tilts: dict[int, _Tilt],
    chain: MarkovChain,
    length: int,
    gains: Ints,
    node: int,
    slack: float,
) -> None:
    """Compute the laws at ``node``, with as many tilts as they need."""
    places = reach.least[node - 1], reach.most[node - 1]

    def fill(s: int) -> tuple[bool, bool]:
        if s not in tilts:
            tilts[s] = _Tilt(chain, length, gains, s)
        tilt = tilts[s]
        tilt.go_to(node)
        tables = (*tilt.past,), (*tilt.backward[length - node],)
        return fill_laws(*tables, (s, tilt.most), places, laws.known, laws.entries)

    left = fill(0)
    for s in TILTS:
        if left[0]:
            left = fill(-s)
        if left[1]:
            left = fill(s)
        if not any(left):
            break
    cumulate_laws(laws.entries, places, slack, laws.below, laws.above, laws.totals)
