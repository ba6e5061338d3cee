"""W∞ and the Wasserstein Mechanism: of any finite family of joint laws, and of counts along Markov chains."""

from pufferflow.transport.chains import ChainSensitivity, chain_sensitivity
from pufferflow.transport.finite import wasserstein_sensitivity

__all__ = ["ChainSensitivity", "chain_sensitivity", "wasserstein_sensitivity"]
