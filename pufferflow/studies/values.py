"""Values that a source states, as computed here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd


class Value(NamedTuple):
    """One computed value; ``key`` finds the reported one in ``reporting/reported``."""

    example: str
    quantity: str
    key: str
    computed: float | str


COLUMNS = list(Value._fields)


def values_table(values: Iterable[Value]) -> pd.DataFrame:
    """Table of values, one row each."""
    return pd.DataFrame(list(values), columns=COLUMNS)
