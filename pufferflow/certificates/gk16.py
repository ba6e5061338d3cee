"""The numbers that prove a scale of gk16: solutions of three linear systems, see :mod:`pufferflow.verify.gk16`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb, ctx

from pufferflow.errors import ParameterError
from pufferflow.verify.gk16 import LocalInfluenceBalls, Row
from pufferflow.verify.parsing import Chain

PRECISION = 256
"""Bits in which the systems are solved."""

ENDS = (32, 256, 2048, 16384, 50_000)
"""Nodes at each end that get numbers of their own, tried until the proof is tight."""

_DIGITS = 30

_REFUSED = "the spectral norm of the influence matrix is not below 1, or too close to it to tell"


def local_influence_numbers(chains: tuple[Chain, ...], length: int, ends: int) -> dict[str, Any]:
    """Return the fields of a proof with numbers for ``ends`` nodes at each end and the same for all between them.

    Row sums solve (I − Γ)s = 1, the weights u − Γv = 1 and v − Γᵀu = 1. In the middle all of them are near the
    limit 1 / (1 − sum of the interior entries).

    Raises ParameterError: the systems have no positive solution of this shape: the norm of Γ is not below 1, or hardly.
    """
    with ctx.workprec(PRECISION):
        gamma = LocalInfluenceBalls(chains, length)

        def weights(parity: int) -> Callable[[int], Row]:
            """The u of nodes of one parity go with the v of the others: two tridiagonal systems."""

            def row(node: int) -> Row:
                if node % 2 == parity:
                    return gamma.row(node)
                return gamma.row(node - 1)[1], gamma.row(node + 1)[0]

            return row

        odd, even = (_solution(weights(parity), length, ends) for parity in (1, 0))
        sums = _solution(gamma.row, length, ends)
        ranges: list[dict[str, Any]] = []
        for node, s in sums.items():
            u, v = (odd, even) if node % 2 else (even, odd)
            numbers = {"row_sum": _decimal(s), "weights": [_decimal(u[node]), _decimal(v[node])]}
            last = length - ends if node == ends + 1 and length > 2 * ends else node
            if ranges and numbers.items() <= ranges[-1].items():
                ranges[-1]["last"] = last
            else:
                ranges.append({"first": node, "last": last, **numbers})
    return {"nodes": ranges}


def _solution(row: Callable[[int], Row], length: int, ends: int) -> dict[int, arb]:
    """Solve x_i − left x_{i−1} − right x_{i+1} = 1, for nodes at the ends and (as one of them) all between."""
    if length <= 2 * ends:
        return _tridiagonal(row, range(1, length + 1), arb(0), arb(0))
    left, right = row(ends + 1)
    if not left + right < 1:
        raise ParameterError(_REFUSED)
    limit = 1 / (1 - left - right)
    return {
        **_tridiagonal(row, range(1, ends + 1), arb(0), limit),
        ends + 1: limit,
        **_tridiagonal(row, range(length - ends + 1, length + 1), limit, arb(0)),
    }


def _tridiagonal(row: Callable[[int], Row], nodes: range, before: arb, after: arb) -> dict[int, arb]:
    """The same on some nodes, between two known values; by elimination from the left."""
    eliminated = []  # x_i = constant + factor * x_{i+1}
    constant, factor = before, arb(0)
    for node in nodes:
        left, right = row(node)
        pivot = 1 - left * factor
        if not pivot > 0:
            raise ParameterError(_REFUSED)
        constant, factor = (1 + left * constant) / pivot, right / pivot
        eliminated.append((node, constant, factor))
    solution = {}
    value = after
    for node, constant, factor in reversed(eliminated):
        value = constant + factor * value
        solution[node] = value
    return dict(reversed(solution.items()))


def _decimal(number: arb) -> str:
    text: str = number.str(_DIGITS, radius=False)
    return text
