"""Classical mechanisms: differential privacy of independent records, the ground the rest stands on.

>>> from pufferflow import dp
>>> dp.RandomisedResponse(("yes", "no"), truth=0.75).probability("yes", truth="no")
Fraction(1, 4)
"""

from pufferflow.related.dp.alpha_beta import AlphaBeta, Estimate, PrivacyCheck, Publication, choose_alpha_beta, publish
from pufferflow.related.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta, Release
from pufferflow.related.dp.domains import Domain
from pufferflow.related.dp.exponential import Exponential
from pufferflow.related.dp.laplace import Laplace
from pufferflow.related.dp.precision import compute_precision, needed_precision
from pufferflow.related.dp.randomised_response import RandomisedResponse
from pufferflow.related.dp.weighted_majority import WeightedMajority, private_rate

__all__ = [
    "AlphaBeta",
    "Base2Exponential",
    "Base2Laplace",
    "Domain",
    "Estimate",
    "Eta",
    "Exponential",
    "Laplace",
    "PrivacyCheck",
    "Publication",
    "RandomisedResponse",
    "Release",
    "WeightedMajority",
    "choose_alpha_beta",
    "compute_precision",
    "needed_precision",
    "private_rate",
    "publish",
]
