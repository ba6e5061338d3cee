"""Leakage calibration: the least Laplace noise for what a release can tell about any one entry."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pufferflow._checks import Lengths, check_epsilon, check_scale, check_whole, longest
from pufferflow.coupling.calibration import MOST_STATES, chain_leakage
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.families import AnyFamily, as_family
from pufferflow.mechanisms.base import Mechanism, NoiseScale
from pufferflow.mechanisms.quilts_exact import mqm_exact

if TYPE_CHECKING:
    from pufferflow.certificates import Question

MOST_BLOCK_STATES = 200
"""Largest number of states for which blocks of steps are computed: their time grows faster than the cube."""
_TOO_MANY = f"of {{}} states other bounds would take minutes, they are computed for at most {MOST_BLOCK_STATES}"


def leakage(family: AnyFamily, length: Lengths, epsilon: float, *, max_states: int = MOST_STATES) -> NoiseScale:
    """Smallest scale that the bounds of ``docs/leakage.md`` allow, rounded up; never above that of MQMExact.

    A mechanism whose density changes by at most e^c with one entry (Laplace noise of scale 1/c on a 1-Lipschitz query)
    is analysed along the chain, without a quilt: by optimal couplings of two copies of the chain that start at
    different values of an entry, through blocks of steps, and by the quilts of MQMExact; the smallest scale counts.
    Each is an upper bound of the loss for every such mechanism, whatever its query. For binary chains with a stationary
    start it is attained; :func:`pufferflow.lower_bound` says how far it can be from the best scale for others.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ. Of an ``IntervalFamily`` the scale is that of :func:`pufferflow.mqm_exact`, and ``reason`` says so.
    length : int or sequence of int
        Segment lengths; the longest decides, as every bound holds for shorter ones.
    epsilon : float
        ε > 0.
    max_states : int
        Chains with more states get the cheaper bounds (blocks and quilts) only: couplings take time and memory in
        proportion to the cube of the states, and more. 0 leaves them out. With more than
        :data:`MOST_BLOCK_STATES` quilts alone are left, and ``reason`` says so.

    Returns
    -------
    NoiseScale
        With a node that decides: beyond a short beginning of the chain all nodes share a bound, and one of them is
        named. ``quilt`` and ``influence`` are those of MQMExact where its bound is the smallest.

    Raises
    ------
    ParameterError
        ε, a length or ``max_states`` is out of range.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    max_states = check_whole(max_states, "max_states", 0)
    theta = as_family(family)
    if theta.bounds is not None:
        return replace(
            mqm_exact(theta, records, epsilon),
            mechanism="leakage",
            reason="the scale of mqm-exact: no other bound is known for interval families",
        )
    scales = [_chain_scale(chain, records, epsilon, max_states) for chain in theta.chains]
    index = max(range(len(scales)), key=lambda i: scales[i].scale or math.inf)
    return replace(scales[index], mechanism="leakage", chain=index)


def leakage_loss(family: AnyFamily, length: Lengths, scale: float, *, max_states: int = MOST_STATES) -> float:
    """Upper bound of the privacy loss of a mechanism whose density changes by at most e^(1/scale) with one entry.

    For several releases of the same records with scales σ_k, 1/scale is Σ 1/σ_k.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ, finite or a :class:`pufferflow.BinaryInterval`.
    length : int or sequence of int
    scale : float
        Laplace scale of a 1-Lipschitz query.
    max_states : int
        As for :func:`leakage`.

    Returns
    -------
    float
        In nats, rounded up; at most T / scale.

    Raises
    ------
    ParameterError
        ``scale``, a length or ``max_states`` is out of range.
    ChainError
        The family is an interval family.
    """
    records = longest(length)
    max_states = check_whole(max_states, "max_states", 0)
    scale = check_scale(scale, (1e-90, 1e100))
    cost = math.nextafter(1 / scale, math.inf)
    chains = as_family(family).chains
    return max(_chain_loss(chain, records, cost, max_states) for chain in chains)


def _chain_loss(chain: MarkovChain, records: int, cost: float, max_states: int) -> float:
    if chain.states > MOST_BLOCK_STATES:  # what every record of the segment tells
        return math.nextafter(records * cost, math.inf)
    return chain_leakage(chain, records, pairs=chain.states <= max_states).loss(cost).value


def _chain_scale(chain: MarkovChain, records: int, epsilon: float, max_states: int) -> NoiseScale:
    quilts = mqm_exact(chain, records, epsilon)
    assert quilts.scale is not None
    if chain.states > MOST_BLOCK_STATES:
        return replace(quilts, reason=f"the scale of mqm-exact: {_TOO_MANY.format(chain.states)}")
    bounds = chain_leakage(chain, records, pairs=chain.states <= max_states)
    bounded = bounds.scale(epsilon, quilts.scale)
    if bounded is None or bounded[0] >= quilts.scale:
        return quilts
    return NoiseScale("leakage", epsilon, records, bounded[0], node=bounded[1])


def _proof(question: Question) -> Iterator[dict[str, Any]]:
    from pufferflow.certificates.couplings import couplings

    theta = question.family
    assert len(question.chains) == len(theta.chains)
    yield couplings(theta.chains, question.length, question.epsilon)


LEAKAGE = Mechanism("leakage", leakage, _proof)
