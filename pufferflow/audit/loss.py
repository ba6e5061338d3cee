"""The exact Pufferfish loss of Laplace noise on counts and histograms of Markov chains.

Whole outputs from 0 to T suffice, larger scales lose less, and of any initial distribution mixtures
of two starts suffice: docs/histograms.md proves all three.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from tqdm import tqdm

from pufferflow._util.checks import (
    POSITIVE_FLOATS,
    check_epsilon,
    check_list,
    check_positive,
    check_scale,
    check_whole,
    longest,
    shown,
)
from pufferflow._util.rounding import divide_up
from pufferflow._util.types import Floats, Ints
from pufferflow.audit._density_kernels import LARGEST_GAP, mixed_start_gap
from pufferflow.audit.densities import (
    LARGEST_DECAY,
    LARGEST_EXPONENT,
    CountDensities,
    HistogramDensities,
    NodeDensities,
)
from pufferflow.audit.queries import CountQuery, HistogramQuery, Query
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, ChainFamily, finite_chains

LARGEST_WORK = 3e12
"""Multiplications for one loss beyond which it is not tried: half an hour or more."""


@dataclass(frozen=True)
class PrivacyLoss:
    """The exact loss of Laplace noise: the supremum over chains, records, pairs and outputs.

    Attributes
    ----------
    query : CountQuery or HistogramQuery
    length : int
        Records, T.
    scale : float
        Laplace scale for a 1-Lipschitz query; every coordinate has ``query.lipschitz`` times it.
    loss : float
        Never below the exact loss, in nats.
    lower : float
        Never above the exact loss; the two differ by rounding only.
    tail : float
        Largest loss over outputs beyond the range of the data alone (rounded to nearest).
    node : int or None
        A worst record, from 1, of windows the first one; None where no output tells two secrets
        apart.
    pair : tuple of int, of tuples, or None
        The secrets X_node = x and X_node = x' whose densities have that ratio, states from 0; of
        windows, two of the windows (their states) that have it.
    output : int, tuple of int or None
        The output at which they have it. An end of [0, length] stands for everything beyond it too.
    chain : int
        Index in the family, from 0, of the chain that decides.
    window : int
        Consecutive records whose values are the secrets.
    """

    query: Query
    length: int
    scale: float
    loss: float
    lower: float
    tail: float
    node: int | None
    pair: tuple[int | tuple[int, ...], int | tuple[int, ...]] | None
    output: int | tuple[int, ...] | None
    chain: int
    window: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON types."""

        def plain(value: Any) -> Any:
            return [plain(part) for part in value] if isinstance(value, tuple) else value

        fields = asdict(replace(self, query=str(self.query)))  # type: ignore[arg-type]
        return {name: plain(value) for name, value in fields.items()}


def privacy_loss(
    family: AnyFamily, length: int, scale: float, query: Query, *, window: int = 1
) -> PrivacyLoss:
    """Exact Pufferfish loss of independent Laplace noise on ``query``.

    The largest |log ratio| of the densities of the output given X_i = x and X_i = x' over all
    chains of the family, all records i, all pairs of states both of positive probability, and all
    outputs.

    Parameters
    ----------
    family : MarkovChain or ChainFamily
        Each chain with a given, the stationary, or any initial distribution (the supremum over
        them).
    length : int
        Records, T.
    scale : float
        Laplace scale for a 1-Lipschitz query, in records, as a mechanism returns it.
    query : CountQuery or HistogramQuery
    window : int
        Secrets are the values of so many consecutive records; above 1 for counts only.

    Returns
    -------
    PrivacyLoss
        ``loss`` is never below the exact value and ``lower`` never above: the bound on the rounding
        errors, from their number, is added and taken off.

    Raises
    ------
    ParameterError
        The scale is not positive or out of range, the query does not fit, or the work is beyond
        ``LARGEST_WORK``.
    ChainError
        The family is not a finite one, or a probability leaves the range of floats.

    Notes
    -----
    A count takes O(T³k + T²k²) steps for T records and k states (on a terminal a progress bar says
    how long); a histogram of j bins O(T k (jT^j + T^(2j−2)/(2j−1)!)) and k arrays of (T + 1)^j
    numbers. With any initial distribution both grow by k, and the search over pairs by k³/2.
    """
    return privacy_losses(family, length, [scale], query, window=window)[0]


