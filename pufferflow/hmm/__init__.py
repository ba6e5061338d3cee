"""Pufferfish privacy of discrete mechanisms, decided exactly in hidden Markov models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
