"""Checking a certificate, with interval arithmetic and none of the code that computes scales.

A certificate states chains as exact numbers, ε, the length T, a Laplace scale and, for every chain, ranges of
nodes with the quilt of each. It is a proof of the scale if for every node of every chain the quilt fits and
card / (ε − e) ≤ scale, e being the max-influence of eq. 5 (Song, Wang, Chaudhuri, SIGMOD 2017; Algorithm 3).
That is all this file checks, on balls that contain the exact numbers (Arb); which transitions have
probability 0 is computed exactly beside them. The layout of the file is described in
:mod:`pufferflow.certificates`, which makes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any, TypeAlias

from flint import arb, arb_mat, ctx, fmpq

from pufferflow.errors import PufferflowError

VERSION = 1
LONGEST = 2**62
PRECISIONS = (128, 256, 512, 1024, 2048, 4096)
"""Bits of the balls, tried in turn until they are narrow enough to decide."""

MECHANISMS_PROVED = ("mqm-exact", "mqm-approx", "group-dp")
"""Mechanisms whose scale quilts prove; the first one's is the smallest that they do."""

EXCESS = Fraction(1, 10**12)
"""How far (relatively) a scale of mqm-exact may exceed what is proved and still be the scale it belongs to."""

_NUMBER = re.compile(r"[0-9]{1,1200}(\.[0-9]{1,1200})?([eE][+-]?[0-9]{1,3})?|[0-9]{1,1200}/[0-9]{1,1200}")
_MOST_SUPPORTS = 10_000

Chain: TypeAlias = tuple[list[list[Fraction]], str | list[Fraction]]  # matrix, start
Vector: TypeAlias = list[arb | None]  # None: exactly 0, all others are known to be positive
Table: TypeAlias = list[list[arb | None]]  # over pairs of states; None: infinite


class CertificateError(PufferflowError, ValueError):
    """A certificate that is malformed or proves less than it states."""


class UndecidedError(Exception):
    """The balls are too wide at the present precision."""


@dataclass(frozen=True)
class NodeRange:
    """Nodes first … last, all with the quilt at distances ``left`` and ``right`` (None: no node there)."""

    first: int
    last: int
    left: int | None
    right: int | None

    def __str__(self) -> str:
        return f"nodes {self.first} to {self.last}, quilt distances {_null(self.left)} and {_null(self.right)}"


@dataclass(frozen=True)
class Claim:
    """What a certificate states, its numbers parsed."""

    mechanism: str
    chains: tuple[Chain, ...]
    convention: str
    epsilon: Fraction
    length: int
    nodes: tuple[tuple[NodeRange, ...], ...]
    scale: str


@dataclass(frozen=True)
class Verification:
    """What a certificate proves: the largest card / (ε − e) lies in [lower, upper].

    Attributes
    ----------
    scale : str
        As the certificate writes it.
    lower, upper : Fraction
        Certified enclosure of the largest score over all nodes and chains.
    ranges : int
        Ranges of nodes checked.
    chain : int
        Index of the chain that decides.
    nodes : NodeRange
        The range that decides.
    precision : int
        Bits that were needed.
    """

    scale: str
    lower: Fraction
    upper: Fraction
    ranges: int
    chain: int
    nodes: NodeRange
    precision: int

    def decimals(self, digits: int = 25) -> tuple[str, str]:
        """Return the enclosure as decimals, rounded outward."""
        down, up = (Context(digits, rounding=r) for r in (ROUND_FLOOR, ROUND_CEILING))
        return (
            str(down.divide(self.lower.numerator, self.lower.denominator)),
            str(up.divide(self.upper.numerator, self.upper.denominator)),
        )


# -- the mathematics ---------------------------------------------------------------------------------


