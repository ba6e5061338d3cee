"""Optional packages: if one is missing, a message names the extra to install."""

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
"""Extra of this package with each module."""


def load(name: str, purpose: str) -> Any:
    """Return a module, one of :data:`EXTRAS` or a part of it, that the ``purpose`` needs.

    Raises ParameterError: it is not installed.
    """
    module = name.partition(".")[0]
    if not find_spec(module):
        extra = f"pufferflow[{EXTRAS[module]}]"
        raise ParameterError(f"{purpose} needs {module}, which is not installed; install {extra}")
    return import_module(name)
