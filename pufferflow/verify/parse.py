"""From a file nobody vouches for to typed records: every field checked, every number exact.

A certificate of format 2 states a claim (mechanism, family, ε, length, window, side information, scale) and for every
member of the family a proof: a program for :mod:`pufferflow.verify.interpret`, or what one of two other readings needs
(Markov quilts, a single count). :mod:`pufferflow.certificates` describes the fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple, TypeAlias

from pufferflow.errors import CertificateError as CertificateError

VERSION = 2
"""Version of the format that is read."""

LONGEST = 2**62
"""Longest segment."""

LONGEST_PERIOD = 10**6
"""Most steps of a period."""

MOST_STEPS = 1_000
"""Nodes of a side at most that have steps of their own."""

FARTHEST = 10**6
"""Steps at most of a power of a chain."""

MOST_BITS = 8_000
"""Bits of the common denominator of a row: 2,400 digits, above those of any one number."""

MECHANISMS = ("mqm-exact", "mqm-approx", "group-dp", "entry-dp", "leakage", "wasserstein")
"""Those whose scales can be proved."""

_NUMBER = re.compile(r"[0-9]{1,1200}(\.[0-9]{1,1200})?([eE][+-]?[0-9]{1,3})?|[0-9]{1,1200}/[0-9]{1,1200}")

Parser: TypeAlias = Callable[[object, str], Any]
Matrix: TypeAlias = list[list[Fraction]]
Pair: TypeAlias = tuple[int, int]


# -- what a certificate is about ---------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    """A chain: a matrix for each part of a period, each served ``repeat`` steps in a row.

    ``start`` is the distribution of X_1, "stationary" or "any"; ``observations`` are what is recorded of each value.
    """

    matrices: list[Matrix]
    start: str | list[Fraction]
    repeat: int = 1
    observations: list[int] | None = None

    @property
    def states(self) -> int:
        """Number of values."""
        return len(self.matrices[0])

    @property
    def period(self) -> int:
        """Steps of a period."""
        return len(self.matrices) * self.repeat


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
    """All chains with low ≤ P ≤ high and rows in the given sets, which may change at every step.

    ``backward`` is the same of the distribution of a record given the one after it, where it is known.
    """

    low: Matrix
    high: Matrix
    rows: list[RowSet]
    backward: Intervals | None = None

    @property
    def states(self) -> int:
        """Number of values."""
        return len(self.low)


@dataclass(frozen=True)
class Mixing:
    """All Markov chains in which the distributions ``steps`` later, and earlier, overlap in at least ``overlap``."""

    steps: int
    overlap: Fraction


Member: TypeAlias = Chain | Intervals | Mixing


class Family(NamedTuple):
    """Chains, or what stands for them; ``listed`` where there are no chains but those."""

    members: list[Any]
    words: str
    listed: bool = True


# -- what proves it ----------------------------------------------------------------------------------


class Tree(NamedTuple):
    """A root and all other values, parents first, each with its parent and whether the arc leads there."""

    root: int
    arcs: list[tuple[int, int, bool]]


class Flows(NamedTuple):
    """Flows for two sets of rows: from value to value, and the shares of what is free in every part."""

    flow: dict[Pair, Fraction]
    surplus: list[dict[Pair, Fraction]]
    reserve: list[dict[Pair, Fraction]]


class Step(NamedTuple):
    """Which witnesses bound the pairs of values of a node, and through how many steps any distribution does."""

    witnesses: int | None
    power: int | None


class Side(NamedTuple):
    """The nodes with 1, 2, … nodes on that side; all others start from one table and have a step a matrix."""

    prefix: list[Step]
    start: Matrix | None
    cycle: list[Step]


class Program(NamedTuple):
    """Steps of both sides of a node, and the witnesses that they name."""

    witnesses: list[dict[Pair, Any]]
    forward: Side
    backward: Side
    observations: int | None


class Quilt(NamedTuple):
    """Nodes first … last, all with the quilt at these distances (None: no node on that side)."""

    first: int
    last: int
    left: int | None
    right: int | None


class Count(NamedTuple):
    """What a visit to each value adds to the count, the lengths of all segments, W, and the slack of plans."""

    weights: list[int]
    lengths: list[int]
    W: int
    slack: Fraction


Proof: TypeAlias = Program | list[Quilt] | Count | None  # None: that of all records together


@dataclass(frozen=True)
class Claim:
    """A certificate: what it states, and the proof for every member of its family."""

    mechanism: str
    family: Family
    epsilon: Fraction
    length: int
    window: int
    informed: bool
    scale: str
    proofs: list[Any]

    @property
    def hidden(self) -> int:
        """Records of a window: no more than a segment has."""
        return min(self.window, self.length)

    @property
    def windows(self) -> int:
        """Windows of the longest segment; a node below is the first record of one."""
        return self.length - self.hidden + 1

    @property
    def steps(self) -> int:
        """Steps of all programs, or ranges of nodes."""
        programs = [proof for proof in self.proofs if isinstance(proof, Program)]
        sides = [side for proof in programs for side in (proof.forward, proof.backward)]
        quilts = sum(len(proof) for proof in self.proofs if isinstance(proof, list))
        return quilts + sum(len(side.prefix) + len(side.cycle) for side in sides)

    @property
    def subject(self) -> str:
        """What the certificate states."""
        records = "single records" if self.window == 1 else f"any {self.window} records in a row"
        known = "any" if self.informed else "none"
        segments = f"segments of up to {self.length} records"
        if count := next((proof for proof in self.proofs if isinstance(proof, Count)), None):
            lengths, weights = (", ".join(map(str, n)) for n in (sorted(set(count.lengths)), count.weights))
            segments = f"segments of {lengths} records, the count with weights {weights} alone"
        return (
            f"{self.mechanism} at epsilon {decimal(self.epsilon)} for {self.family.words}, "
            f"{segments}: protects {records}, side information {known}"
        )


def read_certificate(text: str | bytes) -> object:
    """Parse the JSON text of a certificate.

    Raises CertificateError: it is not JSON, or gives a key twice.
    """
    try:
        document: object = json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise CertificateError("the file is nested too deeply") from None
    except ValueError as error:  # not JSON, not UTF-8, or an integer too long for Python
        raise CertificateError(f"the file is not JSON ({error})") from None
    return document


def parse(document: object) -> Claim:
    """Return a certificate as typed records, its proofs still unchecked.

    Raises CertificateError: it is malformed, or of another version.
    """
    if not isinstance(document, dict) or document.get("certificate") != "pufferflow":
        raise CertificateError("this is no certificate of pufferflow: the key certificate is missing")
    if (version := document.get("version")) != VERSION or type(version) is not int:
        old = "it was made before 1.0; make it anew" if version == 1 else f"this program reads {VERSION}"
        raise CertificateError(f"version is {brief(version)}; {old}")
    claim: dict[str, Parser] = {
        "certificate": choice("pufferflow"),
        "version": integer(VERSION, VERSION),
        "mechanism": choice(*MECHANISMS),
        "family": _family,
        "epsilon": positive,
        "length": integer(1, LONGEST),
        "window": integer(1, LONGEST),
        "side_information": choice("none", "any"),
        "scale": number,
        "proofs": each(unchecked),
    }
    given = record(document, "the certificate", claim)
    family, length, proofs = given["family"], given["length"], given["proofs"]
    if len(proofs) != len(family.members):
        raise CertificateError(f"there are {len(proofs)} proofs for {len(family.members)} members")
    parsed = [
        _proof(proof, member, f"proof {i}")
        for i, (proof, member) in enumerate(zip(proofs, family.members, strict=True), 1)
    ]
    informed = given["side_information"] == "any"
    window, mechanism = given["window"], given["mechanism"]
    for proof in parsed:
        if isinstance(proof, Count) != (mechanism == "wasserstein"):
            raise CertificateError("a count alone proves the scale of wasserstein, and no other one")
        if isinstance(proof, Count) and not (family.listed and window == 1 and not informed):
            raise CertificateError("a count has a proof for listed chains, single records and no side information")
        if isinstance(proof, Count) and max(proof.lengths) != length:
            raise CertificateError(f"the longest of the lengths is not the length {length}")
    terms = given["epsilon"], length, window, informed, document["scale"]
    return Claim(mechanism, family, *terms, parsed)


# -- families ----------------------------------------------------------------------------------------


def _family(value: object, where: str) -> Family:
    kinds: dict[str, Callable[[Any], Family]] = {
        "chains": _chains,
        "binary_interval": _binary,
        "interval": lambda given: _both_ways(given, _INTERVAL, _intervals, "between bounds"),
        "total_variation": lambda given: _both_ways(given, _BALL, _balls, "within total variation distances"),
        "mixing": _mixing,
        "periodic": _periodic,
        "hidden": _hidden,
    }
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in kinds:
        raise CertificateError(f"family is {brief(value)}; it has one key of {', '.join(kinds)}")
    [(kind, given)] = value.items()
    return kinds[kind](given)


def _chains(value: object) -> Family:
    chains = [
        Chain([given["transition_matrix"]], given["initial_distribution"])
        for given in each(lambda entry, where: record(entry, where, _CHAIN))(value, "chains")
    ]
    if not chains:
        raise CertificateError("the family holds no chain")
    for chain in chains:
        _check_start(chain)
    number = "1 chain" if len(chains) == 1 else f"{len(chains)} chains"
    return Family(list(chains), f"{number} of {chains[0].states} states")


def _binary(value: object) -> Family:
    ends = each(positive)(value, "binary_interval")
    if len(ends) != 2 or not ends[0] <= ends[1] < 1:
        raise CertificateError("binary_interval must hold two numbers with 0 < low <= high < 1")
    # the symmetric chain that dominates the class (docs/leakage.md)
    stay = max(ends, key=lambda end: abs(end - Fraction(1, 2)))
    worst = Chain([[[stay, 1 - stay], [1 - stay, stay]]], "any")
    words = f"all binary chains that stay with probability {decimal(ends[0])} to {decimal(ends[1])}"
    return Family([worst], words, ends[0] == ends[1])


def _both_ways(value: object, keys: dict[str, Parser], make: Callable[[Any], Intervals], words: str) -> Family:
    """Bounds of the rows, and of those of the reversed chain where there are some."""
    given = record(value, "the family", keys, {"backward": lambda back, _: make(record(back, "backward", keys))})
    backward = given.pop("backward")
    forward = make(given)
    if backward is not None and backward.states != forward.states:
        raise CertificateError(f"backward has {backward.states} states, the family {forward.states}")
    ways = "" if backward is None else ", forwards and backwards"
    known = Intervals(forward.low, forward.high, forward.rows, backward)
    return Family([known], f"all chains of {forward.states} states {words}{ways}", False)


def _balls(given: dict[str, Any]) -> Intervals:
    """Rows within a distance of a centre: all but the distance stays, and so much comes anywhere."""
    centre, radii = given["transition_matrix"], given["radius"]
    if len(radii) != len(centre) or any(radius > 1 for radius in radii):
        raise CertificateError("radius must hold one number of at most 1 a state")
    pairs = list(zip(centre, radii, strict=True))
    low = [[max(p - radius, Fraction()) for p in row] for row, radius in pairs]
    high = [[min(p + radius, Fraction(1)) for p in row] for row, radius in pairs]
    rows = []
    for (row, radius), base in zip(pairs, low, strict=True):
        stays = [p - q for p, q in zip(row, base, strict=True)]
        comes = Part([radius] * len(row), radius)
        rows.append(RowSet(base, [Part(stays, sum(stays, Fraction()) - radius), comes]))
    return Intervals(low, high, rows)


def _intervals(given: dict[str, Any]) -> Intervals:
    low, high = given["low"], given["high"]
    if len(low) != len(high):
        raise CertificateError(f"interval has {len(low)} rows of lower and {len(high)} of upper bounds")
    for i, (below, above) in enumerate(zip(low, high, strict=True), 1):
        if any(p > q for p, q in zip(below, above, strict=True)):
            raise CertificateError(f"row {i} has a lower bound above the upper one")
        numbers, one = numerators([*below, *above], f"row {i}")
        least, most = sum(numbers[: len(low)]), sum(numbers[len(low) :])
        if not least <= one <= most:
            raise CertificateError(f"row {i}: no distribution lies between its bounds")
        for z, (p, q) in enumerate(zip(numbers[: len(low)], numbers[len(low) :], strict=True), 1):
            if least - p + q > one or most - q + p < one:
                raise CertificateError(f"row {i}: no distribution between the bounds attains those of entry {z}")
    rows = [
        RowSet(below, [Part([q - p for p, q in zip(below, above, strict=True)], 1 - sum(below, Fraction()))])
        for below, above in zip(low, high, strict=True)
    ]
    return Intervals(low, high, rows)


def _mixing(value: object) -> Family:
    given = record(value, "mixing", {"steps": integer(1, LONGEST), "overlap": positive})
    if given["overlap"] > 1:
        raise CertificateError("mixing: overlap must be above 0 and at most 1")
    least = decimal(given["overlap"], rounding=ROUND_FLOOR)
    words = f"all Markov chains whose distributions {given['steps']} steps apart overlap in at least {least}"
    return Family([Mixing(**given)], words, False)


def _periodic(value: object) -> Family:
    keys = {"transition_matrices": each(transitions), "repeat": integer(1, LONGEST_PERIOD)}
    given = record(value, "periodic", keys | {"initial_distribution": choice("stationary", "any")})
    matrices, repeat = given["transition_matrices"], given["repeat"]
    if not matrices or len({len(matrix) for matrix in matrices}) > 1:
        raise CertificateError("the matrices differ in their number of states, or there is none")
    chain = Chain(matrices, given["initial_distribution"], repeat)
    if chain.period > LONGEST_PERIOD:
        raise CertificateError(f"the period must lie between 1 and {LONGEST_PERIOD} steps")
    parts = f"{len(matrices)} matrices and a period of {chain.period} steps, from any phase"
    return Family([chain], f"1 chain of {chain.states} states with {parts}")


def _hidden(value: object) -> Family:
    given = record(value, "hidden", _CHAIN | {"observations": each(integer(0, LONGEST))})
    matrix, start, seen = (given[key] for key in (*_CHAIN, "observations"))
    if len(seen) != len(matrix):
        raise CertificateError("observations must be one integer of at least 0 a state")
    words = f"1 chain of {len(matrix)} hidden states with {len(set(seen))} observations"
    _check_start(chain := Chain([matrix], start, observations=seen))
    return Family([chain], words)


def _check_start(chain: Chain) -> None:
    if isinstance(chain.start, list) and len(chain.start) != chain.states:
        raise CertificateError("an initial distribution has not one entry a state")


# -- proofs ------------------------------------------------------------------------------------------


def _proof(value: object, member: Member, where: str) -> Proof:
    if not isinstance(value, dict):
        raise CertificateError(f"{where} is {brief(value)}, not an object")
    if not value:
        return None
    if "quilts" in value and isinstance(member, Chain):
        return [_quilt(entry, where) for entry in record(value, where, {"quilts": each(each(unchecked))})["quilts"]]
    if "weights" in value and isinstance(member, Chain):
        counts: dict[str, Parser] = {"weights": each(integer(0, LONGEST)), "lengths": each(integer(1, LONGEST))}
        count = Count(**record(value, where, counts | {"W": integer(0, LONGEST), "slack": number}))
        if len(count.weights) != member.states or not count.lengths:
            raise CertificateError(f"{where}: there must be one weight a state, and a length")
        return count
    if isinstance(member, Mixing):
        raise CertificateError(f"{where}: a mixing family has nothing but its claim to prove it")
    k = member.states

    pairs = _by_pairs(LONGEST, lambda given, where: witness_of(member, given, where))
    one_side: Parser = lambda given, where: _side(given, k, where)  # noqa: E731
    keys: dict[str, Parser] = {"witnesses": each(pairs), "forward": one_side, "backward": one_side}
    program = Program(**record(value, where, keys, {"observations": integer(0, LONGEST)}))
    steps = [step for side in (program.forward, program.backward) for step in (*side.prefix, *side.cycle)]
    named = [step.witnesses for step in steps] + [program.observations]
    if any(i is not None and i >= len(program.witnesses) for i in named):
        raise CertificateError(f"{where}: a step names witnesses that are not there")
    pieces = len(member.matrices) if isinstance(member, Chain) else 1
    for one in (program.forward, program.backward):
        if (one.start is None) != (not one.cycle) or len(one.cycle) not in (0, pieces):
            raise CertificateError(f"{where}: a cycle has a start, and a step for each of the {pieces} matrices")
    return program


def witness_of(member: Member, value: object, where: str = "a witness") -> Tree | Flows:
    """Return what proves a bound of two values: a tree, of sets of rows flows."""
    if isinstance(member, Chain):
        return _tree(value, member.states, where)
    assert isinstance(member, Intervals)
    flows, parts = _flows(value, member.states, where), len(member.rows[0].parts)
    if not len(flows.surplus) == len(flows.reserve) == parts:
        raise CertificateError(f"{where}: there must be shares for each of the {parts} parts of a row")
    return flows


def _quilt(entry: list[Any], where: str) -> Quilt:
    if len(entry) != 4 or None in entry[:2] or any(type(n) is not int for n in entry if n is not None):
        raise CertificateError(f"{where}: a quilt is [first, last, left, right], all integers or null")
    return Quilt(*entry)


def _side(value: object, k: int, where: str) -> Side:
    def step(given: object, where: str) -> Step:
        numbers: dict[str, Parser] = {"witnesses": integer(0, LONGEST), "power": integer(1, FARTHEST)}
        return Step(**record(given, where, {}, numbers))

    keys: dict[str, Parser] = {"start": each(each(number)), "cycle": each(step)}
    given = record(value, where, {"prefix": each(step)}, keys)
    start = given["start"]
    if start is not None and (len(start) != k or any(len(row) != k for row in start)):
        raise CertificateError(f"{where}: start has not one row and one column a state")
    if len(given["prefix"]) > MOST_STEPS:
        raise CertificateError(f"{where}: {MOST_STEPS} nodes at most have steps of their own")
    return Side(given["prefix"], start, given["cycle"] or [])


def _tree(value: object, k: int, where: str) -> Tree:
    """A tree from the parent of every value: from 1, negative where the arc leads from there, 0 for the root."""
    parents = each(integer(-k, k))(value, where)
    roots = [v for v, a in enumerate(parents) if a == 0]
    if len(parents) != k or len(roots) != 1:
        raise CertificateError(f"{where}: a tree needs one parent a state, and 0 for its root")
    children: dict[int, list[int]] = {}
    for v, a in enumerate(parents):
        if a:
            children.setdefault(abs(a) - 1, []).append(v)
    line = [roots[0]]
    for v in line:
        line.extend(children.get(v, []))
    if len(line) != k:
        raise CertificateError(f"{where}: the parents of a tree go round in a circle")
    return Tree(line[0], [(v, abs(parents[v]) - 1, parents[v] > 0) for v in line[1:]])


def _flows(value: object, k: int, where: str) -> Flows:
    table = _by_pairs(k, number)
    flows = Flows(**record(value, where, {"flow": table, "surplus": each(table), "reserve": each(table)}))
    for shares in (*flows.surplus, *flows.reserve):
        sums = [Fraction()] * k
        for (z, _), share in shares.items():
            sums[z] += share
        if max(sums) > 1:
            raise CertificateError(f"{where}: the shares of state {sums.index(max(sums)) + 1} sum to more than 1")
    return flows


def _by_pairs(most: int, parser: Parser) -> Parser:
    """A parser of entries [value, other, what is parsed], values from 1, as a table by two values."""

    def parse_pairs(value: object, where: str) -> dict[Pair, Any]:
        table: dict[Pair, Any] = {}
        for entry in each(each(unchecked))(value, where):
            if len(entry) != 3:
                raise CertificateError(f"{where}: an entry has {len(entry)} parts; it is [value, other, what proves]")
            x, y = (integer(1, most)(part, where) - 1 for part in entry[:2])
            if x == y or (x, y) in table:
                raise CertificateError(f"{where}: values {x + 1} and {y + 1} are the same, or given twice")
            table[x, y] = parser(entry[2], where)
        return table

    return parse_pairs


# -- fields ------------------------------------------------------------------------------------------


def record(
    value: object, where: str, keys: dict[str, Parser], optional: dict[str, Parser] | None = None
) -> dict[str, Any]:
    """Return an object with these keys, each parsed, those of ``optional`` None where they are missing."""
    if not isinstance(value, dict):
        raise CertificateError(f"{where} is {brief(value)}, not an object")
    optional = optional or {}
    if missing := [key for key in keys if key not in value]:
        raise CertificateError(f"{where} lacks the key {missing[0]}")
    if unknown := [key for key in value if key not in keys and key not in optional]:
        raise CertificateError(f"{where} has the unknown key {brief(unknown[0])}")
    inside = "" if where == "the certificate" else f"{where}: "
    return {
        key: parser(value[key], f"{inside}{key}") if key in value else None for key, parser in (keys | optional).items()
    }


def each(parser: Parser) -> Parser:
    """Return a parser of lists."""

    def parse_all(value: object, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise CertificateError(f"{where} is {brief(value)}, not a list")
        return [parser(part, where) for part in value]

    return parse_all


def integer(low: int, high: int) -> Parser:
    """Return a parser of integers from ``low`` to ``high``."""

    def parse_integer(value: object, where: str) -> int:
        if type(value) is not int:
            raise CertificateError(f"{where} is {brief(value)}, not an integer")
        if not low <= value <= high:
            raise CertificateError(f"{where} is {brief(value)}; it must lie between {low} and {high}")
        return value

    return parse_integer


def choice(*allowed: str) -> Parser:
    """Return a parser of one of some strings."""

    def parse_choice(value: object, where: str) -> str:
        if not (isinstance(value, str) and value in allowed):
            raise CertificateError(f"{where} is {brief(value)}, not {' or '.join(allowed)}")
        return value

    return parse_choice


def unchecked(value: object, where: str) -> object:
    """Return anything as it is."""
    return value


def number(value: object, where: str) -> Fraction:
    """Read a non-negative number written as a string, decimal or n/d."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        try:
            return Fraction(value)
        except ZeroDivisionError:
            pass
    raise CertificateError(f'{where} holds {brief(value)}; numbers are strings such as "0.25" or "1/3"')


