"""Systems related to the paper's; each module measures one of the library."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from reproduction import tidy


class Value(NamedTuple):
    """A computed value; ``key`` finds the reported one in ``reproduction/reported``."""

    example: str
    quantity: str
    key: str
    computed: str | float


Row = dict[str, Any]
Found = Value | Row
"""A value, or a row of the curves."""
Stated = Iterator[tuple[str, str, float | str]]
"""The key of a value, its quantity, and the computed value."""


def write(found: Iterable[Found], curves: str, values: str) -> None:
    """Write the rows that ``measure`` yields to files: curves, schema ``related``, and values."""
    listed = list(found)
    rows = (row for row in listed if isinstance(row, dict))
    tidy.write(tidy.frame(rows, "related"), curves, "related")
    computed = (value._asdict() for value in listed if isinstance(value, Value))
    tidy.write(tidy.frame(computed, "values"), values, "values")
