"""Log densities of a noisy count or histogram given one record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from pufferflow._util.rounding import SAFE_MINIMUM
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.audit._count_kernels import log_density
from pufferflow.audit._density_kernels import convolve_places, smooth
from pufferflow.audit.count_distributions import (
    counts_at_records,
    relative_error,
    roundings,
    starts_of,
)
from pufferflow.audit.queries import CountQuery, HistogramQuery
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.chain import MarkovChain

LARGEST_DECAY = 150.0
"""Smallest scale of a count is one over this."""

LONGEST_COUNT = 20_000
"""Records of a count: the steps grow like their cube."""

LARGEST_EXPONENT = 500.0
"""Largest T · bins / (2 · scale) of a histogram: its densities stay above e^(−500)."""

LARGEST_MEMORY = 2**31
"""Bytes for the densities of a histogram."""


class NodeDensities(NamedTuple):
    """Log densities of the noisy output given X_node = x, or a window from there, but for one term.

    Attributes
    ----------
    node : int
        From 1.
    values : float array, shape (scales, starts, secrets, outputs)
        At the outputs with whole coordinates from 0 to T, flattened.
    sizes : float array, shape (starts, secrets)
        log2 P(X_node = x) from each start; where it is −∞ the values mean nothing.
    """

    node: int
    values: Floats
    sizes: Floats

    @property
    def possible(self) -> Bools:
        """Which secrets have positive probability, by start."""
        return np.asarray(self.sizes > -np.inf)


class CountDensities:
    """Densities of a noisy count under noise of several scales, of one distribution without noise.

    Secrets may be the values of w consecutive records. The past depends on the first of them alone,
    the future on the last, and the count on how many of them it counts: windows that share these
    three share their densities.

    Raises ParameterError: a scale is below 1/150, or T too large; ChainError: a probability leaves
    the range of floats.
    """

    def __init__(
        self,
        chain: MarkovChain,
        length: int,
        scales: Sequence[float],
        query: CountQuery,
        window: int = 1,
    ) -> None:
        query.check(chain)
        if length > LONGEST_COUNT:
            raise ParameterError(
                f"length is {length}; the exact loss of a count is computed for up to "
                f"{LONGEST_COUNT} records, leakage_loss bounds it for every length"
            )
        self.decays = [1.0 / scale for scale in scales]
        if max(self.decays, default=0.0) > LARGEST_DECAY:
            raise ParameterError(
                f"scale is {min(scales)}; the exact loss of a count is computed for scales of "
                f"at least 1/{LARGEST_DECAY:g}"
            )
        self.chain, self.length = chain, length
        self.weights = [int(x in query.states) for x in range(chain.states)]
        self.tails: Ints = np.unique([0, length])
        self._window = min(window, length)
        self._secrets = self._windows()

    def _windows(self) -> dict[tuple[int, int, int], tuple[int, ...]]:
        """Windows that can occur, one of all that share first and last state and what they add."""
        edges = self.chain.transition_matrix > 0
        paths: dict[tuple[int, int, int], tuple[int, ...]]
        paths = {(x, x, own): (x,) for x, own in enumerate(self.weights)}
        for _ in range(self._window - 1):
            longer: dict[tuple[int, int, int], tuple[int, ...]] = {}
            for (x, z, own), states in paths.items():
                for y in np.flatnonzero(edges[z]).tolist():
                    longer.setdefault((x, y, own + self.weights[y]), (*states, y))
            paths = longer
        return paths

    def secret(self, index: int) -> int | tuple[int, ...]:
        """Return a state, or the states of a window."""
        states = list(self._secrets.values())[index]
        return states if len(states) > 1 else states[0]

    def output(self, place: int) -> int:
        """Return the output at a flat place."""
        return place

    def error(self, decay: float) -> float:
        """Bound on the error of every log density at 1 / scale.

        e^(−c), of relative error (c + 2)u, is used at most T times with 3 roundings each; a
        logarithm of size at most cT + log(T + 1) has 4 relative ones.
        """
        smoothing = self.length * 8 * (decay + 3) + 4 * math.log(self.length + 1)
        return relative_error(self.chain, self.length, self.length + 1) + roundings(
            self.chain, smoothing
        )

    def __iter__(self) -> Iterator[NodeDensities]:
        first = np.array([x for x, _, _ in self._secrets])
        for here in counts_at_records(self.chain, self.length, self.weights, self._window):
            sizes = here.sizes[:, first]
            values = np.zeros((len(self.decays), *sizes.shape, here.width))
            for r, index in np.argwhere(sizes > -np.inf).tolist():
                m, e = here.distribution(r, *list(self._secrets)[index])
                for own, decay in zip(values[:, r, index], self.decays, strict=True):
                    log_density(m, e, decay, own)
            yield NodeDensities(here.node, values, sizes)


class HistogramDensities:
    """Densities of a noisy histogram under noise of several scales.

    Distributions of T records in j bins live on (T + 1)^(j − 1) places (the last count follows from
    the others), the densities on the (T + 1)^j outputs; noise is one pass along every axis.

    Raises ParameterError: a scale is too small for floats, or there are too many outputs;
    ChainError: a probability leaves the range of floats.
    """

    def __init__(
        self, chain: MarkovChain, length: int, scales: Sequence[float], query: HistogramQuery
    ) -> None:
        bins = query.bin_of_states(chain)
        self.chain, self.length, self.bins = chain, length, max(bins) + 1
        starts = chain.states if chain.start == "any" else 1
        memory = 8 * (starts * chain.states + 2) * (length + 1) ** self.bins
        if memory > LARGEST_MEMORY:
            raise ParameterError(
                f"a histogram of {self.bins} bins and {length} records has (T + 1)^{self.bins} "
                f"outputs, {Decimal(memory) / 2**30:.3g} GiB of densities; use a shorter length or "
                "fewer bins (HistogramQuery(bins=…))"
            )
        self.decays = [1.0 / (query.lipschitz * scale) for scale in scales]
        if max(self.decays, default=0.0) * length * self.bins > LARGEST_EXPONENT:
            least = length * self.bins / (query.lipschitz * LARGEST_EXPONENT)
            raise ParameterError(
                f"scale is {min(scales)}; the exact loss of a histogram of {self.bins} bins and "
                f"{length} records is computed for scales of at least {least:.3g}"
            )
        self._of_states = bins

    @property
    def _strides(self) -> list[int]:
        """How far a record in each state moves the place of a histogram without its last bin."""
        free = self.bins - 1
        return [(self.length + 1) ** (free - 1 - j) if j < free else 0 for j in self._of_states]

    @property
    def tails(self) -> Ints:
        """The corners: flat places of outputs whose coordinates are 0 or T."""
        corners = np.indices((2,) * self.bins).reshape(self.bins, -1) * self.length
        flat = np.ravel_multi_index(tuple(corners), (self.length + 1,) * self.bins)
        return np.unique(flat)

    def secret(self, index: int) -> int:
        """Return a state."""
        return index

    def output(self, place: int) -> tuple[int, ...]:
        """Return the output at a flat place."""
        shape = (self.length + 1,) * self.bins
        return tuple(int(w) for w in np.unravel_index(place, shape))

    def error(self, decay: float) -> float:
        """Bound on the error of every log density: as for a count, with one smoothing an axis."""
        k, length, c = self.chain.states, self.length, decay
        smoothing = self.bins * length * (2 * c + 8) + 4 * c * length * self.bins
        terms = 2 * (length + 1) ** (self.bins - 1)
        return roundings(self.chain, length * (5 * k + 40) + smoothing + terms + 64)

    def __iter__(self) -> Iterator[NodeDensities]:
        size, strides = self.length + 1, self._strides
        places = size ** (self.bins - 1)
        free = np.indices((size,) * (self.bins - 1)).reshape(self.bins - 1, places)
        full = np.zeros(places, dtype=np.int64)
        for row in (*free, self.length - free.sum(axis=0)):
            full = full * size + row

        def prepend(weights: Floats, given: Floats) -> Floats:
            moved = np.zeros_like(given)
            for y, stride in enumerate(strides):
                moved[y, stride:] = given[y, : places - stride]
            return np.asarray(weights @ moved)

        alone = np.zeros((self.chain.states, places))
        alone[:, 0] = 1.0
        futures = [alone]
        for _ in range(self.length - 1):
            futures.append(prepend(self.chain.transition_matrix, futures[-1]))
        masses = starts_of(self.chain)
        past = [alone] * len(masses)
        for node in range(1, size):
            if node > 1:
                for r, mass in enumerate(masses):
                    weights, masses[r] = _backwards(self.chain.transition_matrix, mass)
                    past[r] = prepend(weights, past[r])
            future = futures.pop()
            values = np.zeros((len(self.decays), *masses.shape, size**self.bins))
            for r, x in np.argwhere(masses > 0).tolist():
                before, after = np.flatnonzero(past[r][x]), np.flatnonzero(future[x])
                whole = np.zeros(places)
                here = before + strides[x]
                convolve_places(here, past[r][x][before], after, future[x][after], whole)
                for own, decay in zip(values[:, r, x], self.decays, strict=True):
                    own[full] = whole
                    for axis in range(self.bins):
                        smooth(own.reshape(size**axis, size, -1), math.exp(-decay))
                    np.log(own, out=own)
            with np.errstate(divide="ignore"):
                yield NodeDensities(node, values, np.log2(masses))


def _backwards(matrix: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """P(X_{i−1} = y | X_i = x), shape (x, y), and the distribution of X_i, from that of X_{i−1}."""
    flow = mass[None, :] * matrix.T
    if flow[(mass > 0)[None, :] & (matrix.T > 0)].min() < SAFE_MINIMUM:
        raise ChainError(
            f"a state has a positive probability below {SAFE_MINIMUM}, beyond the range of floats; "
            "use a shorter length or a chain without such rare states"
        )
    masses = flow.sum(axis=1)
    return flow / np.where(masses > 0, masses, 1.0)[:, None], masses
