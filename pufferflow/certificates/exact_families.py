"""Families as exact numbers: shortest decimals of floats, rows divided by their exact sums."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from pufferflow._util.checks import shown
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import Family

Document = dict[str, Any]


def exact_family(theta: Family) -> Document:
    """Return the family as certificates write it."""
    match theta.document():
        case {"binary_interval": [low, high]} if low < high:
            return {"binary_interval": [repr(float(low)), repr(float(high))]}
        case {"mixing": terms}:
            return {"mixing": {"steps": terms["steps"], "overlap": repr(terms["overlap"])}}
        case {"interval": numbers}:
            return {"interval": _sets(numbers)}
        case {"total_variation": numbers}:
            return {"total_variation": _sets(numbers)}
        case {"periodic": terms}:  # each phase has a step of its own
            matrices = np.repeat(terms["transition_matrices"], terms["repeat"], axis=0).tolist()
            return {"chains": [_chain(matrices, terms["initial_distribution"])]}
        case {"hidden": terms}:
            chain = _chain([terms["transition_matrix"]], terms["initial_distribution"])
            return {"chains": [chain | {"observations": terms["observations"]}]}
        case {"binary_interval": _}:
            return {"chains": [_of_chain(theta.chains[0])]}
        case {"chains": _} if theta.members:
            return {"chains": [_of_chain(chain) for chain in theta.chains]}
    raise ParameterError(
        f"{shown(theta)} is neither a finite family of chains nor one between bounds"
    )


def _sets(numbers: Document) -> Document:
    """What is known of the rows, and of the reversed chain's where there are bounds of them."""
    backward = {"backward": _sets(numbers["backward"])} if "backward" in numbers else {}
    if "low" in numbers:
        low = [_row(row, lambda total: total <= 1) for row in numbers["low"]]
        high = [_row(row, lambda total: total >= 1) for row in numbers["high"]]
        return {"low": low, "high": high} | backward
    centre = [_row(row) for row in numbers["transition_matrix"]]
    return {"transition_matrix": centre, "radius": [repr(r) for r in numbers["radius"]]} | backward


def _of_chain(chain: MarkovChain) -> Document:
    return _chain([chain.transition_matrix.tolist()], chain.document()["initial_distribution"])


def _chain(matrices: list[list[list[float]]], start: str | list[float]) -> Document:
    exact = [[_row(row) for row in matrix] for matrix in matrices]
    first = start if isinstance(start, str) else _row(start)
    return {"transition_matrices": exact, "initial_distribution": first}


def _row(
    row: list[float], right: Callable[[Fraction], bool] = lambda total: total == 1
) -> list[str]:
    """Shortest decimals where their sum is right, otherwise these divided by their sum."""
    numbers = [Fraction(repr(p)) for p in row]
    total = sum(numbers, Fraction())
    return [repr(p) for p in row] if right(total) else [str(p / total) for p in numbers]
