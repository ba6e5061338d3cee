"""Random processes of every kind, with distributions in their families, for which bounds hold."""

from functools import partial
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from sequence_programs import label_law

import pufferflow as pf

RADII = [0.0, 0.001, 0.02, 0.2]


class Drawn(NamedTuple):
    """A family and some chains in it: distributions of the first state and matrices, one a step."""

    family: object
    chains: list
    seen: np.ndarray
    """The observation of every state; the states themselves, but for hidden chains."""

    def joints(self):
        """Probabilities of all sequences, an array with an axis a record for each of the chains."""
        return [
            label_law(steps, start, self.seen, self.seen.max() + 1) for start, steps in self.chains
        ]


def matrices(rng, k, count=1):
    """Dense, sparse, absorbing and slow ones, permutations, nearly equal rows, unreached states."""
    found = rng.dirichlet(np.full(k, rng.choice([0.1, 0.5, 2.0])), (count, k))
    found[rng.random(found.shape) < rng.choice([0.0, 0.0, 0.4])] = 0.0
    found += np.eye(k) * rng.choice([0.0, 0.1, 0.5, 20.0])
    for i, matrix in enumerate(found):
        kind = rng.integers(12)
        if kind == 0:
            matrix[rng.random(k) < 0.7, rng.integers(k)] = 0.0
        elif kind == 1:
            found[i] = np.eye(k)[rng.permutation(k)] + rng.choice([0, 1e-3]) * matrix
        elif kind == 2:
            found[i] = np.triu(matrix)
        elif kind == 3:
            found[i] = matrix[0] + rng.choice([0.0, 1e-9, 1e-17]) * matrix
        elif kind == 4:
            matrix[:, rng.permutation(k)[: rng.integers(1, k)]] = 0.0
        for row in found[i]:
            if not row.any():
                row[rng.integers(k)] = 1.0
    return found / found.sum(axis=2, keepdims=True)


def transition_counts(states, k):
    found = np.zeros((k, k), dtype=int)
    np.add.at(found, (states[:-1], states[1:]), 1)
    return found


def a_start(rng, k):
    """A distribution, of all states or of some."""
    start = rng.dirichlet(np.full(k, rng.choice([0.1, 1.0]))) * (rng.random(k) < 0.8)
    return start / start.sum() if start.any() else np.eye(k)[rng.integers(k)]


def any_starts(rng, k):
    """One that is nearly certain, and others of all states."""
    return [0.999 * np.eye(k)[rng.integers(k)] + 0.001 / k, *rng.dirichlet(np.full(k, 0.2), 2)]


def drawn_start(rng, k, start):
    return a_start(rng, k) if start == "given" else start


def of_chains(rng, family, chains, length, seen):
    """Starts of each of some chains, each with the same matrix at every step."""
    found = []
    for chain in chains:
        steps = [chain.transition_matrix] * (length - 1)
        any_ = chain.start == "any"
        starts = any_starts(rng, chain.states) if any_ else [chain.initial_distribution]
        found += [(start, steps) for start in starts]
    return Drawn(family, found, np.asarray(seen))


def one_chain(rng, k, length, start):
    chain = pf.MarkovChain(matrices(rng, k)[0], drawn_start(rng, k, start))
    return of_chains(rng, chain, [chain], length, range(k))


def two_chains(rng, k, length):
    both = [pf.MarkovChain(matrices(rng, k)[0], start) for start in (a_start(rng, k), "any")]
    return of_chains(rng, pf.ChainFamily(both), both, length, range(k))


def binary_interval(rng, _, length):
    low, high = np.sort(rng.uniform(0.02, 0.98, 2))
    stays = [(low, low), (high, high), (low, high), *rng.uniform(low, high, (2, 2))]
    inside = [pf.MarkovChain([[a, 1 - a], [1 - b, b]], "any") for a, b in stays]
    return of_chains(rng, pf.BinaryInterval(low, high), inside, length, range(2))


def periodic(rng, k, length, start):
    parts, repeat = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    chain = pf.PeriodicChain(matrices(rng, k, parts), repeat=repeat, initial_distribution=start)
    found = []
    for phase in rng.permutation(chain.period)[:4]:  # segments begin at any
        steps = [chain.transition_matrix((phase + t) % chain.period) for t in range(length - 1)]
        any_ = start == "any"
        starts = any_starts(rng, k) if any_ else [chain.stationary_distributions[phase]]
        found += [(first, steps) for first in starts]
    return Drawn(chain, found, np.arange(k))


