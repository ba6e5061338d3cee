"""Each rule of the verifier, and tables of any program, bound what a linear program or enumeration
finds.
"""

from contextlib import suppress
from fractions import Fraction
from functools import reduce
from itertools import combinations, permutations, product

import numpy as np
import plain_influence
import pytest
from cases import examples, seeds
from certificate_truth import chain, claim, worst_loss
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from processes import corner
from sequence_programs import along, label_law, lipschitz, log_ratios

import pufferflow as pf
from pufferflow.errors import CertificateError
from pufferflow.verify.balls import UndecidedError, Work
from pufferflow.verify.counts import _copositive, _movable
from pufferflow.verify.interpret import Interpreter, interpret
from pufferflow.verify.model import END, Model
from pufferflow.verify.parse import Balls, Chain, Claim, Flows, Intervals, Mixing, parse
from pufferflow.verify.rules import by_flows, by_tree, largest_ratios, overlapping, reweighted

SEEDS = st.integers(0, 2**32 - 1)


def balls(table):
    return [[arb(float(value)) for value in row] for row in table]


def exactly(table):
    return [list(map(Fraction, row)) for row in table]


def exact_distributions(table):
    return [[p / sum(row) for p in row] for row in exactly(table)]


def floats(table):
    return np.array([[float(entry) for entry in row] for row in table])


def largest(pairs, growth):
    """max (p·h)/(q·h) over h ≥ 0 with h(z) ≤ h(y) growth[z, y], of all pairs p, q."""
    z, y = np.nonzero(~np.eye(len(growth), dtype=bool))
    return np.exp(log_ratios([(p, q, (z, y, growth[z, y])) for p, q in pairs]).max(initial=0))


