"""The names of this room that belong to the public interface."""

from .alpha_beta import AlphaBeta as AlphaBeta
from .alpha_beta import Domain as Domain
from .alpha_beta import Estimate as Estimate
from .alpha_beta import PrivacyCheck as PrivacyCheck
from .alpha_beta import Publication as Publication
from .alpha_beta import Publisher as Publisher
from .alpha_beta import check_views as check_views
from .alpha_beta import choose_alpha_beta as choose_alpha_beta
from .alpha_beta import publish as publish
from .base2 import Base2Exponential as Base2Exponential
from .base2 import Base2Laplace as Base2Laplace
from .base2 import Eta as Eta
from .classical import Exponential as Exponential
from .classical import Laplace as Laplace
from .classical import RandomisedResponse as RandomisedResponse
from .classical import WeightedMajority as WeightedMajority
from .classical import private_rate as private_rate
from .finite import FiniteMechanism as FiniteMechanism
from .finite import PrivacyLevel as PrivacyLevel
from .finite import add_or_remove_one as add_or_remove_one
from .finite import change_one as change_one
from .finite import composed as composed
from .finite import grouped as grouped
from .finite import sensitivity as sensitivity
