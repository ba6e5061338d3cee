"""Pufferfish privacy in general (Song et al., section 2): finitely many secrets and scenarios."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
