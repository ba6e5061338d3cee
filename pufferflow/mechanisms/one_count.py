"""The Wasserstein Mechanism for the number of visits to a set of states."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from pufferflow._util.checks import Lengths
from pufferflow._util.grids import of_epsilons
from pufferflow.mechanisms.base import Count, NoiseScale, requested
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import PROTECTION, AnyFamily, SideInformation, finite_chains

MAX_WORK = 1e11
"""Largest number of multiplications: some minutes."""


@of_epsilons
def wasserstein(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    states: Sequence[int] | None = None,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Return the scale W/ε of the Wasserstein Mechanism (Algorithm 1) for visits to ``states``.

    Unlike other scales it holds for this query alone, and for functions of it: one that changes by
    at most L (L1 norm) when the number of visits changes by 1 gets L · scale on every coordinate.
    The mean of a 0/1 chain has L = 1/T, the histogram of a two-state chain L = 2. W is exact, but
    rounded up (:mod:`pufferflow.audit.counts`).

    Parameters
    ----------
    family, length, epsilon, window, side_information
        As for :func:`pufferflow.mqm_exact`; finitely many chains, single records and no side
        information only. A short segment can have the largest scale.
    states : sequence of int, optional
        The counted states, from 0. Optional for two states, whose counts have the same W.

    Returns
    -------
    NoiseScale
        ``length`` is that of the worst segment. It is "not applicable" also if ``states`` is
        missing for more than two states, or if exact distributions, with time of order T³, take too
        long. The scale is 0 if the secrets have no effect on the count, as for a single state.

    Raises ChainError: the family is not finite, or an initial probability is beyond floats.
    """
    from pufferflow.audit.counts import chain_sensitivity  # takes time to import
    from pufferflow.audit.loss import CountQuery

    request = requested("wasserstein", length, epsilon, window, side_information, PROTECTION)
    if request.reason:
        return request
    chains = finite_chains(family, "W")
    k = chains[0].states
    if states is None and k > 2:
        which = f"state which of the {k} states to count (states, or --count in the shell)"
        return replace(request, reason=f"the query is missing: {which}")
    query = CountQuery([k - 1] if states is None else states)  # both of two states have the same W
    weights = query.weights(chains[0])
    if (total := work(chains, length)) > MAX_WORK:
        about = f"here about {total:.1g} multiplications, at most {MAX_WORK:.0g}"
        why = f"exact distributions take time of order T³ ({about}); use mqm-exact"
        return replace(request, reason=why)
    count = Count(tuple(sorted(query.states)), tuple(np.unique(length).tolist()))
    found = chain_sensitivity(family, count.lengths, weights)
    request = replace(request, length=found.length, scale=found.scale(request.epsilon))
    return replace(request, node=found.node, chain=found.chain, count=count)


def work(chains: Sequence[MarkovChain], lengths: Lengths) -> float:
    """Return roughly the multiplications of W for visits to a set of states."""
    total = 0.0
    for chain, n in product(chains, map(float, np.unique(lengths))):
        k, starts = chain.states, chain.states if chain.start == "any" else 1
        # convolutions, passes, and comparisons of all pairs, worth tens of multiplications
        total += starts * (k * n**3 / 6 + k**2 * n**2 * (1 + 50 * starts))
    return total