def privacy_losses(
    family: AnyFamily, length: int, scales: Sequence[float], query: Query, *, window: int = 1
) -> list[PrivacyLoss]:
    """Exact Pufferfish loss of Laplace noise of several scales, in little more time than of one.

    Parameters
    ----------
    family, length, query, window
        As :func:`privacy_loss`.
    scales : sequence of float, shape (n,)
        Laplace scales for a 1-Lipschitz query, in records.

    Returns
    -------
    list of PrivacyLoss, n
        What :func:`privacy_loss` returns at each scale, in their order.

    Raises
    ------
    ParameterError, ChainError
        As :func:`privacy_loss`, or there is no scale.
    """
    chains = finite_chains(family, "the exact loss")
    # the search for a scale may pass through very large ones
    noises = [check_scale(scale, POSITIVE_FLOATS) for scale in check_list(scales, "scales")]
    if not noises:
        raise ParameterError("scales is empty; give at least one")
    window = check_whole(window, "window")
    check_work(family, length, query, window)
    # densities of a histogram fill the memory at one scale
    together = [noises] if isinstance(query, CountQuery) else [[noise] for noise in noises]
    found: list[PrivacyLoss] = []
    for some in together:
        of_chains = [_losses(i, c, length, some, query, window) for i, c in enumerate(chains)]
        for losses in zip(*of_chains, strict=True):
            lower, tail = (max(getattr(one, name) for one in losses) for name in ("lower", "tail"))
            worst = max(losses, key=lambda one: one.loss)
            found.append(replace(worst, lower=lower, tail=tail))
    return found


def smallest_scale(
    family: AnyFamily,
    length: int,
    epsilon: float,
    query: Query,
    *,
    relative: float = 1e-9,
    window: int = 1,
) -> PrivacyLoss:
    """Smallest Laplace scale whose exact loss is at most ε, for this query and length only.

    Found by root search: the loss falls as the scale grows (see the module). The scale returned has
    a proved loss of at most ε, so it is never below the smallest one. It exceeds that by no more
    than about ``relative`` and what the bound on rounding adds to the loss, some 1e-13 of T: for an
    ε near that it is T/ε, which is enough for any query. It is never below the smallest scale
    :func:`privacy_loss` can handle.

    Parameters
    ----------
    family, length, query, window
        As :func:`privacy_loss`.
    epsilon : float
        ε > 0.
    relative : float
        Tolerance, between 1e-12 and 1.

    Returns
    -------
    PrivacyLoss
        At that scale, its ``scale``.

    Raises
    ------
    ParameterError, ChainError
        As :func:`privacy_loss`, or ε or the tolerance is out of range.
    """
    epsilon = check_epsilon(epsilon)
    relative = check_positive(relative, "relative", (1e-12, 1))
    chains = ChainFamily(finite_chains(family, "the exact loss"))
    records = _one_length(length)
    check_query(query)
    if isinstance(query, CountQuery):
        finest = 1 / LARGEST_DECAY * (1 + 1e-9)
    else:
        bins = max(len(query.bins) if query.bins else chain.states for chain in chains.chains)
        finest = records * bins / (query.lipschitz * LARGEST_EXPONENT) * (1 + 1e-9)
    enough = max(divide_up(records, epsilon), finest)
    if any(chain.start == "any" for chain in chains.chains):  # densities of two starts surely mix
        enough = max(enough, records / LARGEST_GAP)

    def loss(log_scale: float) -> PrivacyLoss:
        return privacy_loss(chains, records, min(math.exp(log_scale), enough), query, window=window)

    def excess(log_scale: float) -> float:
        return math.log(max(loss(log_scale).loss, 1e-300) / epsilon)

    # the exponential of the first one is cut to ``enough``
    high, step = math.log(enough) + 1e-15 * (1 + abs(math.log(enough))), 1.5
    best = loss(high)
    while True:
        low = max(math.log(finest) + 1e-9, high - step)
        if low >= high or step < relative:
            return best
        try:
            at_low = loss(low)
        except ChainError:  # beyond floats, as a larger scale was not
            step /= 2
            continue
        if at_low.loss > epsilon:
            break
        high, best = low, at_low

    from scipy.optimize import brentq  # loads slowly

    root, step = float(brentq(excess, low, high, xtol=relative / 4, rtol=1e-15)), relative / 4
    while root + step < high:
        root += step
        here = loss(root)
        if here.loss <= epsilon:
            return here
        step *= 2
    return best


