"""Random interval families."""

import numpy as np

import pufferflow as pf


def family(rng, k, width, sticky, zeros=0.0):
    centre = (1 - sticky) * rng.dirichlet(np.ones(k), size=k) + sticky * np.eye(k)
    low = np.maximum(centre - width * rng.random((k, k)), 0 if zeros else centre / 10)
    low[rng.random((k, k)) < zeros] = 0
    return pf.IntervalFamily(low, np.minimum(centre + width * rng.random((k, k)), 1))
