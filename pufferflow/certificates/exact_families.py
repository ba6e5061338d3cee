"""Families as exact numbers: shortest decimals of floats, rows divided by their exact sums."""

from fractions import Fraction
from typing import Any

import numpy as np

from pufferflow.models.families import Family

Document = dict[str, Any]


def exact_family(theta: Family) -> Document:
    """Return the family in the format of certificates."""
    [(kind, terms)] = theta.document().items()
    match kind:
        case "mixing":
            return {kind: {"steps": terms["steps"], "overlap": repr(terms["overlap"])}}
        case "binary_interval" if terms[0] < terms[1]:
            return {kind: [repr(float(end)) for end in terms]}
        case "interval" | "total_variation":
            return {kind: _sets(terms)}
        case "periodic":  # each phase has a step of its own
            matrices = np.repeat(terms["transition_matrices"], terms["repeat"], axis=0).tolist()
            return {"chains": [_chain(terms | {"transition_matrices": matrices})]}
        case "hidden":
            return {"chains": [_chain(terms) | {"observations": terms["observations"]}]}
    return {"chains": [_chain(chain.document()) for chain in theta.chains]}


def _sets(terms: Document) -> Document:
    """Return the sets of rows, and of the reversed chain's rows if they have bounds."""
    found: Document = {}
    for name, given in terms.items():
        if name == "backward":
            found[name] = _sets(given)
        else:
            found[name] = (
                list(map(repr, given)) if name == "radius" else [_row(row, name) for row in given]
            )
    return found


def _chain(terms: Document) -> Document:
    matrices = terms.get("transition_matrices") or [terms["transition_matrix"]]
    exact = [[_row(row) for row in matrix] for matrix in matrices]
    start = terms["initial_distribution"]
    first = start if isinstance(start, str) else _row(start)
    return {"transition_matrices": exact, "initial_distribution": first}


_RIGHT = {"low": (0, 1), "high": (1, np.inf), "transition_matrix": (1, 1)}
"""Possible sums of rows."""


def _row(row: list[float], name: str = "transition_matrix") -> list[str]:
    """Return shortest decimals if their sum is 1, otherwise these divided by their sum."""
    numbers, (least, most) = [Fraction(repr(p)) for p in row], _RIGHT[name]
    total = sum(numbers, Fraction())
    right = least <= total <= most
    return [repr(p) for p in row] if right else [str(p / total) for p in numbers]