class ChainScores:
    """Scores card / (ε − e) of the quilts of one chain, as balls of the precision at which it is made.

    Sets of states are the bits of an integer. Products of non-negative balls never cancel, so an entry
    that can be positive is positive in the balls too, given enough bits.
    """

    def __init__(
        self,
        matrix: list[list[Fraction]],
        start: str | list[Fraction],
        convention: str,
        length: int,
        epsilon: Fraction,
    ) -> None:
        self.k = len(matrix)
        self.start, self.length, self.epsilon = start, length, epsilon
        self.published = convention == "published"
        self._squares = [
            (
                arb_mat([[_ball(p) for p in row] for row in matrix]),
                [sum(1 << y for y, p in enumerate(row) if p) for row in matrix],
            )
        ]
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._law: Vector = []
        if start == "stationary":
            self._states = self._closed_class()
            self._law = self._stationary()
        elif start == "any":
            self._states = (1 << self.k) - 1
        else:
            self._states = sum(1 << x for x, p in enumerate(start) if p)
            self._law = [_ball(p) if isinstance(p, Fraction) and p else None for p in start]

    def card(self, nodes: NodeRange) -> int:
        """Largest card(X_N) over the nodes (Lemma 4.6)."""
        a, b = nodes.left, nodes.right
        if a is None:
            return self.length if b is None else nodes.last + b - 1
        return self.length - nodes.first + a if b is None else a + b - 1

    def score(self, nodes: NodeRange) -> arb | None:
        """Ball around card / (ε − e), both the largest over the nodes; None where e ≥ ε."""
        card, ratio = self.card(nodes), self._influence_ratio(nodes)
        if ratio is None:
            return None
        if ratio == 1:
            return _ball(card / self.epsilon)
        slack = _ball(self.epsilon) - ratio.log()
        if slack > 0:
            return card / slack
        if slack <= 0:
            return None
        raise UndecidedError

    def _influence_ratio(self, nodes: NodeRange) -> arb | None:
        """Exponential of the max-influence (eq. 5), None where it is infinite."""
        tables: list[Table] = []
        if nodes.left is not None:
            tables += [self._first_term(nodes), self._left_term(nodes)]
        if nodes.right is not None:
            b = nodes.right
            tables.append(self._keep(("right", b), lambda: _largest_ratios(self._power(b))))
        supports = self._supports(nodes.first, nodes.last) if tables else []
        largest = arb(1)
        for x in range(self.k):
            for y in range(self.k):
                if x != y and any(s >> x & s >> y & 1 for s in supports):  # both are secrets of one node
                    value = arb(1)
                    for table in tables:
                        entry = table[x][y]
                        if entry is None:
                            return None
                        value *= entry
                    largest = largest.max(value)
        return largest

    def _first_term(self, nodes: NodeRange) -> Table:
        """Bound of m_i(x') / m_i(x) for every node of the range."""
        n = nodes.first - 1
        if self.start == "stationary":
            law = self._law
        elif self.start == "any" or nodes.first < nodes.last:
            # every later law is a mixture of the rows of P^n, a ratio of mixtures at most the largest ratio
            columns = [list(column) for column in zip(*self._power(n), strict=True)]
            table: Table = self._keep(("rows", n), lambda: _transposed(_largest_ratios(columns)))
            return table
        else:
            row = arb_mat([[arb(0) if p is None else p for p in self._law]])
            for matrix, _ in self._binary(n):
                row = row * matrix
            law = _positive(row.tolist()[0], self._reach(self._states, n))
        return _transposed(_largest_ratios([[p] for p in law]))

    def _left_term(self, nodes: NodeRange) -> Table:
        """Max over z of P^a(z, x) / P^a(z, x'), z all states or (exact) those X_{i-a} can take."""
        a = nodes.left
        assert a is not None
        sources = (1 << self.k) - 1
        if not self.published:
            sources = 0
            for support in self._supports(nodes.first - a, nodes.last - a):
                sources |= support

        def make() -> Table:
            rows = [row for z, row in enumerate(self._power(a)) if sources >> z & 1]
            return _largest_ratios([list(column) for column in zip(*rows, strict=True)])

        table: Table = self._keep(("left", a, sources), make)
        return table

    # -- powers and supports ---------------------------------------------------------------------

    def _keep(self, key: tuple[Any, ...], make: Any) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _binary(self, n: int) -> Iterator[tuple[arb_mat, list[int]]]:
        """The powers P^(2^j) whose product is P^n, with the states each row reaches."""
        for j in range(n.bit_length()):
            if j == len(self._squares):
                matrix, steps = self._squares[-1]
                self._squares.append((matrix * matrix, [_union(steps, reached) for reached in steps]))
            if n >> j & 1:
                yield self._squares[j]

    def _reach(self, states: int, n: int) -> int:
        """States that can be reached from ``states`` in exactly n steps."""
        for _, steps in self._binary(n):
            states = _union(steps, states)
        return states

    def _power(self, n: int) -> list[Vector]:
        """P^n by rows."""

        def make() -> list[Vector]:
            power = arb_mat([[int(x == y) for y in range(self.k)] for x in range(self.k)])
            for matrix, _ in self._binary(n):
                power = power * matrix
            return [_positive(row, self._reach(1 << x, n)) for x, row in enumerate(power.tolist())]

        rows: list[Vector] = self._keep(("power", n), make)
        return rows

    def _supports(self, first: int, last: int) -> list[int]:
        """All sets of states that some X_i, first ≤ i ≤ last, takes with positive probability."""
        if self.start == "stationary":
            return [self._states]
        found = [self._reach(self._states, first - 1)]
        for _ in range(first, last):
            following = _union(self._squares[0][1], found[-1])
            if following in found:  # from here on they repeat
                break
            found.append(following)
            if len(found) > _MOST_SUPPORTS:
                raise CertificateError(f"the states that nodes {first} to {last} can take do not settle")
        return found

    def _closed_class(self) -> int:
        """States of the only closed class."""
        steps = self._squares[0][1]
        reached = [1 << x for x in range(self.k)]
        for x in range(self.k):
            while (more := reached[x] | _union(steps, reached[x])) != reached[x]:
                reached[x] = more
        closed = {r for x, r in enumerate(reached) if all(reached[y] >> x & 1 for y in _bits(r))}
        if len(closed) > 1:
            raise CertificateError(f"the stationary distribution is not unique ({len(closed)} closed classes)")
        return closed.pop()

    def _stationary(self) -> Vector:
        """Stationary law up to a factor, by elimination after Grassmann, Taksar and Heyman (no subtraction)."""
        inside = list(_bits(self._states))
        matrix = self._squares[0][0]
        work = [[matrix[x, y] for y in inside] for x in inside]
        for n in range(len(inside) - 1, 0, -1):
            leave = sum(work[n][:n], arb(0))
            if not leave > 0:
                raise UndecidedError
            for x in range(n):
                work[x][n] /= leave
                for y in range(n):
                    work[x][y] += work[x][n] * work[n][y]
        weights = [arb(1)]
        for n in range(1, len(inside)):
            weights.append(sum((weights[x] * work[x][n] for x in range(n)), arb(0)))
        law = [arb(0)] * self.k
        for x, weight in zip(inside, weights, strict=True):
            law[x] = weight
        return _positive(law, self._states)


