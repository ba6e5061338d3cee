"""Markov Quilt Mechanism on general Bayesian networks (Song et al., SIGMOD 2017, Algorithm 2)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
