"""Certificates by hand, and what they claim by linear programs over all sequences: nothing of the
verifier, nothing of the engine.
"""

from fractions import Fraction

import numpy as np
import plain_influence
from plain_counts import laws_given_secrets, loss
from processes import corner, pushed
from sequence_programs import label_law, largest_loss

MOST = {2: 5, 3: 4, 4: 3}
"""Records that are enumerated, by the number of values: what holds for more holds for these."""


def claim(family, epsilon, length, scale, proof, **fields):
    head = {"certificate": "pufferflow", "version": 2, "mechanism": "leakage", "family": family}
    head |= {"window": 1, "side_information": "none", "length": length}
    head |= {"epsilon": str(epsilon), "scale": str(scale)}
    return head | {"proofs": [proof]} | fields


def chain(matrix, start="any", *more):
    """A family of one chain, with more matrices of a period."""
    start = start if isinstance(start, str) else list(map(str, start))
    rows = [[list(map(str, row)) for row in each] for each in (matrix, *more)]
    return {"chains": [{"transition_matrices": rows, "initial_distribution": start}]}


def floats(rows):
    return np.array([[float(Fraction(p)) for p in row] for row in rows])


def stationary(matrix):
    values, vectors = np.linalg.eig(matrix.T)
    found = np.abs(vectors[:, np.argmin(np.abs(values - 1))].real)
    return found / found.sum()


def starts_of(start, matrix, rng):
    """Distributions of the first record: of any start some, its corners among them."""
    k = len(matrix)
    if isinstance(start, list):
        return floats([start])
    if start == "stationary":
        return [stationary(matrix)]
    return [*np.eye(k), *rng.dirichlet(np.full(k, 0.5), 2)]


def joints_of(family, length, rng):
    """Distributions of all records by some chains of a family."""
    [(kind, given)] = family.items()
    if kind == "binary_interval":
        stays = [rng.choice(floats([given])[0], 2) for _ in range(3)]
        rows = [[[a, 1 - a], [1 - b, b]] for a, b in stays]
        given = [{"transition_matrices": [one], "initial_distribution": "any"} for one in rows]
    if kind in ("chains", "binary_interval"):
        for chain in given:
            yield from joints_of_chain(chain, length, rng)
    elif "backward" not in given:  # of those with both few chains are known to lie in them
        for _ in range(4):
            steps = [member(given, rng) for _ in range(length - 1)]
            k = len(rows_of(given))
            for start in rng.dirichlet(np.full(k, 0.5), 2):
                yield label_law(steps, start, np.arange(k), k)


def joints_of_chain(chain, length, rng):
    """From any phase, of the observations."""
    matrices = list(map(floats, chain["transition_matrices"]))
    period, states = len(matrices), np.arange(len(matrices[0]))
    seen = np.unique(chain.get("observations", states), return_inverse=True)[1]
    whole = np.linalg.multi_dot([np.eye(len(states)), *matrices, np.eye(len(states))])
    for phase in range(period):
        steps = [matrices[(phase + t) % period] for t in range(length - 1)]
        for first in starts_of(chain["initial_distribution"], whole, rng):
            if chain["initial_distribution"] == "stationary":
                for matrix in matrices[:phase]:
                    first = first @ matrix
            yield label_law(steps, first, seen, seen.max() + 1)


def member(given, rng):
    """Rows at corners of their sets."""
    if "low" in given:
        return corner(rng, floats(given["low"]), floats(given["high"]))
    return pushed(rng, floats(given["transition_matrix"]), floats([given["radius"]])[0])


def rows_of(given):
    """One row a value, of a matrix or of bounds."""
    given = given[0] if isinstance(given, list) else given
    if "low" in given:
        return given["low"]
    return given.get("transition_matrix") or given["transition_matrices"][0]


def worst_loss(document, seed=0):
    """Largest loss at the stated scale that was found, in nats."""
    rng = np.random.default_rng(seed)
    cost = float(1 / max(Fraction(document["scale"]), Fraction(1, 10**6)))
    [(kind, given)] = document["family"].items()
    window, length = document["window"], document["length"]
    if kind == "mixing":
        if document["side_information"] == "any":  # the records between two known ones may be one
            return length * cost
        terms = given["steps"], Fraction(given["overlap"])
        return float(plain_influence.mixing_loss(*terms, min(length, 2000), cost, window))
    if document["mechanism"] == "wasserstein":
        pairs = zip(given, document["proofs"], strict=True)
        scale = 1 / max(cost, 1e-300)  # may be beyond floats
        return max(count_loss(chain, proof["count"], scale) for chain, proof in pairs)
    k = 2 if kind == "binary_interval" else len(rows_of(given))
    if kind == "chains":
        k = len(set(given[0].get("observations", range(k))))
    asked = window, "none" if document["side_information"] == "none" else "any"
    laws = joints_of(document["family"], min(length, MOST.get(k, 3)), rng)
    return max((largest_loss(law, cost, *asked) for law in laws), default=0.0)


def count_loss(chain, count, scale):
    """Loss of Laplace noise on the count."""
    [rows] = chain["transition_matrices"]
    matrix, start = [[Fraction(p) for p in row] for row in rows], chain["initial_distribution"]
    first = [Fraction(p) for p in (stationary(floats(rows)) if start == "stationary" else start)]
    length, worst = min(max(count["lengths"]), 7), 0.0
    for laws in laws_given_secrets(matrix, first, length, count["weights"]):
        worst = max([worst, *(loss(p, q, scale) for p in laws.values() for q in laws.values())])
    return worst
