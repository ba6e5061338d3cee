"""The exact Pufferfish loss of Laplace noise on counts and histograms of Markov chains.

Integer outputs from 0 to T suffice, larger scales lose less, and for any initial distribution
mixtures of two starts suffice: docs/histograms.md proves all three.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from pufferflow._util import checks
from pufferflow._util.rounding import divide_up
from pufferflow._util.types import Floats
from pufferflow.audit import counts
from pufferflow.audit._count_kernels import Numbers, log_sums, raise_gap, smooth
from pufferflow.bounds.roots import crossing
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, finite_chains

LARGEST_WORK = 3e12
"""Largest number of multiplications for one loss: half an hour or more."""

LARGEST_DECAY, LARGEST_EXPONENT = 150.0, 500.0
"""The inverse of the smallest scale of a count; the largest T · states / (2 · scale) of a
histogram, whose densities stay above e^(−500).
"""


@dataclass(frozen=True)
class CountQuery:
    """Number of records in a set of states, plus Laplace noise.

    Parameters
    ----------
    states : iterable of int
        The counted states: rows of the transition matrix, from 0.

    Raises ParameterError: it is empty or has an element that is not a state.
    """

    states: frozenset[int]
    lipschitz = 1
    """Largest change of the count when one record changes."""

    def __init__(self, states: Iterable[int]) -> None:
        given = frozenset[int]()
        with suppress(ParameterError, TypeError):  # messages show no entry, as it may be a record
            given = frozenset(checks.check_whole(state, "states", 0) for state in states)
        if not given:
            problem = "states must be integers from 0, at least one"
            raise ParameterError(f"{problem}; give a set of them, for example {{1}}")
        object.__setattr__(self, "states", given)

    def weights(self, chain: MarkovChain) -> list[int]:
        """Return 1 for the counted states of ``chain`` and 0 for all others."""
        if (largest := max(self.states)) >= chain.states:
            known = f"the chain has the states 0 to {chain.states - 1}"
            raise ParameterError(f"state {largest} is requested, but {known}")
        return [int(state in self.states) for state in range(chain.states)]

    def __str__(self) -> str:
        return f"count of {{{', '.join(map(str, sorted(self.states)))}}}"


@dataclass(frozen=True)
class HistogramQuery:
    """Histogram of all states, plus independent Laplace noise of twice the scale on every bin."""

    lipschitz = 2
    """Largest change of the histogram in L1 norm when one record changes."""

    def __str__(self) -> str:
        return "histogram"


Query: TypeAlias = CountQuery | HistogramQuery


@dataclass(frozen=True)
class PrivacyLoss:
    """The exact loss of Laplace noise: the supremum over chains, records, pairs and outputs.

    Attributes
    ----------
    query, length, scale, window
        As for :func:`privacy_loss`.
    loss, lower : float
        Upper and lower bound of the exact loss, in nats; the two differ by rounding only.
    node : int or None
        A worst record, from 1, for windows the first one; None if no output distinguishes secrets.
    pair : tuple of int, of tuples, or None
        The secrets X_node = x and X_node = x' whose densities have that ratio, states from 0; for
        windows the states of two of them.
    output : int, tuple of int or None
        The output with that ratio. An end of [0, length] stands also for all outputs beyond it.
    chain : int
        Index in the family, from 0, of the chain that decides.
    """

    query: Query
    length: int
    scale: float
    loss: float
    lower: float
    node: int | None = None
    pair: tuple[Any, Any] | None = None
    output: int | tuple[int, ...] | None = None
    chain: int = 0
    window: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain types."""
        return asdict(self) | {"query": str(self.query)}


def privacy_loss(
    family: AnyFamily, length: int, scale: float, query: Query, *, window: int = 1
) -> PrivacyLoss:
    """Return the exact Pufferfish loss of independent Laplace noise on ``query``.

    It is the largest |log ratio| of the densities of the output given X_i = x and X_i = x' over all
    chains of the family, all records i, all pairs of states of positive probability, and all
    outputs.

    Parameters
    ----------
    family : MarkovChain or ChainFamily
        Each chain with a given, the stationary, or any initial distribution (the supremum over
        them).
    length : int
        Records, T.
    scale : float
        Laplace scale for a 1-Lipschitz query, in records, as a mechanism returns it; every
        coordinate has ``query.lipschitz`` times it.
    query : CountQuery or HistogramQuery
    window : int
        Number of consecutive records whose values are a secret; above 1 for counts only.

    Raises ParameterError: the scale is not positive or out of range, the query does not fit, or the
    work is beyond ``LARGEST_WORK``; ChainError: the family is not a finite one, or a probability
    leaves the range of floats.

    Notes
    -----
    A count takes O(T³k + T²k²) steps for T records and k states (a terminal shows a progress
    bar); a histogram of j bins O(T k (jT^j + T^(2j−2)/(2j−1)!)) and k arrays of (T + 1)^j numbers.
    With any initial distribution both grow by k, and the search over pairs by k³/2.
    """
    return privacy_losses(family, length, [scale], query, window=window)[0]


