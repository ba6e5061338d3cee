"""Leakages of nodes one after another, each from those of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pufferflow._util.jit import constant
from pufferflow._util.types import Floats, Ints
from pufferflow.coupling._node_kernels import leak_along
from pufferflow.coupling.sides import CouplingSide, RatioSide

NO_BLOCKS = np.zeros(0, dtype=np.int64), np.zeros((0, 0, 0, 0)), np.zeros(0)


class Nodes:
    """A node without a neighbour, and those that follow: what each tells of the one before it.

    Parameters
    ----------
    count : int
        n, with the first.
    forgetting : sequence of RatioSide, none or n − 1
        Of the second node to the last, whatever the law of the one before is.
    coupling : CouplingSide, optional
        Of all of them, for a law that those before have.
    spreads : float array, shape (n,), optional
        How far the law of each node is from that one; ∞ where nothing is known. 0 by default.
    """

    def __init__(
        self,
        count: int,
        forgetting: Sequence[RatioSide] = (),
        coupling: CouplingSide | None = None,
        spreads: Floats | None = None,
    ) -> None:
        sides = list(dict.fromkeys(forgetting))
        which = np.array([-1, *(sides.index(side) for side in forgetting)] if sides else [-1] * count)
        roots = np.array([side.roots for side in sides] or np.zeros((0, 0, 0, 0)))
        self._forgetting: tuple[Ints, Floats] = which, constant(roots)
        far = coupling is None or spreads is None
        self._spreads = np.full(count, np.inf if coupling is None else 0.0) if far else spreads
        self._coupling: Any = (coupling or CouplingSide(np.zeros((0, 0)))).law
        self._count = count

    def leakages(self, cost: float, costs: Floats, cap: Floats, blocks: tuple[Any, ...] = NO_BLOCKS) -> Floats:
        """Leakages of all of them at c, shape (n, k, k).

        ``costs`` has c where a mechanism tells two values apart; ``blocks`` are those of ``reweight_blocks``.
        """
        out = np.zeros((self._count, *costs.shape))
        leak_along(cost, costs, cap, self._forgetting, blocks, (*self._coupling, self._spreads), out)
        return out
