"""Systems related to the paper's; each module measures one of the library."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pandas as pd

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


def tables(found: Iterable[Found]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the curves (schema ``related``) and the values (schema ``values``) of a system."""
    listed = list(found)
    curves = tidy.frame((row for row in listed if isinstance(row, dict)), "related")
    values = (value._asdict() for value in listed if isinstance(value, Value))
    return curves, tidy.frame(values, "values")


def write(found: Iterable[Found], paths: Iterable[str]) -> None:
    """Write the rows that ``measure`` yields to the files of curves and of values."""
    for table, path, stage in zip(tables(found), paths, ("related", "values"), strict=True):
        tidy.write(table, path, stage)
