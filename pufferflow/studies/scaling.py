"""Noise scales as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pufferflow.mechanisms import NoiseScale

RESULT_COLUMNS = ["scale", "status", "reason", "node", "quilt_left", "quilt_right", "influence"]
"""What :func:`scale_row` adds to the mechanism, ε and length."""


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


def without_proofs(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Options of the mechanisms for scales that explain or are timed, and release nothing: proofs cost more."""
    return {name: {key: value for key, value in own.items() if key != "certified"} for name, own in options.items()}