def _ball(number: Fraction) -> arb:
    return arb(fmpq(number.numerator, number.denominator))


def _bits(states: int) -> Iterator[int]:
    return (x for x in range(states.bit_length()) if states >> x & 1)


def _union(steps: list[int], states: int) -> int:
    reached = 0
    for x in _bits(states):
        reached |= steps[x]
    return reached


def _positive(values: list[arb], support: int) -> Vector:
    """Mark the exact zeros of a vector by None, once all other entries are known to be positive."""
    vector = [value if support >> x & 1 else None for x, value in enumerate(values)]
    if not all(value is None or value > 0 for value in vector):
        raise UndecidedError
    return vector


def _largest_ratios(vectors: list[Vector]) -> Table:
    """table[x][y] = max over z of vectors[x][z] / vectors[y][z]; 0/0 does not count, x/0 is infinite."""
    inverses = [[None if p is None else 1 / p for p in vector] for vector in vectors]

    def largest(above: Vector, below: Vector) -> arb | None:
        result = arb(0)
        for p, q in zip(above, below, strict=True):
            if p is not None:
                if q is None:
                    return None
                result = result.max(p * q)
        return result

    return [[largest(above, below) for below in inverses] for above in vectors]


def _transposed(table: Table) -> Table:
    return [list(column) for column in zip(*table, strict=True)]


def enclosures(claim: Claim) -> Iterator[Verification]:
    """Enclosures of the largest score of a claim, ever narrower; those too wide to be finite are left out.

    Raises
    ------
    CertificateError
        Some quilt has max-influence ε or more.
    """
    for precision in PRECISIONS:
        try:
            with ctx.workprec(precision):
                found = _enclosure(claim, precision)
        except UndecidedError:
            continue
        yield found


