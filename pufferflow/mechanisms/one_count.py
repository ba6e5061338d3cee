"""The Wasserstein Mechanism for the number of visits to a set of states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pufferflow._util.checks import Lengths, check_epsilon, longest, shown
from pufferflow.errors import ChainError, ParameterError
from pufferflow.mechanisms.base import Count, Mechanism, NoiseScale, not_applicable
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, finite_chains

MOST_WORK = 1e11
"""Multiplications beyond which the mechanism does not try: some minutes."""


def wasserstein(family: AnyFamily, length: Lengths, epsilon: float, states: Sequence[int] | None = None) -> NoiseScale:
    """Scale W/ε of the Wasserstein Mechanism (Algorithm 1) for one query: how often the chain visits ``states``.

    Unlike other scales it holds for this query alone, and for functions of it: one that moves by at most L (L1 norm)
    when the number of visits changes by 1 gets L · scale on every coordinate. The mean of a 0/1 chain has L = 1/T, the
    histogram of a two-state chain L = 2. W is exact up to rounding, which errs to more noise
    (:mod:`pufferflow.audit.wasserstein`); with any initial distribution and three or more states it may be an upper
    bound.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ, finitely many chains.
    length : int or sequence of int
        Segment lengths. The largest scale over all of them is returned: it may be that of a short one.
    epsilon : float
        ε > 0.
    states : sequence of int, optional
        The states counted, from 0. May be left out for two states, where both counts have the same W.

    Returns
    -------
    NoiseScale
        ``length`` is that of the segment that decides. "not applicable", with the reason, where Θ is not finite (W of
        a class such as ``BinaryInterval`` or ``IntervalFamily`` is not known), where there are more than two
        states and ``states`` is missing, or where the exact laws, which take time of order T³, are out of reach. The
        scale is 0 where the secrets have no effect on the count, as for a single state.

    Raises
    ------
    ParameterError
        ε or a length is out of range, or ``states`` is not a set of states of every chain.
    """
    from pufferflow.audit.wasserstein import chain_sensitivity  # compiles the kernels

    epsilon = check_epsilon(epsilon)
    records = longest(length)
    if reason := _unfit(family, length, states):
        return not_applicable("wasserstein", epsilon, records, reason)
    chains = finite_chains(family, "W")
    count = _count(chains, length, states)
    sensitivity = chain_sensitivity(chains, count.lengths, count.weights(chains[0].states))
    return NoiseScale(
        "wasserstein",
        epsilon,
        sensitivity.length,
        sensitivity.scale(epsilon),
        node=sensitivity.node,
        chain=sensitivity.chain,
        count=count,
    )


def _unfit(family: AnyFamily, length: Lengths, states: Sequence[int] | None = None) -> str:
    """Why the mechanism cannot work: the family is not finite, no count is given, or its laws are out of reach."""
    from pufferflow.audit.count_distributions import starts_of
    from pufferflow.audit.wasserstein import work

    longest(length)
    try:
        chains = finite_chains(family, "W")
        for chain in chains:
            starts_of(chain)  # within the range of floats
    except ChainError as error:
        return str(error)
    k = chains[0].states
    if states is None and k > 2:
        return f"the query is missing: say which of the {k} states to count (states, or --count in the shell)"
    count = _count(chains, length, states)
    weights = count.weights(k)
    total = sum(work(chain, n, weights) for chain in chains for n in count.lengths)
    if total > MOST_WORK:
        return (
            f"exact laws take time of order T³ (here about {total:.1g} multiplications, at most {MOST_WORK:.0g}); "
            "use mqm-exact"
        )
    return ""


def _count(chains: tuple[MarkovChain, ...], length: Lengths, states: Sequence[int] | None) -> Count:
    """The query: of two states either, for both have the same W."""
    k = chains[0].states
    counted = [k - 1] if states is None else _checked(states, k)
    lengths = sorted({int(n) for n in np.atleast_1d(np.asarray(length))})
    return Count(tuple(sorted(set(counted))), tuple(lengths))


def _checked(states: Sequence[int], k: int) -> list[int]:
    values = np.asarray(states)
    if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iu":
        raise ParameterError(f"states is {shown(states)}; give a list of at least one state, counted from 0")
    for x in values.tolist():
        if not 0 <= x < k:
            raise ParameterError(f"states holds another number; the states are 0 to {k - 1}")
    return [int(x) for x in values]


WASSERSTEIN = Mechanism("wasserstein", wasserstein, _unfit, every_query=False)
