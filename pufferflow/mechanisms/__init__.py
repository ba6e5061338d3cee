"""Mechanisms: from a family of chains to the scale of Laplace noise.

Each is one file and one record, listed here.
"""

from pufferflow.mechanisms.base import (
    KNOWN,
    Mechanism,
    NoiseScale,
    Quilt,
    certify,
    compute_scale,
    find_mechanism,
)
from pufferflow.mechanisms.baselines import ENTRY_DP, GROUP_DP, entry_dp, group_dp
from pufferflow.mechanisms.entry_couplings import LEAKAGE, leakage, leakage_loss, loss_profile
from pufferflow.mechanisms.one_count import WASSERSTEIN, wasserstein
from pufferflow.mechanisms.quilts import MQM_APPROX, MQM_EXACT, mqm_approx, mqm_exact
from pufferflow.mechanisms.weak_correlation import GK16, gk16

for _record in (LEAKAGE, MQM_EXACT, MQM_APPROX, WASSERSTEIN, GK16, GROUP_DP, ENTRY_DP):
    KNOWN[_record.name] = _record

MECHANISMS = {name: record.scale for name, record in KNOWN.items()}
"""The functions of all mechanisms by name, those with the least noise first, baselines last."""

__all__ = [
    "KNOWN",
    "MECHANISMS",
    "Mechanism",
    "NoiseScale",
    "Quilt",
    "certify",
    "compute_scale",
    "entry_dp",
    "find_mechanism",
    "gk16",
    "group_dp",
    "leakage",
    "leakage_loss",
    "loss_profile",
    "mqm_approx",
    "mqm_exact",
    "wasserstein",
]
