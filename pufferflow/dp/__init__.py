"""Classical mechanisms: differential privacy of independent records, the ground the rest stands on.

>>> from pufferflow import dp
>>> dp.RandomisedResponse(("yes", "no"), truth=0.75).probability("yes", truth="no")
Fraction(1, 4)
"""

from pufferflow.dp.alpha_beta import AlphaBeta, Estimate, PrivacyCheck, Publication, choose_alpha_beta, publish
from pufferflow.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta, Release
from pufferflow.dp.domains import Domain
from pufferflow.dp.exponential import Exponential
from pufferflow.dp.laplace import Laplace
from pufferflow.dp.randomised_response import RandomisedResponse
from pufferflow.dp.weighted_majority import WeightedMajority, private_rate

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
    "private_rate",
    "publish",
]
