"""Checks of arguments that several modules share."""

from __future__ import annotations

from collections.abc import Iterable

from pufferflow.errors import ParameterError


def check_choice(value: object, allowed: Iterable[str], name: str) -> None:
    """Raise :class:`ParameterError` unless the argument called ``name`` is one of the ``allowed`` texts."""
    choices = tuple(allowed)
    if value not in choices:
        raise ParameterError(f"{name} is {value!r}; choose from {', '.join(choices)}")
