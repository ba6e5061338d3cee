"""Exact losses of Laplace noise, from the distributions of the data, and lower bounds."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
