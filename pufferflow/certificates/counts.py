"""The W that the laws of a count are within, for certificates of wasserstein, see :mod:`pufferflow.verify.counts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pufferflow._checks import Lengths
from pufferflow.errors import ParameterError
from pufferflow.markov.families import Family
from pufferflow.mechanisms.wasserstein import wasserstein
from pufferflow.transport.chains import TIE, chain_sensitivity

_SLACK = "1e-9"
"""Above 2^-30, by which the plans of :mod:`pufferflow.transport.chains` exceed a law."""


def count_within(theta: Family, length: Lengths, epsilon: float, states: Sequence[int] | None) -> dict[str, Any]:
    """Return the fields of a proof for the count of ``states``.

    Raises
    ------
    ParameterError
        The mechanism is not applicable.
    """
    found = wasserstein(theta, length, epsilon, states)
    if found.count is None:
        raise ParameterError(found.reason)
    weights = [int(x in found.count.states) for x in range(theta.chains[0].states)]
    known = chain_sensitivity(theta.chains, found.count.lengths, weights)
    ties = known.W * epsilon < known.strict * (epsilon - TIE)
    return {
        "weights": weights,
        "lengths": list(found.count.lengths),
        "W": known.W if ties else known.strict,
        "slack": _SLACK if ties else "0",
    }
