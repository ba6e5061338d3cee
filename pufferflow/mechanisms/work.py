"""What scales and their certificates take, in operations (:mod:`pufferflow._util.work`).

The numbers were measured (``tests/unit/test_work.py`` measures some again in the long run). They
depend on Θ's kind, its numbers of states and its start, on T where the work does, and on nothing
else: on no probability of a chain, which may have been fitted to private records. So chains that
mix fast may take a fifth of what is estimated here, others of many states twice as much.
"""

from __future__ import annotations

import numpy as np

from pufferflow._util.checks import Lengths
from pufferflow.coupling.bounds import MOST_BLOCK_STATES
from pufferflow.coupling.calibration import MOST_STATES
from pufferflow.coupling.interval_leakage import MOST_ROBUST_STATES
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.families import AnyFamily, Family, as_family, standing_chains
from pufferflow.models.hidden import HiddenChain
from pufferflow.models.periodic import PeriodicChain

SMALL = 2e8
"""What every scale takes at least, with what goes before it."""

CUBES = {"leakage": 150.0, "mqm-exact": 150.0, "mqm-approx": 8.0, "gk16": 80.0}
"""What mechanisms take for each cube of a number of states, besides couplings."""


def scale_work(name: str, family: AnyFamily, length: Lengths, certified: bool = False) -> float:
    """Operations of the scale of a mechanism at one ε, and of its certificate with its check."""
    theta = as_family(family)
    if isinstance(theta, HiddenChain):
        theta = as_family(theta.chain)
    chains = standing_chains(theta)
    sizes = [chain.states for chain in chains] or list(theta.sizes)
    work = SMALL + CUBES.get(name, 0.0) * sum(float(k) ** 3 for k in sizes)
    if name == "wasserstein":  # multiplications of the distributions of a count, all nodes together
        each = sum(chain.states ** (2 if chain.start == "any" else 1) for chain in chains)
        work += each * float((np.atleast_1d(np.asarray(length, dtype=float)) ** 3).sum()) / 6
    if name == "leakage":
        work += _couplings(theta)
    if certified and name in ("leakage", "mqm-exact", "mqm-approx"):
        work += SMALL + sum(18e3 * float(k) ** 3 for k in sizes)
    if certified and name == "leakage":
        phases = len(theta.transition_matrices) if isinstance(theta, PeriodicChain) else 1
        work += phases * sum(17e3 * float(k) ** 3.8 for k in sizes if k <= MOST_STATES)
    return work


def _couplings(theta: Family) -> float:
    if isinstance(theta, PeriodicChain):
        # pairs are solved again at the first records of each matrix, after that trees mostly serve
        k, repeat = float(theta.states), theta.repeat
        each = 4.7e3 * min(repeat, 10) * k**3.5 + 300.0 * repeat * k**3
        return len(theta.transition_matrices) * each if k <= MOST_STATES else 0.0
    if isinstance(theta, BoundedFamily):
        k = float(theta.states)
        return 9.1e10 * (k / 12) ** 5.3 if k <= MOST_ROBUST_STATES else 800.0 * k**4
    total = 0.0
    for chain in standing_chains(theta):
        k = float(chain.states)
        if k <= MOST_STATES:
            total += 13e3 * k**3.5 * (2.0 if chain.start == "any" else 1.0)
        elif k <= MOST_BLOCK_STATES:
            total += 15e3 * k**3
    return total
