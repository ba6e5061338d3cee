"""The loss that noise really has, from the exact distribution of the data."""

from pufferflow.audit.adversary import CloseAdversary, close_adversary
from pufferflow.audit.loss import (
    PrivacyLoss,
    check_work,
    privacy_loss,
    privacy_losses,
    smallest_scale,
)
from pufferflow.audit.lower_bound import LowerBound, lower_bound
from pufferflow.audit.queries import CountQuery, HistogramQuery, Query
from pufferflow.audit.wasserstein import chain_sensitivity

__all__ = [
    "CloseAdversary",
    "CountQuery",
    "HistogramQuery",
    "LowerBound",
    "PrivacyLoss",
    "Query",
    "chain_sensitivity",
    "check_work",
    "close_adversary",
    "lower_bound",
    "privacy_loss",
    "privacy_losses",
    "smallest_scale",
]
