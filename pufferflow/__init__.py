"""Pufferfish privacy for correlated data.

>>> import pufferflow as pf
>>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial_distribution=[1, 0])
>>> round(pf.mqm_exact(chain, length=100, epsilon=1.0).scale, 6)
12.934051
"""

import lazy_loader

# The public names stand in __init__.pyi. Each is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = "1.0.0rc1"
