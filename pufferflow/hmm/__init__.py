"""Pufferfish privacy of discrete mechanisms, decided exactly in hidden Markov models.

>>> from pufferflow import hmm
>>> prior = [["16/25", "8/25", "1/25"], ["3/5", 0, "2/5"]]
>>> priors = {"ill": [*prior, [0, "1/2", "1/2"]], "healthy": [*prior, ["1/2", "1/2", 0]]}
>>> model = hmm.NoisyMax().model(priors)
>>> hmm.check(model, factor=2).holds
True
>>> hmm.largest_ratio(model).ratio
Fraction(911, 550)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
