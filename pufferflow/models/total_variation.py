"""Chains known up to a distance: every row within a total variation distance of a given one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_numbers
from pufferflow._util.types import Floats
from pufferflow.errors import ChainError
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.chain import ANY, MarkovChain
from pufferflow.models.row_sets import Masses, RowSets


class TotalVariationFamily(BoundedFamily):
    """All chains whose rows are within a total variation distance of given ones, from any start.

    Each step may follow other rows, so chains that change with time are among them. The distance
    of two distributions is ½ Σ_z |p(z) − q(z)|, the largest difference in the probability of an
    event. Immutable.

    Parameters
    ----------
    transition_matrix : array_like, shape (k, k)
    radius : float or array_like, shape (k,)
        Largest distance, of all rows or of each.
    backward : TotalVariationFamily, optional
        What is known of the distribution of a record given the one *after* it: then the family is
        smaller, those chains for which both hold, and :func:`pufferflow.leakage` needs less noise.
    """

    kind, parameters = "total_variation", ("transition_matrix", "radius")

    def __init__(
        self,
        transition_matrix: ArrayLike,
        radius: float | ArrayLike,
        *,
        backward: TotalVariationFamily | None = None,
    ) -> None:
        matrix = MarkovChain(transition_matrix, ANY).transition_matrix
        self.transition_matrix: Floats = matrix
        """The rows at the centres, shape (k, k), read-only."""
        self.radius: Floats = _radii(radius, len(matrix))
        """Largest distance of each row, shape (k,), read-only."""
        away = np.broadcast_to(self.radius[:, None], matrix.shape)
        low, stays = np.maximum(matrix - away, 0.0), np.minimum(matrix, away)
        super().__init__(low, np.minimum(matrix + away, 1.0), backward)
        # of the centre all but the radius stays, and so much comes anywhere
        kept = np.maximum(stays.sum(axis=1) - self.radius, 0.0)
        self.rows = RowSets(low, (Masses(stays, kept), Masses(away.copy(), self.radius)))


def _radii(radius: float | ArrayLike, states: int) -> Floats:
    radii = check_numbers(radius, "radius", ChainError)
    if radii.shape not in ((), (states,)):
        advice = f"give one number, or one for each of the {states} states"
        raise ChainError(f"radius has shape {radii.shape}; {advice}")
    if not ((radii >= 0) & (radii <= 1)).all():
        what = "it is the largest difference of two probabilities"
        raise ChainError(f"a radius is not between 0 and 1; {what}")
    radii = np.broadcast_to(radii, (states,)).copy()
    radii.flags.writeable = False
    return radii
