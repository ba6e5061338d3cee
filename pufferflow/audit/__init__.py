"""The loss that noise really has, from the exact law of the data."""

from pufferflow.audit.loss import PrivacyLoss, privacy_loss, smallest_scale
from pufferflow.audit.queries import CountQuery, HistogramQuery, Query

__all__ = ["CountQuery", "HistogramQuery", "PrivacyLoss", "Query", "privacy_loss", "smallest_scale"]
