"""What the steps of a chain stand for: the public part of how records become states.

A model file may carry it under the key ``records``, so that new data are read exactly as those the chain was
fitted to::

    "records": {"states": {"edges": [200, 400, …]} or {"names": ["walking", …], "other": false},
                "step_seconds": 60 or null, "split_after_seconds": 600 or null, "split_because": "…",
                "fitted": {"first": "2007-05-01T00:00:00", "last": …, "records": 525600} or null,
                "reading": {"time": "tstp", "decimal": ",", …},
                "fitted_privately": {"epsilon": 1.0, "confidence": 0.95, …}}
"""

from __future__ import annotations

import dataclasses
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import (
    check_confidence,
    check_epsilon,
    check_list,
    check_numbers,
    check_positive,
    check_type,
    check_whole,
)
from pufferflow._display import displayed
from pufferflow._numbers import shortest
from pufferflow._texts import check_unicode
from pufferflow.errors import ModelError, ParameterError

MISSING, UNKNOWN = -1, -2
"""Codes of a missing value and of one that is no public state."""

MOST_STATES = 2000
MOST_SECONDS = 2**53 - 1
OTHER = "other"
_TIME = re.compile(r"-?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\dZ?", re.ASCII)
_STEP = re.compile(r"step \d{1,19}", re.ASCII)
READING_OPTIONS = (
    *("time", "value", "participant", "group", "rows_are_steps"),
    *("timezone", "time_format", "separator", "decimal", "thousands"),
)
"""Of :class:`pufferflow.records.reading.Reading`, those that belong to the data."""


