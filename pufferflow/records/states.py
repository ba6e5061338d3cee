"""The public states of readings, and the encoding of values as states."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.checks import check_finite, check_list
from pufferflow.errors import ParameterError
from pufferflow.records.table import ROWS

MISSING, UNKNOWN = -1, -2
"""Codes of a missing value and of one that is not a public state."""
MAX_STATES = 2000
MISSING_TEXTS = ("", "na", "n/a", "nan", "null", "none", "?", "-")
"""Strings (in any case) for a missing value, unless one is declared as a state."""
NULL_TEXTS = ("na", "n/a", "nan", "null", "none", "<na>", "#n/a", "#na", "-nan")
"""Strings (in any case) that pandas reads as missing: a typed table may have lost such a state."""
OTHER = "other"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


@dataclass(frozen=True)
class StateSpace:
    """The public states; the state of a value never depends on other readings.

    Attributes
    ----------
    names : tuple of str
        Names in the order of the chain.
    edges : tuple of float or None
        Numeric states: state j has edges[j − 1] ≤ value < edges[j]. The first and the last bin are
        open, so every number has a state.
    other : bool
        Categories: the last state takes every name that is not listed. Without it an unknown name
        is refused, which reveals that it occurred.
    """

    names: tuple[str, ...]
    edges: tuple[float, ...] | None = None
    other: bool = False

    @classmethod
    def numeric(cls, edges: Sequence[float]) -> Self:
        """Return the bins between the ``edges``, one more than there are edges.

        Raises ParameterError: an edge is not finite or not larger than the one before.
        """
        numbers = tuple(check_finite(edge, "an edge") for edge in check_list(edges, "edges"))
        if any(b <= a for a, b in pairwise(numbers)):
            raise ParameterError("edges must be finite numbers, each larger than the one before")
        if not 1 <= len(numbers) < MAX_STATES:
            raise ParameterError(f"{len(numbers)} edges; give 1 to {MAX_STATES - 1}")
        shown = [f"{edge:.12g}" for edge in numbers]
        inner = (f"{low} to {high}" for low, high in pairwise(shown))
        return cls((f"< {shown[0]}", *inner, f">= {shown[-1]}"), numbers)

    @classmethod
    def categories(cls, names: Sequence[str], *, other: bool = False) -> Self:
        """Return states by name; with ``other`` the state "other" comes last.

        Raises ParameterError: there are none, too many, two of one name, or a name is not a string,
        is empty, has a blank at an end, or a control character.
        """
        listed = tuple(check_list(names, "names"))
        plain = [isinstance(name, str) and name.strip() == name != "" for name in listed]
        letters = "".join(map(str, listed))
        if not all(plain) or any(unicodedata.category(one) in ("Cc", "Cs") for one in letters):
            problem = (
                "the names of the states must be strings that are not empty, without blanks at"
            )
            raise ParameterError(
                f"{problem} their ends, control characters and halves of characters"
            )
        keys = {shortest(name) or name for name in listed}
        if not 0 < len(listed) == len(keys) < MAX_STATES or (other and OTHER in listed):
            problem = "the names of the states must be different, as numbers too, at least one"
            raise ParameterError(f"{problem}, and fewer than {MAX_STATES}")
        return cls((*listed, OTHER) if other else listed, None, other)

    @property
    def count(self) -> int:
        """Number of states, k."""
        return len(self.names)

    @property
    def listed(self) -> tuple[str, ...]:
        """The categories that are named."""
        return self.names[:-1] if self.other else self.names

    def encode_numbers(self, values: NDArray[np.float64]) -> NDArray[np.int16]:
        """Return the state of each number, shape (n,); NaN is missing."""
        assert self.edges is not None
        codes = np.empty(len(values), dtype=np.int16)
        for at in range(0, len(values), ROWS):  # at once they would take four times as much
            part = slice(at, at + ROWS)
            codes[part] = np.searchsorted(self.edges, values[part], side="right")
        codes[np.isnan(values)] = MISSING
        return codes

    def encode_names(self, names: Iterable[str]) -> NDArray[np.int16]:
        """Return the state of each name, shape (n,), or the code of missing or :data:`UNKNOWN`.

        Numbers are compared as numbers. A declared state is never missing: if it were left out its
        count would be published exactly, by the number of readings.
        """
        rest = self.count - 1 if self.other else UNKNOWN
        known = {shortest(name) or name: code for code, name in enumerate(self.listed)}
        absent = {*MISSING_TEXTS} - {name.lower() for name in self.listed}
        codes = []
        for name in names:
            code = known.get(shortest(name) or name, rest)
            codes.append(MISSING if code == rest and name.lower() in absent else code)
        return np.array(codes, dtype=np.int16)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON types that :func:`pufferflow.records.schema.parse_schema` reads."""
        if self.edges is not None:
            return {"edges": list(self.edges)}
        return {"names": list(self.listed), "other": self.other}


def shortest(text: str) -> str | None:
    """Return the short string of the same number: "0" for "0.0"; None if it is not finite."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    number = Decimal(text).normalize(Context(prec=len(text)))  # this precision is exact
    if not number:
        return "0"
    return f"{number:f}" if -7 < number.adjusted() < 21 else str(number)
