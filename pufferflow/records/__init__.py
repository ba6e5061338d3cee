"""From a table to steps and counts, for the command line and the workflow alike.

``table`` opens CSV, Parquet or a data frame, ``schema`` says what its columns stand for, ``read``
makes :class:`~pufferflow.records.read.Steps` of it, ``states`` are the public states, and
``counts`` counts.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
