"""From an untrusted file to typed records: every field checked, every number exact.

The fields of the dataclasses below are the keys of the format, and their types determine how each
is read: :mod:`pufferflow.certificates` describes it. The claim is still unproved here.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import cache, cached_property
from operator import le, sub
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from pufferflow.errors import CertificateError as CertificateError

VERSION = 2
"""Version of the format."""
MECHANISMS = ("mqm-exact", "mqm-approx", "group-dp", "entry-dp", "leakage", "wasserstein")
"""Mechanisms with certificates."""

_NAMES = {int: "an integer", list: "a list", dict: "an object", str: "a string", NoneType: "null"}
_LARGEST = 2**62  # integer
# bits of the denominator of a sum: 2,400 digits, more than any single number has
_MAX_BITS = 8_000
_NUMBER = re.compile(
    r"[0-9]{1,1200}(\.[0-9]{1,1200})?([eE][+-]?[0-9]{1,3})?|[0-9]{1,1200}/(?!0+\Z)[0-9]{1,1200}"
)


def require(true: bool, why: str) -> None:
    """Raise CertificateError, with the reason, unless the condition is true."""
    if not true:
        raise CertificateError(why)


# -- types of fields, and conditions on them -------------------------------------------------------


def total(numbers: Sequence[Fraction], where: str) -> Fraction:
    """Return an exact sum, unless its denominator would take long to multiply up."""
    found, why = Fraction(), f"{where}: the common denominator has over {_MAX_BITS} bits"
    for p in numbers:
        found += p
        require(found.denominator.bit_length() <= _MAX_BITS, f"{why}; give fewer digits")
    return found


def _sums_to_1(row: list[Fraction], where: str) -> None:
    off = total(row, where) - 1
    why = f"{where} does not sum to 1 exactly (off by {decimal(off, 3)})"
    require(not off, f"{why}; an entry was changed")


def _square(rows: Matrix, where: str) -> None:
    square = bool(rows) and all(len(row) == len(rows) for row in rows)
    require(square, f"{where} is not a square matrix, or has no rows")


def _positive(number: int | Fraction, where: str) -> None:
    require(number > 0, f"{where} is {number}; it must be positive")


Positive: TypeAlias = Annotated[int, _positive]
Distribution: TypeAlias = Annotated[list[Fraction], _sums_to_1]
Matrix: TypeAlias = list[list[Fraction]]
Square: TypeAlias = Annotated[Matrix, _square]
Transitions: TypeAlias = Annotated[list[Distribution], _square]
Quilt: TypeAlias = tuple[int, int, Positive | None, Positive | None]


@cache
def _shape(kind: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """Return origin and arguments of a type, and its type in JSON."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Annotated:
        return origin, inner, _shape(inner[0])[2]
    if is_dataclass(kind):
        return kind, tuple(typing.get_type_hints(kind, include_extras=True).items()), dict
    written = {tuple: list, Fraction: str, Literal: str}.get(origin, origin)
    return Union if origin is UnionType else origin, inner, written


def read(kind: Any, value: Any, where: str) -> Any:
    """Return a JSON value as a typed record, or raise CertificateError."""
    origin, inner, written = _shape(kind)
    if origin is Annotated:
        found = read(inner[0], value, where)
        inner[1](found, where)
        return found
    if origin is Union:
        fitting = (one for one in inner if _shape(one)[2] is type(value))
        return read(next(fitting, inner[0]), value, where)
    if type(value) is not written:
        raise CertificateError(f"{where} is {_brief(value)}, not {_NAMES[written]}")
    if origin is list:
        return [read(inner[0], part, where) for part in value]
    if origin is tuple:
        many = f"{where}: an entry has {len(value)} parts, not {len(inner)}"
        require(len(value) == len(inner), many)
        return tuple(read(one, part, where) for one, part in zip(inner, value, strict=True))
    if written is dict:
        types = dict(inner)
        needed = [part.name for part in fields(kind) if part.default is MISSING]
        wrong = [f"has the unknown key {_brief(key)}" for key in value if key not in types]
        wrong += [f"lacks the key {name}" for name in needed if name not in value]
        if wrong:
            raise CertificateError(f"{where} {wrong[0]}")
        inside = "" if kind is Claim else f"{where}: "
        return kind(**{key: read(types[key], part, inside + key) for key, part in value.items()})
    if origin is Fraction:
        if not _NUMBER.fullmatch(value):
            why = 'numbers are strings such as "0.25" or "1/3"'
            raise CertificateError(f"{where} is {_brief(value)}; {why}")
        return Fraction(value)
    if origin is Literal and value not in inner:
        raise CertificateError(f"{where} is {_brief(value)}, not {' or '.join(inner)}")
    if origin is int and abs(value) > _LARGEST:
        raise CertificateError(f"{where} is {_brief(value)}, too large")
    return value


