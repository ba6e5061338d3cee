"""Processes that an adversary may believe in: chains, classes of chains, fits and model files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
