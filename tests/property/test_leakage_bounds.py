"""The kernels of leakage against plain twins, and laws that its scales obey."""

from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest
from cases import SLACK, examples
from enumeration import stationary_law
from hypothesis import assume, example, given
from hypothesis import strategies as st
from random_chains import chains, distributions
from scipy.optimize import linprog

import pufferflow as pf
from pufferflow._util.protection import Protection
from pufferflow.audit import CountQuery
from pufferflow.coupling import sides
from pufferflow.coupling._node_kernels import beyond_stationary
from pufferflow.coupling._pair_kernels import staircase
from pufferflow.coupling._reweighting_kernels import reweight_blocks
from pufferflow.coupling.calibration import ChainLeakage, View
from pufferflow.coupling.periodic import CouplingWay
from pufferflow.coupling.sides import CouplingSide, ForgettingSide, costs_of
from pufferflow.errors import ChainError

WEIGHTS = st.sampled_from([0.0, 0.0, 1e-6, 0.01, 0.2, 0.5, 1.0, 1.0, 3.0])
EPSILONS = st.floats(-3, 1.3).map(lambda power: 10.0**power)


@st.composite
def cases(draw, positive=False):
    """Rows and the costs of a matrix of leakages."""
    k = draw(st.integers(2, 6))
    weights = st.floats(0.02, 1.0) if positive else WEIGHTS
    rows = np.array([draw(distributions(k, weights)) for _ in range(k)])
    size = draw(st.sampled_from([0.01, 0.5, 4.0]))
    leakages = size * np.array(draw(st.lists(st.floats(0, 1), min_size=k * k, max_size=k * k))).reshape(k, k)
    return rows, costs_of(leakages, draw(st.sampled_from([0.01, 0.3, 2.0])))


def program(p, q, costs):
    """Largest log (p·h)/(q·h), h(z) ≤ h(y) e^cost(z, y), over the states that matter."""
    inside = np.flatnonzero((p > 0) | (q > 0))
    n = len(inside)
    rows = []
    for z, y in product(range(n), repeat=2):
        if z != y:
            row = np.zeros(n)
            row[z], row[y] = 1.0, -np.exp(costs[inside[z], inside[y]])
            rows.append(row)
    if not rows:
        return 0.0
    found = linprog(-p[inside], rows, np.zeros(len(rows)), [q[inside]], [1.0], bounds=(0, None), method="highs-ipm")
    assert found.status == 0
    return np.log(-found.fun)


def closed(costs):
    """Costs that keep the triangle inequality, as leakages do."""
    for j in range(len(costs)):
        costs = np.minimum(costs, costs[:, [j]] + costs[[j], :])
    return costs


@given(cases(positive=True))
@examples(8, 110)
def test_pairs_equal_the_linear_program(case):
    rows, costs = case
    bounds = CouplingSide(rows).apply(costs)
    for x, y in product(range(len(rows)), repeat=2):
        if x != y:
            assert bounds[x, y] == pytest.approx(program(rows[x], rows[y], costs), abs=2e-6, rel=1e-6)


