"""Log densities of a noisy count or histogram given one record, or a window of records."""

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from pufferflow._util.types import Floats
from pufferflow.audit._count_kernels import Numbers, smooth
from pufferflow.audit.count_distributions import (
    counts_at_records,
    log_sums,
    relative_error,
    roundings,
)
from pufferflow.audit.queries import CountQuery, Query
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain

Value: TypeAlias = int | tuple[int, ...]
"""A state or the states of a window; a count or a histogram."""

LARGEST_DECAY = 150.0
"""The inverse of the smallest scale of a count."""

LARGEST_EXPONENT = 500.0
"""Largest T · bins / (2 · scale) of a histogram: its densities stay above e^(−500)."""

LARGEST_MEMORY = 2**31
"""Largest number of bytes of the densities of a histogram."""


class Densities:
    """Densities of a noisy query at any scale, from its distribution without noise.

    A histogram of T records in j bins has (T + 1)^(j − 1) values (the last count follows from the
    others) and its density (T + 1)^j outputs; for a count, the bin of the other states has no
    noise. Secrets may be the values of w consecutive records. The past depends on the first of them
    alone, the future on the last, and the query on their sum: windows with equal first and last
    states and sums have the same densities.

    Raises ParameterError: the query does not fit, or is too large.
    """

    def __init__(self, chain: MarkovChain, length: int, query: Query, window: int = 1) -> None:
        bins = query.bin_of_states(chain)
        self.chain, self.length, self._counts = chain, length, isinstance(query, CountQuery)
        self.axes = 1 if self._counts else max(bins) + 1
        self.free = max(self.axes - 1, 1)
        starts = chain.states if chain.start == "any" else 1
        memory = 8 * (starts * chain.states + 2) * (length + 1) ** self.axes
        if memory > LARGEST_MEMORY and not self._counts:
            raise ParameterError(
                f"a histogram of {self.axes} bins and {length} records has (T + 1)^{self.axes} "
                f"outputs, {Decimal(memory) / 2**30:.3g} GiB of densities; use a shorter length or "
                "fewer bins (HistogramQuery(bins=…))"
            )
        # addend of each state to the index of the query's value
        self.moves = [(length + 1) ** (self.free - 1 - j) if j < self.free else 0 for j in bins]
        # the smallest scale for which densities are computed
        coarse = length * self.axes / (query.lipschitz * LARGEST_EXPONENT)
        self.finest = 1 / LARGEST_DECAY if self._counts else coarse
        self._window = min(window, length)
        self.secrets = self._windows()

    def _windows(self) -> dict[tuple[int, int, int], tuple[int, ...]]:
        """Return the possible windows, one for each first state, last state and sum."""
        edges = self.chain.transition_matrix > 0
        paths: dict[tuple[int, int, int], tuple[int, ...]]
        paths = {(x, x, own): (x,) for x, own in enumerate(self.moves)}
        for _ in range(self._window - 1):
            longer: dict[tuple[int, int, int], tuple[int, ...]] = {}
            for (x, z, own), states in paths.items():
                for y in np.flatnonzero(edges[z]).tolist():
                    longer.setdefault((x, y, own + self.moves[y]), (*states, y))
            paths = longer
        return paths

    def named(self, x: int, y: int, place: int) -> tuple[tuple[Value, Value], Value]:
        """Return two secrets and an output, given by their indices, as reported."""
        windows = list(self.secrets.values())
        first, other = (one if len(one) > 1 else one[0] for one in (windows[x], windows[y]))
        output = np.unravel_index(place, (self.length + 1,) * self.axes)
        return (first, other), place if self._counts else tuple(int(w) for w in output)

    def error(self, decay: float) -> float:
        """Return a bound of the error of every log density under noise of scale 1 / ``decay``.

        e^(−c), of relative error (c + 2)u, is used at most T times with 3 roundings each along
        every axis; a logarithm of size at most cT + log(T + 1) an axis has 7 relative ones, and
        as many in mixtures of starts.
        """
        smoothing = self.length * 16 * (decay + 3) + 16 * math.log(self.length + 1)
        places = (self.length + 1) ** self.free
        return relative_error(self.chain, self.length, places) + roundings(
            self.chain, self.axes * smoothing
        )

    def __iter__(self) -> Iterator[tuple[Floats, Numbers]]:
        """Yield, for each node, log P(secret) from each start and the distributions."""
        secrets = list(self.secrets)
        return counts_at_records(self.chain, self.length, self.moves, secrets, self._window)

    def logs(self, given: Numbers, decay: float) -> Floats:
        """Return log densities under noise of scale 1 / ``decay``, up to a common term.

        They have shape (starts, secrets, outputs), at the outputs with whole coordinates from 0 to
        T; −∞ for secrets that are impossible.
        """
        if self._counts:
            return np.asarray(np.logaddexp(*log_sums(given, math.exp(-decay))))
        size = self.length + 1
        places = np.flatnonzero(given[0].any(axis=(0, 1)))
        outputs = places
        if self.axes > 1:  # the last coordinate is the rest of T
            digits = np.unravel_index(places, (size,) * self.free)
            outputs = places * size + self.length - np.sum(digits, axis=0)
        values = np.zeros((*given[0].shape[:2], size**self.axes))
        values[..., outputs] = np.ldexp(given[0][..., places], given[1][..., places])
        for axis in range(self.axes):
            smooth(values.reshape(-1, size, size**axis), math.exp(-decay))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values, out=values))
