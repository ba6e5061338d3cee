"""The module with the figures of a related experiment, by its name."""

from __future__ import annotations

from typing import Any

from pufferflow.reporting.figures import alpha_beta, base2_exponential, classical, histogram_study, noisy_max


def figures_of(name: str) -> Any:
    """Return the module with the figures of a related experiment."""
    return {
        "histogram_study": histogram_study,
        "noisy_max": noisy_max,
        "base2_exponential": base2_exponential,
        "alpha_beta": alpha_beta,
        "classical": classical,
    }[name]
