"""The names of this room that belong to the public interface."""

from .schema import Schema as Schema
from .states import StateSpace as StateSpace
