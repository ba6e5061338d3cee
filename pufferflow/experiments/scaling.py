"""Noise scales as settings name them, and as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pufferflow._checks import Lengths
from pufferflow.markov.families import AnyFamily
from pufferflow.mechanisms import NoiseScale, find_mechanism

RESULT_COLUMNS = ["scale", "status", "reason", "node", "quilt_left", "quilt_right", "influence"]
"""What :func:`scale_row` adds to the mechanism, ε and length."""


def compute_scale(
    mechanism: str, family: AnyFamily, length: Lengths, epsilon: float, options: Mapping[str, Mapping[str, Any]]
) -> NoiseScale:
    """Run a mechanism by name with its options from the settings."""
    return find_mechanism(mechanism)(family, length, epsilon, **options.get(mechanism, {}))


def scale_row(scale: NoiseScale) -> dict[str, Any]:
    """Columns of a noise scale in a tidy table."""
    quilt = scale.quilt
    return {
        "mechanism": scale.mechanism,
        "epsilon": scale.epsilon,
        "length": scale.length,
        "scale": scale.scale,
        "status": scale.status,
        "reason": scale.reason,
        "node": scale.node,
        "quilt_left": quilt.left if quilt else None,
        "quilt_right": quilt.right if quilt else None,
        "influence": scale.influence,
    }