# -- families --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """A chain: a matrix for each phase of its period, and the distribution of X_1.

    With a period segments begin at any phase. ``observations`` has the record of each value.
    """

    transition_matrices: list[Transitions]
    initial_distribution: Literal["stationary", "any"] | Distribution
    observations: list[int] | None = None

    def __post_init__(self) -> None:
        sizes = {len(matrix) for matrix in self.transition_matrices}
        require(len(sizes) == 1, "the matrices differ in their number of states, or there is none")
        given = isinstance(self.initial_distribution, list)
        fits = not given or (self.period == 1 and sizes == {len(self.initial_distribution)})
        why = "an initial distribution has not one entry per state, or is that of a period"
        require(fits, why)
        seen = self.observations is None or sizes == {len(self.observations)}
        require(seen, "observations must be one integer per state")

    @property
    def states(self) -> int:
        """Number of values."""
        return len(self.transition_matrices[0])

    @property
    def period(self) -> int:
        """Number of phases."""
        return len(self.transition_matrices)


class Part(NamedTuple):
    """All e with 0 ≤ e ≤ widths and the given sum."""

    widths: list[Fraction]
    total: Fraction


class RowSet(NamedTuple):
    """All distributions that are the sum of ``base`` and of one element of every part."""

    base: list[Fraction]
    parts: list[Part]


@dataclass(frozen=True)
class Intervals:
    """All chains with entries between bounds, which may change at every step.

    ``backward`` has those of the reversed chains.
    """

    low: Square
    high: Square
    backward: Intervals | None = None
    words = "between bounds"

    def __post_init__(self) -> None:
        sizes = {len(self.low), len(self.high), len((self.backward or self).low)}
        require(len(sizes) == 1, "the bounds differ in their number of states")
        for i, (low, high) in enumerate(zip(self.low, self.high, strict=True), 1):
            require(all(map(le, low, high)), f"row {i} has a lower bound above the upper one")
            within = total(low, f"row {i}") <= 1 <= total(high, f"row {i}")
            require(within, f"row {i}: no distribution lies between its bounds")

    @cached_property
    def rows(self) -> list[RowSet]:
        """Return the sets: mass above the lower bounds lies anywhere below the upper ones."""
        pairs = zip(self.low, self.high, strict=True)
        return [
            RowSet(low, [Part(list(map(sub, high, low)), 1 - total(low, "a row"))])
            for low, high in pairs
        ]


@dataclass(frozen=True)
class Balls:
    """All chains with rows within total variation distances of given ones, as for intervals."""

    transition_matrix: Transitions
    radius: list[Fraction]
    backward: Balls | None = None
    words = "within total variation distances"

    def __post_init__(self) -> None:
        sizes = {len(self.radius), len(self.transition_matrix), len((self.backward or self).radius)}
        why = "radius must hold one number of at most 1 per state, and so in both directions"
        require(len(sizes) == 1 and max(self.radius) <= 1, why)

    @cached_property
    def rows(self) -> list[RowSet]:
        """Return the sets: mass up to the distance moves from anywhere to anywhere."""
        rows = []
        for row, radius in zip(self.transition_matrix, self.radius, strict=True):
            free = [min(p, radius) for p in row]
            stays, comes = total(free, "a ball") - radius, [radius] * len(row)
            rows.append(RowSet(list(map(sub, row, free)), [Part(free, stays), Part(comes, radius)]))
        return rows


@dataclass(frozen=True)
class Mixing:
    """All chains whose distributions ``steps`` later, and earlier, overlap by ≥ ``overlap``."""

    steps: Positive
    overlap: Annotated[Fraction, _positive]

    def __post_init__(self) -> None:
        require(self.overlap <= 1, "mixing: overlap must be above 0 and at most 1")


Member: TypeAlias = Chain | Intervals | Balls | Mixing


@dataclass(frozen=True)
class Family:
    """One of these kinds of families."""

    chains: list[Chain] | None = None
    binary_interval: tuple[Fraction, Fraction] | None = None
    interval: Intervals | None = None
    total_variation: Balls | None = None
    mixing: Mixing | None = None

    def __post_init__(self) -> None:
        kinds = vars(self)
        single = sum(given is not None for given in kinds.values()) == 1 and self.chains != []
        require(single, f"family has one key of {', '.join(kinds)}, and chains at least one chain")
        shapes = {(c.states, c.period, tuple(c.observations or ())) for c in self.chains or ()}
        why = "the chains of a family differ in their states, period or observations"
        require(len(shapes) <= 1, why)
        low, high = self.binary_interval or (Fraction(1, 2), Fraction(1, 2))
        why = "binary_interval must hold two numbers with 0 < low <= high < 1"
        require(0 < low <= high < 1, why)

    @property
    def members(self) -> Sequence[Member]:
        """Return the chains, or the family itself."""
        if self.binary_interval:  # the symmetric chain that dominates the class (docs/leakage.md)
            stay = max(self.binary_interval, key=lambda end: abs(end - Fraction(1, 2)))
            return [Chain([[[stay, 1 - stay], [1 - stay, stay]]], "any")]
        return self.chains or [known for known in vars(self).values() if known]

    @property
    def description(self) -> str:
        """The description of the family."""
        if self.binary_interval:
            low, high = self.binary_interval
            ends = f"{decimal(low)} to {decimal(high, rounding=ROUND_FLOOR)}"
            return f"all binary chains that stay with probability {ends}"
        one, number = self.members[0], len(self.members)
        if isinstance(one, Mixing):
            both = f"distributions {one.steps} steps apart overlap in at least"
            return f"all Markov chains whose {both} {decimal(one.overlap)}"
        if not isinstance(one, Chain):
            both = ", both ways" if one.backward else ""
            return f"all chains of {len(one.rows)} states {one.words}{both}"
        phases = f", a period of {one.period} steps and any first phase" if one.period > 1 else ""
        hidden = f" and {len(set(one.observations))} observations" if one.observations else ""
        return f"{number} chain{'s' * (number > 1)} of {one.states} states{phases}{hidden}"


# -- proofs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flows:
    """Flows for two sets of rows, from value to value; shares of the mass of every part."""

    flow: Square
    surplus: list[Transitions]
    reserve: list[Transitions]


Witness: TypeAlias = list[int] | Flows
"""A tree, as the parent of every value; or flows."""
Witnesses: TypeAlias = Annotated[list[list[Witness | None]], _square]


@dataclass(frozen=True)
class Step:
    """Witnesses for a node's pairs, and the number of steps of its reweighted bound."""

    witnesses: int | None = None
    power: Positive | None = None


