"""From an untrusted file to typed records: every field checked, every number exact.

The fields of the records below are the keys of the format, which :mod:`pufferflow.certificates`
describes; msgspec reads each as its type demands. The claim is still unproved here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import cached_property
from itertools import chain
from operator import le, sub
from reprlib import repr as brief
from typing import Annotated, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import astuple

from pufferflow.errors import CertificateError

VERSION = 2
"""Version of the format."""
MECHANISMS = ("mqm-exact", "mqm-approx", "group-dp", "entry-dp", "leakage", "wasserstein")
"""Mechanisms with certificates."""

_Kind = TypeVar("_Kind")
_LARGEST = 2**62
# bits of the denominator of a sum: 2,400 digits, more than any single number has
_MAX_BITS = 8_000
_NUMBER = re.compile(
    r"[0-9]{1,1200}(\.[0-9]{1,1200})?([eE][+-]?[0-9]{1,3})?|[0-9]{1,1200}/(?!0+\Z)[0-9]{1,1200}"
)

Integer: TypeAlias = Annotated[int, Meta(ge=-_LARGEST, le=_LARGEST)]
Natural: TypeAlias = Annotated[int, Meta(ge=0, le=_LARGEST)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=_LARGEST)]
Matrix: TypeAlias = list[list[Fraction]]
Quilt: TypeAlias = tuple[Integer, Integer, Positive | None, Positive | None]


class Record(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """An object of the format."""


def require(true: bool, why: str) -> None:
    """Raise CertificateError, with the reason, unless the condition is true."""
    if not true:
        raise CertificateError(why)


def total(numbers: Sequence[Fraction], where: str) -> Fraction:
    """Return an exact sum, unless its denominator would take long to multiply up."""
    found, why = Fraction(), f"the common denominator has over {_MAX_BITS} bits"
    for p in numbers:
        found += p
        few = found.denominator.bit_length() <= _MAX_BITS
        require(few, f"{where} has too many digits: {why}")
    return found


def _check_square(*tables: Sequence[Sequence[object]]) -> None:
    for table in tables:
        square = bool(table) and all(len(row) == len(table) for row in table)
        require(square, "a table is not a square matrix, or has no rows")


def _check_distribution(row: list[Fraction]) -> None:
    off = total(row, "a distribution") - 1
    require(not off, f"a distribution does not sum to 1 exactly (off by {decimal(off, 3)})")


def _check_transitions(*matrices: Matrix) -> None:
    _check_square(*matrices)
    for row in chain.from_iterable(matrices):
        _check_distribution(row)


# -- families --------------------------------------------------------------------------------------


class Chain(Record, frozen=True):
    """A chain: a matrix for each phase of its period, and the distribution of X_1.

    With a period segments begin at any phase. ``observations`` has the record of each value.
    """

    transition_matrices: list[Matrix]
    initial_distribution: Literal["stationary", "any"] | list[Fraction]
    observations: list[Integer] | None = None

    def __post_init__(self) -> None:
        _check_transitions(*self.transition_matrices)
        sizes = {len(matrix) for matrix in self.transition_matrices}
        require(len(sizes) == 1, "the matrices differ in their number of states, or there is none")
        if isinstance(self.initial_distribution, list):
            _check_distribution(self.initial_distribution)
            fits = self.period == 1 and sizes == {len(self.initial_distribution)}
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


class Intervals(Record, frozen=True):
    """All chains with entries between bounds, which may change at every step.

    ``backward`` has those of the reversed chains.
    """

    low: Matrix
    high: Matrix
    backward: Intervals | None = None
    words = "between bounds"

    def __post_init__(self) -> None:
        _check_square(self.low, self.high)
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


class Balls(Record, frozen=True):
    """All chains with rows within total variation distances of given ones, as for intervals."""

    transition_matrix: Matrix
    radius: list[Fraction]
    backward: Balls | None = None
    words = "within total variation distances"

    def __post_init__(self) -> None:
        _check_transitions(self.transition_matrix)
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


class Mixing(Record, frozen=True):
    """All chains whose distributions ``steps`` later, and earlier, overlap by ≥ ``overlap``."""

    steps: Positive
    overlap: Fraction

    def __post_init__(self) -> None:
        require(0 < self.overlap <= 1, "overlap must be above 0 and at most 1")


Member: TypeAlias = Chain | Intervals | Balls | Mixing


class Family(Record, frozen=True):
    """One of these kinds of families."""

    chains: list[Chain] | None = None
    binary_interval: tuple[Fraction, Fraction] | None = None
    interval: Intervals | None = None
    total_variation: Balls | None = None
    mixing: Mixing | None = None

    def __post_init__(self) -> None:
        kinds = ", ".join(self.__struct_fields__)
        single = sum(given is not None for given in astuple(self)) == 1 and self.chains != []
        require(single, f"family has one key of {kinds}, and chains at least one chain")
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
        return self.chains or [known for known in astuple(self) if known]

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


class Flows(Record, frozen=True):
    """Flows for two sets of rows, from value to value; shares of the mass of every part."""

    flow: Matrix
    surplus: list[Matrix]
    reserve: list[Matrix]

    def __post_init__(self) -> None:
        _check_square(self.flow)
        _check_transitions(*self.surplus, *self.reserve)


Witness: TypeAlias = list[Integer] | Flows
"""A tree, as the parent of every value; or flows."""
Witnesses: TypeAlias = list[list[Witness | None]]


class Step(Record, frozen=True):
    """Witnesses for a node's pairs, and the number of steps of its reweighted bound."""

    witnesses: Integer | None = None
    power: Positive | None = None