@given(
    st.integers(0, 10**6), st.sampled_from([8, 20, 40]), st.sampled_from([0.1, 1.0]), st.sampled_from([1e-9, 0.3, 2.0])
)
@examples(6, 80)
def test_many_states_equal_the_linear_program_from_any_trees(seed, k, spread, cost):
    """Steps that multiply what moved, from trees of other costs too, come to where a fresh start comes."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(k, spread), k)
    rows[rng.random(rows.shape) < rng.choice([0.0, 0.3])] = 0.0
    rows[:, 0] += 1e-3
    rows /= rows.sum(axis=1, keepdims=True)
    one, other = (closed(costs_of(cost * rng.random((k, k)) * rng.choice([0.1, 3.0]), cost)) for _ in range(2))
    side = CouplingSide(rows)
    side.apply(one)
    found, fresh = side.apply(other), CouplingSide(rows).apply(other)
    # what rounding leaves is moved at e^cost, from and to states that are as far from each other (costs: up to 8)
    assert found == pytest.approx(fresh, rel=1e-9 if cost < 1 else 1e-4, abs=1e-12)
    if 1e-6 < cost < 1:  # within the program's digits
        for x, y in rng.integers(k, size=(3, 2)):
            if x != y:
                assert found[x, y] == pytest.approx(program(rows[x], rows[y], other), abs=2e-6, rel=1e-6)


@given(cases())
@examples(16, 160)
def test_pairs_are_bounds_and_feasible(case):
    """The proved bound is met by potentials that the trees make feasible, zeros and ties included."""
    rows, costs = case
    k = len(rows)
    side = CouplingSide(rows)
    bounds = side.apply(costs)
    assert np.isfinite(bounds).all()
    again = side.apply(costs)  # from the trees of the first time
    assert bounds == pytest.approx(again, rel=1e-9, abs=1e-12)
    rng = np.random.default_rng(0)
    shortest = closed(costs)
    for _ in range(20):  # any function of the class stays below
        u = np.min(rng.uniform(-5, 5, k)[None, :] + shortest, axis=1)
        h = np.exp(u)
        ratios = np.log(rows @ h)
        assert (ratios[:, None] - ratios[None, :] <= bounds + 1e-12).all()


@given(cases(), st.sampled_from([1.0, 100.0, 1000.0]), st.booleans())
@examples(10, 110)
def test_a_step_of_a_clock_is_a_bound_at_any_costs(case, size, rare):
    """Also at costs whose exponentials are beyond floats, and of states that neither law has."""
    rows, costs = case
    k = len(rows)
    if rare and rows[:, 0].min() < 1:
        rows[:, 0] = 0.0
        rows[~rows.any(axis=1), 1] = 1.0
        rows /= rows.sum(axis=1, keepdims=True)
    try:
        chain = pf.PeriodicChain([rows], initial_distribution="any")
    except ChainError:  # no unique stationary law
        assume(False)
    shortest = closed(size * costs + 0.01 * (1 - np.eye(k)))
    told = CouplingWay(chain, ahead=True).walk(0, shortest - 0.01 * (1 - np.eye(k)), 0.01, 1e6)[0]
    assert np.isfinite(told).all()
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    for u in [*-shortest, *shortest.T]:  # the distances from and to a state
        ratios = np.logaddexp.reduce(logs + u, axis=1)
        assert (ratios[:, None] - ratios[None, :] <= told + 1e-12 * np.abs(u).max()).all()


@pytest.mark.parametrize("start", ["any", [1, 0, 0]])
def test_pairs_solved_in_portions_are_the_same(start, monkeypatch):
    matrix = [[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]]
    whole = ChainLeakage(pf.MarkovChain(matrix, start), 50).loss(0.2)
    monkeypatch.setattr(sides, "PORTION", 60)  # two pairs at a time, or six
    assert ChainLeakage(pf.MarkovChain(matrix, start), 50).loss(0.2) == whole


def test_pairs_solved_on_threads_are_the_same(monkeypatch):
    """Each fills only the places of its pairs."""
    chain = pf.MarkovChain(np.random.default_rng(5).dirichlet(np.ones(20), 20))
    alone = ChainLeakage(chain, 10**6).scale(1.0, 100.0)
    monkeypatch.setattr(sides, "PORTION", 20**4)
    monkeypatch.setattr(sides, "most_threads", lambda: 3)
    assert ChainLeakage(chain, 10**6).scale(1.0, 100.0) == alone


@given(cases(), st.integers(0, 10**6))
@examples(10, 80)
def test_staircases_are_the_transport_along_a_line(case, seed):
    """Flows that carry p to q, as far as their distribution functions are apart, on a tree of states."""
    rows, _ = case
    k = len(rows)
    line = np.random.default_rng(seed).permutation(k)
    place = np.argsort(line)
    trees, arcs = sides.no_trees(k), np.full((k, k, k), -1, dtype=np.int32)
    flows = np.zeros((k, k, k))
    staircase(rows, rows > 0, np.ones(k, dtype=bool), line, trees, (arcs, flows), (0, k * k))
    for x, y in product(range(k), repeat=2):
        used = arcs[x, y] >= 0
        tails, heads, amounts = arcs[x, y][used] // k, arcs[x, y][used] % k, flows[x, y][used]
        moved = np.bincount(tails, amounts, k) - np.bincount(heads, amounts, k)
        assert moved == pytest.approx(rows[x] - rows[y], abs=1e-12)
        apart = np.abs(np.cumsum((rows[x] - rows[y])[line])).sum()
        assert (amounts * np.abs(place[tails] - place[heads])).sum() == pytest.approx(apart, abs=1e-12)
        if not (rows[x] == rows[y]).all():
            n = int(((rows[x] > 0) | (rows[y] > 0)).sum())
            order, above = trees[0][x, y, :n], trees[1][x, y, :n]
            assert sorted(order) == list(range(n))  # every state once, after its parent
            assert (above[1:] < np.arange(1, n)).all()


@given(cases(), st.integers(0, 10**6))
@examples(8, 110)
def test_no_law_of_the_past_tells_more(case, seed):
    """The bound for free laws, against random laws on random states; two states reach it."""
    matrix, costs = case
    k = len(matrix)
    side = ForgettingSide(matrix)
    bounds = side.apply(costs)
    rng = np.random.default_rng(seed)
    reached = np.zeros((k, k))
    laws = [rng.dirichlet(np.ones(k) * 0.3) for _ in range(20)]
    for y, other in product(range(k), repeat=2):
        if y != other:
            for odds in np.logspace(-9, 9, 55):
                law = np.zeros(k)
                law[y], law[other] = odds, 1.0
                laws.append(law / law.sum())
    for law in laws:
        secret = law @ matrix > 1e-300
        rows = np.zeros((k, k))
        rows[secret] = (law[None, :] * matrix.T)[secret] / (law @ matrix)[secret, None]
        now = CouplingSide(rows, 0.0, secret).apply(costs)
        assert (now <= bounds + 1e-9).all()
        reached = np.maximum(reached, now)
    assert (bounds <= reached * 1.2 + 1e-3).all() or (matrix < 1e-5).any()


@given(chains(5, WEIGHTS), st.sampled_from([1, 2, 3, 10, 100, 1000, 10**6]), EPSILONS)
@examples(8, 160)
def test_between_the_lower_bound_and_quilts(chain, length, epsilon):
    upper = pf.leakage(chain, length, epsilon).scale
    assert upper <= pf.mqm_exact(chain, length, epsilon).scale
    assert upper >= 1 / epsilon * (1 - 1e-12)
    assert pf.lower_bound(chain, length, epsilon).scale <= upper


@example(pf.MarkovChain([[0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0], [1, 0, 0, 0], [0, 1, 0, 0]], [0, 0, 0, 1]), 20, 1.0)
@given(chains(4, WEIGHTS), st.sampled_from([20, 60]), st.sampled_from([0.003, 0.1, 1.0]))
@examples(10, 50)
def test_post_fixed_points_bound_the_recursions(chain, length, cost):
    """What serves all nodes alike is no smaller than what is computed node by node."""
    exact = ChainLeakage(chain, length)
    fixed = ChainLeakage(chain, length)
    assert exact.exact
    fixed._early, fixed.exact = 1, False
    if chain.start == "given":
        fixed.past_blocks = []  # of several steps at once, which are not taken under a law that is given
    assert exact.loss(cost).value <= fixed.loss(cost).value * (1 + 1e-9)


@given(st.integers(0, 10**6), st.sampled_from(["stationary", "given"]), st.sampled_from([0.2, 1.0, 4.0]))
@examples(8, 30)
def test_against_the_exact_law_of_counts(seed, start, epsilon):
    """No count loses more than ε at the scale; the count of the lower bound does just below its scale."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4))
    matrix = rng.dirichlet(np.ones(k), k)
    chain = pf.MarkovChain(matrix, start if start == "stationary" else rng.dirichlet(np.ones(k)))
    upper = pf.leakage(chain, 12, epsilon).scale
    for state in range(k):
        assert pf.privacy_loss(chain, 12, upper, CountQuery([state])).lower <= epsilon
    found = pf.lower_bound(chain, 12, epsilon, alternating=False)
    if (len(found.earlier), len(found.later)) == (found.node - 1, 12 - found.node):
        assert pf.privacy_loss(chain, 12, found.scale * (1 - 1e-6), CountQuery(found.states)).loss > epsilon


