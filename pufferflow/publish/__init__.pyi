"""Public names, each with its module."""

from .fit import Fit as Fit
from .plan import Plan as Plan
