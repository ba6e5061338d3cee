"""The figures, one module an experiment; ``panels`` holds what they share."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def figures_of(name: str) -> Any:
    """Return the module with the figures of an experiment."""
    return import_module(f"{__name__}.{name}")