SLOW = pf.MarkovChain([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]], "any")
RARE = pf.MarkovChain([[100 / 101, 1 / 101], [1e-6, 1 - 1e-6]], "any")


@example(SLOW, 10**6, "any")
@example(RARE, 10**6, "none")
@given(chains(4, WEIGHTS), st.sampled_from([30, 1000, 10**6]), st.sampled_from(["none", "any"]))
@examples(10, 100)
def test_noise_changes_little_where_the_limit_of_small_costs_ends(chain, length, side_information):
    at, beyond = (e * pf.leakage(chain, length, e, side_information=side_information).scale for e in (1e-4, 1.0001e-4))
    assert beyond * (1 - SLACK) <= at <= beyond * (1 + SLACK)
    assert at >= 1e-4 * pf.lower_bound(chain, length, 1e-4).scale


SIXTEENTHS = [0, 0, 1, 2, 5, 8, 11, 14, 15, 16]


def rational_row(rng, k):
    """A law whose entries are floats exactly."""
    row = np.diff(np.sort(np.concatenate([[0, 16], rng.choice(SIXTEENTHS, k - 1)])))
    return [Fraction(int(p), 16) for p in row]


def stated_leak(matrix, law, found):
    """What the query that a lower bound states leaks just below its scale, in ball arithmetic of 300 bits."""
    cost = 1 / (flint.arb(found.scale) * (1 - flint.arb(2) ** -60))

    def weight(node, x):
        return (cost * (x in found.counted(node))).exp()

    def law_of(tilted, end):
        """E[e^(count) 1[X_node = x]] over the entries up to ``end``, for each x at the node."""
        k = len(matrix)
        steps = [[flint.arb(p.numerator) / p.denominator for p in row] for row in matrix]
        states = [flint.arb(p.numerator) / p.denominator for p in law]
        paths = None  # from the node on, one row a value of the node
        for node in range(1, end + 1):
            if node > 1:
                states = [sum(states[x] * steps[x][y] for x in range(k)) for y in range(k)]
                if paths is not None:
                    paths = [[sum(row[x] * steps[x][y] for x in range(k)) for y in range(k)] for row in paths]
            if tilted:
                states = [states[y] * weight(node, y) for y in range(k)]
                if paths is not None:
                    paths = [[row[y] * weight(node, y) for y in range(k)] for row in paths]
            if node == found.node:
                paths = [[states[y] * (x == y) for y in range(k)] for x in range(k)]
        return [sum(row) for row in paths]

    end = min(found.length, found.node + len(found.later))
    tilted, plain = law_of(True, end), law_of(False, end)
    x, y = found.pair
    return (tilted[x] / plain[x] / (tilted[y] / plain[y])).log()


