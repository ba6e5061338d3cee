"""Operations for scales and their certificates (:mod:`pufferflow._util.work`).

The numbers were measured (``tests/unit/test_work.py`` measures some again in the long run). They
depend on Θ's kind, its numbers of states and its start, and on T, but not on the probabilities of a
chain, which may have been fitted to private records. So chains that mix fast may take a fifth of
the estimate, others with many states twice as much.
"""

import numpy as np

from pufferflow._util.checks import Lengths
from pufferflow.bounds.of_families import MAX_BLOCK_STATES, MAX_STATES
from pufferflow.bounds.process import MAX_ROBUST_STATES
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.families import AnyFamily, as_family, standing_chains
from pufferflow.models.hidden import HiddenChain
from pufferflow.models.periodic import PeriodicChain

SMALL = 2e8
"""Operations that every scale takes at least, including preparation."""

CUBES = {"leakage": 150.0, "mqm-exact": 150.0, "mqm-approx": 8.0, "gk16": 80.0}
"""Operations of mechanisms per cube of a number of states, without couplings."""


def scale_work(name: str, family: AnyFamily, length: Lengths, certified: bool = False) -> float:
    """Return the operations of a mechanism's scale at one ε, or of its certificate and check."""
    theta = as_family(family)
    if isinstance(theta, HiddenChain):
        theta = as_family(theta.chain)
    chains = standing_chains(theta)
    count, k = max(len(chains), 1), float(theta.states or 0)
    work: float = SMALL + count * CUBES.get(name, 0.0) * k**3
    if name == "wasserstein":  # multiplications of the distributions of a count at all nodes
        each = sum(k ** (2 if chain.start == "any" else 1) for chain in chains)
        work += each * float((np.atleast_1d(np.asarray(length, dtype=float)) ** 3).sum()) / 6
    if certified and name in ("leakage", "mqm-exact", "mqm-approx"):
        work += SMALL + count * 18e3 * k**3
    if name != "leakage":
        return work
    phases = len(theta.transition_matrices) if isinstance(theta, PeriodicChain) else 1
    if certified and k <= MAX_STATES:
        work += count * phases * 17e3 * k**3.8
    if isinstance(theta, BoundedFamily):
        work += 9.1e10 * (k / 12) ** 5.3 if k <= MAX_ROBUST_STATES else 800.0 * k**4
    elif k > MAX_STATES:
        work += 15e3 * k**3 * len(chains) if k <= MAX_BLOCK_STATES else 0.0
    elif isinstance(theta, PeriodicChain):
        # pairs are solved again at the first records of each matrix; later trees are mostly reused
        work += phases * (4.7e3 * min(theta.repeat, 10) * k**3.5 + 300.0 * theta.repeat * k**3)
    else:
        work += sum(13e3 * k**3.5 * (2 if chain.start == "any" else 1) for chain in chains)
    return work