@displayed()
@dataclass(frozen=True)
class StateSpace:
    """The public states; whether a value has one never depends on other records.

    Attributes
    ----------
    names : tuple of str
        In the order of the chain.
    edges : tuple of float or None
        Of numeric states: state j holds edges[j − 1] ≤ value < edges[j]. The first and the last bin are open, so
        every number has a state.
    other : bool
        Of categories: the last state takes every name that is not listed. Without it an unknown name is refused,
        which tells that it occurred.
    """

    names: tuple[str, ...]
    edges: tuple[float, ...] | None = None
    other: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            check_unicode(name, "the name of a state")

    @classmethod
    def numeric(cls, edges: Sequence[float]) -> StateSpace:
        """Bins between the ``edges``, one more than there are edges.

        Raises
        ------
        ParameterError
            An edge is not finite or not larger than the one before.
        """
        numbers = tuple(check_numbers(check_list(edges, "edges"), "edges").tolist())
        if not all(map(math.isfinite, numbers)) or any(b <= a for a, b in pairwise(numbers)):
            raise ParameterError("edges must be finite numbers, each larger than the one before")
        if not 1 <= len(numbers) < MOST_STATES:
            raise ParameterError(f"{len(numbers)} edges; give at least 1 and fewer than {MOST_STATES}")
        shown = [f"{edge:.12g}" for edge in numbers]
        inner = (f"{low} to {high}" for low, high in pairwise(shown))
        return cls((f"< {shown[0]}", *inner, f">= {shown[-1]}"), numbers)

    @classmethod
    def categories(cls, names: Sequence[str], *, other: bool = False) -> StateSpace:
        """States by name; with ``other`` the state "other" comes last.

        Raises
        ------
        ParameterError
            A name is empty, given twice or no text, or there are none.
        """
        listed = tuple(check_list(names, "names"))
        if not all(isinstance(name, str) for name in listed):
            raise ParameterError("the names of the states must be texts")
        for name in listed:
            if any(unicodedata.category(letter) == "Cc" for letter in name):
                raise ParameterError(f"the name {name!r} of a state has a control character; mend it")
            if name != name.strip():
                raise ParameterError(
                    f"the name {name!r} of a state has a blank at its end, which no value has; mend it"
                )
        same = [shortest(name) or name for name in listed]
        if len(set(same)) < len(set(listed)):
            one, other_one = _alike(listed, same)
            raise ParameterError(f"the states {one!r} and {other_one!r} are the same number; name it once")
        if not listed or len(set(listed)) < len(listed) or not all(listed) or (other and OTHER in listed):
            raise ParameterError("the names of the states must be different and not empty, and there must be some")
        if len(listed) >= MOST_STATES:
            raise ParameterError(f"{len(listed)} states; fewer than {MOST_STATES} can be handled")
        return cls((*listed, OTHER) if other else listed, None, other)

    @property
    def count(self) -> int:
        """Number of states, k."""
        return len(self.names)

    def encode_numbers(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """State of each number, shape as ``values``; NaN is missing."""
        assert self.edges is not None
        codes = np.searchsorted(np.array(self.edges), values, side="right").astype(np.int64)
        codes[np.isnan(values)] = MISSING
        return codes

    def encode_names(self, names: Sequence[str]) -> NDArray[np.int64]:
        """State of each name, shape (n,); :data:`UNKNOWN` where there is none. Numbers are compared as numbers."""
        fallback = self.count - 1 if self.other else UNKNOWN
        return np.array([self._codes.get(shortest(name) or name, fallback) for name in names], dtype=np.int64)

    def claims(self, text: str) -> bool:
        """Whether a category is named so, in any case: then no text like it is taken for a missing value."""
        return text.lower() in self._claimed

    @cached_property
    def _claimed(self) -> frozenset[str]:
        return frozenset() if self.edges is not None else frozenset(name.lower() for name in self.listed)

    @property
    def listed(self) -> tuple[str, ...]:
        """The categories that are named."""
        return self.names[:-1] if self.other else self.names

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {shortest(name) or name: code for code, name in enumerate(self.listed)}

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON types that :func:`parse_records` reads."""
        if self.edges is not None:
            return {"edges": list(self.edges)}
        return {"names": list(self.listed), "other": self.other}


@dataclass(frozen=True)
class Fitted:
    """Times of the first and the last record a chain was fitted to, and their number; these are public facts.

    Raises ParameterError: a time is not written as ``fit`` writes it.
    """

    first: str
    last: str
    records: int

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            stamp = getattr(self, name)
            try:
                if not _STEP.fullmatch(stamp):
                    _seconds(stamp)
            except ValueError:
                raise ParameterError(f"fitted has no time as {name}; it must be as fit wrote it") from None

    @property
    def period(self) -> tuple[int, int] | None:
        """First and last time in seconds on their clock; None of records without times."""
        return None if _STEP.fullmatch(self.first) else (_seconds(self.first), _seconds(self.last))

    @property
    def is_local(self) -> bool:
        """Whether the times are those of a local clock."""
        return not self.first.endswith("Z")


@dataclass(frozen=True)
class FittedPrivately:
    """How a family was fitted with noise that hides whole participants; all of it is public.

    Attributes
    ----------
    epsilon : float
        Whatever all records of one participant are, no output gets likelier by more than e^ε.
    confidence : float
        With which the family holds the chain that all participants follow, the noise included.
    participants : int
        How many there were.
    most_transitions : int
        How many transitions of each counted at most.
    noise_scale : float
        Of the discrete Laplace noise on each transition count.

    Raises ParameterError: one of them is out of range.
    """

    epsilon: float
    confidence: float
    participants: int
    most_transitions: int
    noise_scale: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_confidence(self.confidence, "confidence")
        check_whole(self.participants, "participants")
        check_whole(self.most_transitions, "most_transitions")
        check_positive(self.noise_scale, "noise_scale")

    @property
    def statement(self) -> str:
        """That the family may leave, and what one has to believe for that."""
        return (
            f"This file may leave: it was fitted to {self.participants} participants with noise. Whatever the records "
            f"of one of them are, no content of this file gets likelier by more than the factor e^epsilon, epsilon = "
            f"{self.epsilon:g}. The states, the time step and the number of participants are public. The intervals "
            f"hold the chain with confidence {self.confidence:g} if all participants are independent draws of it."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON types that :func:`parse_records` reads."""
        return vars(self) | {"statement": self.statement}


class StepOptions(TypedDict, total=False):
    """Which records follow one another, where a table says it: of :class:`RecordFormat`."""

    step_seconds: Annotated[int | None, "int, optional", "Time step; by default the most common difference of times."]
    split_after_seconds: Annotated[
        int | None, "int, optional", "A longer pause starts a new, independent segment; by default none does."
    ]
    split_because: Annotated[
        str | None,
        "str, optional",
        "Why what comes after such a pause is independent of what came before, which a release states.",
    ]


@displayed()
@dataclass(frozen=True)
class RecordFormat:
    """How records become steps of a chain.

    Attributes
    ----------
    states : StateSpace
    step_seconds : int or None
        Time between two steps; None where the table has no times and every row is one step.
    split_after_seconds : int or None
        A longer pause starts a new segment, which counts as independent; None never splits, which is the
        cautious choice: one longer chain never needs less noise.
    split_because : str or None
        Why what comes after such a pause is independent of what came before it, for the statement of a release: that
        a pause was long is no reason.
    fitted : Fitted or None
        Which data the chain was fitted to.
    reading : mapping
        Options of :class:`pufferflow.records.reading.Reading` with which those data were read, where they were
        given; a release without options of its own reads with them.
    fitted_privately : FittedPrivately or None
        How the chain was fitted, where that was done so that the result may leave.

    Raises
    ------
    ParameterError
        One of them is out of range.
    """

    states: StateSpace
    step_seconds: int | None = None
    split_after_seconds: int | None = None
    fitted: Fitted | None = None
    reading: Mapping[str, str | bool] = field(default_factory=dict, hash=False)
    split_because: str | None = None
    fitted_privately: FittedPrivately | None = None

    def __post_init__(self) -> None:
        check_type(self.states, "states", StateSpace)
        for name, least in (("step_seconds", 1), ("split_after_seconds", 0)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_whole(getattr(self, name), name, least, MOST_SECONDS))
        check_split(self.split_after_seconds, self.split_because)

    @property
    def longest_gap(self) -> float:
        """Missing steps in a row that one segment may span."""
        if self.split_after_seconds is None:
            return math.inf
        return self.split_after_seconds / (self.step_seconds or 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON types that :func:`parse_records` reads."""
        return {
            "states": self.states.to_dict(),
            "step_seconds": self.step_seconds,
            "split_after_seconds": self.split_after_seconds,
            "fitted": None if self.fitted is None else vars(self.fitted).copy(),
        } | {
            key: value
            for key, value in (
                ("split_because", self.split_because),
                ("reading", self.reading),
                ("fitted_privately", self.fitted_privately and self.fitted_privately.to_dict()),
            )
            if value
        }


def parse_records(value: object) -> RecordFormat:
    """Return the record format of a model file.

    Raises ModelError: a key is unknown, missing or of the wrong type.
    """
    keys = ("states", "step_seconds", "split_after_seconds", "split_because", "fitted", "reading", "fitted_privately")
    fields = _object(value, keys, "records")
    states = fields.get("states")
    try:
        if isinstance(states, dict) and "edges" in states:
            edges = _object(states, ("edges",), "records: states")["edges"]
            if not isinstance(edges, list) or not all(type(edge) in (int, float) for edge in edges):
                raise ModelError("records: edges must be a list of numbers")
            space = StateSpace.numeric(edges)
        else:
            entries = _object(states, ("names", "other"), "records: states")
            names, other = entries.get("names"), entries.get("other", False)
            if not isinstance(names, list) or not all(isinstance(n, str) for n in names) or type(other) is not bool:
                raise ModelError(
                    "records: states must have edges, or names (a list of strings) and other (true, false)"
                )
            space = StateSpace.categories(names, other=other)
    except (ParameterError, OverflowError) as error:
        raise ModelError(f"records: {error}") from error
    fitted = None
    if fields.get("fitted") is not None:
        entries = _object(fields["fitted"], ("first", "last", "records"), "records: fitted")
        kinds = [type(entries.get(key)) for key in ("first", "last", "records")]
        if kinds != [str, str, int]:
            raise ModelError("records: fitted must have first and last (times) and records (a number)")
        try:
            fitted = Fitted(entries["first"], entries["last"], entries["records"])
        except ParameterError as error:
            raise ModelError(f"records: {error}") from error
    reading = _object(fields.get("reading", {}), READING_OPTIONS, "records: reading")
    for name, value in reading.items():
        if not isinstance(value, bool if name == "rows_are_steps" else str):
            raise ModelError(f"records: reading has {value!r} as {name}; it must be as fit wrote it")
    privately = None
    if "fitted_privately" in fields:
        names = tuple(field.name for field in dataclasses.fields(FittedPrivately))
        entries = _object(fields["fitted_privately"], (*names, "statement"), "records: fitted_privately")
        try:
            privately = FittedPrivately(**{name: entries[name] for name in names})
        except KeyError as error:
            raise ModelError(f"records: fitted_privately has no {error.args[0]}; it must be as fit wrote it") from None
        except ParameterError as error:
            raise ModelError(f"records: fitted_privately: {error}") from error
    try:
        return RecordFormat(
            space,
            fields.get("step_seconds"),
            fields.get("split_after_seconds"),
            fitted,
            reading,
            fields.get("split_because"),
            privately,
        )
    except ParameterError as error:
        raise ModelError(f"records: {error}") from error


def check_split(after: int | None, because: str | None) -> None:
    """Raise :class:`ParameterError` unless pauses split a record with a reason, or not at all."""
    if because is not None:
        check_type(because, "split_because", str)
        if after is None:
            raise ParameterError("split_because is the reason of a split_after_seconds; give both or neither")
        if not because.strip() or not because.isprintable():
            raise ParameterError("split_because must be some words on one line")
    elif after is not None:
        raise ParameterError(
            "split_after_seconds makes what comes after a pause independent of what came before; say why it is "
            "(split_because), or leave it out: that a pause is long is no reason"
        )


def _seconds(stamp: str) -> int:
    """Seconds since 1970 of a time as ``fit`` writes it; ValueError where it is none."""
    if not _TIME.fullmatch(stamp):
        raise ValueError
    return int(np.datetime64(stamp.removesuffix("Z"), "s").astype(np.int64))


def _alike(names: Sequence[str], numbers: Sequence[str]) -> tuple[str, str]:
    """The first two names that are the same number."""
    first: dict[str, str] = {}
    for name, number in zip(names, numbers, strict=True):
        if first.setdefault(number, name) != name:
            return first[number], name
    raise AssertionError("no two are the same")


def _object(value: object, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{where} must be an object with the keys {', '.join(keys)}")
    for key in value:
        if key not in keys:
            raise ModelError(f"{where} has the unknown key {key!r}; allowed are {' and '.join(keys)}")
    return value
