"""Public names, each with its module."""

from .estimation import confidence_family as confidence_family
from .files import PublicModel as PublicModel
from .files import read_public_model as read_public_model
from .mixing import Overlaps as Overlaps
from .mixing import mixing_from_counts as mixing_from_counts
from .mixing import mixing_of as mixing_of
