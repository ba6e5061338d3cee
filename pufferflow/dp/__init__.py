"""Classical mechanisms and measures: differential privacy of independent records."""

from pufferflow.dp.alpha_beta import AlphaBeta as AlphaBeta
from pufferflow.dp.alpha_beta import Domain as Domain
from pufferflow.dp.alpha_beta import Estimate as Estimate
from pufferflow.dp.alpha_beta import PrivacyCheck as PrivacyCheck
from pufferflow.dp.alpha_beta import Publication as Publication
from pufferflow.dp.alpha_beta import Publisher as Publisher
from pufferflow.dp.alpha_beta import check_views as check_views
from pufferflow.dp.alpha_beta import choose_alpha_beta as choose_alpha_beta
from pufferflow.dp.alpha_beta import publish as publish
from pufferflow.dp.base2 import Base2Exponential as Base2Exponential
from pufferflow.dp.base2 import Base2Laplace as Base2Laplace
from pufferflow.dp.base2 import Eta as Eta
from pufferflow.dp.classical import Exponential as Exponential
from pufferflow.dp.classical import Laplace as Laplace
from pufferflow.dp.classical import RandomisedResponse as RandomisedResponse
from pufferflow.dp.classical import WeightedMajority as WeightedMajority
from pufferflow.dp.classical import private_rate as private_rate
from pufferflow.dp.finite import FiniteMechanism as FiniteMechanism
from pufferflow.dp.finite import PrivacyLevel as PrivacyLevel
from pufferflow.dp.finite import add_or_remove_one as add_or_remove_one
from pufferflow.dp.finite import change_one as change_one
from pufferflow.dp.finite import composed as composed
from pufferflow.dp.finite import grouped as grouped
from pufferflow.dp.finite import sensitivity as sensitivity
