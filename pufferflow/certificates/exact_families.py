"""Families as exact numbers: every float stands for its shortest decimal, rows are divided by their exact sum."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pufferflow._util.checks import shown
from pufferflow.errors import ParameterError
from pufferflow.models.families import Family

Document = dict[str, Any]


def exact_family(theta: Family) -> Document:
    """Return the family as certificates write it."""
    match theta.document():
        case {"binary_interval": [low, high]}:
            return {"binary_interval": [repr(float(low)), repr(float(high))]}
        case {"mixing": terms}:
            return {"mixing": {"steps": terms["steps"], "overlap": repr(terms["overlap"])}}
        case {"interval": numbers}:
            return {"interval": _both_ways(numbers, _intervals)}
        case {"total_variation": numbers}:
            return {"total_variation": _both_ways(numbers, _balls)}
        case {"periodic": {"transition_matrices": matrices, **rest}}:
            return {"periodic": {"transition_matrices": [[_row(row) for row in matrix] for matrix in matrices]} | rest}
        case {"hidden": terms}:
            chain = _chain(terms["transition_matrix"], terms["initial_distribution"])
            return {"hidden": chain | {"observations": terms["observations"]}}
        case {"chains": chains} if theta.members:
            return {"chains": [_chain(**chain) for chain in chains]}
    raise ParameterError(f"{shown(theta)} is neither a finite family of chains nor one between bounds")


def _both_ways(numbers: Document, exact: Callable[..., Document]) -> Document:
    """What is known of the rows, and of those of the reversed chain where there are bounds of them."""
    forward = {key: value for key, value in numbers.items() if key != "backward"}
    return exact(**forward) | ({"backward": exact(**numbers["backward"])} if "backward" in numbers else {})


def _intervals(low: list[list[float]], high: list[list[float]]) -> Document:
    rows = [_bounds(*pair) for pair in zip(low, high, strict=True)]
    return {"low": [below for below, _ in rows], "high": [above for _, above in rows]}


def _balls(transition_matrix: list[list[float]], radius: list[float]) -> Document:
    return {"transition_matrix": [_row(row) for row in transition_matrix], "radius": [repr(r) for r in radius]}


def _chain(transition_matrix: list[list[float]], initial_distribution: str | list[float]) -> Document:
    start = initial_distribution
    return {
        "transition_matrix": [_row(row) for row in transition_matrix],
        "initial_distribution": start if isinstance(start, str) else _row(start),
    }


def _row(row: list[float], right: Callable[[Fraction], bool] = lambda total: total == 1) -> list[str]:
    """Shortest decimals where their sum is right, otherwise fractions: the decimals divided by their sum."""
    decimals = [repr(p) for p in row]
    numbers = [Fraction(p) for p in decimals]
    total = sum(numbers, Fraction())
    return decimals if right(total) else [str(p / total) for p in numbers]


def _bounds(low: list[float], high: list[float]) -> tuple[list[str], list[str]]:
    """Bounds of a row that hold those given, each attained by a distribution between them."""
    below = _row(low, lambda total: total <= 1)
    above = _row(high, lambda total: total >= 1)
    pairs = [(Fraction(p), Fraction(q)) for p, q in zip(below, above, strict=True)]
    least, most = (sum(side, Fraction()) for side in zip(*pairs, strict=True))
    for z, (p, q) in enumerate(pairs):
        if least - p + q > 1:
            above[z] = str(1 - least + p)
        if most - q + p < 1:
            below[z] = str(1 - most + q)
    return below, above