@dataclass(frozen=True)
class Side:
    """The nodes with 1, 2, … nodes on that side.

    All others start from one table and have a step per phase.
    """

    prefix: list[Step]
    start: Square | None = None
    cycle: list[Step] | None = None


@dataclass(frozen=True)
class Count:
    """Addends to the count of a visit to each value, lengths, W, and slack of plans."""

    weights: list[int]
    lengths: list[Positive]
    W: int
    slack: Fraction

    def __post_init__(self) -> None:
        positive = min(self.W, *self.weights, 0) >= 0 and self.lengths != []
        require(positive, "a count has weights and W of at least 0, and a length")


@dataclass(frozen=True)
class Proof:
    """A program; ranges of nodes with quilts; a count; or nothing."""

    witnesses: list[Witnesses] | None = None
    forward: Side | None = None
    backward: Side | None = None
    observations: int | None = None
    quilts: list[Quilt] | None = None
    count: Count | None = None

    def table(self, index: int, values: int) -> Witnesses:
        """Return the witnesses that a step names, of all pairs of so many values."""
        tables = self.witnesses or []
        named = 0 <= index < len(tables) and len(tables[index]) == values
        require(named, f"a step names witnesses for {values} values that are not there")
        return tables[index]


# -- certificates ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Approximate:
    """The δ of mechanisms that are (c, δ0)-DP and ρ-zCDP for one record, c = 1/scale."""

    delta: Fraction
    event_delta: Fraction
    rho: Fraction