def _losses(
    index: int, chain: MarkovChain, length: int, scales: Sequence[float], query: Query, window: int
) -> list[PrivacyLoss]:
    densities = _densities(chain, length, scales, query, window)
    # both densities of a ratio, and the difference of their logarithms
    errors = [2 * densities.error(decay) * (1 + 1e-9) for decay in densities.decays]
    searches = [_GapSearch(error, densities.tails) for error in errors]
    for here in tqdm(
        densities, desc="exact loss", total=length, delay=1, disable=None, leave=False
    ):
        for at, search in enumerate(searches):
            search.scan(here, at)
    losses = []
    for scale, error, search in zip(scales, errors, searches, strict=True):
        total = error + 4e-16 * search.bound if search.compared else 0.0
        # changing all records changes no density by more than the factor e^(T / scale)
        loss = min(search.bound + total, divide_up(length, scale))
        node = pair = output = None
        if search.where is not None:
            node, x, y, place = search.where
            pair, output = (densities.secret(x), densities.secret(y)), densities.output(place)
        lower = max(0.0, search.attained - total)
        where = node, pair, output, index, window
        losses.append(PrivacyLoss(query, length, scale, loss, lower, search.tail, *where))
    return losses


class _GapSearch:
    """The largest gap of log densities seen, as an attained value and as a bound, with its place.

    ``where`` is the node, the two secrets and the output; one is named only where it is worse than
    the one before by more than rounding, the ``tolerance``.
    """

    def __init__(self, tolerance: float, tails: Ints) -> None:
        self.attained = self.bound = self.tail = 0.0
        self.compared = False
        self.where: tuple[int, int, int, int] | None = None
        self._tolerance, self._tails, self._placed = tolerance, tails, 0.0

    def scan(self, here: NodeDensities, at: int) -> None:
        """Raise the gap to that of one record, at the scale with this index."""
        values, possible = here.values[at], here.possible
        starts, secrets = possible.shape
        names = np.flatnonzero(possible[0])
        if starts == 1 and len(names) > 1:
            self.compared, rows = True, values[0][names]
            gaps = rows.max(axis=0) - rows.min(axis=0)
            place, tail = int(gaps.argmax()), int(self._tails[gaps[self._tails].argmax()])
            self.tail = max(self.tail, float(gaps[tail]))
            self.attained = self.bound = max(self.bound, float(gaps[place]))
            if gaps[tail] >= gaps[place] - self._tolerance:
                place = tail
            pair = int(names[rows[:, place].argmax()]), int(names[rows[:, place].argmin()])
            self._see(float(gaps[place]), here.node, pair, place)
        elif starts > 1:
            edges = np.ascontiguousarray(values[:, :, self._tails])
            pairs = permutations(range(secrets), 2)
            for pair, two in product(pairs, combinations(range(starts), 2)):
                self.tail = self._mixed(edges, here, two, pair, (self.tail, self.tail))[0]
                gap, bound, place = self._mixed(
                    values, here, two, pair, (self.attained, self.bound)
                )
                self.attained, self.bound = gap, bound
                self._see(gap, here.node, pair, place)

    def _see(self, gap: float, node: int, pair: tuple[int, int], place: int) -> None:
        if place >= 0 and gap > self._placed + self._tolerance:
            self._placed, self.where = gap, (node, *pair, place)

    def _mixed(
        self,
        values: Floats,
        here: NodeDensities,
        starts: tuple[int, int],
        pair: tuple[int, int],
        known: tuple[float, float],
    ) -> tuple[float, float, int]:
        """Raise a gap and its bound to those of one pair under mixtures of two starts; where."""
        (x, y), (r, s), gaps, where = pair, starts, np.array(known), np.array([-1])
        first, second = ([z for z in starts if here.possible[z, secret]] for secret in pair)
        self.compared = self.compared or bool(first and second)
        if len(first) + len(second) < 4:
            # a start that cannot reach one secret leaves the weights of the other secret free
            for z, other in product(first, second):
                difference = values[z, x] - values[other, y]
                place = int(difference.argmax())
                if difference[place] > gaps[0]:
                    gaps[0], where[0] = difference[place], place
            return float(gaps[0]), float(gaps.max()), int(where[0])
        sizes = here.sizes * math.log(2)
        log_kappa = float(sizes[s, y] - sizes[r, y] + sizes[r, x] - sizes[s, x])
        both = (values[r, x], values[s, x]), (values[r, y], values[s, y])
        if not mixed_start_gap(*both, log_kappa, gaps, where):
            raise ChainError(
                "the loss over all initial distributions leaves the range of floats here; use a "
                "larger scale, a shorter length or a given initial distribution"
            )
        return float(gaps[0]), float(gaps[1]), int(where[0])


