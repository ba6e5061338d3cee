"""Whatever steps a program takes, its tables bound what one side of a node can reveal.

Chains of few arcs, so that values differ from node to node; programs of random trees and powers.
"""

from contextlib import suppress
from itertools import combinations, permutations, product

import numpy as np
import pytest
from cases import seeds
from flint import ctx
from sequence_programs import label_law, lipschitz, log_ratios

from pufferflow.errors import CertificateError
from pufferflow.verify.balls import UndecidedError, Work
from pufferflow.verify.interpret import Interpreter
from pufferflow.verify.parse import parse


def few_arcs(rng, count, k):
    """Matrices with one or two positive entries a row, in quarters, in some of the columns."""
    found = np.zeros((count, k, k))
    for matrix in found:
        columns = rng.permutation(k)[: rng.integers(2, k + 1)]
        for row in matrix:
            row[rng.choice(columns)] = share = rng.choice([0.25, 0.75, 1.0])
            row[rng.choice(columns)] += 1 - share
    return found


def random_side(rng, k, length, period, witnesses):
    """A prefix if there is one phase, and a cycle that starts from what all records reveal."""

    def step(most):
        found = {"power": int(rng.integers(1, min(most, 3) + 1))} if rng.random() < 0.9 else {}
        if rng.random() < 0.5:
            found["witnesses"] = len(witnesses)
            pairs = permutations(range(1, k + 1), 2)
            witnesses.append([[x, y, random_tree(rng, k)] for x, y in pairs])
        return found

    many = int(rng.integers(length)) * (period == 1)
    cycle = [step(3 if period == 1 else i) for i in range(1, period + 1)]
    start = [["1e9"] * k] * k
    return {"prefix": [step(i) for i in range(1, many + 1)], "start": start, "cycle": cycle}


def random_tree(rng, k):
    order, parents = rng.permutation(k), [0] * k
    for i in range(1, k):
        parents[order[i]] = int(rng.choice([-1, 1]) * (order[rng.integers(i)] + 1))
    return parents


def drawn(seed):
    """A certificate of any loss, the distributions of its first records, and the matrices."""
    rng = np.random.default_rng([31, seed])
    k, period = int(rng.integers(3, 6)), int(rng.choice([1, 3]))
    length = 4 if k == 3 else 3
    matrices = few_arcs(rng, period, k)
    law = few_arcs(rng, 1, k)[0, 0]
    start, laws = "any", [np.full(k, 1 / k), 0.98 * law + 0.02 / k]
    if period == 1 and rng.random() < 0.5:
        start, laws = list(map(str, law)), [law]
    texts = [[list(map(str, row)) for row in matrix] for matrix in matrices.tolist()]
    chain = {"transition_matrices": texts, "initial_distribution": start}
    proof = {"witnesses": []}
    for name in ("forward", "backward"):
        proof[name] = random_side(rng, k, length, period, proof["witnesses"])
    head = {"certificate": "pufferflow", "version": 2, "mechanism": "leakage", "window": 1}
    head |= {"epsilon": "99", "length": length, "scale": str(rng.choice(["0.5", "1", "4"]))}
    head |= {"side_information": str(rng.choice(["none", "any"])), "family": {"chains": [chain]}}
    return head | {"proofs": [proof]}, laws, matrices


def revealed(laws, cost, informed):
    """Largest log ratio of means over c-Lipschitz functions, for each pair of distributions."""
    keys, programs = [], []
    for (x, p), (y, q) in permutations(laws.items(), 2):
        for size in range(p.ndim if informed else 1):
            for known in combinations(range(p.ndim), size):
                free = tuple(n for t, n in enumerate(p.shape) if t not in known)
                each = np.moveaxis([p, q], [t + 1 for t in known], range(size))
                for above, below in each.reshape(-1, 2, int(np.prod(free))):
                    if above.any() and below.any():
                        keys.append((x, y))
                        given = above / above.sum(), below / below.sum()
                        programs.append((*given, lipschitz(free, cost)))
    return zip(keys, log_ratios(programs) if programs else [], strict=True)


@pytest.mark.parametrize("seed", [170, 283, 435, *seeds(30, 3000)])  # the first found a fault
def test_tables_of_random_programs_bound_what_is_revealed(seed):
    document, laws, matrices = drawn(seed)
    claim, period, length = parse(document), len(matrices), document["length"]
    cost, informed = 1 / float(document["scale"]), document["side_information"] == "any"
    run = Interpreter(claim, claim.family.chains[0], claim.proofs[0], Work(1e9))
    with ctx.workprec(128), suppress(CertificateError, UndecidedError):
        sides = run.tables(True), run.tables(False)
        for first, law in product(range(period), laws):
            steps = [matrices[(first + t) % period] for t in range(length - 1)]
            joint = label_law(steps, law, np.arange(len(law)), len(law))
            for node in range(length):
                ahead = joint.sum(axis=tuple(range(node)))
                behind = np.moveaxis(joint.sum(axis=tuple(range(node + 1, length))), -1, 0)
                for (early, rest), own in zip(sides, (ahead, behind), strict=True):
                    many, phase = own.ndim - 1, (first + node) % period
                    table = early[many] if period == 1 and many < len(early) else rest[phase]
                    given = {x: part / part.sum() for x, part in enumerate(own) if part.any()}
                    for (x, y), found in revealed(given, cost, informed):
                        assert float(table[x][y].log()) >= found * (1 - 1e-6) - 1e-9