def privacy_losses(
    family: AnyFamily, length: int, scales: Sequence[float], query: Query, *, window: int = 1
) -> list[PrivacyLoss]:
    """Return :func:`privacy_loss` at several scales, in little more time than at one."""
    # the search for a scale may pass through very large ones
    noises = [checks.check_positive(one, "scale") for one in checks.check_list(scales, "scales")]
    if not noises:
        raise ParameterError("scales is empty; give at least one")
    of_chains = [one.losses(noises) for one in _of_chains(family, length, query, window)]
    found: list[PrivacyLoss] = []
    for losses in zip(*of_chains, strict=True):
        index, worst = max(enumerate(losses), key=lambda one: one[1].loss)
        lower = max(one.lower for one in losses)
        found.append(replace(worst, lower=lower, chain=index))
    return found


def smallest_scale(
    family: AnyFamily, length: int, epsilon: float, query: Query, *, window: int = 1
) -> PrivacyLoss:
    """Return the smallest Laplace scale with exact loss at most ε, for this query and length only.

    The loss falls as the scale grows (see the module). The returned scale has a proved loss of at
    most ε, so it is never below the smallest one. It exceeds that by at most about 1e-9
    relatively, or its loss is within 3e-9 of ε and of the bound on rounding, about 1e-13 T: for an
    ε near that it is T/ε, which suffices for any query. It is never below the smallest scale of
    :func:`privacy_loss`.

    Parameters
    ----------
    family, length, query, window
        As :func:`privacy_loss`, also for errors.
    epsilon : float
        ε > 0.
    """
    epsilon, chains = checks.check_epsilon(epsilon), _of_chains(family, length, query, window)
    finest = max(one.finest for one in chains) * (1 + 1e-9)
    enough = max(divide_up(length, epsilon), finest)
    proved = [privacy_loss(family, length, enough, query, window=window)]

    def loss(cost: float) -> float:
        found = privacy_loss(family, length, max(1 / cost, finest), query, window=window)
        if found.loss <= epsilon:
            proved.append(found)
        return found.loss

    guess = epsilon / max(proved[0].loss * enough, epsilon * finest)
    crossing(loss, epsilon, guess, 1 / finest, 1e-9, above=False)
    return min(proved, key=lambda one: one.scale)


def check_work(family: AnyFamily, length: int, query: Query, window: int = 1) -> float:
    """Return a cautious estimate of the multiplications of one loss.

    Raises ParameterError: they are too many, or the query does not fit.
    """
    return sum(one.work for one in _of_chains(family, length, query, window))


def _of_chains(family: AnyFamily, length: int, query: Query, window: int) -> list["Densities"]:
    """Return the densities of every chain; raises as :func:`check_work`."""
    records, window = checks.check_whole(length, "length"), checks.check_whole(window, "window")
    checks.check_type(query, "query", CountQuery, HistogramQuery)
    if window > 1 and not isinstance(query, CountQuery):
        raise ParameterError(
            f"window is {window}; the exact loss of windows is computed for counts (CountQuery)"
        )
    chains = finite_chains(family, "the exact loss")
    found = [Densities(chain, records, query, window) for chain in chains]
    if (total := sum(one.work for one in found)) > LARGEST_WORK:
        raise ParameterError(
            f"the exact loss of a {query} and {records} records takes about {total:.2g} "
            f"multiplications, above {LARGEST_WORK:.0g}; use a shorter length, fewer states, or a "
            "given initial distribution for any; leakage_loss bounds it for every length"
        )
    return found


