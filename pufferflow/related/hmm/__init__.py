"""Pufferfish privacy of discrete mechanisms, decided exactly in hidden Markov models.

>>> from pufferflow import hmm
>>> prior = [["16/25", "8/25", "1/25"], ["3/5", 0, "2/5"]]
>>> model = hmm.noisy_max({"ill": [*prior, [0, "1/2", "1/2"]], "healthy": [*prior, ["1/2", "1/2", 0]]})
>>> hmm.check(model, factor=2).holds
True
>>> hmm.largest_ratio(model).ratio
Fraction(911, 550)
"""

from pufferflow.related.hmm.builders import (
    mechanism_model,
    noisy_max,
    noisy_max_family,
    randomised_response,
    truncated_geometric,
)
from pufferflow.related.hmm.checking import Verdict, Witness, check, largest_ratio
from pufferflow.related.hmm.files import parse_hidden_markov_model, read_hidden_markov_model
from pufferflow.related.hmm.maxima import NeighbourRatio, index_law, largest_value_ratio, noisy_laws, value_law
from pufferflow.related.hmm.model import HiddenMarkovModel
from pufferflow.related.hmm.priors import FoundPrior, PriorFamily, Supremum, find_prior, sup_ratio
from pufferflow.related.hmm.regions import PreservingRegion, preserving_region
from pufferflow.related.hmm.sampling import NoisyMax
from pufferflow.related.hmm.solver import check_by_solver

__all__ = [
    "FoundPrior",
    "HiddenMarkovModel",
    "NeighbourRatio",
    "NoisyMax",
    "PreservingRegion",
    "PriorFamily",
    "Supremum",
    "Verdict",
    "Witness",
    "check",
    "check_by_solver",
    "find_prior",
    "index_law",
    "largest_ratio",
    "largest_value_ratio",
    "mechanism_model",
    "noisy_laws",
    "noisy_max",
    "noisy_max_family",
    "parse_hidden_markov_model",
    "preserving_region",
    "randomised_response",
    "read_hidden_markov_model",
    "sup_ratio",
    "truncated_geometric",
    "value_law",
]
