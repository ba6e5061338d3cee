"""Public names, each with its module."""

from .schema import Schema as Schema
from .states import StateSpace as StateSpace
