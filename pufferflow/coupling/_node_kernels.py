"""Leakages of nodes one after another, which on few states take longer to ask for than to compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow.coupling._pair_kernels import couple
from pufferflow.coupling._reweighting_kernels import reweight, reweight_blocks


@kernel
def beyond_stationary(spread: float, following: float, farthest: float) -> float:
    """How much more than under P* the past of a node can leak at most (Lemma 7); 0 under the stationary distribution.

    The distribution of the node before is π times e^r with r of the given spread, that of the node one with the
    following one; so the distributions of the node before given x are P*(x, ·) times e^r up to a factor, within the
    spread in total variation.
    """
    if spread == 0:
        return 0.0
    variation = -math.expm1(-spread) * (1 + 4 * UNIT_ROUNDOFF)
    growth = math.expm1(farthest) if farthest < 600 else math.inf
    return min(spread + following, 2 * math.log1p(variation * growth)) * (1 + 4 * UNIT_ROUNDOFF)


@kernel(steps=lambda cost, costs, *others: len(others[-1]) * len(costs) ** 2 * (len(costs) + 4) ** 3 // 2)
def leak_along(cost: float, costs: Any, cap: Any, forgetting: Any, blocks: Any, coupling: Any, out: Any) -> None:
    """Fill ``out``, shape (n, k, k), with leakages of nodes: the first is given, the others follow from those before.

    Parameters
    ----------
    cost : float
        c.
    costs, cap : float array, shape (k, k)
        c where two values differ in what a mechanism sees, otherwise 0; and what no leakage is above.
    forgetting : tuple of int array, shape (n,), and float array, shape (m, k, k, k)
        Which table each node has where the distribution of its neighbour is not known, −1 for none; the tables, roots
        as ``reweight`` takes them.
    blocks : tuple of arrays
        As ``reweight_blocks`` takes them, for nodes with such a table.
    coupling : tuple
        Rows, support and secrets of a side whose distributions are known; its trees; what ``couple`` fills; which pairs
        are not alike; its margin; the largest leakages there can be; and, shape (n,), how far the distribution of each
        node is from the one that the side is of: it says nothing of a node after one for which that is ∞.
    """
    which, tables = forgetting
    (rows, support, secret), trees, filled, apart, margin, limit, spreads = coupling
    k = len(costs)
    w, through = np.empty((k, k)), (np.empty((k, k)), np.empty((k, k, 1), dtype=np.int32), np.empty((k, k, 1)))
    for node in range(1, len(out)):
        before, now = out[node - 1], out[node]
        farthest = 0.0
        for x in range(k):
            for y in range(k):
                w[x, y] = before[x, y] + costs[x, y] if x != y else 0.0
                farthest = max(farthest, before[x, y])
                now[x, y] = cap[x, y] if x != y else 0.0
        table = which[node]
        if table >= 0:
            reweight(tables[table], w, through, (0, k * k))
            for x in range(k):
                for y in range(k):
                    if x != y:
                        now[x, y] = min(through[0][x, y], cap[x, y])
            if len(blocks[0]):
                reweight_blocks(blocks, out[:node], costs, cap, now, (0, k * k))
        if spreads[node - 1] < np.inf:
            more = beyond_stationary(spreads[node - 1], spreads[node], cost + farthest)
            couple(rows, support, w, secret, trees, bool(0), filled, (0, k * k))
            for x in range(k):
                for y in range(k):
                    if x != y:
                        told = min(filled[1][x, y] + margin, limit[x, y]) if apart[x, y] else 0.0
                        now[x, y] = min(now[x, y], min(told, cap[x, y]) + more)