def hidden(rng, family, length):
    return of_chains(rng, family, [family.chain], length, family.observations)


def observed(rng, k, length, start):
    n = int(rng.integers(k, k + 3))
    chain = pf.MarkovChain(matrices(rng, n)[0], drawn_start(rng, n, start))
    return hidden(rng, pf.HiddenChain(chain, rng.permutation(np.arange(n) % k)), length)


def hidden_markov(rng, k, length):
    chain = pf.MarkovChain(matrices(rng, 2)[0], str(rng.choice(["stationary", "any"])))
    shown = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0])), 2)
    return hidden(rng, pf.HiddenChain.hidden(chain, shown), length)


def durations(rng, k, length):
    jumps = (1 - np.eye(k)) * rng.dirichlet(np.ones(k), k)
    lasts = rng.dirichlet(np.ones(int(rng.integers(2, 5))), k)
    start = drawn_start(rng, k, str(rng.choice(["stationary", "any", "given"])))
    jumps /= jumps.sum(axis=1, keepdims=True)
    return hidden(rng, pf.HiddenChain.with_durations(jumps, lasts, start), length)


def of_order(rng, k, length, start):
    k = min(k, 3)
    order = int(rng.integers(2, 4 if k == 2 else 3))
    rows = matrices(rng, k, k ** (order - 1)).reshape((k,) * (order + 1))
    first = a_start(rng, k**order).reshape((k,) * order) if start == "given" else start
    return hidden(rng, pf.HiddenChain.of_order(rows, first), length)


def corner(rng, low, high):
    """Rows between bounds, with as much as there is room moved to states in a random order."""
    found = low.copy()
    for row, room in zip(found, high - low, strict=True):
        for y in rng.permutation(len(row)):
            row[y] += min(max(1 - row.sum(), 0.0), room[y])
    return found


def pushed(rng, matrix, radius):
    """Rows at this total variation distance, or one each, as far as they have so much to give."""
    moved, k = matrix.copy(), len(matrix)
    for row, toward, left in zip(moved, rng.integers(0, k, k), np.full(k, radius), strict=True):
        for y in rng.permutation(np.delete(np.arange(len(row)), toward)):
            less = min(left, row[y])
            row[y], row[toward], left = row[y] - less, row[toward] + less, left - less
    return moved


def reversed_steps(start, steps):
    """Distributions of each record given the next; of itself where the next does not occur."""
    found = []
    for matrix in steps:
        joint = start[:, None] * matrix
        after = joint.sum(axis=0)
        found.append(np.where(after > 0, joint / np.where(after > 0, after, 1), start[:, None]).T)
        start = after
    return found


def intervals(rng, k, length):
    (matrix,), radius = matrices(rng, k), rng.choice(RADII)
    away = radius * rng.random((2, k, k))
    family = pf.IntervalFamily(np.maximum(matrix - away[0], 0.0), np.minimum(matrix + away[1], 1.0))
    steps = [corner(rng, family.low, family.high) for _ in range(length - 1)]
    return Drawn(family, [(start, steps) for start in any_starts(rng, k)], np.arange(k))


def total_variation(rng, k, length):
    (matrix,), radius = matrices(rng, k), float(rng.choice(RADII))
    steps = [pushed(rng, matrix, radius) for _ in range(length - 1)]
    found = [(start, steps) for start in any_starts(rng, k)]
    return Drawn(pf.TotalVariationFamily(matrix, radius), found, np.arange(k))


def filled(rows, x, order):
    """The row of a set whose parts fill the states in this order."""
    row = rows.base[x].copy()
    for widths, totals in rows.parts:
        left = totals[x]
        for z in order:
            more = min(left, widths[x, z])
            row[z], left = row[z] + more, left - more
    return row


def around(rng, found, width):
    """The least intervals that hold all these matrices, and some more."""
    low, high = np.min(found, axis=0), np.max(found, axis=0)
    more = width * rng.random((2, *low.shape))
    return np.maximum(low - more[0], 0), np.minimum(high + more[1], 1)


def ball(rng, found, width):
    """As :func:`around`, within a distance of a centre."""
    centre = np.tensordot(rng.dirichlet(np.ones(len(found))), found, axes=1)
    radius = max(np.abs(matrix - centre).sum(axis=1).max() / 2 for matrix in found)
    return centre, min(1.0, radius * (1 + 1e-12) + 1e-15 + width * rng.random())