@dataclass(frozen=True)
class Claim:
    """A certificate: its claim, and the proof for every member of its family."""

    certificate: Literal["pufferflow"]
    version: int
    mechanism: Literal[MECHANISMS]  # type: ignore[valid-type]
    family: Family
    epsilon: Annotated[Fraction, _positive]
    length: Positive
    window: Positive
    side_information: Literal["none", "any"]
    scale: Fraction
    proofs: list[Proof]
    approximate: Approximate | None = None

    @property
    def hidden(self) -> int:
        """Records of a window, at most those of a segment."""
        return min(self.window, self.length)

    @property
    def windows(self) -> int:
        """Windows of the longest segment; nodes are first records of windows."""
        return self.length - self.hidden + 1

    @property
    def subject(self) -> str:
        """The claim of the certificate; rounded numbers claim less than what is proved."""
        records = "single records" if self.window == 1 else f"any {self.window} records in a row"
        segments = f"segments of up to {self.length} records"
        if count := next((proof.count for proof in self.proofs), None):
            lengths, weights = str(sorted(set(count.lengths)))[1:-1], str(count.weights)[1:-1]
            segments = f"segments of {lengths} records, the count with weights {weights} alone"
        delta = f", delta {decimal(self.approximate.delta)}" if self.approximate else ""
        return (
            f"{self.mechanism} at epsilon {decimal(self.epsilon)} for {self.family.description}, "
            f"{segments}: protects {records}, side information {self.side_information}{delta}"
        )


def parse(document: object) -> Claim:
    """Return a certificate as typed records, its proofs still unchecked.

    Raises CertificateError: it is malformed, or of another version.
    """
    known = isinstance(document, dict) and document.get("certificate") == "pufferflow"
    require(known, "this is not a certificate of pufferflow: the key certificate is missing")
    version = document.get("version")  # type: ignore[attr-defined]
    ours = type(version) is int and version == VERSION
    old = "it was made before 1.0; make it again"
    why = old if version == 1 else f"this program reads {VERSION}"
    require(ours, f"version is {_brief(version)}; {why}")
    try:
        found: Claim = read(Claim, document, "the certificate")
    except RecursionError:
        raise CertificateError("the certificate is nested too deeply") from None
    return found


def decimal(number: Fraction, digits: int = 17, rounding: str = ROUND_CEILING) -> str:
    """Return a number as a decimal, rounded up; it may lie outside the range of floats."""
    return str(Context(digits, rounding=rounding).divide(number.numerator, number.denominator))


def _brief(value: object) -> str:
    """Return a value of the file as one short line."""
    shown = isinstance(value, str | int | float | None)
    text = repr(value) if shown else f"a {type(value).__name__}"
    return text if len(text) <= 40 else text[:36] + "..." + text[-1:]
