"""Plain twins of what is computed between bounds: all vertices, a linear program each, and the crude bound."""

from itertools import product

import numpy as np
from scipy.optimize import linprog


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
    k = len(p)
    table = [np.eye(k)[z] - np.exp(w[z, y]) * np.eye(k)[y] for z, y in product(range(k), repeat=2) if z != y]
    found = linprog(
        -p, A_ub=np.reshape(table, (-1, k)), b_ub=np.zeros(len(table)), A_eq=[q], b_eq=[1.0], bounds=(0, None)
    )
    assert found.status == 0
    return np.log(-found.fun)


def robust_values(rows, w):
    """The largest values over all pairs of vertices, whether or not of the same order."""
    k = rows.states
    table = np.zeros((k, k))
    for x, y in product(range(k), repeat=2):
        if x != y:
            pairs = product(row_vertices(rows, x), row_vertices(rows, y))
            table[x, y] = max(pair_value(p, q, w) for p, q in pairs)
    return table


def crude_values(rows, centres, w):
    """Φ of the centres, and what total variation can add to it (theory 7e)."""
    k = rows.states
    apart = [max(np.abs(p - centres[x]).sum() / 2 for p in row_vertices(rows, x)) for x in range(k)]
    grown = np.log1p(np.array(apart) * np.expm1(w.max()))
    table = np.array([[pair_value(p, q, w) if p is not q else 0.0 for q in centres] for p in centres])
    table = table + grown[:, None] + grown[None, :]
    np.fill_diagonal(table, 0)
    return table