def both_ways(rng, k, length, family, bounds):
    """Families known by bounds of the rows both ways, around one chain that changes with time."""
    k = min(k, 4)
    start, width = a_start(rng, k), rng.choice(RADII)
    (matrix,) = matrices(rng, k)
    steps = [pushed(rng, matrix, rng.choice([0.0, 0.1])) for _ in range(max(length - 1, 1))]
    forwards, backwards = (bounds(rng, of, width) for of in (steps, reversed_steps(start, steps)))
    drawn = family(*forwards, backward=family(*backwards))
    return Drawn(drawn, [(start, steps[: length - 1])], np.arange(k))


def protection(rng, length):
    window = min(int(rng.choice([1, 1, 2, 3])), length)
    return {"window": window, "side_information": str(rng.choice(["none", "any"]))}


def overlap(start, steps, apart):
    """Least overlap of the distributions of two nodes, given two values that the other can take."""
    nodes, least = [start], 1.0
    for matrix in steps:
        nodes.append(nodes[-1] @ matrix)
    for t in range(len(steps) + 1 - apart):
        pair = np.diag(nodes[t])
        for matrix in steps[t : t + apart]:
            pair = pair @ matrix
        for table in (pair, pair.T):
            rows = table[table.sum(axis=1) > 0]
            rows = rows / rows.sum(axis=1, keepdims=True)
            least = min(least, np.minimum(rows[:, None], rows[None]).sum(axis=2).min())
    return least


def mixing(rng, k, length):
    start = a_start(rng, k)
    many = rng.random() < 0.5
    steps = list(matrices(rng, k, length - 1) if many else [*matrices(rng, k)] * (length - 1))
    apart = int(rng.integers(1, max(2, min(length, 5))))
    least = overlap(start, steps, apart) * (1 - 1e-12)
    if least <= 1e-3:  # of no more records than these steps nothing is asked
        apart, least = length, 0.5
    return Drawn(pf.MixingFamily(apart, least), [(start, steps)], np.arange(k))


STARTS = ("stationary", "given", "any")
KINDS = {
    **{start: partial(one_chain, start=start) for start in STARTS},
    **{"chains": two_chains, "binary_interval": binary_interval},
    "periodic": partial(periodic, start="stationary"),
    "periodic_any": partial(periodic, start="any"),
    **{f"observed_{start}": partial(observed, start=start) for start in STARTS},
    **{"hidden_markov": hidden_markov, "durations": durations},
    **{f"of_order_{start}": partial(of_order, start=start) for start in STARTS},
    **{"intervals": intervals, "total_variation": total_variation},
    "intervals_both_ways": partial(both_ways, family=pf.IntervalFamily, bounds=around),
    "total_variation_both_ways": partial(both_ways, family=pf.TotalVariationFamily, bounds=ball),
    "mixing": mixing,
}
"""How one of each kind is drawn: of so many values and records."""


def drawn(kind, seed, lengths):
    """One of a kind, of at most so many records per number of values; None where none is drawn."""
    rng = np.random.default_rng([seed, *lengths.values(), *kind.encode()])
    k = 2 if kind == "binary_interval" else int(rng.choice(list(lengths)))
    length = int(rng.integers(1 if seed % 10 == 9 else 2, lengths[k] + 1))
    try:
        return rng, length, KINDS[kind](rng, k, length)
    except pf.errors.ChainError:  # no unique stationary distribution
        return None


# -- for hypothesis: dense, sparse and permutation matrices, with any start ------------------------

WEIGHTS = st.sampled_from([0.0, 0.0, 1e-20, 1e-12, 1e-6, 0.01, 0.2, 0.5, 1.0, 1.0, 3.0])
"""Of the entries of a row, before it is divided by its sum."""


@st.composite
def distributions(draw, k, weights=WEIGHTS):
    law = np.array(draw(st.lists(weights, min_size=k, max_size=k)))
    if not law.any():
        law[draw(st.integers(0, k - 1))] = 1.0
    return law / law.sum()


@st.composite
def chains(draw, max_states=6, weights=WEIGHTS, permutations=True):
    k = draw(st.integers(1, max_states))
    if permutations and draw(st.integers(0, 5)) == 0:
        matrix = np.eye(k)[draw(st.permutations(range(k)))]
    else:
        matrix = np.array([draw(distributions(k, weights)) for _ in range(k)])
    start = draw(st.sampled_from(["any", "stationary", "given"]))
    try:
        return pf.MarkovChain(
            matrix, draw(distributions(k, weights)) if start == "given" else start
        )
    except pf.errors.ChainError:  # no unique stationary law
        return pf.MarkovChain(matrix, "any")
