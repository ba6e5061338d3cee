"""Beside Pufferfish privacy of Markov chains: hidden Markov models, Bayesian networks.

Nothing here is needed for a release, and nothing else in the library imports it but what shows it: commands and
experiments. It imports only the rooms at the bottom (errors, checks, files, rounding, noise), and its parts do not
know one another.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["bayesnet", "hmm"])
