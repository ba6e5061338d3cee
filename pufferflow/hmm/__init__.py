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

from pufferflow.hmm.checking import Verdict, Witness, check, largest_ratio
from pufferflow.hmm.files import read_hidden_markov_model
from pufferflow.hmm.model import HiddenMarkovModel
from pufferflow.hmm.noisy_max import NoisyMax, largest_value_ratio, truncated_geometric
from pufferflow.hmm.priors import (
    PreservingRegion,
    PriorFamily,
    Supremum,
    find_prior,
    preserving_region,
    sup_ratio,
)
from pufferflow.hmm.smt import check_by_solver

__all__ = [
    "HiddenMarkovModel",
    "NoisyMax",
    "PreservingRegion",
    "PriorFamily",
    "Supremum",
    "Verdict",
    "Witness",
    "check",
    "check_by_solver",
    "find_prior",
    "largest_ratio",
    "largest_value_ratio",
    "preserving_region",
    "read_hidden_markov_model",
    "sup_ratio",
    "truncated_geometric",
]
