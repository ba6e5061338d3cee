"""A declared domain: the product of named columns, never written out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_type, named_type
from pufferflow._display import displayed
from pufferflow.errors import DataError, ParameterError

Codes = NDArray[np.int64]
"""Tuples as positions of their values in the declared columns, one row a tuple."""

_WIDEST = 2**62


@displayed()
class Domain:
    """All tuples with one value of every column.

    Parameters
    ----------
    columns : mapping of str to sequence
        The values each column may take; a ``range`` of any size costs nothing.

    Raises
    ------
    ParameterError
        No column, an empty column, or a value declared twice.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        check_type(columns, "columns", Mapping)
        if not columns:
            raise ParameterError("the domain has no column; declare one sequence of values a column")
        self.columns: dict[str, range | pd.Index[Any]] = {}
        for name, values in columns.items():
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise ParameterError(
                    f"column {name!r} of the domain is {named_type(values)}; it must be a sequence of values"
                )
            column = values if isinstance(values, range) else pd.Index(list(values), dtype=object)
            if len(column) == 0:
                raise ParameterError(f"column {name!r} of the domain has no value; declare those it may take")
            if len(column) > _WIDEST:
                raise ParameterError(f"column {name!r} of the domain has more than 2^62 values; split it in two")
            if isinstance(column, pd.Index) and column.has_duplicates:
                twice = column[column.duplicated()][0]
                raise ParameterError(f"column {name!r} of the domain declares {twice!r} twice; declare it once")
            self.columns[str(name)] = column

    def __repr__(self) -> str:
        return f"Domain({', '.join(f'{name}: {len(values)}' for name, values in self.columns.items())})"

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each column."""
        return tuple(len(values) for values in self.columns.values())

    @property
    def size(self) -> int:
        """Number of tuples, m."""
        return math.prod(self.sizes)

    def encode(self, data: pd.DataFrame) -> Codes:
        """Positions of a set of tuples, shape (rows, columns).

        Raises
        ------
        DataError
            An unknown, missing or repeated column, more rows than the domain has tuples, a tuple outside the domain, or
            one that occurs twice.
        """
        unknown = [name for name in data.columns if name not in self.columns]
        if unknown:
            raise DataError(f"column {unknown[0]!r} of the data is not in the domain; it declares {self.names}")
        if data.columns.has_duplicates:
            raise DataError(f"column {data.columns[data.columns.duplicated()][0]!r} occurs twice in the data; keep one")
        missing = [name for name in self.names if name not in data.columns]
        if missing:
            raise DataError(f"column {missing[0]!r} of the domain is not in the data; they have {list(data.columns)}")
        if len(data) > self.size:
            raise DataError(f"the data have {len(data)} rows, the declared domain only {self.size} tuples; widen it")
        codes = np.empty((len(data), len(self.names)), np.int64)
        for place, name in enumerate(self.names):
            codes[:, place] = self._positions(name, data[name])
            outside = np.flatnonzero(codes[:, place] < 0)
            if outside.size:
                raise DataError(
                    f"row {outside[0] + 1} of the data has a value of {name} that the domain does not declare; "
                    "declare it or drop the row"
                )
        first = first_occurrences(codes)
        if first.size < len(codes):
            row = int(np.setdiff1d(np.arange(len(codes)), first)[0])
            raise DataError(
                f"row {row + 1} of the data repeats an earlier tuple; a set is published: drop duplicates, or add a "
                "column that tells them apart"
            )
        return codes

    def decode(self, codes: Codes) -> pd.DataFrame:
        """Table of the tuples at these positions."""
        table = {}
        for place, (name, values) in enumerate(self.columns.items()):
            if isinstance(values, range):
                table[name] = pd.Series(codes[:, place] * values.step + values.start)
            else:
                table[name] = pd.Series(values.take(codes[:, place])).infer_objects()
        return pd.DataFrame(table)

    def selected(self, where: Mapping[str, Any], table: pd.DataFrame) -> tuple[NDArray[np.bool_], int]:
        """Rows of ``table`` that a conjunction of conditions selects, and how many tuples of the domain it selects.

        ``where`` gives, a column, one value or several that it may take (a ``range`` of step 1 for an interval
        of integers in a column declared as a ``range``).

        Raises
        ------
        DataError
            A column or a value that is not declared.
        """
        mask = np.ones(len(table), bool)
        count = self.size
        for name, wanted in where.items():
            if name not in self.columns:
                raise DataError(f"the query names column {name!r}, which the domain lacks; it declares {self.names}")
            values = self.columns[name]
            if isinstance(wanted, range) and isinstance(values, range):
                if wanted.step != 1:
                    raise DataError(f"the interval of column {name!r} must have step 1; list the values instead")
                column = table[name].to_numpy()
                mask &= (column >= wanted.start) & (column < wanted.stop)
                chosen = _count_between(values, wanted.start, wanted.stop)
            else:
                single = isinstance(wanted, str | bytes) or not isinstance(wanted, Iterable)
                several = pd.Series([wanted] if single else list(wanted), dtype=object)
                positions = self._positions(name, several)
                if (positions < 0).any():
                    value = several[int(np.flatnonzero(positions < 0)[0])]
                    raise DataError(f"the query asks for {name} = {value!r}, which the domain does not declare")
                chosen = np.unique(positions).size
                mask &= np.isin(self._positions(name, table[name]), positions)
            count = count // len(values) * chosen
        return mask, count

    def _positions(self, name: str, column: pd.Series[Any]) -> Codes:
        """Positions of values in a declared column, −1 where they are not declared."""
        values = self.columns[name]
        if isinstance(values, range):
            ends = (values[0], values[-1])
            if column.dtype in (np.int64, np.int32) and max(map(abs, ends)) < _WIDEST:
                numbers = column.to_numpy(np.int64)
                inside = (numbers >= min(ends)) & (numbers <= max(ends))
                steps = np.where(inside, numbers - values.start, 0)
                return np.where(inside & (steps % values.step == 0), steps // values.step, -1)
            return np.fromiter((_position(values, value) for value in column), np.int64, len(column))
        try:
            return np.asarray(values.get_indexer(pd.Index(column, dtype=object)), np.int64)
        except TypeError as error:
            raise DataError(f"column {name!r} has a value that cannot be compared ({error})") from error


def in_order(codes: Codes) -> Codes:
    """Row numbers that sort the tuples; equal ones stay in their order."""
    keys = _keys(codes)
    if keys is None:
        return np.lexsort(codes.T[::-1]).astype(np.int64)
    return np.argsort(keys, kind="stable").astype(np.int64)


def first_occurrences(codes: Codes) -> Codes:
    """Row numbers, ascending, of the tuples that have not occurred before."""
    order = in_order(codes)
    fresh = np.zeros(len(codes), bool)
    fresh[order[:1]] = True
    keys = _keys(codes)
    if keys is None:
        fresh[order[1:]] = (codes[order[1:]] != codes[order[:-1]]).any(axis=1)
    else:
        fresh[order[1:]] = np.diff(keys[order]) != 0
    return np.flatnonzero(fresh)


def _keys(codes: Codes) -> Codes | None:
    """One number a tuple, in their order, where 62 bits are enough: it sorts several times faster than columns do."""
    sizes = tuple(int(size) + 1 for size in codes.max(axis=0, initial=0))
    if math.prod(sizes) >= _WIDEST:
        return None
    return np.asarray(np.ravel_multi_index(tuple(codes.T), sizes), np.int64)


def _position(values: range, value: Any) -> int:
    if isinstance(value, float | np.floating) and value == np.floor(value):
        value = int(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return -1
    value = int(value)
    return values.index(value) if value in values else -1


def _count_between(values: range, start: int, stop: int) -> int:
    """How many of ``values`` lie in [start, stop)."""
    ordered = values if values.step > 0 else values[::-1]
    below = [max(0, min(len(ordered), -((ordered.start - end) // ordered.step))) for end in (start, stop)]
    return max(0, below[1] - below[0])
