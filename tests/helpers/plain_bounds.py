"""Plain twins of what is computed between bounds: all vertices, a linear program each, and the crude bound."""

from itertools import product

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag, eye_array, kron


def part_vertices(widths, total):
    """All e with 0 ≤ e ≤ widths and the given sum of which at most one entry is at neither end."""
    k = len(widths)
    found = []
    for free in range(k):
        others = [z for z in range(k) if z != free]
        for full in product([0, 1], repeat=k - 1):
            e = np.zeros(k)
            e[others] = np.where(full, widths[others], 0)
            e[free] = total - e.sum()
            if -1e-12 <= e[free] <= widths[free] + 1e-12:
                found.append(e)
    return np.unique(np.round(np.maximum(found, 0), 14), axis=0)


def row_vertices(rows, x):
    """Laws of the set of x among which are all its vertices."""
    parts = [part_vertices(part.widths[x], part.totals[x]) for part in rows.parts]
    return np.unique(np.round([rows.base[x] + sum(chosen) for chosen in product(*parts)], 13), axis=0)


def pair_value(p, q, w):
    """Largest log (p·h)/(q·h) over h > 0 with h(z) ≤ h(y) e^w[z, y]."""
    return largest_value([(p, q)], w)


def largest_value(pairs, w):
    """The largest of these for pairs of laws: one program that falls apart into one for each pair."""
    above, below = (np.array(laws) for laws in zip(*pairs, strict=True))
    k = len(w)
    table = [np.eye(k)[z] - np.exp(w[z, y]) * np.eye(k)[y] for z, y in product(range(k), repeat=2) if z != y]
    rows = kron(eye_array(len(above)), np.reshape(table, (-1, k)), format="csr")
    found = linprog(
        -above.ravel(),
        A_ub=rows,
        b_ub=np.zeros(rows.shape[0]),
        A_eq=block_diag(below[:, None], format="csr"),
        b_eq=np.ones(len(above)),
        bounds=(0, None),
    )
    assert found.status == 0
    return np.log((above * found.x.reshape(above.shape)).sum(axis=1).max())


def robust_values(rows, w):
    """The largest values over all pairs of vertices, whether or not of the same order."""
    k = rows.states
    table = np.zeros((k, k))
    for x, y in product(range(k), repeat=2):
        if x != y:
            table[x, y] = largest_value(list(product(row_vertices(rows, x), row_vertices(rows, y))), w)
    return table


def crude_values(rows, centres, w):
    """Φ of the centres, and what total variation can add to it (docs/leakage.md, section 10)."""
    k = rows.states
    apart = [max(np.abs(p - centres[x]).sum() / 2 for p in row_vertices(rows, x)) for x in range(k)]
    grown = np.log1p(np.array(apart) * np.expm1(w.max()))
    table = np.array([[pair_value(p, q, w) if p is not q else 0.0 for q in centres] for p in centres])
    table = table + grown[:, None] + grown[None, :]
    np.fill_diagonal(table, 0)
    return table