@example(1096)  # 5e-17 nats at first: a step to a root beyond the range of floats
@given(st.integers(0, 2**32 - 1))
@examples(8, 160)
def test_the_query_that_a_lower_bound_states_leaks_epsilon(seed):
    """Slow and periodic chains too, whose windows are not symmetric."""
    rng = np.random.default_rng(seed)
    k, length = int(rng.integers(2, 4)), int(rng.integers(1, 80))
    matrix = [rational_row(rng, k) for _ in range(k)]
    law = (stationary_law(matrix) if rng.random() < 0.5 else None) or rational_row(rng, k)
    if rng.random() < 0.4:  # a cycle, too long for every node to be looked at
        k, length = int(rng.choice([3, 5])), int(rng.integers(501, 560))
        matrix = [[Fraction(int(y == (x + 1) % k)) for y in range(k)] for x in range(k)]
        law = [Fraction(1, k)] * k
    stationary = law == stationary_law(matrix)
    chain = pf.MarkovChain(
        [[float(p) for p in row] for row in matrix], "stationary" if stationary else [float(p) for p in law]
    )
    epsilon = float(np.exp(rng.uniform(-2, 1.5)))
    found = pf.lower_bound(chain, length, epsilon)
    assert len(found.earlier) < found.node
    assert found.node + len(found.later) <= length
    if found.scale:
        with flint.ctx.workprec(300):
            assert stated_leak(matrix, law, found) > epsilon


