"""The W that the laws of a count are within, for certificates of wasserstein, see :mod:`pufferflow.verify.counts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pufferflow.audit.wasserstein import TIE, chain_sensitivity
from pufferflow.markov.chain import MarkovChain

_SLACK = "1e-9"
"""Above 2^-30, by which the plans of :mod:`pufferflow.audit.wasserstein` exceed a law."""


def count_within(
    chains: tuple[MarkovChain, ...], lengths: Sequence[int], weights: list[int], epsilon: float
) -> dict[str, Any]:
    """Return the fields of a proof for the count to which a visit to each state adds its weight."""
    known = chain_sensitivity(chains, lengths, weights)
    ties = known.W * epsilon < known.strict * (epsilon - TIE)
    return {
        "weights": weights,
        "lengths": list(lengths),
        "W": known.W if ties else known.strict,
        "slack": _SLACK if ties else "0",
    }
