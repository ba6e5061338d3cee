"""Values that a source states, as computed here."""

from __future__ import annotations

from typing import NamedTuple

COLUMNS = ["example", "quantity", "key", "computed"]


class Value(NamedTuple):
    """One computed value; ``key`` finds the printed one in reported.csv."""

    example: str
    quantity: str
    key: str
    computed: float | str
