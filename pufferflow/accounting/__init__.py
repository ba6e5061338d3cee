"""The account of all releases of one population, its file, and mechanisms of other libraries."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
