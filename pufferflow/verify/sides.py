"""What proofs by couplings have in common: a cost c, leakages of pairs of values, and laws that may be reweighted."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from pufferflow.verify.balls import UndecidedError, ball
from pufferflow.verify.parsing import CertificateError, check_integer, check_list, parse_number

Matrix: TypeAlias = list[list[Fraction]]


def parse_cost(value: object) -> Fraction:
    """Return c; raises CertificateError: it is no positive number."""
    cost = parse_number(value, "cost")
    if not cost:
        raise CertificateError("cost is 0; it must be positive")
    return cost


def parse_matrix(value: object, k: int, where: str) -> Matrix:
    """Return a number for each pair of k states; raises CertificateError: they are malformed."""
    matrix = [[parse_number(a, where) for a in check_list(row, where)] for row in check_list(value, where)]
    if len(matrix) != k or any(len(row) != k for row in matrix):
        raise CertificateError(f"{where} is not a matrix with one row and one column a state")
    return matrix


def parse_state(value: object, k: int, where: str) -> int:
    """Return one of k states, from 0; raises CertificateError: it is none of 1, …, k."""
    state = check_integer(value, where)
    if not 1 <= state <= k:
        raise CertificateError(f"{where}: state {state} is not between 1 and {k}")
    return state - 1


def parse_flow(value: object, k: int, where: str) -> tuple[int, int, Fraction]:
    """Return the two states of an arc and what flows along it; raises CertificateError: they are malformed."""
    parts = check_list(value, f"{where}: flow")
    if len(parts) != 3:
        raise CertificateError(f"{where}: a flow has {len(parts)} parts; it is [from, to, amount]")
    z, y = parse_state(parts[0], k, where), parse_state(parts[1], k, where)
    if z == y:
        raise CertificateError(f"{where}: a flow leads from state {z + 1} to itself")
    return z, y, parse_number(parts[2], f"{where}: flow")


def growth_of(leakages: Matrix, cost: Fraction) -> list[list[arb]]:
    """e^w(z, y), where w(z, y) = c + A[z, y] for z ≠ y and w(z, z) = 0."""
    return [
        [ball(cost + a if z != y else Fraction(0)).exp() for y, a in enumerate(row)] for z, row in enumerate(leakages)
    ]


def check_reweighted(roots: Iterable[tuple[arb | None, arb]], leakage: Fraction, more: str) -> None:
    """Check what two values tell through a record whose law may be reweighted in any way.

    For two states of the record let R be the cross ratio of its laws given either value, and H = e^w of the two. The
    values tell at most log (1 + √(RH))² / (√R + √H)² for any two states with R > 1; a larger R gives a larger bound.

    Parameters
    ----------
    roots : iterable of pairs
        √R, None where it is infinite, and √H.
    leakage : Fraction
        The bound claimed.
    more : str
        What to say where it is not met.

    Raises
    ------
    CertificateError
        They may tell more.
    UndecidedError
        The precision does not suffice to say so.
    """
    most = ball(leakage / 2).exp()
    for root, h in roots:
        over, under = (h, arb(1)) if root is None else (1 + root * h, root + h)
        if over <= most * under:
            continue
        if over > most * under:
            raise CertificateError(more)
        raise UndecidedError