def _enclosure(claim: Claim, precision: int) -> Verification:
    scored = []
    for i, ((matrix, start), ranges) in enumerate(zip(claim.chains, claim.nodes, strict=True)):
        scores = ChainScores(matrix, start, claim.convention, claim.length, claim.epsilon)
        for nodes in ranges:
            score = scores.score(nodes)
            if score is None:
                raise CertificateError(f"chain {i + 1}, {nodes}: the max-influence is not below epsilon")
            scored.append((_exact(score.lower()), _exact(score.upper()), i, nodes))
    _, upper, chain, nodes = max(scored, key=lambda entry: entry[1])
    return Verification(claim.scale, max(entry[0] for entry in scored), upper, len(scored), chain, nodes, precision)


def _exact(end: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in end.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


# -- certificates ------------------------------------------------------------------------------------


def verify_certificate(document: object) -> Verification:
    """Check a certificate, given as parsed JSON.

    Parameters
    ----------
    document : object
        What :func:`pufferflow.certificates.certify` returns.

    Returns
    -------
    Verification
        The enclosure that proves it.

    Raises
    ------
    CertificateError
        It is malformed, its scale is too small for some node, or its scale is not the one it proves.
    """
    claim = parse_claim(document)
    scale = _number(claim.scale, "scale")
    for found in enclosures(claim):
        where = f"chain {found.chain + 1}, {found.nodes}"
        if scale < found.lower:
            raise CertificateError(
                f"{where}: card/(epsilon - e) is at least {_decimal(found.lower)}, "
                f"more than the scale {_decimal(scale)} (by {_decimal(found.lower - scale, 3)})"
            )
        if scale >= found.upper:
            if claim.mechanism == "mqm-exact" and scale > found.upper * (1 + EXCESS):
                raise CertificateError(
                    f"the scale {_decimal(scale)} is not the one proved: the largest card/(epsilon - e), "
                    f"{where}, is at most {_decimal(found.upper)}"
                )
            return found
    raise CertificateError(f"{PRECISIONS[-1]} bits do not decide whether the scale suffices")


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


def parse_claim(document: object) -> Claim:
    """Return what a certificate states.

    Raises
    ------
    CertificateError
        A key is missing, unknown or of the wrong type; a row is no distribution; a quilt does not fit its
        nodes; the ranges do not cover the nodes 1 … T once and in order.
    """
    fields = _object(
        document,
        ("certificate", "version", "mechanism", "convention", "family", "epsilon", "length", "scale", "nodes"),
        "the certificate",
    )
    _one_of(fields["certificate"], ("pufferflow",), "certificate")
    if _integer(fields["version"], "version") != VERSION:
        raise CertificateError(f"version is {fields['version']}; this program reads version {VERSION}")
    mechanism = _one_of(fields["mechanism"], MECHANISMS_PROVED, "mechanism")
    convention = _one_of(fields["convention"], ("exact", "published"), "convention")
    epsilon = _number(fields["epsilon"], "epsilon")
    _number(fields["scale"], "scale")
    if not epsilon:
        raise CertificateError("epsilon is 0; it must be positive")
    length = _integer(fields["length"], "length")
    if not 1 <= length <= LONGEST:
        raise CertificateError(f"length is {length}; it must lie between 1 and {LONGEST}")
    chains = parse_family(fields["family"])
    lists = _list(fields["nodes"], "nodes")
    if len(lists) != len(chains):
        raise CertificateError(f"nodes has {len(lists)} lists of ranges for {len(chains)} chains")
    nodes = tuple(_ranges(entry, length, f"chain {i}") for i, entry in enumerate(lists, 1))
    return Claim(mechanism, chains, convention, epsilon, length, nodes, fields["scale"])


def parse_family(value: object) -> tuple[Chain, ...]:
    """Return the matrix and the start of every chain of a family.

    Raises
    ------
    CertificateError
        It is malformed, or a row is no distribution.
    """
    if isinstance(value, dict) and "binary_interval" in value:
        interval = _list(_object(value, ("binary_interval",), "family")["binary_interval"], "binary_interval")
        ends = [_number(end, "binary_interval") for end in interval]
        if len(ends) != 2 or not 0 < ends[0] <= ends[1] < 1:
            raise CertificateError("binary_interval must hold two numbers with 0 < low <= high < 1")
        # the symmetric chain that dominates the class (proved in BinaryInterval, pufferflow/markov/families.py)
        stay = max(ends, key=lambda end: abs(end - Fraction(1, 2)))
        return (([[stay, 1 - stay], [1 - stay, stay]], "any"),)
    chains = _list(_object(value, ("chains",), "family")["chains"], "chains")
    if not chains:
        raise CertificateError("the family holds no chain")
    return tuple(_chain(entry, f"chain {i}") for i, entry in enumerate(chains, 1))


def _chain(value: object, where: str) -> Chain:
    fields = _object(value, ("transition_matrix", "initial_distribution"), where)
    rows = _list(fields["transition_matrix"], f"{where}: transition_matrix")
    if not rows:
        raise CertificateError(f"{where}: transition_matrix has no rows")
    matrix = [_distribution(row, len(rows), f"{where}, row {i}") for i, row in enumerate(rows, 1)]
    start = fields["initial_distribution"]
    if isinstance(start, str):
        return matrix, _one_of(start, ("stationary", "any"), f"{where}: initial_distribution")
    return matrix, _distribution(start, len(rows), f"{where}, initial_distribution")


def _distribution(value: object, states: int, where: str) -> list[Fraction]:
    law = [_number(p, where) for p in _list(value, where)]
    if len(law) != states:
        raise CertificateError(f"{where} has {len(law)} entries for {states} states")
    if (total := sum(law, Fraction())) != 1:
        raise CertificateError(
            f"{where} does not sum to 1 exactly but to 1 {'+' if total > 1 else '-'} "
            f"{_decimal(abs(total - 1), 3)}; an entry was changed"
        )
    return law


def _ranges(value: object, length: int, where: str) -> tuple[NodeRange, ...]:
    ranges, covered = [], 0
    for entry in _list(value, f"{where}: nodes"):
        fields = _object(entry, ("first", "last", "left", "right"), f"{where}: a range of nodes")
        first, last = (_integer(fields[key], f"{where}: {key}") for key in ("first", "last"))
        left, right = (
            None if fields[key] is None else _integer(fields[key], f"{where}: {key}") for key in ("left", "right")
        )
        nodes = NodeRange(first, last, left, right)
        if first != covered + 1:
            raise CertificateError(f"{where}: the range that starts at node {first} must start at {covered + 1}")
        if not first <= last <= length:
            raise CertificateError(f"{where}: nodes {first} to {last} are no range within 1 to {length}")
        if not ((left is None or 1 <= left < first) and (right is None or 1 <= right <= length - last)):
            raise CertificateError(f"{where}, {nodes}: the quilt does not fit the {length} nodes")
        ranges.append(nodes)
        covered = last
    if covered < length:
        raise CertificateError(f"{where}: nodes {covered + 1} to {length} have no quilt")
    return tuple(ranges)


# -- fields ------------------------------------------------------------------------------------------


def _number(value: object, where: str) -> Fraction:
    """Read a non-negative number written as a string, decimal or n/d."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        try:
            return Fraction(value)
        except ZeroDivisionError:
            pass
    raise CertificateError(f'{where} holds {_brief(value)}; numbers are strings such as "0.25", "1e-3" or "1/3"')


def _integer(value: object, where: str) -> int:
    if type(value) is not int:
        raise CertificateError(f"{where} is {_brief(value)}, not an integer")
    return value


def _one_of(value: object, allowed: tuple[str, ...], where: str) -> str:
    if not (isinstance(value, str) and value in allowed):
        raise CertificateError(f"{where} is {_brief(value)}, not {' or '.join(allowed)}")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise CertificateError(f"{where} is {_brief(value)}, not a list")
    return value


def _object(value: object, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CertificateError(f"{where} is {_brief(value)}, not an object")
    for key in keys:
        if key not in value:
            raise CertificateError(f"{where} lacks the key {key}")
    if unknown := [key for key in value if key not in keys]:
        raise CertificateError(f"{where} has the unknown key {_brief(unknown[0])}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise CertificateError("a key is given twice in one object")
    return document


def _decimal(number: Fraction, digits: int = 17) -> str:
    """Write a number for people; it may lie outside the range of floats."""
    return _ball(number).str(digits, radius=False)


def _null(distance: int | None) -> str:
    return "none" if distance is None else str(distance)


def _brief(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else text[:36] + "..." + text[-1:]