def _densities(
    chain: MarkovChain, length: int, scales: Sequence[float], query: Query, window: int
) -> CountDensities | HistogramDensities:
    if isinstance(query, CountQuery):
        return CountDensities(chain, length, scales, query, window)
    return HistogramDensities(chain, length, scales, query)


def _one_length(length: int) -> int:
    if np.ndim(length) != 0:
        raise ParameterError(
            f"length is {shown(length)}; the exact loss is that of one segment, give an integer"
        )
    return longest(length)


def check_work(family: AnyFamily, length: int, query: Query, window: int = 1) -> float:
    """Estimate the multiplications of one loss, rather too many than too few.

    Raises ParameterError: they are more than are tried, or the query does not fit.
    """
    records, total = _one_length(length), 0.0
    check_query(query)
    if window > 1 and not isinstance(query, CountQuery):
        raise ParameterError(
            f"window is {window}; the exact loss of windows is computed for counts (CountQuery)"
        )
    for chain in finite_chains(family, "the exact loss"):
        _densities(chain, records, [], query, window)  # whether the query fits
        total += _work(chain, records, query, window)
    if total > LARGEST_WORK:
        raise ParameterError(
            f"the exact loss of a {query} and {records} records takes about {total:.2g} "
            f"multiplications, above {LARGEST_WORK:.0g}; use a shorter length, fewer states or "
            "bins, or a given initial distribution for any"
        )
    return total


def _work(chain: MarkovChain, length: int, query: Query, window: int) -> float:
    """Passes, convolution and smoothing for all records, starts and states, and all pairs."""
    k, n = chain.states, float(length)
    starts = k if chain.start == "any" else 1
    if isinstance(query, CountQuery):
        outputs, places, passes, convolution = n + 1, n / 2, 25, n**3 / 6
    else:
        free = max(query.bin_of_states(chain))
        outputs, places, passes = (n + 1) ** (free + 1), (n + 1) ** free, 2
        convolution = n ** (2 * free + 1) / math.factorial(2 * free + 1)
    records = passes * (1 + starts) * k**2 * places * n
    secrets = k if window == 1 else k**2 * (min(window, length) + 1)
    pairs = secrets**2 * (100 * outputs + 50_000) * n * (starts**2 if starts > 1 else 0.1) / 2
    return records + starts * secrets * (convolution + 150 * outputs * n) + pairs


def check_query(query: Query) -> None:
    """Raise :class:`ParameterError` unless it is one of the queries audited."""
    if not isinstance(query, CountQuery | HistogramQuery):
        raise ParameterError(f"query is {shown(query)}; give a CountQuery or a HistogramQuery")
