"""The kernels of leakage against plain twins, and laws that its scales obey."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest
from enumeration import stationary_law
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_chains import chains, distributions
from scipy.optimize import linprog

import pufferflow as pf
from pufferflow._rounding import UNIT_ROUNDOFF
from pufferflow.coupling import sides
from pufferflow.coupling._count_kernels import count_products
from pufferflow.coupling._set_kernels import set_leakages
from pufferflow.coupling.calibration import ChainLeakage
from pufferflow.coupling.sides import CouplingSide, ForgettingSide, costs_of, portions

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


@given(cases(positive=True))
@settings(max_examples=25, deadline=None)
def test_pairs_equal_the_linear_program(case):
    rows, costs = case
    bounds = CouplingSide(rows).apply(costs)
    for x, y in product(range(len(rows)), repeat=2):
        if x != y:
            assert bounds[x, y] == pytest.approx(program(rows[x], rows[y], costs), abs=2e-6, rel=1e-6)


@given(cases())
@settings(max_examples=80, deadline=None)
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
    closed = costs.copy()
    for j in range(k):
        closed = np.minimum(closed, closed[:, [j]] + closed[[j], :])
    for _ in range(20):  # any function of the class stays below
        u = np.min(rng.uniform(-5, 5, k)[None, :] + closed, axis=1)
        h = np.exp(u)
        ratios = np.log(rows @ h)
        assert (ratios[:, None] - ratios[None, :] <= bounds + 1e-12).all()


@given(cases())
@settings(max_examples=40, deadline=None)
def test_linear_limit(case):
    """Φ_{tw}/t for small t."""
    rows, costs = case
    side = CouplingSide(rows)
    limit = side.apply(costs, linear=True)
    assert limit == pytest.approx(side.apply(costs * 1e-5) / 1e-5, rel=1e-3, abs=1e-6)


@given(cases(), st.floats(0.01, 50))
@settings(max_examples=40, deadline=None)
def test_sets_equal_their_enumeration(case, growth):
    rows, _ = case
    k = len(rows)
    out = np.empty((k, k))
    for pairs in portions(k, 10**7 // 3):  # three at a time
        set_leakages(rows, np.ones(k, dtype=bool), growth, out, *pairs)
    masses = rows @ np.array(list(product([0.0, 1.0], repeat=k))).T
    logs = np.log1p(growth * masses)
    expected = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
    assert out == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("start", ["any", [1, 0, 0]])
def test_pairs_solved_in_portions_are_the_same(start, monkeypatch):
    matrix = [[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]]
    whole = ChainLeakage(pf.MarkovChain(matrix, start), 50).loss(0.2)
    monkeypatch.setattr(sides, "_PORTION", 60)  # two pairs at a time, or six
    assert ChainLeakage(pf.MarkovChain(matrix, start), 50).loss(0.2) == whole


def products(matrix, inside, alternating, cost, first, steps, settled=-1.0):
    """What the kernel fills, for one query and one row."""
    shape = (1, len(steps))
    values, counted, lost = np.empty((*shape, 1, len(matrix))), np.empty(shape, dtype=np.int64), np.empty(shape)
    sets, turned = np.array([inside]), np.array([alternating])
    count_products(matrix, (sets, turned), cost, np.array([first]), np.array(steps), settled, (values, counted, lost))
    return values[0, :, 0], counted[0], lost[0]


def plain_product(matrix, inside, alternating, cost, first, steps):
    """The same by its definition, one step after the other, in decimals of 60 digits."""
    with localcontext() as context:
        context.prec, context.Emin = 60, -(10**9)
        growth, rows = Decimal(cost).exp(), [[Decimal(p) for p in row] for row in matrix]
        law = [Decimal(p) for p in first]
        for distance in range(steps, 0, -1):
            turned = alternating and distance % 2 == 1
            law = [p * (growth if state != turned else 1) for p, state in zip(law, inside, strict=True)]
            law = [sum(p * row[x] for p, row in zip(law, rows, strict=True)) for x in range(len(law))]
        return law


@st.composite
def tilted_products(draw):
    """A matrix, the states that count, whether they alternate, the cost, a first row and numbers of steps."""
    matrix = np.array(draw(chains(4)).transition_matrix)
    k = len(matrix)
    inside = np.array(draw(st.lists(st.booleans(), min_size=k, max_size=k)))
    cost = draw(st.sampled_from([1e-6, 0.1, 2.0, 40.0]))
    steps = draw(st.lists(st.integers(0, 70), min_size=1, max_size=3))
    return matrix, inside, draw(st.booleans()), cost, draw(distributions(k)), steps


@given(tilted_products())
@example((np.eye(3)[[1, 0, 2]], np.array([True, False, False]), True, 40.0, np.eye(3)[0], [19]))  # underflow takes all
@example((np.eye(2), np.array([True, False]), False, 40.0, np.eye(2)[1], [70]))  # likewise
@settings(max_examples=40, deadline=None)
def test_products_equal_their_definition(case):
    """Within the rounding and the underflow that the kernel owns up to: all powers, periodic chains, tiny entries."""
    matrix, inside, alternating, cost, first, steps = case
    k = len(matrix)
    found, counted, lost = products(matrix, inside, alternating, cost, first, steps)
    assert counted.tolist() == steps
    for n, values, gone in zip(steps, found, lost, strict=True):
        exact = plain_product(matrix, inside, alternating, cost, first, n)
        if not values.max() > 100 * gone:  # taken by underflow, nearly or altogether, but not without a reason
            assert max(exact) < Decimal("1e-250") * (Decimal(cost) * n).exp()
            continue
        top = int(values.argmax())
        for x in range(k):
            wanted = float(exact[x] / exact[top] * Decimal(values[top]))
            assert abs(values[x] - wanted) <= 2 * n * (k + 6) * UNIT_ROUNDOFF * wanted + 3 * gone
    profiles, counted, lost = products(matrix.T.copy(), inside, alternating, cost, np.ones(k), steps, 1e-10)
    assert (counted <= steps).all()
    assert (profiles.min(axis=1) > lost / UNIT_ROUNDOFF).all()
    for n, values in zip(counted, profiles, strict=True):
        exact = plain_product(matrix.T, inside, alternating, cost, np.ones(k), int(n))
        ratios = [float(Decimal(a) / b * exact[0]) for a, b in zip(values, exact, strict=True)]
        assert max(ratios) <= min(ratios) * (1 + 4 * (n + 1) * (k + 8) * UNIT_ROUNDOFF)


@pytest.mark.parametrize("alternating", [False, True])
def test_slow_chains_settle(alternating):
    """Then more steps change nothing."""
    slow = np.array([[0.999, 0.003], [0.001, 0.997]])
    (values,), counted, _ = products(slow, [True, False], alternating, 1e-3, np.ones(2), [10**15], 1e-12)
    assert 10**3 < counted[0] <= 2**15
    (more,), _, _ = products(slow, [True, False], alternating, 1e-3, np.ones(2), [2 * counted[0]])
    assert values[0] / values[1] == pytest.approx(more[0] / more[1], rel=1e-12)


def test_a_periodic_chain_never_settles():
    swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    for steps in (10**3, 10**6 + 1):
        (values,), counted, _ = products(swap, [True, False], False, 0.5, np.ones(2), [steps], 1e-12)
        assert counted[0] == steps
        assert np.log(values[1] / values[0]) == pytest.approx(0.5 * (steps % 2), abs=1e-9)


@given(cases(), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
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
@settings(max_examples=60, deadline=None)
def test_between_the_lower_bound_and_quilts(chain, length, epsilon):
    upper = pf.leakage(chain, length, epsilon).scale
    assert upper <= pf.mqm_exact(chain, length, epsilon).scale
    assert upper >= 1 / epsilon * (1 - 1e-12)
    assert pf.lower_bound(chain, length, epsilon).scale <= upper


@given(chains(4, WEIGHTS), st.sampled_from([20, 60]), st.sampled_from([0.003, 0.1, 1.0]))
@settings(max_examples=25, deadline=None)
def test_post_fixed_points_bound_the_recursions(chain, length, cost):
    """What serves all nodes alike is no smaller than what is computed node by node."""
    exact = ChainLeakage(chain, length)
    fixed = ChainLeakage(chain, length)
    assert exact.exact
    fixed._early, fixed.exact = 1, False
    assert exact.loss(cost).value <= fixed.loss(cost).value * (1 + 1e-9)


@given(st.integers(0, 10**6), st.sampled_from(["stationary", "given"]), st.sampled_from([0.2, 1.0, 4.0]))
@settings(max_examples=12, deadline=None)
def test_against_the_exact_law_of_counts(seed, start, epsilon):
    """No count loses more than ε at the scale; the count of the lower bound does just below its scale."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4))
    matrix = rng.dirichlet(np.ones(k), k)
    chain = pf.MarkovChain(matrix, start if start == "stationary" else rng.dirichlet(np.ones(k)))
    upper = pf.leakage(chain, 12, epsilon).scale
    for state in range(k):
        assert pf.privacy_loss(chain, 12, upper, pf.CountQuery([state])).lower <= epsilon
    found = pf.lower_bound(chain, 12, epsilon, alternating=False)
    if (found.before, found.after) == (found.node - 1, 12 - found.node):
        assert pf.privacy_loss(chain, 12, found.scale * (1 - 1e-6), pf.CountQuery(found.states)).loss > epsilon


SIXTEENTHS = [0, 0, 1, 2, 5, 8, 11, 14, 15, 16]


def rational_row(rng, k):
    """A law whose entries are floats exactly."""
    row = np.diff(np.sort(np.concatenate([[0, 16], rng.choice(SIXTEENTHS, k - 1)])))
    return [Fraction(int(p), 16) for p in row]


def stated_leak(matrix, law, found):
    """What the query that a lower bound states leaks just below its scale, in ball arithmetic of 300 bits."""
    cost = 1 / (flint.arb(found.scale) * (1 - flint.arb(2) ** -60))

    def weight(node, x):
        distance = abs(node - found.node)
        within = -found.before <= node - found.node <= found.after
        inside = (x in found.states) != (found.alternating and distance % 2 == 1)
        return (cost * (within and inside)).exp()

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

    end = min(found.length, found.node + found.after)
    tilted, plain = law_of(True, end), law_of(False, end)
    x, y = found.pair
    return (tilted[x] / plain[x] / (tilted[y] / plain[y])).log()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
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
    assert found.before < found.node
    assert found.node + found.after <= length
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
