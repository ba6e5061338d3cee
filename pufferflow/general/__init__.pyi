"""Public names, each with its module."""

from .distributions import max_divergence as max_divergence
from .distributions import wasserstein_infinity as wasserstein_infinity
from .framework import PufferfishFramework as PufferfishFramework
