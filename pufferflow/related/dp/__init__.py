"""Classical mechanisms: differential privacy of independent records, the ground the rest stands on.

>>> from pufferflow import dp
>>> dp.RandomisedResponse(("yes", "no"), truth=0.75).probability("yes", truth="no")
Fraction(1, 4)
"""

from pufferflow.related.dp.alpha_beta import (
    AlphaBeta,
    Estimate,
    PrivacyCheck,
    Publication,
    check_views,
    choose_alpha_beta,
    publish,
)
from pufferflow.related.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta, Release
from pufferflow.related.dp.differencing import difference_guess, differencing_success
from pufferflow.related.dp.domains import Domain
from pufferflow.related.dp.exponential import Exponential
from pufferflow.related.dp.finite import FiniteMechanism, PrivacyLevel, composed, grouped
from pufferflow.related.dp.laplace import Laplace
from pufferflow.related.dp.precision import compute_precision, needed_precision
from pufferflow.related.dp.randomised_response import RandomisedResponse
from pufferflow.related.dp.sensitivity import Sensitivity, add_or_remove_one, change_one, databases, sensitivity
from pufferflow.related.dp.statistical_difference import answer_difference, answer_difference_bound, view_difference
from pufferflow.related.dp.views import Publisher
from pufferflow.related.dp.weighted_majority import WeightedMajority, private_rate

__all__ = [
    "AlphaBeta",
    "Base2Exponential",
    "Base2Laplace",
    "Domain",
    "Estimate",
    "Eta",
    "Exponential",
    "FiniteMechanism",
    "Laplace",
    "PrivacyCheck",
    "PrivacyLevel",
    "Publication",
    "Publisher",
    "RandomisedResponse",
    "Release",
    "Sensitivity",
    "WeightedMajority",
    "add_or_remove_one",
    "answer_difference",
    "answer_difference_bound",
    "change_one",
    "check_views",
    "choose_alpha_beta",
    "composed",
    "compute_precision",
    "databases",
    "difference_guess",
    "differencing_success",
    "grouped",
    "needed_precision",
    "private_rate",
    "publish",
    "sensitivity",
    "view_difference",
]
