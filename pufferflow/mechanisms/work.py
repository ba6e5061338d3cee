"""What scales and their certificates take, in operations (:mod:`pufferflow._util.work`), before they are computed.

The numbers were measured (``tests/unit/test_work.py`` measures some anew in the long run). They depend on Θ's kind, its
numbers of states and its start, on T where the work does, and on nothing else: on no probability of a chain, which may
have been fitted to private records. So chains that forget fast may take a fifth of what is said here, others of many
states twice as much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pufferflow._util.checks import Lengths
from pufferflow.coupling.bounds import MOST_BLOCK_STATES, MOST_STATES
from pufferflow.coupling.process import MOST_ROBUST_STATES
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.families import AnyFamily, Family, as_family, standing_chains
from pufferflow.models.hidden import HiddenChain
from pufferflow.models.periodic import PeriodicChain

SMALL = 2e8
"""What every scale takes at least, with what goes before it."""

CUBES = {"leakage": 150.0, "mqm-exact": 150.0, "mqm-approx": 8.0, "gk16": 80.0}
"""What mechanisms take for each cube of a chain's number of states, beside couplings."""

ANY_START = 2.0
"""How much longer couplings take for chains of any start."""


def scale_work(name: str, family: AnyFamily, length: Lengths, states: Sequence[int] | None = None) -> float:
    """Operations of the scale of a mechanism at one ε, about.

    Parameters
    ----------
    name : str
    family : Family or MarkovChain
    length : int or sequence of int
    states : sequence of int, optional
        What ``wasserstein`` counts.
    """
    theta = as_family(family)
    chains = standing_chains(theta)
    if name == "wasserstein":  # multiplications of the distributions of a count, all nodes together
        each = sum(chain.states ** (2 if chain.start == "any" else 1) for chain in chains)
        return SMALL + each * sum(float(n) ** 3 for n in np.atleast_1d(np.asarray(length)).tolist()) / 6
    cubes = float(sum(chain.states**3 for chain in chains))
    work = SMALL + CUBES.get(name, 0.0) * cubes
    return work + _couplings(theta) if name == "leakage" else work


def proof_work(name: str, family: AnyFamily) -> float:
    """Operations of the certificate of a scale, about, with what checks it."""
    theta = as_family(family)
    if isinstance(theta, HiddenChain):
        return proof_work(name, theta.chain)
    chains, k = max(len(standing_chains(theta)), 1), theta.states or 0
    quilts = chains * 18e3 * k**3
    if name != "leakage":
        return SMALL + quilts * (name in ("mqm-exact", "mqm-approx"))
    coupled = chains * 17e3 * k**3.8 if k <= MOST_STATES else 0.0
    return SMALL + quilts + coupled * _phases(theta)


def _phases(theta: Family) -> int:
    return len(theta.transition_matrices) if isinstance(theta, PeriodicChain) else 1


def _couplings(theta: Family) -> float:
    if isinstance(theta, HiddenChain):
        return _couplings(as_family(theta.chain))
    if isinstance(theta, PeriodicChain):
        # pairs are solved anew at the first records of each matrix, after that their trees mostly serve
        k, repeat = theta.states, theta.repeat
        each = 4.7e3 * min(repeat, 10) * float(k**3.5) + 300.0 * repeat * k**3
        return _phases(theta) * each if k <= MOST_STATES else 0.0
    if isinstance(theta, BoundedFamily):
        k = theta.states
        return 9.1e10 * (k / 12) ** 5.3 if k <= MOST_ROBUST_STATES else 800.0 * float(k**4)
    total = 0.0
    for chain in standing_chains(theta):
        k = chain.states
        if k <= MOST_STATES:
            total += 13e3 * k**3.5 * (ANY_START if chain.start == "any" else 1.0)
        elif k <= MOST_BLOCK_STATES:
            total += 15e3 * k**3
    return total
