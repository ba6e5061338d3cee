"""The names of this room that belong to the public interface."""

from .event import WrappedMeasurement as WrappedMeasurement
from .event import wrap as wrap
