"""From a file nobody vouches for to typed records: every field checked, every number exact."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

from pufferflow.errors import PufferflowError

VERSION = 1
"""Version of the layout that is read."""

LONGEST = 2**62
"""Longest segment."""

LONGEST_PERIOD = 10**6
"""Most steps of a period."""

MOST_BITS = 8_000
"""Bits of the common denominator of a row: 2,400 digits, above those of any one number."""

_NUMBER = re.compile(r"[0-9]{1,1200}(\.[0-9]{1,1200})?([eE][+-]?[0-9]{1,3})?|[0-9]{1,1200}/[0-9]{1,1200}")


class CertificateError(PufferflowError, ValueError):
    """A certificate that is malformed or proves less than it states."""


@dataclass(frozen=True)
class Chain:
    """One chain: P by rows, and the law of X_1 or "stationary" or "any"."""

    matrix: list[list[Fraction]]
    start: str | list[Fraction]

    @property
    def bits(self) -> int:
        """Bits of the longest number of the matrix."""
        return _bits(*self.matrix)


@dataclass(frozen=True)
class Masses:
    """All e with 0 ≤ e ≤ widths and the given sum."""

    widths: list[Fraction]
    total: Fraction


@dataclass(frozen=True)
class RowSet:
    """All distributions that are the sum of ``base`` and of one element of every part."""

    base: list[Fraction]
    parts: list[Masses]


@dataclass(frozen=True)
class Intervals:
    """All chains with low ≤ P ≤ high, and every initial distribution; there are some.

    ``rows`` may know more of every row; steps are free to differ within it. Of the law of a record given the one after
    it ``backward`` is known, if anything.
    """

    low: list[list[Fraction]]
    high: list[list[Fraction]]
    rows: list[RowSet]
    words: str
    backward: Intervals | None = None

    @property
    def bits(self) -> int:
        """Bits of the longest number."""
        return _bits(*self.low, *self.high)


@dataclass(frozen=True)
class BinaryClass:
    """All chains of two states that are kept with probabilities in [low, high], and the one of largest influence."""

    low: Fraction
    high: Fraction
    worst: Chain


@dataclass(frozen=True)
class Forgetting:
    """All Markov chains in which laws ``steps`` ahead, and back, of any two states overlap in at least ``overlap``."""

    steps: int
    overlap: Fraction


@dataclass(frozen=True)
class Clocked:
    """A chain with a matrix for each part of a period, each served so many steps in a row; or seen through labels."""

    matrices: list[list[list[Fraction]]]
    start: str
    repeat: int = 1
    labels: list[int] | None = None


Family: TypeAlias = tuple[Chain, ...] | BinaryClass | Intervals | Forgetting | Clocked


@dataclass(frozen=True)
class Claim:
    """What every certificate states; ``rest`` holds the fields that only its proof has, unchecked."""

    mechanism: str
    family: Family
    epsilon: Fraction
    length: int
    window: int
    knows: str
    scale: str
    rest: dict[str, Any]

    @property
    def hidden(self) -> int:
        """Records of a window: no more than a segment has."""
        return min(self.window, self.length)

    @property
    def windows(self) -> int:
        """Windows of the longest segment, by their first nodes from 1 on."""
        return self.length - self.hidden + 1


@dataclass(frozen=True)
class Nodes:
    """Nodes first … last, which are treated alike."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"nodes {self.first} to {self.last}"


def _bits(*rows: list[Fraction]) -> int:
    return max(p.denominator.bit_length() for row in rows for p in row)


def read_certificate(text: str | bytes) -> object:
    """Parse the JSON text of a certificate.

    Raises
    ------
    CertificateError
        It is not JSON, or gives a key twice.
    """
    try:
        document: object = json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise CertificateError("the file is nested too deeply") from None
    except ValueError as error:  # not JSON, not UTF-8, or an integer too long for Python
        raise CertificateError(f"the file is not JSON ({error})") from None
    return document