class Side(Record, frozen=True):
    """The nodes with 1, 2, … nodes on that side.

    All others start from one table and have a step per phase.
    """

    prefix: list[Step]
    start: Matrix | None = None
    cycle: list[Step] | None = None


class Count(Record, frozen=True):
    """Addends to the count of a visit to each value, lengths, W, and slack of plans."""

    weights: list[Natural]
    lengths: Annotated[list[Positive], Meta(min_length=1)]
    W: Natural
    slack: Fraction


class Proof(Record, frozen=True):
    """A program; ranges of nodes with quilts; a count; or nothing."""

    witnesses: list[Witnesses] | None = None
    forward: Side | None = None
    backward: Side | None = None
    observations: Integer | None = None
    quilts: list[Quilt] | None = None
    count: Count | None = None

    def __post_init__(self) -> None:
        starts = (side.start for side in (self.forward, self.backward) if side)
        _check_square(*(self.witnesses or []), *(start for start in starts if start is not None))

    def table(self, index: int, values: int) -> Witnesses:
        """Return the witnesses that a step names, of all pairs of so many values."""
        tables = self.witnesses or []
        named = 0 <= index < len(tables) and len(tables[index]) == values
        require(named, f"a step names witnesses for {values} values that are not there")
        return tables[index]


# -- certificates ----------------------------------------------------------------------------------


class Approximate(Record, frozen=True):
    """The δ of mechanisms that are (c, δ0)-DP and ρ-zCDP for one record, c = 1/scale."""

    delta: Fraction
    event_delta: Fraction
    rho: Fraction


class Claim(Record, frozen=True):
    """A certificate: its claim, and the proof for every member of its family."""

    certificate: Literal["pufferflow"]
    version: Literal[VERSION]  # type: ignore[valid-type]
    mechanism: Literal[MECHANISMS]  # type: ignore[valid-type]
    family: Family
    epsilon: Fraction
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


def parse(kind: type[_Kind], document: object) -> _Kind:
    """Return a certificate as typed records, its proofs still unchecked; or some part of one.

    Raises CertificateError: it is malformed, or of another version.
    """
    try:
        return convert(document, kind, dec_hook=_exact)
    except RecursionError:
        why = "it is nested too deeply"
    except (ValidationError, UnicodeError) as error:
        text = str(error).replace("`", "").replace(" - at $.", " at ")
        why = "".join(filter(str.isprintable, text))[:300]
    why = f"this is no certificate of version {VERSION}: {why}"
    raise CertificateError(f"{why}; make one with this version of pufferflow")


def _exact(kind: type, value: object) -> Fraction:
    if type(value) is not str or not _NUMBER.fullmatch(value):
        raise CertificateError(f'numbers are strings such as "0.25" or "1/3", not {brief(value)}')
    return Fraction(value)


def decimal(number: Fraction, digits: int = 17, rounding: str = ROUND_CEILING) -> str:
    """Return a number as a decimal, rounded up; it may lie outside the range of floats."""
    return str(Context(digits, rounding=rounding).divide(number.numerator, number.denominator))
