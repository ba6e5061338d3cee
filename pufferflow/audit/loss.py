"""The exact Pufferfish loss of Laplace noise on counts and histograms of Markov chains.

*Why whole outputs suffice.* Given X_i = x the density of the noisy output w ∈ ℝ^j is, up to a constant,
Σ_n P(n | x) Π_l e^(−|w_l − n_l|/b). Fix all coordinates but w_l. Between neighbouring integers the density is
A e^(w_l/b) + B e^(−w_l/b) with A, B ≥ 0, so the ratio of two such densities is (A r + B)/(C r + D) with
r = e^(2 w_l/b): monotone. Below 0 and above T all densities have the same factor and the ratio is constant. Hence
moving w_l to one of the neighbouring integers of [0, T] does not lower the ratio; doing so for one coordinate after
the other, the supremum over ℝ^j is attained on {0, …, T}^j. (The coordinates of such a w need not sum to T.) Its
corners are the tails w_l → ±∞.

*Larger scales lose less.* For b' > b, Lap(b') is the law of Lap(b) plus independent noise, which is 0 with
probability b²/b'² and Lap(b') else: their characteristic functions satisfy
1/(1 + b'²t²) = [b²/b'² + (1 − b²/b'²)/(1 + b'²t²)] / (1 + b²t²). So more noise is post-processing of less.

*No record tells more than all.* Changing all T records changes no density by more than the factor e^(T/b), b the scale
of a 1-Lipschitz query: a loss above T/b is rounding.

*Any initial law.* Let q be the law of X_1, a_z = P(X_i = x | X_1 = z), d_z the same for x', and u_z, v_z these times
the densities at w. The ratio is (u·q)(d·q)/((a·q)(v·q)); divide each of the four vectors by its product with q. At a
maximum the derivatives on the support of q vanish: u + d = a + v there. Suppose the support has three or more
entries. Then a direction y on it, not along q, has (u − d)·y = 0, and the second derivative of the logarithm along y
is (a·y)² + (v·y)² − (u·y)² − (d·y)² = ((a − v)·y)²/2 ≥ 0. At a maximum it is 0, so u·y = d·y = a·y = v·y, and the ratio
is constant along y, up to the boundary of the simplex. Repeating this, mixtures of two starts suffice; these are a
quadratic in one number. Where the supremum is only approached, as a·q or d·q vanishes in the limit, the mixtures behind
x and x' are different ones, and single starts are best for either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from pufferflow._checks import (
    POSITIVE_FLOATS,
    check_epsilon,
    check_list,
    check_positive,
    check_scale,
    check_whole,
    longest,
    shown,
)
from pufferflow._rounding import divide_up
from pufferflow._types import Ints
from pufferflow.audit._kernels import LARGEST_GAP, mixed_start_gap, raise_gap
from pufferflow.audit.densities import (
    LARGEST_DECAY,
    LARGEST_EXPONENT,
    LARGEST_WORK,
    CountDensities,
    HistogramDensities,
    NodeDensities,
    check_size,
    work,
)
from pufferflow.audit.queries import CountQuery, HistogramQuery, Query
from pufferflow.errors import ChainError, ParameterError
from pufferflow.markov.families import AnyFamily, ChainFamily, finite_chains


@dataclass(frozen=True)
class PrivacyLoss:
    """The exact loss of Laplace noise: the supremum over chains, records, pairs of secrets and outputs.

    Attributes
    ----------
    query : CountQuery or HistogramQuery
    length : int
        Records, T.
    scale : float
        Laplace scale for a 1-Lipschitz query; every coordinate has noise of ``query.lipschitz`` times it.
    loss : float
        Never below the exact loss, in nats.
    lower : float
        Never above the exact loss; the two differ by rounding only.
    tail : float
        Largest loss over outputs beyond the range of the data alone (rounded to nearest).
    node : int or None
        A worst record, 1-based, of windows the first one; None where no output tells two secrets apart.
    pair : tuple of int, of tuples, or None
        The secrets X_node = x and X_node = x' whose densities have that ratio, states from 0; of windows, two of the
        windows (their states) that have it.
    output : int, tuple of int or None
        The output at which they have it. An end of [0, length] stands for everything beyond it too.
    chain : int
        Index in the family, from 0, of the chain that decides.
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
        return {
            "query": str(self.query),
            "length": self.length,
            "scale": self.scale,
            "loss": self.loss,
            "lower": self.lower,
            "tail": self.tail,
            "node": self.node,
            "pair": None if self.pair is None else [s if isinstance(s, int) else list(s) for s in self.pair],
            "output": list(self.output) if isinstance(self.output, tuple) else self.output,
            "chain": self.chain,
            "window": self.window,
        }