def parse_claim(document: object, mechanisms: tuple[str, ...]) -> Claim:
    """Return what a certificate states; its mechanism must be one of ``mechanisms``.

    One that names neither window nor knowledge hides single records from those who know no others.

    Raises CertificateError: a key is missing or of the wrong type; the family is none.
    """
    common = ("certificate", "version", "mechanism", "family", "epsilon", "length", "scale")
    fields = check_object(document, common, "the certificate", closed=False)
    check_choice(fields["certificate"], ("pufferflow",), "certificate")
    if check_integer(fields["version"], "version") != VERSION:
        raise CertificateError(f"version is {fields['version']}; this program reads version {VERSION}")
    mechanism = check_choice(fields["mechanism"], mechanisms, "mechanism")
    epsilon = parse_number(fields["epsilon"], "epsilon")
    parse_number(fields["scale"], "scale")
    if not epsilon:
        raise CertificateError("epsilon is 0; it must be positive")
    length = check_integer(fields["length"], "length")
    if not 1 <= length <= LONGEST:
        raise CertificateError(f"length is {length}; it must lie between 1 and {LONGEST}")
    window = check_integer(fields.get("window", 1), "window")
    if not 1 <= window <= LONGEST:
        raise CertificateError(f"window is {window}; it must lie between 1 and {LONGEST}")
    knows = check_choice(fields.get("knows", "nothing"), ("nothing", "any records"), "knows")
    rest = {key: value for key, value in fields.items() if key not in (*common, "window", "knows")}
    return Claim(mechanism, parse_family(fields["family"]), epsilon, length, window, knows, fields["scale"], rest)


def parse_family(value: object) -> Family:
    """Return the chains of a family, or those that stand for it, or what is known of all of them.

    Raises CertificateError: it is malformed, a row is no distribution, or no chain lies between the bounds.
    """
    kinds: dict[str, Callable[[object], Family]] = {
        "chains": _chains,
        "binary_interval": _binary_interval,
        "interval": lambda given: _both_ways(given, ("low", "high"), _intervals),
        "total_variation": lambda given: _both_ways(given, ("transition_matrix", "radius"), _balls),
        "forgetting": _forgetting,
        "periodic": _periodic,
        "labelled": _labelled,
    }
    given = check_object(value, (), "family", closed=False)
    kind = next((key for key in kinds if key in given), "chains")
    return kinds[kind](check_object(given, (kind,), "family")[kind])


def _chains(value: object) -> Family:
    chains = check_list(value, "chains")
    if not chains:
        raise CertificateError("the family holds no chain")
    return tuple(_chain(entry, f"chain {i}") for i, entry in enumerate(chains, 1))


def _binary_interval(value: object) -> Family:
    ends = [parse_number(end, "binary_interval") for end in check_list(value, "binary_interval")]
    if len(ends) != 2 or not 0 < ends[0] <= ends[1] < 1:
        raise CertificateError("binary_interval must hold two numbers with 0 < low <= high < 1")
    # the symmetric chain that dominates the class (proved in BinaryInterval, pufferflow/markov/families.py)
    stay = max(ends, key=lambda end: abs(end - Fraction(1, 2)))
    return BinaryClass(ends[0], ends[1], Chain([[stay, 1 - stay], [1 - stay, stay]], "any"))


def _both_ways(value: object, keys: tuple[str, str], parse: Callable[[dict[str, Any]], Intervals]) -> Intervals:
    """Bounds of the rows, and of those of the reversed chain where there are some."""
    given = check_object(value, keys, "the family", closed=False)
    if "backward" not in given:
        return parse(check_object(given, keys, "the family"))
    forward = parse({key: given[key] for key in keys})
    backward = parse(check_object(check_object(given, (*keys, "backward"), "the family")["backward"], keys, "backward"))
    if len(backward.low) != len(forward.low):
        raise CertificateError(f"backward has {len(backward.low)} states, the family {len(forward.low)}")
    return replace(forward, backward=backward)


def _balls(given: dict[str, Any]) -> Intervals:
    """Rows within a total variation distance of a centre: all but the distance stays, and so much comes anywhere."""
    rows = check_list(given["transition_matrix"], "transition_matrix")
    if not rows:
        raise CertificateError("transition_matrix has no rows")
    centre = [_distribution(row, len(rows), f"row {i}") for i, row in enumerate(rows, 1)]
    radii = _numbers(given["radius"], len(rows), "radius")
    if any(radius > 1 for radius in radii):
        raise CertificateError("a radius is above 1")
    low = [[max(p - radius, Fraction()) for p in row] for row, radius in zip(centre, radii, strict=True)]
    high = [[min(p + radius, Fraction(1)) for p in row] for row, radius in zip(centre, radii, strict=True)]
    sets = []
    for row, base, radius in zip(centre, low, radii, strict=True):
        stays = [p - q for p, q in zip(row, base, strict=True)]
        comes = Masses([radius] * len(rows), radius)
        sets.append(RowSet(base, [Masses(stays, sum(stays, Fraction()) - radius), comes]))
    return Intervals(low, high, sets, "within total variation distances")


