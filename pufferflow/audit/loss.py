"""The exact Pufferfish loss of Laplace noise on counts and histograms of Markov chains.

Integer outputs from 0 to T suffice, larger scales lose less, and for any initial distribution
mixtures of two starts suffice: docs/histograms.md proves all three.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from tqdm import tqdm

from pufferflow._util.checks import (
    check_epsilon,
    check_list,
    check_positive,
    check_type,
    check_whole,
)
from pufferflow._util.rounding import divide_up
from pufferflow.audit._mixture_kernels import raise_gap
from pufferflow.audit.densities import Densities, Value
from pufferflow.audit.queries import CountQuery, HistogramQuery, Query
from pufferflow.bounds.roots import crossing
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, finite_chains

LARGEST_WORK = 3e12
"""Largest number of multiplications for one loss: half an hour or more."""

TOLERANCE = 1e-9
"""Relative tolerances of the smallest scale, and of its loss below ε."""


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
    pair: tuple[Value, Value] | None = None
    output: Value | None = None
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

    Raises
    ------
    ParameterError
        The scale is not positive or out of range, the query does not fit, or the work is beyond
        ``LARGEST_WORK``.
    ChainError
        The family is not a finite one, or a probability leaves the range of floats.

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
    chains = finite_chains(family, "the exact loss")
    # the search for a scale may pass through very large ones
    noises = [check_positive(scale, "scale") for scale in check_list(scales, "scales")]
    if not noises:
        raise ParameterError("scales is empty; give at least one")
    window = check_whole(window, "window")
    check_work(family, length, query, window)
    records = check_whole(length, "length")
    of_chains = [_losses(i, c, records, noises, query, window) for i, c in enumerate(chains)]
    found: list[PrivacyLoss] = []
    for losses in zip(*of_chains, strict=True):
        worst = max(losses, key=lambda one: one.loss)
        found.append(replace(worst, lower=max(one.lower for one in losses)))
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
        As :func:`privacy_loss`.
    epsilon : float
        ε > 0.

    Raises
    ------
    ParameterError, ChainError
        As :func:`privacy_loss`, or ε is out of range.
    """
    epsilon = check_epsilon(epsilon)
    check_work(family, length, query, window)
    length, chains = int(length), finite_chains(family, "the exact loss")
    finest = max(Densities(chain, length, query).finest for chain in chains) * (1 + 1e-9)
    enough = max(divide_up(length, epsilon), finest)
    proved = [privacy_loss(family, length, enough, query, window=window)]

    def loss(cost: float) -> float:
        found = privacy_loss(family, length, max(1 / cost, finest), query, window=window)
        if found.loss <= epsilon:
            proved.append(found)
        return found.loss

    guess = epsilon / max(proved[0].loss * enough, epsilon * finest)
    crossing(loss, epsilon, guess, 1 / finest, TOLERANCE, above=False)
    return min(proved, key=lambda one: one.scale)


def _losses(
    index: int, chain: MarkovChain, length: int, scales: Sequence[float], query: Query, window: int
) -> list[PrivacyLoss]:
    densities = Densities(chain, length, query, window)
    if min(scales) < densities.finest:
        raise ParameterError(
            f"scale is {min(scales)}; the exact loss of a {query} and {length} records is computed "
            f"for scales of at least {densities.finest:.3g}"
        )
    decays = [1 / (query.lipschitz * scale) for scale in scales]
    # both densities of a ratio, and the difference of their logarithms
    errors = [2 * densities.error(decay) * (1 + 1e-9) for decay in decays]
    gaps, places = np.zeros((len(scales), 3)), np.zeros((len(scales), 4), dtype=np.int64)
    nodes = tqdm(densities, desc="exact loss", total=length, delay=1, disable=None, leave=False)
    for node, (sizes, given) in enumerate(nodes, 1):
        for decay, error, gap, place in zip(decays, errors, gaps, places, strict=True):
            values = densities.logs(given, decay)
            lowest = np.where(sizes[..., None] > -np.inf, values, np.inf).min(axis=(0, 1))
            outputs = np.flatnonzero(values.max(axis=(0, 1)) - lowest > gap[1])
            raise_gap(node, sizes, values, outputs, error, gap, place)
    losses = []
    for scale, error, gap, place in zip(scales, errors, gaps, places, strict=True):
        attained, bound, _ = gap.tolist()
        total = error + 4e-16 * bound if len(densities.secrets) > 1 else 0.0
        # changing all records changes no density by more than the factor e^(T / scale)
        loss, lower = min(bound + total, divide_up(length, scale)), max(attained - total, 0.0)
        found = PrivacyLoss(query, length, scale, loss, lower, chain=index, window=window)
        node, x, y, output = place.tolist()
        if node:
            pair, at = densities.named(x, y, output)
            found = replace(found, node=node, pair=pair, output=at)
        losses.append(found)
    return losses


def check_work(family: AnyFamily, length: int, query: Query, window: int = 1) -> float:
    """Return a cautious estimate of the multiplications of one loss.

    Raises ParameterError: they are too many, or the query does not fit.
    """
    records = check_whole(length, "length")
    check_type(query, "query", CountQuery, HistogramQuery)
    if window > 1 and not isinstance(query, CountQuery):
        raise ParameterError(
            f"window is {window}; the exact loss of windows is computed for counts (CountQuery)"
        )
    chains = finite_chains(family, "the exact loss")
    total = sum(_work(Densities(chain, records, query, 1), window) for chain in chains)
    if total > LARGEST_WORK:
        raise ParameterError(
            f"the exact loss of a {query} and {records} records takes about {total:.2g} "
            f"multiplications, above {LARGEST_WORK:.0g}; use a shorter length, fewer states or "
            "bins, or a given initial distribution for any; leakage_loss bounds it for every length"
        )
    return total


def _work(densities: Densities, window: int) -> float:
    """Return the work of passes, convolutions and smoothing, and of all pairs."""
    k, n = densities.chain.states, float(densities.length)
    starts = k if densities.chain.start == "any" else 1
    places, outputs = (n + 1) ** densities.free, (n + 1) ** densities.axes
    convolution = places**2 * n / 6
    records = 25 * (1 + starts) * k**2 * places / 2 * n
    secrets = k if window == 1 else k**2 * (min(window, n) + 1)
    pairs = secrets**2 * (100 * outputs + 50_000) * n * (starts**2 if starts > 1 else 0.1) / 2
    return records + starts * secrets * (convolution + 150 * outputs * n) + pairs
