"""Public names, each with its module."""

from .base import NoiseScale as NoiseScale
from .base import Quilt as Quilt
from .baselines import entry_dp as entry_dp
from .baselines import gk16 as gk16
from .baselines import group_dp as group_dp
from .entry_couplings import leakage as leakage
from .entry_couplings import leakage_loss as leakage_loss
from .one_count import wasserstein as wasserstein
from .quilts import mqm_approx as mqm_approx
from .quilts import mqm_exact as mqm_exact
from .registry import MECHANISMS as MECHANISMS
from .registry import certify as certify
from .registry import compute_scale as compute_scale
from .registry import find_mechanism as find_mechanism
