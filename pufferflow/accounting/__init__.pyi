"""Public names, each with its module."""

from .approximate import concentrated_delta as concentrated_delta
from .approximate import event_delta as event_delta
from .approximate import event_rho as event_rho
from .approximate import gaussian_ratio as gaussian_ratio
from .approximate import pufferfish_delta as pufferfish_delta
from .event import InfluenceCurve as InfluenceCurve
from .event import WrappedMeasurement as WrappedMeasurement
from .event import gaussian_scale as gaussian_scale
from .event import wrap as wrap