def drawn(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    rows = rng.dirichlet(np.full(k, 0.7), k)
    rows[rng.random((k, k)) < 0.2] = 0.0
    rows = (rows + 1e-3 * np.eye(k)) / (rows + 1e-3 * np.eye(k)).sum(axis=1, keepdims=True)
    growth = np.exp(rng.exponential(0.7, (k, k)) * (1 - np.eye(k)))
    return rng, k, rows, growth


def random_tree(rng, k):
    order, parents = rng.permutation(k), [0] * k
    for i in range(1, k):
        parents[order[i]] = int(rng.choice([-1, 1]) * (order[rng.integers(i)] + 1))
    return parents


@examples(60, 600)
@given(SEEDS)
def test_any_tree_bounds_the_program(seed):
    """The values that cannot be are left out, of the tree as of the program."""
    rng, k, rows, growth = drawn(seed)
    parents = random_tree(rng, k)
    inside = rng.random(k) < 0.8
    inside[rng.integers(k)] = True
    p, q = (np.where(inside, row, 0) + 1e-4 * inside for row in rows[:2])
    values = frozenset(np.flatnonzero(inside).tolist())
    found = by_tree(*balls([p / p.sum(), q / q.sum()]), parents, values, balls(growth))
    pair = p[inside] / p.sum(), q[inside] / q.sum()
    exact = largest([pair], growth[np.ix_(inside, inside)])
    assert float(found) >= exact * (1 - 1e-9)
    assert found.is_finite()


@examples(60, 600)
@given(SEEDS)
def test_any_reweighting_is_bounded(seed):
    rng, k, rows, growth = drawn(seed)
    weights = rows.T
    both = reweighted(balls(weights), balls(weights), frozenset(range(k)), balls(growth))
    found = float(both[0][1])
    pairs = [weights[:, :2] * m for m in rng.dirichlet(np.full(k, 0.3), (8, 1)).transpose(0, 2, 1)]
    pairs = [(pair / pair.sum(axis=0)).T for pair in pairs if pair.sum(axis=0).min() > 1e-12]
    assert found >= largest(pairs, growth) * (1 - 1e-9)
    ratios = floats(largest_ratios(balls(weights)))
    assert found <= ratios[0, 1] * ratios[1, 0] * (1 + 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert ratios[0, 1] == pytest.approx(np.nanmax(weights[:, 0] / weights[:, 1]))


def test_a_ball_around_0_hides_no_other_pair():
    """Two of the three values differ most, and the weight of the other may be 0."""
    growth = balls([[1, 3, 100], [3, 1, 3], [100, 3, 1]])
    weights, values = (
        balls([[0.3, 0.8, 0.3], [0.2, 0.0, 0.3], [0.5, 0.2, 0.4]]),
        frozenset(range(3)),
    )
    exact = reweighted(weights, weights, values, growth)[0][1]
    weights[1][1] = arb(0, 1e-30)
    assert float(reweighted(weights, weights, values, growth)[0][1]) >= float(exact) * (1 - 1e-9)


def sets(rng, rows):
    """A family around rows, and members of the set of each row."""
    if rng.random() < 0.5:
        radius = 0.2 * rng.random(len(rows))
        family = Balls(exact_distributions(rows), list(map(Fraction, radius)))
        other = rng.dirichlet(np.ones(len(rows)), (6, len(rows)))
        return family, [rows + radius[:, None] * (one - rows) for one in other]
    width = 0.2 * rng.random(rows.shape)
    low, high = np.maximum(rows - width, 0), np.minimum(rows + width, 1)
    family = Intervals(exactly(low), exactly(high))
    return family, [corner(rng, low, high) for _ in range(6)]


@examples(30, 300)
@given(SEEDS)
def test_sets_of_rows_hold_their_members(seed):
    """By any flows, and entry by entry of their products."""
    rng, k, rows, growth = drawn(seed)
    family, members = sets(rng, rows)

    def shares():
        return exact_distributions(rng.dirichlet(np.ones(k), k))

    parts = [None] * len(family.rows[0].parts)
    flow = exactly(0.2 * rng.random((k, k)) / k)
    flows = Flows(flow, [shares() for _ in parts], [shares() for _ in parts])
    found = float(by_flows(family.rows[0], family.rows[1], flows, balls(growth)))
    assert found >= largest([member[:2] for member in members], growth) * (1 - 1e-9)
    model = Model(family, Work(1e9))
    assert not model.node(False, range(1, END), balls(growth)).rows  # not of reversed ones
    [(low, high)] = model.weights(False, 0, 2)
    found = [one @ other for one, other in product(members, members)]
    assert (floats(low) - 1e-9 <= np.min(found, axis=0)).all()
    assert (np.max(found, axis=0) <= floats(high) + 1e-9).all()


@examples(60, 600)
@given(SEEDS)
def test_neighbours_have_the_distributions_of_plain_products(seed):
    """Given the node; and from other starts by the excess of Lemma 7 at most."""
    rng, k, _, growth = drawn(seed)
    period = int(rng.integers(1, 4))
    matrices = 0.9 * rng.dirichlet(np.ones(k), (period, k)) + 0.1 / k
    law = rng.dirichlet(np.ones(k))
    starts = ["any", "stationary", *exact_distributions([law])]
    start = starts[rng.integers(3 if period == 1 else 2)]
    exact = list(map(exact_distributions, matrices))
    seen = rng.integers(2, size=k)
    model = Model(Chain(exact, start, seen.tolist()), Work(1e9))

    def after(steps, phase=0):
        every = (matrices[(phase + step) % period] for step in range(steps))
        return reduce(np.matmul, every, np.eye(k))

    phase, steps = (int(rng.integers(n)) for n in (period, 6))
    for forward, weights in ((True, after(steps, phase).T), (False, after(steps, phase - steps))):
        assert np.allclose(floats(model.weights(forward, phase, steps)[0][0]), weights, 1e-9)
    early = period == 1 and rng.random() < 0.5
    first = phase if period > 1 else steps + 1
    position = range(first, first + 1 if early else END)
    found = model.node(False, position, balls(growth))
    if start == "any" and (period > 1 or steps == 0):
        assert not found.rows
        return
    stationary = after(400 * period + (phase - 1) % period)[0]
    begin = np.eye(k) if start == "any" else law
    given = early and start != "stationary" and start != "any"
    joint = (law @ after(steps) if given else stationary) * matrices[phase - 1].T
    assert np.allclose(floats(found.rows), joint / joint.sum(axis=1, keepdims=True), 1e-9)
    ratios = (begin @ after(steps + n) / stationary for n in (0, int(early)))
    here, later = (max(row.max() / row.min() for row in np.atleast_2d(of)) for of in ratios)
    through = (1 + (1 - 1 / here) * (growth.max() - 1)) ** 2
    known = given or start == "stationary"
    excess = 1 if known else min(here * later, through)
    assert float(found.excess) == pytest.approx(excess, rel=1e-9)
    if period == 1:
        own = model.observed(range(steps, steps + 1 if early else END), balls(growth))
        joint = (seen == np.unique(seen)[:, None]) * (law @ after(steps) if given else stationary)
        assert np.allclose(floats(own.rows), joint / joint.sum(axis=1, keepdims=True), 1e-9)
        excess = 1 if known else min(here * here, through)
        assert float(own.excess) == pytest.approx(excess, rel=1e-9)


@examples(60, 300)
@given(st.integers(1, 6), st.integers(1, 40), st.floats(0.05, 1.0), st.floats(0.01, 1.0))
def test_overlaps_are_largest_at_one_of_few_nodes(steps, around, overlap, cost):
    found = overlapping(Mixing(steps, Fraction(overlap)), arb(cost), around).log()
    plain = plain_influence.mixing_loss(steps, overlap, around + 1, cost) - cost
    assert float(found) == pytest.approx(float(plain), rel=1e-9, abs=1e-9)


@examples(60, 600)
@given(st.integers(3, 5), st.integers(0, 2**32 - 1))
def test_forms_of_starts_that_go_together_two_by_two_go_together(starts, seed):
    """(a·r)(v·r) − (u·r)(d·r) with v as small as pairs of starts allow is negative nowhere."""
    rng = np.random.default_rng(seed)
    a, d, u, v = rng.choice([0.0, 0.01, 0.3, 1.0, 2.0], (4, starts)) * rng.random((4, starts))
    low, high = 0.0, 1e6
    for _ in range(60):
        factor = (low + high) / 2
        form = [[arb(x) for x in row] for row in np.outer(a, factor * v) - np.outer(u, d)]
        held = False
        with suppress(UndecidedError):
            held = all(form[x][x] >= 0 for x in range(starts)) and _copositive(form)
        low, high = (low, factor) if held else (factor, high)
    form = np.outer(a, high * v) - np.outer(u, d)
    weights = np.concatenate([np.eye(starts), rng.dirichlet(np.full(starts, 0.5), 400)])
    values = np.einsum("nu,uv,nv->n", weights, form, weights)
    assert high == 1e6 or values.min() >= -1e-12 * np.abs(form).max()


def test_masses_fit_if_the_largest_do_into_the_smallest_rooms():
    half, about = arb(0.5), arb(0.5, 0.1)
    assert _movable([half], [half], 0)
    assert not _movable([half], [about], 0)
    assert not _movable([about], [half], 0)
    with ctx.workprec(8):  # what is left is no number of 8 bits
        assert not _movable([arb(1)], [arb(2) ** -20, arb(1) - arb(2) ** -8], 1)


@pytest.mark.parametrize("bits", [8, 20, 128])
def test_counts_of_records_are_rounded_up(bits):
    fair = pf.MarkovChain(np.full((2, 2), 0.5))
    claim = parse(Claim, pf.certify(fair, 4, 1.0, mechanism="group-dp"))
    with ctx.workprec(bits):
        table = Interpreter(claim, *claim.family.members, *claim.proofs, Work(1e9)).count(3)
    with ctx.workprec(300):
        assert table[0][1] >= arb(0.75).exp()


# -- programs of random trees and powers, for chains of few arcs: values differ from node to node --


def few_arcs(rng, count, k):
    """Matrices with one or two positive entries a row, in quarters, in some of the columns."""
    found = np.zeros((count, k, k))
    for matrix in found:
        columns = rng.permutation(k)[: rng.integers(2, k + 1)]
        for row in matrix:
            row[rng.choice(columns)] = share = rng.choice([0.25, 0.75, 1.0])
            row[rng.choice(columns)] += 1 - share
    return found


@examples(150, 3000)
@given(SEEDS)
def test_nodes_have_the_values_that_enumeration_finds(seed):
    """Of every so many nodes, of chains with arcs so few that the values repeat late."""
    rng, k, _, _ = drawn(seed)
    period = int(rng.choice([1, 1, 1, 2, 3]))
    matrices = few_arcs(rng, period, k)
    start = "stationary" if period > 1 else exact_distributions([np.eye(k)[rng.integers(k)]])[0]
    with suppress(CertificateError):  # several stationary distributions
        model = Model(Chain(list(map(exact_distributions, matrices)), start), Work(1e9))
        values = [model.sets(range(1))]
        for t in range(200):
            reached = [matrices[t % period][x] > 0 for x in next(iter(values[-1]))]
            values.append({frozenset(np.flatnonzero(np.any(reached, axis=0)))})
        first, step = int(rng.integers(2)), int(rng.integers(1, 9))
        assert model.sets(range(first, END, step)) == set().union(*values[first::step])


def random_side(rng, k, length, period, witnesses, farthest):
    """A prefix if there is one phase, and a cycle that starts from what all records reveal."""

    def step(most):
        found = (
            {"power": int(rng.integers(1, min(most, farthest) + 1))} if rng.random() < 0.9 else {}
        )
        if rng.random() < 0.5:
            found["witnesses"] = len(witnesses)
            witnesses.append([[random_tree(rng, k) for _ in range(k)] for _ in range(k)])
        return found

    many = int(rng.integers(length)) * (period == 1)
    cycle = [step(3 if period == 1 else i) for i in range(1, period + 1)]
    start = [["1e9"] * k] * k
    return {"prefix": [step(i) for i in range(1, many + 1)], "start": start, "cycle": cycle}


def of_order(rng, count, order):
    """Matrices of the last records of two values: from u to 2u or 2u + 1, modulo their number."""
    k = 2**order
    found, shares = np.zeros((count, k, k)), rng.choice([0, 0.25, 0.5, 0.75], (count, k))
    for u in range(k):
        found[:, u, 2 * u % k], found[:, u, (2 * u + 1) % k] = shares[:, u], 1 - shares[:, u]
    return found


def random_program(seed, order=1):
    """A certificate of any loss, the distributions of its first records, and the matrices."""
    rng = np.random.default_rng([31, seed])
    k, period = int(rng.integers(3, 6)), int(rng.choice([1, 3]))
    length, farthest, matrices = 4 if k == 3 else 3, 3, few_arcs(rng, period, k)
    if order > 1:
        k, length, farthest, matrices = 2**order, 4, order, of_order(rng, period, order)
    law = few_arcs(rng, 1, k)[0, 0]
    start, laws = "any", [np.full(k, 1 / k), 0.98 * law + 0.02 / k]
    if period == 1 and rng.random() < 0.5:
        start, laws = law.tolist(), [law]
    family = chain(matrices[0].tolist(), start, *matrices[1:].tolist())
    proof = {"witnesses": []}
    for name in ("forward", "backward"):
        proof[name] = random_side(rng, k, length, period, proof["witnesses"], farthest)
    scale, asked = rng.choice(["0.5", "1", "4"]), str(rng.choice(["none", "any"]))
    document = claim(family, 99, length, scale, proof, side_information=asked)
    if order > 1:
        family["chains"][0]["observations"] = [x % 2 for x in range(k)]
    return document, laws, matrices


def revealing(laws, cost, informed):
    """Programs for the largest ratio of means over c-Lipschitz functions, for pairs of these."""
    for (x, p), (y, q) in permutations(laws.items(), 2):
        for size in range(p.ndim if informed else 1):
            for known in combinations(range(p.ndim), size):
                free = tuple(n for t, n in enumerate(p.shape) if t not in known)
                each = np.moveaxis([p, q], [t + 1 for t in known], range(size))
                for above, below in each.reshape(-1, 2, int(np.prod(free))):
                    if above.any() and below.any():
                        given = above / above.sum(), below / below.sum()
                        yield (x, y), (*given, lipschitz(free, cost))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", [170, 283, 435, *seeds(30, 3000)])  # the first found a fault
def test_tables_of_random_programs_bound_what_is_revealed(seed, order):
    """By values of a node, of the records on a side of it."""
    document, laws, matrices = random_program(seed, order)
    claim, period, length = parse(Claim, document), len(matrices), document["length"]
    cost, informed = 1 / float(document["scale"]), document["side_information"] == "any"
    [proof], [member] = claim.proofs, claim.family.chains
    values = range(matrices.shape[1])
    seen = np.array(member.observations or values)
    shows = (seen == np.unique(seen)[:, None]).astype(float)
    run = Interpreter(claim, member, proof, Work(1e9))
    bounds, programs = [], []
    with ctx.workprec(128), suppress(CertificateError, UndecidedError):
        sides = run.tables(True, proof.forward), run.tables(False, proof.backward)
        for first, law, node in product(range(period), laws, range(length)):
            steps = [matrices[(first + t) % period] for t in range(length - 1)]
            joint = label_law(steps, law, values, len(values))
            for t in set(range(length)) - {node}:
                joint = along(shows, joint, t)
            ahead = joint.sum(axis=tuple(range(node)))
            behind = np.moveaxis(joint.sum(axis=tuple(range(node + 1, length))), -1, 0)
            for (early, rest), own in zip(sides, (ahead, behind), strict=True):
                many, phase = own.ndim - 1, (first + node) % period
                table = early[many] if period == 1 and many < len(early) else rest[phase]
                given = {x: part / part.sum() for x, part in enumerate(own) if part.any()}
                for (x, y), program in revealing(given, cost, informed):
                    bounds.append(float(table[x][y].log()))
                    programs.append(program)
    assert (np.array(bounds) >= log_ratios(programs) * (1 - 1e-6) - 1e-9).all()


@pytest.mark.parametrize("seed", seeds(40, 4000))
def test_losses_of_random_programs_are_true(seed):
    """Of single records and windows, of values and of what is seen of them."""
    document, _, matrices = random_program(seed, [1, 1, 2, 1, 3, 2][seed % 6])
    [known] = document["family"]["chains"]
    if seed % 2 and "observations" not in known:
        known["observations"] = [x // 2 for x in range(matrices.shape[1])]
    document["window"] = 1 + seed // 2 % 3
    with ctx.workprec(128), suppress(CertificateError, UndecidedError):
        loss = float(interpret(parse(Claim, document), Work(1e9)))
        assert worst_loss(document, seed) <= loss * (1 + 1e-6) + 1e-9