class Densities:
    """Densities of a noisy query of a chain at any scale, from its distribution without noise.

    A histogram of T records of j states has (T + 1)^(j − 1) values (the last count follows from
    the others) and its density (T + 1)^j outputs. Secrets may be the values of w consecutive
    records. The past depends on the first of them alone, the future on the last, and the query on
    their sum: windows with equal first and last states and sums have the same densities.

    Raises ParameterError: the query does not fit.
    """

    def __init__(self, chain: MarkovChain, length: int, query: Query, window: int = 1) -> None:
        self.chain, self.length, self.query, self.window = chain, length, query, window
        # addend of each state to the index of the query's value; smallest scale with densities
        if isinstance(query, CountQuery):
            self.axes, self.moves, self.finest = 1, query.weights(chain), 1 / LARGEST_DECAY
        else:
            self.axes = chain.states
            self.moves = [*((length + 1) ** j for j in reversed(range(self.axes - 1))), 0]
            self.finest = length * self.axes / (query.lipschitz * LARGEST_EXPONENT)
        self.free = max(self.axes - 1, 1)

    @property
    def work(self) -> float:
        """A cautious estimate: passes, convolutions and smoothing, and all pairs."""
        k, n = self.chain.states, float(self.length)
        starts = k if self.chain.start == "any" else 1
        # also limits memory, that of all outputs
        places, outputs = (math.exp(min(d * math.log(n + 1), 300)) for d in (self.free, self.axes))
        convolution = places**2 * n / 6
        records = 25 * (1 + starts) * k**2 * places / 2 * n
        secrets = k if self.window == 1 else k**2 * (min(self.window, n) + 1)
        pairs = secrets**2 * (100 * outputs + 50_000) * n * (starts**2 if starts > 1 else 0.1) / 2
        return records + starts * secrets * (convolution + 150 * outputs * n) + pairs

    @cached_property
    def secrets(self) -> dict[tuple[int, int, int], tuple[int, ...]]:
        """The possible windows, one for each first state, last state and sum."""
        edges = self.chain.transition_matrix > 0
        paths: dict[tuple[int, int, int], tuple[int, ...]]
        paths = {(x, x, own): (x,) for x, own in enumerate(self.moves)}
        for _ in range(min(self.window, self.length) - 1):
            longer: dict[tuple[int, int, int], tuple[int, ...]] = {}
            for (x, z, own), states in paths.items():
                for y in np.flatnonzero(edges[z]).tolist():
                    longer.setdefault((x, y, own + self.moves[y]), (*states, y))
            paths = longer
        return paths

    def losses(self, scales: Sequence[float]) -> list[PrivacyLoss]:
        """Return the loss at each scale."""
        chain, length, query, secrets = self.chain, self.length, self.query, list(self.secrets)
        if min(scales) < self.finest:
            raise ParameterError(
                f"scale is {min(scales)}; the exact loss of a {query} and {length} records is "
                f"computed for scales of at least {self.finest:.3g}"
            )
        decays = [1 / (query.lipschitz * scale) for scale in scales]
        # both densities of a ratio, and the difference of their logarithms
        errors = [2 * self._error(decay) * (1 + 1e-9) for decay in decays]
        gaps, places = np.zeros((len(scales), 3)), np.zeros((len(scales), 4), dtype=np.int64)
        window = min(self.window, length)
        nodes = counts.counts_at_records(chain, length, self.moves, secrets, window)
        for node, (sizes, given) in enumerate(nodes, 1):
            for decay, error, gap, place in zip(decays, errors, gaps, places, strict=True):
                values = self._logs(given, decay)
                lowest = np.where(sizes[..., None] > -np.inf, values, np.inf).min(axis=(0, 1))
                outputs = np.flatnonzero(values.max(axis=(0, 1)) - lowest > gap[1])
                raise_gap(node, (sizes, values, outputs), error, gap, place)
        windows, found = list(self.secrets.values()), []
        for scale, error, gap, place in zip(scales, errors, gaps, places, strict=True):
            attained, bound, _ = gap.tolist()
            total = error + 4e-16 * bound if len(secrets) > 1 else 0.0
            # changing all records changes no density by more than the factor e^(T / scale)
            loss, lower = min(bound + total, divide_up(length, scale)), max(attained - total, 0.0)
            one = PrivacyLoss(query, length, scale, loss, lower, window=self.window)
            if place[0]:
                node, x, y, at = place.tolist()
                pair = (windows[x], windows[y]) if window > 1 else (windows[x][0], windows[y][0])
                output = np.unravel_index(at, (length + 1,) * self.axes)
                named = at if self.axes == 1 else tuple(map(int, output))
                one = replace(one, node=node, pair=pair, output=named)
            found.append(one)
        return found

    def _error(self, decay: float) -> float:
        """Return a bound of the error of every log density under noise of scale 1 / ``decay``.

        e^(−c), of relative error (c + 2)u, is used at most T times along every axis, in two passes
        with 3 roundings each; a logarithm of size at most cT + log(T + 1) an axis has 7 relative
        ones, and as many in mixtures of starts.
        """
        smoothing = self.length * 16 * (decay + 3) + 16 * math.log(self.length + 1)
        places = (self.length + 1) ** self.free
        return counts.relative_error(self.chain, self.length, places) + counts.roundings(
            self.chain, self.axes * smoothing
        )

    def _logs(self, given: Numbers, decay: float) -> Floats:
        """Return log densities under noise of scale 1 / ``decay``, up to a common term.

        They have shape (starts, secrets, outputs), at the outputs with whole coordinates from 0 to
        T; −∞ for secrets that are impossible.
        """
        if self.axes == 1:
            return np.asarray(np.logaddexp(*log_sums(given, math.exp(-decay))))
        size, places = self.length + 1, np.flatnonzero(given[0].any(axis=(0, 1)))
        # the last coordinate is the rest of T
        digits = np.unravel_index(places, (size,) * self.free)
        outputs = places * size + self.length - np.sum(digits, axis=0)
        values = np.zeros((*given[0].shape[:2], size**self.axes))
        values[..., outputs] = np.ldexp(given[0][..., places], given[1][..., places])
        for axis in range(self.axes):
            smooth(values.reshape(-1, size, size**axis), math.exp(-decay))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values, out=values))
