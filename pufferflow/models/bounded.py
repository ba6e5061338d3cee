"""What families of chains known by bounds of their rows have in common."""

from __future__ import annotations

from math import fsum, nextafter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_numbers, check_type
from pufferflow._util.rounding import SUM_TOLERANCE
from pufferflow._util.types import Floats
from pufferflow.errors import ChainError
from pufferflow.models.families import Family
from pufferflow.models.row_sets import RowSets


class BoundedFamily(Family):
    """All chains whose rows lie in sets, one per state, each step free to follow other rows; immutable.

    Attributes
    ----------
    low, high : float array, shape (k, k)
        Bounds of the transition probabilities, as tight as the row sums allow; read-only.
    rows : RowSets
        The sets.
    backward : BoundedFamily or None
        Sets of the distributions of a record given the one after it, where they are known.
    """

    no_chains = (
        "this needs finitely many chains, which a family between bounds does not have; use "
        "leakage, or give chains of it or a binary interval"
    )

    kind: ClassVar[str]
    """Key of model files."""
    parameters: ClassVar[tuple[str, str]]
    """Attributes that describe the rows, and fields of model files."""

    rows: RowSets

    def __init__(self, low: ArrayLike, high: ArrayLike, backward: Self | None) -> None:
        lower, upper = (_bounds(ends, name) for ends, name in ((low, "low"), (high, "high")))
        if lower.shape != upper.shape:
            sizes = f"low has {len(lower)} rows and high {len(upper)}"
            raise ChainError(f"{sizes}; give both for the same states")
        for i, j in np.argwhere(lower > upper):
            ends = f"low {lower[i, j]} is above high {upper[i, j]}"
            raise ChainError(f"row {i + 1}, column {j + 1}: {ends}; exchange or correct them")
        for i, row in enumerate(zip(lower, upper, strict=True), 1):
            _tighten(*row, i)
        lower.flags.writeable = upper.flags.writeable = False
        self.low, self.high = lower, upper
        if backward is not None:
            check_type(backward, "backward", type(self))
            if backward.states != self.states:
                sizes = f"backward has {backward.states} states, the family {self.states}"
                raise ChainError(f"{sizes}; give the same ones")
            if backward.backward is not None:
                what = "backward has backward bounds itself"
                raise ChainError(f"{what}; give those of the reversed chain alone")
        self.backward: Self | None = backward

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.states} states{', both ways' * bool(self.backward)})"

    @property
    def states(self) -> int:
        """Number of states, k."""
        return len(self.low)

    def text(self, public: bool) -> str:
        """Describe these chains in words."""
        which = "read forwards and backwards" if self.backward else "from any start"
        return f"any chain on these {self.states} states between the bounds of the model, {which}"

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        fields = {name: getattr(self, name).tolist() for name in self.parameters}
        backward = {"backward": self.backward.document()[self.kind]} if self.backward else {}
        return {self.kind: fields | backward}


def _bounds(values: ArrayLike, name: str) -> Floats:
    matrix = check_numbers(values, name, ChainError) + 0.0  # no negative zeros
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        wrong = f"not of shape {matrix.shape}"
        raise ChainError(f"{name} must be a square matrix, {wrong}; one row per state")
    for i, j in np.argwhere(~((matrix >= 0) & (matrix <= 1))):
        where = f"row {i + 1}, column {j + 1}"
        raise ChainError(f"{name} has no probability in {where}; each must lie between 0 and 1")
    return matrix


def _tighten(low: Floats, high: Floats, row: int) -> None:
    """Make the bounds of one row as tight as its sum allows, in place, rounded outward."""
    least, most = fsum(low), fsum(high)
    if least > 1 + SUM_TOLERANCE:
        wrong = f"the lower bounds sum to {least:.12g}, above 1; lower some of them"
        raise ChainError(f"row {row}: {wrong}")
    if most < 1 - SUM_TOLERANCE:
        wrong = f"the upper bounds sum to {most:.12g}, below 1; raise some of them"
        raise ChainError(f"row {row}: {wrong}")
    # a distribution written as its own bounds may miss 1 by rounding
    if least > 1:
        low /= least * (1 + 1e-15)
    if most < 1:
        high /= most * (1 - 1e-15)
        np.minimum(high, 1.0, out=high)
    given_low, given_high = low.tolist(), high.tolist()
    for z in range(len(low)):
        # the sums are correctly rounded, so one step outward covers them
        room = fsum([1.0, *(-p for p in given_low[:z] + given_low[z + 1 :])])
        need = fsum([1.0, *(-p for p in given_high[:z] + given_high[z + 1 :])])
        high[z] = max(min(given_high[z], nextafter(room, 2.0)), given_low[z])
        low[z] = min(max(given_low[z], nextafter(need, -1.0)), high[z])
