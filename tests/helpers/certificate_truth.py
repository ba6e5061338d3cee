"""What a certificate claims, by linear programs over all sequences: nothing of the verifier,
nothing of the engine.
"""

from fractions import Fraction

import numpy as np
from plain_forgetting import loss as mixing_loss
from plain_transport import laws_given_secrets
from sequence_programs import label_law, largest_loss

MOST = {2: 5, 3: 4, 4: 3}
"""Records that are enumerated, by the number of values: what holds for more holds for these."""


def floats(rows):
    return np.array([[float(Fraction(p)) for p in row] for row in rows])


def stationary(matrix):
    values, vectors = np.linalg.eig(matrix.T)
    found = np.abs(vectors[:, np.argmin(np.abs(values - 1))].real)
    return found / found.sum()


def joint(start, matrices):
    found = np.array(start, dtype=float)
    for matrix in matrices:
        found = found[..., None] * matrix
    return found


def starts_of(start, matrix, rng):
    """Distributions of the first record: of any start some, its corners among them."""
    k = len(matrix)
    if isinstance(start, list):
        return [[float(Fraction(p)) for p in start]]
    return (
        [stationary(matrix)]
        if start == "stationary"
        else [*np.eye(k), *rng.dirichlet(np.full(k, 0.5), 2)]
    )


def joints_of(family, length, rng):
    """Distributions of all records by some chains of a family."""
    [(kind, given)] = family.items()
    if kind == "binary_interval":
        for stay in rng.choice([float(Fraction(p)) for p in given], (3, 2)):
            matrix = np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
            yield from (joint(s, [matrix] * (length - 1)) for s in starts_of("any", matrix, rng))
    elif kind == "chains":
        for chain in given:
            yield from joints_of_chain(chain, length, rng)
    elif "backward" not in given:  # of those with both few chains are known to lie in them
        for _ in range(4):
            matrices = [_between(given, rng) for _ in range(length - 1)]
            yield from (
                joint(s, matrices) for s in rng.dirichlet(np.full(len(_low(given)), 0.5), 2)
            )


def joints_of_chain(chain, length, rng):
    """From any phase, of the observations."""
    matrices, seen = list(map(floats, chain["transition_matrices"])), chain.get("observations")
    period = len(matrices)
    whole = np.linalg.multi_dot([np.eye(len(matrices[0])), *matrices, np.eye(len(matrices[0]))])
    for phase in range(period):
        steps = [matrices[(phase + t) % period] for t in range(length - 1)]
        for start in starts_of(chain["initial_distribution"], whole, rng):
            first = start
            if chain["initial_distribution"] == "stationary":
                for matrix in matrices[:phase]:
                    first = first @ matrix
            if seen is None:
                yield joint(first, steps)
            else:
                labels = np.unique(seen, return_inverse=True)[1]
                yield label_law(steps, first, labels, labels.max() + 1)


def _low(given):
    return given["low"] if "low" in given else given["transition_matrix"]


def _between(given, rng):
    """Rows at corners of their sets."""
    if "low" in given:
        low, high = floats(given["low"]), floats(given["high"])
        rows = []
        for base, top in zip(low, high, strict=True):
            row, left = base.copy(), 1 - base.sum()
            for z in rng.permutation(len(base)):
                row[z] += (step := min(left, top[z] - base[z]))
                left -= step
            rows.append(row)
        return np.array(rows)
    rows = []
    for centre, radius in zip(floats(given["transition_matrix"]), given["radius"], strict=True):
        left, row = float(Fraction(radius)), centre.copy()
        for z in rng.permutation(len(centre)):
            row[z] -= (step := min(left, row[z]))
            left -= step
        row[rng.integers(len(row))] += 1 - row.sum()
        rows.append(row)
    return np.array(rows)


def worst_loss(document, seed=0):
    """Largest loss at the stated scale that was found, in nats."""
    rng, cost = (
        np.random.default_rng(seed),
        float(1 / max(Fraction(document["scale"]), Fraction(1, 10**6))),
    )
    family, window = document["family"], document["window"]
    if "mixing" in family:
        terms = family["mixing"]["steps"], float(Fraction(family["mixing"]["overlap"]))
        if document["side_information"] == "any":  # the records between two known ones may be one
            return document["length"] * cost
        return mixing_loss(*terms, min(document["length"], 2000), cost, window)
    side_information = "none" if document["side_information"] == "none" else "any"
    worst = 0.0
    k = 2 if "binary_interval" in family else len(_states(family))
    length = min(document["length"], MOST.get(k, 3))
    if document["mechanism"] == "wasserstein":
        pairs = zip(family["chains"], document["proofs"], strict=True)
        return max(_count_loss(chain, proof["count"], cost) for chain, proof in pairs)
    for law in joints_of(family, length, rng):
        worst = max(worst, largest_loss(law, cost, window, side_information))
    return worst


def _states(family):
    [given] = family.values()
    given = given[0] if isinstance(given, list) else given
    return (
        given["low"]
        if "low" in given
        else given.get("transition_matrix") or given["transition_matrices"][0]
    )


def _count_loss(chain, count, cost):
    """Loss of Laplace noise on the count, at its jumps, where it is largest."""
    [rows] = chain["transition_matrices"]
    matrix = [[Fraction(p) for p in row] for row in rows]
    start, length, worst = chain["initial_distribution"], min(max(count["lengths"]), 7), 0.0
    first = stationary(floats(rows)) if start == "stationary" else start
    for node in range(1, length + 1):
        laws = laws_given_secrets(
            matrix, [Fraction(p) for p in first], length, count["weights"], node
        )
        points = np.arange(length * max(count["weights"]) + 1)
        densities = []
        for law in laws.values():
            masses = np.array([float(law.get(int(n), 0)) for n in points])
            densities.append(
                np.exp(-cost * np.abs(points[:, None] - points)) @ (masses / masses.sum())
            )
        worst = max([worst, *(float(np.log(p / q).max()) for p in densities for q in densities)])
    return worst
