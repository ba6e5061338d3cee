"""Public names, each with its module."""

from .checking import Verdict as Verdict
from .checking import Witness as Witness
from .checking import check as check
from .checking import largest_ratio as largest_ratio
from .model import HiddenMarkovModel as HiddenMarkovModel
from .noisy_max import NoisyMax as NoisyMax
from .noisy_max import largest_value_ratio as largest_value_ratio
from .noisy_max import read_hidden_markov_model as read_hidden_markov_model
from .noisy_max import truncated_geometric as truncated_geometric
from .priors import PreservingRegion as PreservingRegion
from .priors import PriorFamily as PriorFamily
from .priors import Supremum as Supremum
from .priors import find_prior as find_prior
from .priors import preserving_region as preserving_region
from .priors import sup_ratio as sup_ratio
from .smt import check_by_solver as check_by_solver
