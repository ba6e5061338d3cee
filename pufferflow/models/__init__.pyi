"""The names of this room that belong to the public interface."""

from .estimation import fit_periodic_chain as fit_periodic_chain
from .files import PublicModel as PublicModel
from .files import read_public_model as read_public_model
from .intervals import confidence_family as confidence_family
from .overlaps import Overlaps as Overlaps
from .overlaps import mixing_from_counts as mixing_from_counts
from .overlaps import mixing_of as mixing_of
