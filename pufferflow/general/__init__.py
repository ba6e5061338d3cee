"""Pufferfish privacy in general (Song et al., section 2): finitely many secrets and scenarios."""

from pufferflow.general.distributions import max_divergence, wasserstein_infinity
from pufferflow.general.framework import Distance, PufferfishFramework

__all__ = ["Distance", "PufferfishFramework", "max_divergence", "wasserstein_infinity"]
