"""What each line of a stream counts: 1 or 0, whatever stands there."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from pufferflow._checks import check_finite, shown
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.format import StateSpace
from pufferflow.records.rows import MISSING_TEXTS
from pufferflow.records.times import is_number

LONGEST_LINE = 2**16
"""Bytes of a line; what is longer holds no value."""

BITS = ("0", "1")


@dataclass(frozen=True)
class Counted:
    """Which records a running count counts.

    A line without a value (empty, missing, or no value at all) counts as 0, so that whatever one line holds, it changes
    the counts by at most 1, and nothing else: no message, no exit code, no line that is left out.

    Attributes
    ----------
    threshold : float, optional
        Count numbers of at least this.
    states : StateSpace, optional
        The categories that there are, with
    names : tuple of str
        those that are counted. Without a threshold and without states a record is 0 or 1.
    column : str, optional
        Where lines have several fields: the one that holds the value. The first line then is a header.
    separator, decimal : str
        Between fields, and in numbers.

    Raises ParameterError: they do not fit together.
    """

    threshold: float | None = None
    states: StateSpace | None = None
    names: tuple[str, ...] = ()
    column: str | None = None
    separator: str = ","
    decimal: str = "."
    _codes: frozenset[int] = field(init=False, repr=False, default=frozenset())

    def __post_init__(self) -> None:
        for sign, name in ((self.separator, "separator"), (self.decimal, "decimal")):
            if len(sign) != 1 or sign in '"\r\n' or sign.isalnum():
                raise ParameterError(f"{name} is {shown(sign)}; give a single sign")
        if self.column is not None and self.separator == self.decimal:
            raise ParameterError("separator and decimal are the same sign; give another one")
        if self.threshold is not None:
            object.__setattr__(self, "threshold", check_finite(self.threshold, "threshold"))
            if self.names:
                raise ParameterError("a threshold and names of states count different things; give one of them")
        elif self.states is not None and not self.names:
            raise ParameterError("say which of the states to count")
        if self.names:
            if self.states is None or self.states.edges is not None:
                raise ParameterError("names are counted among named states; give all states there are")
            for name in self.names:
                if name not in self.states.names:
                    raise ParameterError(f"{shown(name)} is none of the states; name one of them")
            codes = self.states.encode_names(self.names).tolist()
            object.__setattr__(self, "_codes", frozenset(codes))

    @property
    def said(self) -> str:
        """What is counted, in words."""
        if self.threshold is not None:
            return f"records of at least {self.threshold:g}"
        return f"records in {' or '.join(self.names)}" if self.names else "records that are 1"

    def value(self, text: str) -> int | None:
        """Return 1 or 0; None where the text is no value, and 0 where it says that there is none."""
        text = text.strip()
        if self.names:
            assert self.states is not None
            if text.lower() in MISSING_TEXTS and not self.states.claims(text):
                return 0
            code = int(self.states.encode_names([text])[0])
            return int(code in self._codes) if code >= 0 else None
        if text.lower() in MISSING_TEXTS:
            return 0
        if self.threshold is None:
            return int(text) if text in BITS else None
        number = text.replace(self.decimal, ".") if self.decimal != "." else text
        if not is_number(number) and number.lower().lstrip("+-") not in ("inf", "infinity"):
            return None
        return int(float(number) >= self.threshold)

    def values(self, lines: BinaryIO, where: str) -> Iterator[int | None]:
        """Read the header, where there is one, and return what each record counts, as the lines come.

        Raises DataError: the header has no such column.
        """
        at = None
        if self.column is not None:
            names = self._fields(_line(lines) or "")
            if names.count(self.column) != 1:
                raise DataError(
                    f"{where}, line 1: there is no column {shown(self.column)}, or several; mend its name (value) or "
                    "the sign between the fields (separator)"
                )
            at = names.index(self.column)
        return self._values(lines, at)

    def _values(self, lines: BinaryIO, at: int | None) -> Iterator[int | None]:
        while (line := _line(lines)) is not None:
            if at is None:
                yield self.value(line)
            else:
                row = self._fields(line)
                yield self.value(row[at]) if at < len(row) else None

    def _fields(self, line: str) -> list[str]:
        try:
            return [part.strip() for part in next(csv.reader([line], delimiter=self.separator), [])]
        except csv.Error:
            return []


def check_values(counted: Counted, path: str | os.PathLike[str]) -> int:
    """Read a whole file and return the number of its records.

    Raises DataError: there are none, or one is no value; it is not shown.
    """
    records = 0
    first = 1 if counted.column is None else 2
    with open(path, "rb") as lines:
        for records, value in enumerate(counted.values(lines, str(path)), 1):
            if value is None:
                line = records + first - 1
                hint = "; where the first line has the names of columns, give that of the values (value)" * (line == 1)
                raise DataError(f"{path}, line {line}: {_wanted(counted)}; mend it, or leave it empty{hint}")
    if not records:
        raise DataError(f"{path}: there are no records")
    return records


def _wanted(counted: Counted) -> str:
    if counted.names:
        return "the value is none of the states"
    return "there is no number" if counted.threshold is not None else "the value is neither 0 nor 1"


def _line(lines: BinaryIO) -> str | None:
    """The next line; None at the end."""
    line = lines.readline(LONGEST_LINE)
    if not line:
        return None
    if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
        while (rest := lines.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass
        return "\0"  # no value
    return line.decode(errors="replace").rstrip("\r\n")