def positive(value: object, where: str) -> Fraction:
    """Read a number that is not 0."""
    if not (known := number(value, where)):
        raise CertificateError(f"{where} is 0; it must be positive")
    return known


def distribution(value: object, where: str) -> list[Fraction]:
    """Read numbers whose sum is exactly 1."""
    row: list[Fraction] = each(number)(value, where)
    numbers, one = numerators(row, where)
    if (total := Fraction(sum(numbers), one)) != 1:
        more = f"1 {'+' if total > 1 else '-'} {decimal(abs(total - 1), 3)}"
        raise CertificateError(f"{where} does not sum to 1 exactly but to {more}; an entry was changed")
    return row


def _square(row: Parser) -> Parser:
    def parse_square(value: object, where: str) -> Matrix:
        rows: Matrix = each(row)(value, where)
        if not rows or any(len(one) != len(rows) for one in rows):
            raise CertificateError(f"{where} is no square matrix, or has no rows")
        return rows

    return parse_square


def _start(value: object, where: str) -> str | list[Fraction]:
    if isinstance(value, str):
        return str(choice("stationary", "any")(value, where))
    return distribution(value, where)


transitions = _square(distribution)
_CHAIN: dict[str, Parser] = {"transition_matrix": transitions, "initial_distribution": _start}
_INTERVAL: dict[str, Parser] = {"low": _square(each(number)), "high": _square(each(number))}
_BALL: dict[str, Parser] = {"transition_matrix": transitions, "radius": each(number)}


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
