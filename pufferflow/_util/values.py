"""Objects that are their values."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class ByValue:
    """Equal to those of its class with the same :meth:`document`; a subclass is immutable."""

    def document(self) -> dict[str, Any]:
        """Return the object as plain JSON types."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or (hash(self) == hash(other) and self._value == other._value)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((type(self).__name__, self._value))

    @property
    def _value(self) -> Any:
        return _frozen(self.document())


def _frozen(value: Any) -> Any:
    """Plain JSON types as what can be hashed."""
    if isinstance(value, dict):
        return tuple((key, _frozen(entry)) for key, entry in sorted(value.items()))
    if not isinstance(value, list):
        return value
    if not any(isinstance(entry, list | dict) for entry in value):
        return tuple(value)  # a row of a matrix
    return tuple(map(_frozen, value))
