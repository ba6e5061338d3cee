"""Packages that only some uses need: if one is missing, a sentence names the extra to install."""

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


def require(module: str, what: str) -> None:
    """Raise ParameterError unless the module that ``what`` needs is installed."""
    if not find_spec(module):
        extra = f"pufferflow[{EXTRAS[module]}]"
        raise ParameterError(f"{what} needs {module}, which is not installed; install {extra}")


def load(name: str, what: str) -> Any:
    """Return the module ``name``, one of :data:`EXTRAS` or a part of it; raises as :func:`require`.

    It is imported only where it is used, as it loads slowly.
    """
    require(name.partition(".")[0], what)
    return import_module(name)
