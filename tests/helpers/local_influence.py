"""Γ of GK16 as it is defined: dense, from conditional probabilities by enumeration."""

from itertools import product

import numpy as np

import pufferflow as pf

# any start: the supremum is approached at point masses with a little of everything mixed in
NEARLY_ONE_STATE = {k: 1e-13 / k + (1 - 1e-13) * np.eye(k) for k in (2, 3)}


def influence_matrix(chain, length, laws):
    """γ_ij = ½ sup log P(x_i | x_j, rest) / P(x_i | x_j', rest), over values of positive probability."""
    k, gamma = chain.states, np.zeros((length, length))
    for law in laws:
        joint = np.asarray(law, dtype=float)
        for _ in range(length - 1):
            joint = joint[..., None] * chain.transition_matrix
        for i, j in product(range(length), repeat=2):
            if i == j:
                continue
            table = np.moveaxis(joint, (i, j), (0, 1)).reshape(k, k, -1)
            total = table.sum(axis=0, keepdims=True)
            with np.errstate(invalid="ignore"):
                conditional = np.where(total > 0, table / total, np.nan)  # x_i, x_j, rest
            conditional[(table == 0).all(axis=(1, 2))] = np.nan  # values X_i never takes
            possible = ~np.isnan(conditional).all(axis=1)
            high = np.nanmax(np.where(np.isnan(conditional), -np.inf, conditional), axis=1)
            low = np.nanmin(np.where(np.isnan(conditional), np.inf, conditional), axis=1)
            gamma[i, j] = max(gamma[i, j], np.log(high[possible] / low[possible]).max() / 2)
    return gamma


def weak_chain(rng, k, start):
    matrix = rng.uniform(1, rng.uniform(1.05, 2.2), (k, k))
    if start == "given":
        start = rng.dirichlet(np.ones(k))
    elif start == "with zeros":
        start = np.eye(k)[0] if k == 2 else np.array([0.5, 0, 0.5])
    return pf.MarkovChain(matrix / matrix.sum(axis=1, keepdims=True), start)
