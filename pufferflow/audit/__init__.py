"""The loss that noise really has, from the exact law of the data, and against adversaries who believe in another."""

from pufferflow.audit.adversary import CloseAdversary, close_adversary
from pufferflow.audit.loss import PrivacyLoss, check_work, privacy_loss, privacy_losses, smallest_scale
from pufferflow.audit.queries import CountQuery, HistogramQuery, Query
from pufferflow.audit.windows import AnyLengthLoss, loss_at_any_length, scale_for_any_length

__all__ = [
    "AnyLengthLoss",
    "CloseAdversary",
    "CountQuery",
    "HistogramQuery",
    "PrivacyLoss",
    "Query",
    "check_work",
    "close_adversary",
    "loss_at_any_length",
    "privacy_loss",
    "privacy_losses",
    "scale_for_any_length",
    "smallest_scale",
]