def _intervals(given: dict[str, Any]) -> Intervals:
    states = len(check_list(given["low"], "interval: low"))
    low, high = (
        [_numbers(row, states, f"{side}, row {i}") for i, row in enumerate(check_list(given[side], side), 1)]
        for side in ("low", "high")
    )
    if not states or len(high) != states:
        raise CertificateError(f"interval has {states} rows of lower and {len(high)} rows of upper bounds")
    for i, (below, above) in enumerate(zip(low, high, strict=True), 1):
        if any(p > q for p, q in zip(below, above, strict=True)):
            raise CertificateError(f"row {i} has a lower bound above the upper one")
        numbers, one = numerators([*below, *above], f"row {i}")
        least, most = sum(numbers[:states]), sum(numbers[states:])
        if not least <= one <= most:
            raise CertificateError(f"row {i}: no distribution lies between its bounds")
        for z, (p, q) in enumerate(zip(numbers[:states], numbers[states:], strict=True)):
            if least - p + q > one or most - q + p < one:
                raise CertificateError(
                    f"row {i}: no distribution between the bounds attains those of entry {z + 1}; a bound was changed"
                )
    sets = [
        RowSet(below, [Masses([q - p for p, q in zip(below, above, strict=True)], 1 - sum(below, Fraction()))])
        for below, above in zip(low, high, strict=True)
    ]
    return Intervals(low, high, sets, "between bounds")


def _forgetting(value: object) -> Family:
    steps, overlap = check_object(value, ("steps", "overlap"), "forgetting").values()
    many, share = check_integer(steps, "forgetting: steps"), parse_number(overlap, "forgetting: overlap")
    if not 1 <= many <= LONGEST:
        raise CertificateError(f"forgetting: steps is {brief(many)}; it must lie between 1 and {LONGEST}")
    if not 0 < share <= 1:
        raise CertificateError("forgetting: overlap must be above 0 and at most 1")
    return Forgetting(many, share)


def _periodic(value: object) -> Family:
    keys = ("transition_matrices", "repeat", "initial_distribution")
    given, repeat, start = check_object(value, keys, "periodic").values()
    lists = check_list(given, "transition_matrices")
    if not lists:
        raise CertificateError("periodic has no matrix")
    matrices = []
    for i, rows in enumerate((check_list(matrix, f"matrix {i}") for i, matrix in enumerate(lists, 1)), 1):
        matrices.append([_distribution(row, len(rows), f"matrix {i}, row {j}") for j, row in enumerate(rows, 1)])
    if not matrices[0] or {len(matrix) for matrix in matrices} != {len(matrices[0])}:
        raise CertificateError("the matrices differ in their number of states, or have none")
    if not 1 <= check_integer(repeat, "repeat") <= LONGEST_PERIOD // len(matrices):
        raise CertificateError(f"repeat is {repeat}; the period must lie between 1 and {LONGEST_PERIOD} steps")
    return Clocked(matrices, check_choice(start, ("stationary", "any"), "initial_distribution"), repeat)


def _labelled(value: object) -> Family:
    keys = ("transition_matrix", "initial_distribution", "labels")
    given = check_object(value, keys, "labelled")
    labels = [check_integer(label, "labels") for label in check_list(given.pop("labels"), "labels")]
    chain = _chain(given, "labelled")
    if len(labels) != len(chain.matrix) or min(labels) < 0:
        raise CertificateError("labels must be one integer of at least 0 a state")
    start = chain.start if isinstance(chain.start, str) else "given"
    return Clocked([chain.matrix], start, labels=labels)


def finite(claim: Claim) -> tuple[Chain, ...]:
    """Return the chains of a claim, or the one that stands for its class.

    Raises CertificateError: it is about intervals, or has no transition matrix.
    """
    if isinstance(claim.family, Forgetting):
        raise CertificateError(f"{claim.mechanism} has no proof for a forgetting family; use leakage or group-dp")
    if isinstance(claim.family, Clocked):
        raise CertificateError(f"{claim.mechanism} has no proof for a clock or for labels; use leakage or group-dp")
    if isinstance(claim.family, Intervals):
        raise CertificateError(
            f"{claim.mechanism} has no proof for an interval family; use leakage, or give chains of it"
        )
    return (claim.family.worst,) if isinstance(claim.family, BinaryClass) else claim.family


