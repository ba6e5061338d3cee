"""Numbers of a check: balls (Arb) that contain the exact ones."""

from collections.abc import Iterable
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

from flint import arb, arb_mat, ctx, fmpq

from pufferflow.verify.parse import require

Row: TypeAlias = list[arb]  # exactly 0 for impossible values, otherwise provably positive
Table: TypeAlias = list[Row]

ONE, ZERO, INFINITE = arb(1), arb(0), arb.pos_inf()


class UndecidedError(Exception):
    """The balls are too wide at the current precision."""


def decide(proved: bool, why: str = "") -> None:
    """Raise UndecidedError, with the reason, unless the condition is proved."""
    if not proved:
        raise UndecidedError(why)


class Work:
    """The limit on operations on balls of 128 bits."""

    def __init__(self, most: float) -> None:
        self.most, self.spent = most, 0

    def spend(self, operations: int) -> None:
        """Add operations; raises CertificateError if they exceed the limit."""
        self.spent += operations * (1 + ctx.prec // 512)
        why = f"its check takes over {self.most:.1e} operations; allow more (`most_work`)"
        require(self.spent <= self.most, why)


def ball(number: Any) -> arb:
    """Return a ball around an exact number; balls are unchanged."""
    return arb(
        fmpq(number.numerator, number.denominator) if isinstance(number, Fraction) else number
    )


def exact(end: arb) -> Fraction:
    """Return the number that a ball of radius 0 is."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def certain(matrix: arb_mat) -> Table:
    """Return the entries of a matrix, each provably positive or exactly 0."""
    table: Table = matrix.tolist()
    decide(all(p > 0 or p.is_zero() for row in table for p in row))
    return table


def largest(values: Iterable[arb]) -> arb:
    """Return the largest of some balls."""
    return reduce(arb.max, values)


def below(one: Table, other: Table) -> bool:
    """Return whether no entry of a table is above that of another one."""
    pairs = zip(one, other, strict=True)
    return all(p <= q for rows in pairs for p, q in zip(*rows, strict=True))


def columns(matrix: Iterable[Row]) -> Table:
    """Return the columns of a matrix."""
    return [list(column) for column in zip(*matrix, strict=True)]
