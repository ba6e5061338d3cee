"""What releases of one population cost together: the account, its file, and other mechanisms."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