def privacy_loss(family: AnyFamily, length: int, scale: float, query: Query, *, window: int = 1) -> PrivacyLoss:
    """Exact Pufferfish loss of independent Laplace noise on ``query``.

    The largest |log ratio| of the densities of the output given X_i = x and X_i = x' over all chains of the family, all
    records i, all pairs of states both of positive probability, and all outputs.

    Parameters
    ----------
    family : MarkovChain or ChainFamily
        Each chain with a given, the stationary, or any initial distribution (then the supremum over all of them).
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
        ``loss`` is never below the exact value and ``lower`` never above: the bound on the rounding errors, from
        their number, is added and taken off.

    Raises
    ------
    ParameterError
        The scale is not positive or out of range, the query does not fit, or the work is beyond ``LARGEST_WORK``.
    ChainError
        The family is not a finite one, or a probability leaves the range of floats.

    Notes
    -----
    A count takes at most O(T³k + T²k²) steps for T records and k states, far less where most counts are unlikely (on a
    terminal a progress bar says how long); a histogram of j bins O(T k (jT^j + T^(2j−2)/(2j−1)!)) and k arrays of
    (T + 1)^j numbers. With any initial distribution both grow by k, and the search over pairs by k²/2.
    """
    return privacy_losses(family, length, [scale], query, window=window)[0]


def privacy_losses(
    family: AnyFamily, length: int, scales: Sequence[float], query: Query, *, window: int = 1
) -> list[PrivacyLoss]:
    """Exact Pufferfish loss of Laplace noise of several scales; the laws without noise are found only once.

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
    records = _one_length(length)
    # the search for a scale may pass through very large ones
    noises = [check_scale(scale, POSITIVE_FLOATS) for scale in check_list(scales, "scales")]
    if not noises:
        raise ParameterError("scales is empty; give at least one")
    check_query(query)
    window = check_whole(window, "window")
    if window > 1 and not isinstance(query, CountQuery):
        raise ParameterError(f"window is {window}; the exact loss of windows is computed for counts (CountQuery)")
    check_work(family, records, query, window)
    # densities of a histogram fill the memory at one scale
    together = [noises] if isinstance(query, CountQuery) else [[noise] for noise in noises]
    worst: list[PrivacyLoss] = []
    for some in together:
        of_chains = [_losses(index, chain, records, some, query, window) for index, chain in enumerate(chains)]
        worst += [_worst(list(losses), records, query) for losses in zip(*of_chains, strict=True)]
    return worst


def _worst(losses: list[PrivacyLoss], records: int, query: Query) -> PrivacyLoss:
    """The largest loss of all chains at one scale."""
    worst = max(losses, key=lambda one: one.loss)
    return PrivacyLoss(
        query,
        records,
        worst.scale,
        worst.loss,
        max(one.lower for one in losses),
        max(one.tail for one in losses),
        worst.node,
        worst.pair,
        worst.output,
        worst.chain,
        worst.window,
    )


def smallest_scale(
    family: AnyFamily, length: int, epsilon: float, query: Query, *, relative: float = 1e-9, window: int = 1
) -> PrivacyLoss:
    """Smallest Laplace scale whose exact loss is at most ε, for this query and length only.

    Found by root search: the loss falls as the scale grows (see the module). The scale returned has a proved loss of
    at most ε, so it is never below the smallest one. It exceeds that by no more than about ``relative`` and what the
    bound on rounding adds to the loss, some 1e-13 of T: for an ε near that it is T/ε, which is enough for any query. It
    is never below the smallest scale :func:`privacy_loss` can handle.

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
    check_query(query)
    relative = check_positive(relative, "relative", (1e-12, 1))
    chains = ChainFamily(finite_chains(family, "the exact loss"))
    records = _one_length(length)
    finest = _finest_scale(chains, records, query)
    enough = max(divide_up(records, epsilon), finest)
    if any(chain.start == "any" for chain in chains.chains):  # where densities from two starts surely can be mixed
        enough = max(enough, records / LARGEST_GAP)

    def loss(log_scale: float) -> PrivacyLoss:
        return privacy_loss(chains, records, min(math.exp(log_scale), enough), query, window=window)

    def excess(log_scale: float) -> float:
        return math.log(max(loss(log_scale).loss, 1e-300) / epsilon)

    high, step = math.log(enough) + 1e-15 * (1 + abs(math.log(enough))), 1.5  # its exponential is cut to ``enough``
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


def _finest_scale(family: ChainFamily, length: int, query: Query) -> float:
    """Smallest scale at which the densities of ``query`` stay within the range of floats."""
    if isinstance(query, CountQuery):
        return 1 / LARGEST_DECAY * (1 + 1e-9)
    bins = max(len(query.bins) if query.bins else chain.states for chain in family.chains)
    return length * bins / (query.lipschitz * LARGEST_EXPONENT) * (1 + 1e-9)