def parse_ranges(value: object, keys: tuple[str, ...], length: int, where: str) -> Iterator[tuple[Nodes, list[Any]]]:
    """Yield the ranges of a list with their other fields; they cover the nodes 1 … T once and in order.

    Raises CertificateError: they do not.
    """
    covered = 0
    for entry in check_list(value, where):
        first, last, *others = check_object(entry, ("first", "last", *keys), f"{where}: a range of nodes").values()
        nodes = Nodes(check_integer(first, f"{where}: first"), check_integer(last, f"{where}: last"))
        if nodes.first != covered + 1:
            raise CertificateError(f"{where}: the range that starts at node {nodes.first} must start at {covered + 1}")
        if not nodes.first <= nodes.last <= length:
            raise CertificateError(f"{where}: {nodes} are no range within 1 to {length}")
        yield nodes, others
        covered = nodes.last
    if covered < length:
        raise CertificateError(f"{where}: nodes {covered + 1} to {length} have no proof")


def _chain(value: object, where: str) -> Chain:
    matrix, start = check_object(value, ("transition_matrix", "initial_distribution"), where).values()
    rows = check_list(matrix, f"{where}: transition_matrix")
    if not rows:
        raise CertificateError(f"{where}: transition_matrix has no rows")
    matrix = [_distribution(row, len(rows), f"{where}, row {i}") for i, row in enumerate(rows, 1)]
    if isinstance(start, str):
        return Chain(matrix, check_choice(start, ("stationary", "any"), f"{where}: initial_distribution"))
    return Chain(matrix, _distribution(start, len(rows), f"{where}, initial_distribution"))


def _distribution(value: object, states: int, where: str) -> list[Fraction]:
    law = _numbers(value, states, where)
    numbers, one = numerators(law, where)
    if (total := Fraction(sum(numbers), one)) != 1:
        raise CertificateError(
            f"{where} does not sum to 1 exactly but to 1 {'+' if total > 1 else '-'} "
            f"{decimal(abs(total - 1), 3)}; an entry was changed"
        )
    return law


def _numbers(value: object, states: int, where: str) -> list[Fraction]:
    row = [parse_number(p, where) for p in check_list(value, where)]
    if len(row) != states:
        raise CertificateError(f"{where} has {len(row)} entries for {states} states")
    return row


def numerators(row: Sequence[Fraction], where: str) -> tuple[list[int], int]:
    """Return the numbers of a row as integers over a common denominator, with that.

    Raises CertificateError: it is too large.
    """
    common = 1
    for denominator in {p.denominator for p in row}:
        common = lcm(common, denominator)
        if common.bit_length() > MOST_BITS:
            raise CertificateError(
                f"{where}: the common denominator of its numbers has over {MOST_BITS} bits; give fewer digits"
            )
    return [p.numerator * (common // p.denominator) for p in row], common


# -- fields ------------------------------------------------------------------------------------------


def parse_number(value: object, where: str) -> Fraction:
    """Read a non-negative number written as a string, decimal or n/d."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        try:
            return Fraction(value)
        except ZeroDivisionError:
            pass
    raise CertificateError(f'{where} holds {brief(value)}; numbers are strings such as "0.25", "1e-3" or "1/3"')


def check_integer(value: object, where: str) -> int:
    """Return ``value``, an integer."""
    if type(value) is not int:
        raise CertificateError(f"{where} is {brief(value)}, not an integer")
    return value


def check_choice(value: object, allowed: tuple[str, ...], where: str) -> str:
    """Return ``value``, one of the ``allowed`` strings."""
    if not (isinstance(value, str) and value in allowed):
        raise CertificateError(f"{where} is {brief(value)}, not {' or '.join(allowed)}")
    return value


def check_list(value: object, where: str) -> list[Any]:
    """Return ``value``, a list."""
    if not isinstance(value, list):
        raise CertificateError(f"{where} is {brief(value)}, not a list")
    return value


def check_object(value: object, keys: tuple[str, ...], where: str, *, closed: bool = True) -> dict[str, Any]:
    """Return ``value``, an object with these keys (in their order), and if ``closed`` no others."""
    if not isinstance(value, dict):
        raise CertificateError(f"{where} is {brief(value)}, not an object")
    for key in keys:
        if key not in value:
            raise CertificateError(f"{where} lacks the key {key}")
    unknown = [key for key in value if key not in keys]
    if closed and unknown:
        raise CertificateError(f"{where} has the unknown key {brief(unknown[0])}")
    return {key: value[key] for key in (*keys, *unknown)}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise CertificateError("a key is given twice in one object")
    return document


def decimal(number: Fraction, digits: int = 17, rounding: str = ROUND_HALF_EVEN) -> str:
    """Write a number for people; it may lie outside the range of floats."""
    return str(Context(digits, rounding=rounding).divide(number.numerator, number.denominator))


def brief(value: object) -> str:
    """Show a value of the file in one short line."""
    text = repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else text[:36] + "..." + text[-1:]
