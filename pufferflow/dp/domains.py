"""A declared domain: the product of named columns, each of its tuples one 64-bit code."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_type
from pufferflow.errors import DataError, ParameterError

Codes: TypeAlias = NDArray[np.int64]


class Domain:
    """All tuples with one value of every column, at most 2^62, so that codes fit 64 bits.

    Parameters
    ----------
    columns : mapping of str to sequence
        The distinct values that each column may take, hashable; a ``range`` of any size costs
        nothing. Anything else is a ParameterError.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        check_type(columns, "columns", Mapping)
        if not columns:
            raise ParameterError("the domain has no column; declare a sequence of values for each")
        self.columns: dict[str, range | tuple[Any, ...]] = {}
        for name, values in columns.items():
            try:
                listed = values if isinstance(values, range) else tuple(values)
                known: Collection[Any] = listed if isinstance(values, range) else set(listed)
                valid = 0 < len(known) == len(listed) and not isinstance(values, str)
            except (TypeError, OverflowError):
                valid = False
            if not valid:
                raise ParameterError(
                    f"column {name!r} must be a sequence of distinct values, at least one"
                )
            self.columns[str(name)] = listed
        if self.size > 2**62:
            raise ParameterError("the domain has more than 2^62 tuples; declare fewer values")

    def __repr__(self) -> str:
        return f"Domain({', '.join(f'{name}: {len(of)}' for name, of in self.columns.items())})"

    @property
    def size(self) -> int:
        """Number of tuples, m."""
        return math.prod(map(len, self.columns.values()))

    def encode(self, data: pd.DataFrame) -> Codes:
        """Return the codes of a set of tuples, one per row: indices in lexicographic order.

        Raises DataError for other columns than the domain's, a tuple outside it, or one twice.
        """
        if len(data.columns) != len(self.columns) or set(data.columns) != set(self.columns):
            raise DataError(f"the data must have the columns {list(self.columns)}, each once")
        codes = np.zeros(len(data), np.int64)
        for name, values in self.columns.items():
            indices = self._indices(name, data[name])
            if (outside := np.flatnonzero(indices < 0)).size:
                raise DataError(
                    f"row {outside[0] + 1} of the data has a value of {name} that the domain does "
                    "not declare; declare it or drop the row"
                )
            codes = codes * len(values) + indices
        if (repeated := np.flatnonzero(pd.Series(codes).duplicated())).size:
            raise DataError(
                f"row {repeated[0] + 1} of the data repeats an earlier tuple; a set is published: "
                "drop duplicates, or add a column that distinguishes them"
            )
        return codes

    def decode(self, codes: Codes) -> pd.DataFrame:
        """Return the table of the tuples with these codes."""
        table = {}
        for name, values in reversed(self.columns.items()):
            codes, indices = np.divmod(codes, len(values))
            if isinstance(values, range):
                table[name] = pd.Series(indices * values.step + values.start)
            else:
                table[name] = pd.Series([values[i] for i in indices], dtype=object).infer_objects()
        return pd.DataFrame({name: table[name] for name in self.columns})

    def selected(
        self, where: Mapping[str, Any], table: pd.DataFrame
    ) -> tuple[NDArray[np.bool_], int]:
        """Return the rows of ``table`` that meet all conditions, and how many tuples of D do.

        ``where`` has for each column one value, or several that it may take; a column or a value
        that is not declared is a DataError.
        """
        mask, count = np.ones(len(table), bool), self.size
        for name, wanted in where.items():
            if name not in self.columns:
                raise DataError(f"the query names a column that is not one of {list(self.columns)}")
            single = isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable)
            indices = self._indices(name, [wanted] if single else wanted)
            if (indices < 0).any():
                raise DataError(f"the query has a value of {name} that the domain lacks")
            mask &= np.isin(self._indices(name, table[name]), indices)
            count = count // len(self.columns[name]) * np.unique(indices).size
        return mask, count

    def _indices(self, name: str, wanted: Iterable[Any]) -> Codes:
        """Return the index of each value in a column's declaration, −1 if not declared."""
        values = self.columns[name]
        try:
            if isinstance(values, range):
                return np.array([_index(values, value) for value in wanted], np.int64)
            known = {value: i for i, value in enumerate(values)}
            return np.array([known.get(value, -1) for value in wanted], np.int64)
        except TypeError:
            raise DataError(f"column {name!r} has a value that cannot be compared") from None


def _index(values: range, value: Any) -> int:
    """Return the index of an integer, which may be a float; −1 for anything else."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer):
        return -1
    return values.index(int(value)) if value % 1 == 0 and int(value) in values else -1