def test_rows_that_are_equal_after_rounding_only_keep_their_margin():
    """Laws known to a relative error may differ where their floats do not; exact ones may not."""
    law, error, costs = np.array([0.25, 0.75]), 1e-9, np.array([[0.0, 2.0], [2.0, 0.0]])
    perturbed = np.array([law, law * [1 + error, 1]])
    perturbed /= perturbed.sum(axis=1, keepdims=True)
    truth = CouplingSide(perturbed).apply(costs)
    assert truth.max() > 0
    assert (CouplingSide(np.array([law, law]), error).apply(costs) >= truth).all()
    assert (CouplingSide(np.array([law, law])).apply(costs) == 0).all()


@given(cases(), st.integers(1, 4), st.integers(0, 2**32 - 1))
@examples(10, 50)
def test_blocks_of_steps_are_taken_as_one_by_one(case, nodes, seed):
    """Digit for digit: the kernel works on all blocks, the plain twin on a side each."""
    rows, costs = case
    k, rng = len(rows), np.random.default_rng(seed)
    steps, extra = np.arange(1, 4), rng.random(3)
    blocks = [ForgettingSide(rows @ np.linalg.matrix_power(rows, int(n))) for n in steps]
    history, cap, told = rng.random((nodes, k, k)), 3 * rng.random((k, k)), 2 * rng.random((k, k))
    np.fill_diagonal(told, 0.0)
    wanted = told.copy()
    for side, n, more in zip(blocks, steps, extra, strict=True):
        if n <= nodes:
            beside = history[nodes - n] + costs
            np.fill_diagonal(beside, 0.0)
            through = np.minimum(side.apply(beside) + more, cap)
            np.fill_diagonal(through, 0.0)
            wanted = np.minimum(wanted, through)
    reweight_blocks((steps, np.array([side.roots for side in blocks]), extra), history, costs, cap, told, (0, k * k))
    assert (told == wanted).all()


@given(chains(), st.integers(1, 60), st.sampled_from([1e-3, 0.1, 1.0, 20.0]), st.booleans())
@examples(20, 300)
def test_nodes_one_after_another_are_taken_as_one_by_one(chain, length, cost, informed):
    """Up to roundings: the kernel takes all nodes at once, the plain twin steps from each to the next."""
    protection = Protection(1, "any" if informed else "none")
    # plans begin where the last ones ended, so each has its own
    bounds, twin = (ChainLeakage(chain, length, protection) for _ in range(2))
    k = bounds._chain.states
    cap = np.full((k, k), (length - 1) * cost)

    def view(side):
        return View(side, cost, 0.0, cap, bounds._differ)

    for name, side, plain in [("ahead", bounds._ahead, twin._ahead), ("stationary", bounds._reversed, twin._reversed)]:
        if side is not None:
            told = [np.zeros((k, k))]
            for _ in range(length - 1):
                told.append(view(plain).step(told[-1]))
            np.testing.assert_allclose(bounds._all_nodes(name, view(side)), told, rtol=1e-13, atol=0)
    if bounds._chain.start == "any" or informed:
        bounds, twin = (ChainLeakage(chain, length, protection) for _ in range(2))
        forget, stationary = view(twin._forgetting(np.ones(k, dtype=np.bool_))), twin._stationary_side(cost, cap)
        wanted = np.zeros((twin._early, k, k))
        for i in range(1, twin._early):
            before = wanted[i - 1]
            wanted[i] = view(twin._forgetting(twin._early_secrets[i - 1])).step(before)
            if twin.past_blocks:
                twin._through_blocks(wanted[:i], forget, wanted[i])
            if stationary is not None and twin.spread(i) < np.inf:
                more = beyond_stationary(twin.spread(i), twin.spread(i + 1), cost + before.max())
                wanted[i] = np.minimum(wanted[i], stationary.step(before) + more * (1 - np.eye(k)))
        told = bounds._early_nodes.leakages(cost, forget.costs, cap, bounds._all_blocks(cost))
        np.testing.assert_allclose(told, wanted, rtol=1e-13, atol=0)
