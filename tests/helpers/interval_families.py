"""Random interval families, chains drawn from them, and the ratios that are bounded over them."""

import numpy as np

import pufferflow as pf


def family(rng, k, width, sticky, zeros=0.0):
    centre = (1 - sticky) * rng.dirichlet(np.ones(k), size=k) + sticky * np.eye(k)
    low = np.maximum(centre - width * rng.random((k, k)), 0 if zeros else centre / 10)
    low[rng.random((k, k)) < zeros] = 0
    return pf.IntervalFamily(low, np.minimum(centre + width * rng.random((k, k)), 1))


def draw(box, rng, corner):
    """A chain of the family: a vertex, or somewhere inside."""
    rows = []
    for low, high in zip(box.low, box.high, strict=True):
        row, left = low.copy(), max(0.0, 1 - low.sum())
        shares = np.ones(len(low)) if corner else rng.random(len(low))
        for z, share in [*zip(rng.permutation(len(low)), shares, strict=True), *((z, 1.0) for z in range(len(low)))]:
            step = min(left, share * (high[z] - row[z]))
            row[z] += step
            left -= step
        rows.append(row)
    return np.array(rows)


def log_ratios(P):
    """φ and ψ of one chain."""
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.nanmax(np.log(P[:, None, :] / P[None, :, :]), axis=2)
    np.fill_diagonal(table, 0)
    return table.max(), (table + table.T).max()
