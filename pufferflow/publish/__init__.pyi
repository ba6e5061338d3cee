"""The names of this room that belong to the public interface."""

from .fit import Fit as Fit
from .plan import Plan as Plan
