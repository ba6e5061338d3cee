"""Mechanisms: from a family of chains to the scale of Laplace noise."""

from pufferflow._checks import shown_name
from pufferflow.errors import ParameterError
from pufferflow.mechanisms.base import Mechanism, NoiseScale, Quilt
from pufferflow.mechanisms.entry_dp import entry_dp
from pufferflow.mechanisms.gk16 import gk16
from pufferflow.mechanisms.group_dp import group_dp
from pufferflow.mechanisms.leakage import leakage, leakage_loss
from pufferflow.mechanisms.mqm_approx import mqm_approx
from pufferflow.mechanisms.mqm_exact import mqm_exact
from pufferflow.mechanisms.wasserstein import wasserstein

MECHANISMS: dict[str, Mechanism] = {
    "leakage": leakage,
    "mqm-exact": mqm_exact,
    "mqm-approx": mqm_approx,
    "wasserstein": wasserstein,
    "gk16": gk16,
    "group-dp": group_dp,
    "entry-dp": entry_dp,
}
"""All mechanisms by name, those with the least noise first, baselines last."""


def find_mechanism(name: str) -> Mechanism:
    """Return the mechanism called ``name``.

    Raises
    ------
    ParameterError
        There is none.
    """
    try:
        return MECHANISMS[name]
    except (KeyError, TypeError):
        raise ParameterError(f"mechanism {shown_name(name)} is unknown; choose from {', '.join(MECHANISMS)}") from None


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
