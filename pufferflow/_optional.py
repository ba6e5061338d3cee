"""Packages that only some uses need: where one is missing, the rest works and a sentence names the extra to install."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pufferflow.errors import ParameterError

EXTRAS = {
    "matplotlib": "figures",
    "opendp": "publish",
    "pyarrow": "publish",
    "z3": "check",
    "requests": "workflow",
}
"""Extra of this package that brings each module."""


def absence(module: str) -> str:
    """Say that a module is not installed and which extra brings it; empty where it is there."""
    return "" if find_spec(module) else f"{module} is not installed; install pufferflow[{EXTRAS[module]}]"


def require(module: str, what: str) -> None:
    """Raise ParameterError unless the module that ``what`` needs is installed."""
    if missing := absence(module):
        raise ParameterError(f"{what} cannot be had: {missing}")


def load(name: str, what: str) -> Any:
    """Return the module ``name``, one of :data:`EXTRAS` or a part of it, where it is used: it loads slowly.

    Raises as :func:`require`.
    """
    require(name.partition(".")[0], what)
    return import_module(name)
