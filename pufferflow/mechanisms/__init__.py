"""Mechanisms: from a family of chains to the scale of Laplace noise."""

from pufferflow.mechanisms.base import MECHANISMS, Mechanism, NoiseScale, Quilt, find_mechanism
from pufferflow.mechanisms.entry_dp import entry_dp
from pufferflow.mechanisms.gk16 import gk16
from pufferflow.mechanisms.group_dp import group_dp
from pufferflow.mechanisms.leakage import leakage, leakage_loss
from pufferflow.mechanisms.mqm_approx import mqm_approx
from pufferflow.mechanisms.mqm_exact import mqm_exact
from pufferflow.mechanisms.wasserstein import wasserstein

for _name in ("leakage", "mqm-exact", "mqm-approx", "wasserstein", "gk16", "group-dp", "entry-dp"):
    MECHANISMS[_name] = MECHANISMS.pop(_name)  # listed in this order: the least noise first, baselines last

__all__ = [
    "MECHANISMS",
    "Mechanism",
    "NoiseScale",
    "Quilt",
    "entry_dp",
    "find_mechanism",
    "gk16",
    "group_dp",
    "leakage",
    "leakage_loss",
    "mqm_approx",
    "mqm_exact",
    "wasserstein",
]
