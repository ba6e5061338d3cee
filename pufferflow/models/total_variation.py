"""Chains known up to a distance: every row within a total variation distance of a given one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_positive
from pufferflow._util.rounding import SUM_TOLERANCE
from pufferflow._util.types import Floats
from pufferflow.errors import ChainError
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.chain import ANY, MarkovChain
from pufferflow.models.row_sets import Masses, RowSets


class TotalVariationFamily(BoundedFamily):
    """All chains whose rows are within a total variation distance of those of one chain, from any start; immutable.

    Each step may follow other rows, so chains that change with time are among them. The distance of two distributions
    is ½ Σ_z |p(z) − q(z)|, the largest difference in the probability of an event.

    Parameters
    ----------
    transition_matrix : array_like, shape (k, k)
    radius : float or array_like, shape (k,)
        Largest distance, of all rows or of each.
    backward : TotalVariationFamily, optional
        What is known of the law of a record given the one *after* it: then the family is smaller, those chains for
        which both hold, and the past of a record costs :func:`pufferflow.leakage` less noise.

    Raises
    ------
    ParameterError
        ``backward`` is no such family.
    ChainError
        The matrix is not one of transitions, a radius is not between 0 and 1, or ``backward`` has another number of
        states or backward bounds itself.
    """

    kind = "total_variation"

    def __init__(
        self, transition_matrix: ArrayLike, radius: float | ArrayLike, *, backward: TotalVariationFamily | None = None
    ) -> None:
        matrix = MarkovChain(transition_matrix, ANY).transition_matrix
        self.radius: Floats = _radii(radius, len(matrix))
        """Largest distance of each row, shape (k,), read-only."""
        self.transition_matrix = matrix
        """The rows at the centres, shape (k, k), read-only."""
        away = self.radius[:, None]
        super().__init__(np.maximum(matrix - away, 0.0), np.minimum(matrix + away, 1.0))
        self._follow(backward)

    @property
    def rows(self) -> RowSets:
        """What is known of each row: of the centre all but the radius stays, and so much comes anywhere."""
        away = self.radius[:, None]
        stays = np.minimum(self.transition_matrix, away)
        return RowSets(
            np.maximum(self.transition_matrix - away, 0.0),
            (
                Masses(stays, np.maximum(stays.sum(axis=1) - self.radius, 0.0)),
                Masses(np.broadcast_to(away, stays.shape).copy(), self.radius),
            ),
        )

    def contains(self, chain: MarkovChain, tolerance: float = SUM_TOLERANCE) -> bool:
        """Whether the rows of ``chain`` are within the distances, up to ``tolerance``.

        Raises ParameterError: ``chain`` is none, or ``tolerance`` is negative.
        """
        tolerance = check_positive(tolerance, "tolerance", or_zero=True)
        if not super().contains(chain, max(tolerance, SUM_TOLERANCE)):
            return False
        distances = np.abs(chain.transition_matrix - self.transition_matrix).sum(axis=1) / 2
        return bool((distances <= self.radius + tolerance).all())

    def numbers(self) -> dict[str, Any]:
        """As :meth:`BoundedFamily.numbers`."""
        return {"transition_matrix": self.transition_matrix.tolist(), "radius": self.radius.tolist()}


def _radii(radius: float | ArrayLike, states: int) -> Floats:
    try:
        radii = np.array(radius, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ChainError("radius must be a number, or one for each state") from None
    if radii.shape not in ((), (states,)):
        raise ChainError(f"radius has shape {radii.shape}; give one number, or one for each of the {states} states")
    if not ((radii >= 0) & (radii <= 1)).all():
        raise ChainError("a radius is not between 0 and 1; it is the largest difference of two probabilities")
    radii = np.broadcast_to(radii, (states,)).copy()
    radii.flags.writeable = False
    return radii