def _losses(
    index: int, chain: Any, length: int, scales: Sequence[float], query: Query, window: int
) -> list[PrivacyLoss]:
    densities: CountDensities | HistogramDensities
    if isinstance(query, CountQuery):
        densities = CountDensities(chain, length, scales, query, window)
    else:
        densities = HistogramDensities(chain, length, scales, query)
    # both densities of a ratio, and the difference of their logarithms
    errors = [2 * densities.error(decay) * (1 + 1e-9) for decay in densities.decays]
    searches = [(_GapSearch(error), _GapSearch(error)) for error in errors]
    for here in _watched(densities, length):
        for values, (search, tails) in zip(here.values, searches, strict=True):
            own = here._replace(values=values)
            # the tails first: an output inside is named only where it is worse by more than rounding
            tails.scan(own, densities.tails)
            search.scan(own, densities.tails)
            search.scan(own, None)
    losses = []
    for scale, error, (search, tails) in zip(scales, errors, searches, strict=True):
        total = error + 4e-16 * search.bound if search.compared else 0.0
        losses.append(
            PrivacyLoss(
                query,
                length,
                scale,
                min(search.bound + total, divide_up(length, scale)),
                max(0.0, search.attained - total),
                tails.attained,
                search.node,
                None if search.pair is None else (densities.secret(search.pair[0]), densities.secret(search.pair[1])),
                None if search.place is None else densities.output(search.place),
                index,
                window,
            )
        )
    return losses


def _watched(densities: Iterable[NodeDensities], length: int) -> Iterable[NodeDensities]:
    """The same with a progress bar, on a terminal only and once they take a while."""
    bar: Iterable[NodeDensities] = tqdm(
        densities, desc="exact loss", total=length, unit="record", delay=1, disable=None, leave=False
    )
    return bar


class _GapSearch:
    """The largest gap of log densities seen, as an attained value and as a bound, with its place."""

    def __init__(self, tolerance: float) -> None:
        self.attained = self.bound = 0.0
        self.compared = False
        self.node: int | None = None
        self.pair: tuple[int, int] | None = None
        self.place: int | None = None
        self._placed, self._tolerance = 0.0, tolerance

    def scan(self, here: NodeDensities, places: Ints | None) -> None:
        """Raise the gap to that of one record, at some places or at all."""
        values = here.values if places is None else np.ascontiguousarray(here.values[:, :, places])
        starts, k = here.possible.shape

        def see(gap: float, x: int, y: int, place: int) -> None:
            self.attained, self.bound = max(self.attained, gap), max(self.bound, gap)
            if gap > self._placed + self._tolerance:
                self._placed, self.node, self.pair = gap, here.node, (x, y)
                self.place = place if places is None else int(places[place])

        def mix(r: int, s: int, x: int, y: int) -> None:
            first = [z for z in (r, s) if here.possible[z, x]]
            second = [z for z in (r, s) if here.possible[z, y]]
            if len(first) + len(second) < 4:
                # a start that cannot reach one of the secrets leaves the weights of the other secret free
                for z in first:
                    for other in second:
                        self.compared = True
                        difference = values[z, x] - values[other, y]
                        place = int(difference.argmax())
                        see(float(difference[place]), x, y, place)
                return
            self.compared = True
            masses = np.log(here.masses[[r, s]][:, [x, y]])
            log_kappa = float(masses[1, 1] - masses[0, 1] + masses[0, 0] - masses[1, 0])
            gaps, where = np.array([self.attained, self.bound]), np.array([-1])
            if not mixed_start_gap(values[r, x], values[s, x], values[r, y], values[s, y], log_kappa, gaps, where):
                raise ChainError(
                    "the loss over all initial distributions leaves the range of floats here; use a larger scale, "
                    "a shorter length or a given initial distribution"
                )
            self.bound = float(gaps[1])
            if where[0] >= 0:
                see(float(gaps[0]), x, y, int(where[0]))

        if starts == 1:
            self.compared = self.compared or bool(np.count_nonzero(here.possible) > 1)
            gaps, widest = np.array([self.attained, self._placed]), np.empty(3, dtype=np.int64)
            if raise_gap(values[0], here.possible[0], self._tolerance, gaps, widest):
                self.node, self.pair = here.node, (int(widest[0]), int(widest[1]))
                self.place = int(widest[2] if places is None else places[widest[2]])
            self.attained, self._placed = map(float, gaps)
            self.bound = max(self.bound, self.attained)
        else:
            for x in range(k):
                for y in range(k):
                    if x != y:
                        for r in range(starts):
                            for s in range(r):
                                mix(r, s, x, y)


def _one_length(length: int) -> int:
    if np.ndim(length) != 0:
        raise ParameterError(f"length is {shown(length)}; the exact loss is computed for one segment, give an integer")
    return longest(length)


def check_work(family: AnyFamily, length: int, query: Query, window: int = 1) -> float:
    """Estimate the multiplications of one loss; raise :class:`ParameterError` where they are more than are tried."""
    records, total = _one_length(length), 0.0
    check_query(query)
    for chain in finite_chains(family, "the exact loss"):
        check_size(chain, records, query)
        total += work(chain, records, query, window)
    if total > LARGEST_WORK:
        raise ParameterError(
            f"the exact loss of a {query} and {records} records takes about {total:.2g} multiplications, above "
            f"{LARGEST_WORK:.0g}; use a shorter length, fewer states or bins, or a given initial distribution for any"
        )
    return total


def check_query(query: Query) -> None:
    """Raise :class:`ParameterError` unless it is one of the queries audited."""
    if not isinstance(query, CountQuery | HistogramQuery):
        raise ParameterError(f"query is {shown(query)}; give a CountQuery or a HistogramQuery")
