"""Public names, each with its module."""

from .counts import chain_sensitivity as chain_sensitivity
from .loss import CountQuery as CountQuery
from .loss import HistogramQuery as HistogramQuery
from .loss import PrivacyLoss as PrivacyLoss
from .loss import Query as Query
from .loss import check_work as check_work
from .loss import privacy_loss as privacy_loss
from .loss import privacy_losses as privacy_losses
from .loss import smallest_scale as smallest_scale
from .lower_bounds import LowerBound as LowerBound
from .lower_bounds import lower_bound as lower_bound
