"""Kernels of couplings for rows and distributions that are known by bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow.bounds._pair_kernels import (
    at_least,
    is_known,
    proved,
    read_tree,
    restart,
    room,
    solve,
    write_flows,
    write_tree,
)


@kernel
def couple_vertices(
    distributions: Any,
    pairs: Any,
    offsets: Any,
    w: Any,
    trees: Any,
    filled: Any,
    places: tuple[int, int],
) -> None:
    """Largest log (p·h)/(q·h) over distributions p, q of the pairs x · k + y in ``places``.

    Parameters
    ----------
    distributions : float array, shape (m, k)
    pairs : int array, shape (n, 2)
        Indices of p and of q among the distributions.
    offsets : int array, shape (k² + 1,)
        Those of the pair of values v are offsets[v] … offsets[v + 1] − 1.
    w : float array, shape (k, k)
        Costs, zero on the diagonal.
    trees : tuple of int16, int16 and int32 arrays, shape (k, k, k)
        As for ``couple``.
    filled : tuple of arrays
        ``upper``, shape (k, k): the largest of the bounds that flows prove; ``arcs`` and ``flows``,
        as for ``couple``, of the pair of distributions with the largest value.
    """
    upper, arcs, flows = filled
    k = len(w)
    (parent, up), work, order = room(k)
    nodes = np.arange(k)
    known = is_known(w)
    for place in range(places[0], places[1]):
        x, y = place // k, place % k
        arcs[x, y] = -1
        upper[x, y] = 0.0
        if not known:
            upper[x, y] = 0.0 if x == y else np.inf
            continue
        tree = trees[0][x, y], trees[1][x, y], trees[2][x, y]
        root = read_tree(tree, k, bool(0), (parent, up))  # a literal would be compiled apart
        best = -1.0
        for i in range(offsets[place], offsets[place + 1]):
            pair = distributions[pairs[i, 0]], distributions[pairs[i, 1]], w, k
            root, value = solve(pair, root, (parent, up), work, order)
            if value > best:
                best = value
                write_tree((parent, up), order, k, tree)
                write_flows(root, (parent, up), work, nodes, k, (arcs[x, y], flows[x, y]))
            upper[x, y] = max(
                upper[x, y], at_least(value, proved(pair, root, (parent, up), work, value))
            )


@kernel
def _fill(
    base: Any, widths: Any, totals: Any, x: int, line: Any, falling: bool, distribution: Any
) -> None:
    """The row of x whose parts fill the states in the order of ``line``, or against it."""
    k = len(line)
    for z in range(k):
        distribution[z] = base[x, z]
    for part in range(len(widths)):
        left = totals[part, x]
        for i in range(k):
            z = line[i] if falling else line[k - 1 - i]
            step = min(left, widths[part, x, z])
            distribution[z] += step
            left -= step


@kernel
def couple_ascending(sets: Any, w: Any, trees: Any, filled: Any, places: tuple[int, int]) -> None:
    """As ``couple_vertices``, but for distributions found by turns.

    The best ones for the last h, the best h for the last ones.

    ``sets`` holds the base, widths and totals of the parts, and one distribution of each set. The
    values are lower bounds of the largest ones over all distributions.
    """
    values, arcs, flows = filled
    base, widths, totals, centres = sets
    k = len(w)
    (parent, up), work, order = room(k)
    nodes = np.arange(k)
    p = np.empty(k)
    q = np.empty(k)
    known = is_known(w)
    for place in range(places[0], places[1]):
        x, y = place // k, place % k
        arcs[x, y] = -1
        values[x, y] = 0.0
        if x == y or not known:
            continue
        tree = trees[0][x, y], trees[1][x, y], trees[2][x, y]
        best = -1.0
        given = tree[0][0] >= 0
        for start in range(2 if given else 1):
            root = read_tree(tree, k, bool(0), (parent, up)) if start == 1 else -1
            for z in range(k):
                p[z] = centres[x, z]
                q[z] = centres[y, z]
            last = -1.0
            for turn in range(20):
                if turn == 0 and start == 1:
                    root = restart((p, q, w, k), root, (parent, up), work, order)
                    value = -1.0
                else:
                    root, value = solve((p, q, w, k), root, (parent, up), work, order)
                if turn > 0 and value > best:
                    best = value
                    write_tree((parent, up), order, k, tree)
                    write_flows(root, (parent, up), work, nodes, k, (arcs[x, y], flows[x, y]))
                if turn > 1 and value <= last * (1 + 1e-13):
                    break
                last = value
                line = np.argsort(-work[0])
                _fill(base, widths, totals, x, line, bool(1), p)
                _fill(base, widths, totals, y, line, bool(0), q)
        values[x, y] = max(best, 0.0)
