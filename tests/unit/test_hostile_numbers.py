"""Numbers beyond floats prove nothing, portions and threads change no bit, and no float lies below
scales and losses whose exact values are known, not by its last bit; the shortest text of a number.
"""

from fractions import Fraction
from itertools import permutations

import numpy as np
import plain_influence
import pytest
from cases import examples
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.bounds import distribution_sets, of_families, solver, walks
from pufferflow.bounds.blocks import Blocks, block, blocks_of
from pufferflow.bounds.distribution_sets import ExactRows, ReweightedRows, no_trees
from pufferflow.bounds.loss import ProcessLoss
from pufferflow.bounds.of_families import MixingLoss
from pufferflow.bounds.process import of_chain, of_periodic, of_sets
from pufferflow.bounds.robust import AffineRows
from pufferflow.bounds.walks import Stretch
from pufferflow.mechanisms import compute_scale
from pufferflow.models.families import Protection
from pufferflow.records.states import shortest

ROWS = np.random.default_rng(1).dirichlet(np.ones(4), 4)
BOUNDS = pf.IntervalFamily(ROWS * 0.9, np.minimum(ROWS * 1.1, 1)).rows
APART = ~np.eye(4, dtype=bool)


@pytest.fixture
def unshared(monkeypatch):
    """Bounds of equal chains are not shared: they would begin where those before ended."""
    monkeypatch.setattr(of_families, "_parts", of_families._parts.__wrapped__)


def spoilt(number):
    costs = np.ones((4, 4)) - np.eye(4)
    costs[1, 2] = number
    return costs


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_costs_beyond_floats_prove_nothing(number):
    found = ExactRows(ROWS).bound(spoilt(number))
    assert np.isposinf(found[APART]).all()
    assert (found[~APART] == 0).all()
    sets = AffineRows(BOUNDS)
    assert (sets.bound(spoilt(number)) == sets.limit).all()
    reweighted = distribution_sets.reweighted_rows(ROWS.T)
    for side in (reweighted, ReweightedRows(BOUNDS.log_ratios(columns=True))):
        assert (side.bound(spoilt(number)) >= side.bound(spoilt(1e6)) * (1 - 1e-12)).all()
    stretch = Stretch(np.ones((2, 4), dtype=bool), ROWS[None])
    _, found = stretch.walk(spoilt(number), 0.1 * APART, 50.0, no_trees(4))
    assert (found == np.where(APART, ExactRows(ROWS).limit, 0.0)).all()


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("length", [5, 10**6])
def test_what_is_no_number_proves_nothing(number, length):
    """All of the records then count, or the largest ratio, near the ends and far from them."""

    def spoil(process):
        for side in (process.forward, process.backward):
            side.blocks.stacked = None
            side.blocks.pairwise.clear()
            for rows in side.sets:
                rows.bound = lambda costs: np.full((4, 4), number)
        every = (side.sets for side in (process.forward, process.backward))
        limits = (np.minimum.reduce([rows.limit for rows in sets]) for sets in every)
        return ProcessLoss(process), float(sum(limits).max())

    loss, limit = spoil(of_chain(pf.MarkovChain(ROWS), length, Protection()))
    if length == 5:
        wanted = length * 0.1
        for side in loss._others:
            side.side.early.walk = lambda *others: (np.full((length, 4, 4), number), None)
    else:
        wanted = 0.1 + limit
    assert loss.loss(0.1).value >= wanted
    loss, limit = spoil(of_sets(pf.IntervalFamily(ROWS, ROWS), length, Protection()))
    assert loss.loss(0.1).value >= min(length * 0.1, 0.1 + limit)


def test_newton_steps_that_are_no_numbers_are_left(unshared, monkeypatch):
    """A start or a step that is no number costs nothing but time."""
    expected = pf.leakage_loss(pf.MarkovChain(ROWS), 10**6, 2.0)
    monkeypatch.setattr(solver, "newton_step", lambda side, now, *others: np.full_like(now, np.nan))
    found = pf.leakage_loss(pf.MarkovChain(ROWS), 10**6, 2.0)
    assert expected * (1 - 1e-5) <= found <= expected * 1.01


def test_rows_that_are_equal_after_rounding_only_keep_their_margin():
    """Distributions known to a relative error may differ if their floats do not; exact ones not."""
    row, error, costs = np.array([0.25, 0.75]), 1e-9, np.array([[0.0, 2.0], [2.0, 0.0]])
    perturbed = np.array([row, row * [1 + error, 1]])
    truth = ExactRows(perturbed / perturbed.sum(axis=1, keepdims=True)).bound(costs)
    assert truth.max() > 0
    assert (ExactRows(np.array([row, row]), error).bound(costs) >= truth).all()
    assert (ExactRows(np.array([row, row])).bound(costs) == 0).all()


def test_rows_of_powers_that_look_alike_are_told_apart_by_rounding():
    # pairs of bits, one new bit per step: after two steps every row is (¼, ¼, ¼, ¼)
    matrix = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]] * 2)
    settled = list(blocks_of(matrix, 0.0, 10**6))[-1]
    assert settled.steps == 2
    assert ((settled.limit > 0) == (np.abs(matrix[:, None] - matrix).max(axis=-1) > 0)).all()
    assert settled.limit.max() < 1e-8
    matrix = np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    alike = list(blocks_of(matrix, 0.0, 100))
    assert all(d.limit[0, 1] == 0 < d.limit[0, 2] for d in alike)
    assert all(d.distance[0, 1] == 0 < d.distance[0, 2] for d in alike)


def results():
    rng = np.random.default_rng(5)
    matrices = rng.dirichlet(np.ones(3), (2, 3))
    slow = 0.98 * np.eye(4) + 0.02 * rng.dirichlet(np.ones(4), 4)
    for start in ("stationary", "any"):
        yield pf.leakage_loss(pf.MarkovChain(slow, start), 50, 0.2)
        chain = pf.PeriodicChain(matrices, repeat=7, initial_distribution=start)
        yield pf.leakage_loss(chain, 10**6, 2.0)
    yield pf.leakage(pf.MarkovChain(rng.dirichlet(np.ones(20), 20)), 10**6, 1.0).scale
    day = pf.PeriodicChain([[[0.6, 0.4], [0.5, 0.5]], [[0.95, 0.05], [0.1, 0.9]]], repeat=20)
    yield pf.certify(day, 1000, 1.0, mechanism="leakage")
    observed = pf.HiddenChain(pf.MarkovChain(slow), [0, 0, 1, 1])
    yield pf.certify(observed, 1000, 1.0, mechanism="leakage")


@pytest.mark.parametrize("portion", [50, 20**4])  # a pair at a time, or on threads
def test_portions_and_threads_change_no_bit(unshared, monkeypatch, portion):
    expected = list(map(str, results()))
    monkeypatch.setattr(distribution_sets, "most_threads", lambda: 3)
    for module in (distribution_sets, walks):
        monkeypatch.setattr(module, "PORTION", portion)
    assert list(map(str, results())) == expected


# -- scales and losses whose exact values are known ------------------------------------------------

RNG = np.random.default_rng(16)
EPSILONS = (10.0 ** RNG.uniform(-3, 1, 40)).tolist()
FROZEN = pf.MarkovChain(np.eye(2), [0.5, 0.5])
ALIKE = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], "any")
PHASES = pf.PeriodicChain([[[0.5, 0.5], [0.5, 0.5]], [[0.3, 0.7], [0.3, 0.7]]])


def found(name, chain, epsilon):
    if name == "loss":
        return pf.leakage_loss(chain, 7, epsilon)
    if name == "smallest":
        return pf.audit.smallest_scale(chain, 7, epsilon, pf.audit.CountQuery({1})).scale
    return compute_scale(name, chain, 7, epsilon).scale


SEVEN = ("group-dp", "mqm-exact", "leakage", "wasserstein", "loss")
ONE = ("entry-dp", "mqm-exact", "leakage", "smallest", "loss")
CASES = [("gk16", ALIKE, 2), ("leakage", PHASES, 1), ("loss", PHASES, 1)]
CASES += [(name, FROZEN, 7) for name in SEVEN] + [(name, ALIKE, 1) for name in ONE]


@pytest.mark.parametrize(("name", "chain", "records"), CASES)
def test_scales_and_losses_that_are_a_number_of_records(name, chain, records):
    """Over ε, and over the scale."""
    above = Fraction(1, 10 ** (12 if name == "loss" else 6))
    for epsilon in EPSILONS:
        many = Fraction(found(name, chain, epsilon)) * Fraction(epsilon)
        assert records <= many <= records * (1 + above)


def test_lower_bounds_are_not_above():
    for epsilon in EPSILONS[:8]:
        assert Fraction(pf.lower_bound(ALIKE, 7, epsilon).scale) <= 1 / Fraction(epsilon)


def test_powers_too_small_for_floats_may_tell_anything():
    """From A and B to X and Y it takes two steps too rare for a float; the way from Z, which is
    not, tells nothing.
    """
    rare, rarer = 1e-140, 1e-160
    a, b, u, v, x, y, z = range(7)
    matrix = np.zeros((7, 7))
    matrix[a, [a, b, u, v]] = 0.5, 0.5, rarer, rare
    matrix[b, [a, b, u, v]] = 0.5, 0.5, rare, rarer
    matrix[u, [a, x, y]] = 1, 1e-200, 1e-210
    matrix[v, [a, x, y]] = 1, 1e-210, 1e-200
    matrix[[x, y], z] = 1
    matrix[z, [u, v]] = 0.5
    square = matrix @ matrix
    assert (square[[a, b]][:, [x, y]] == 0).all()
    # X was reached by U and before from B, Y by V and from A: either record tells about c = 1
    blocks = Blocks(blocks_of(matrix.T, None, 50, pairwise=True))
    assert blocks.caps(49.0 * (1 - np.eye(7)), 1.0, 1.0)[x, y] > 1.9


def test_pasts_by_steps_too_rare_for_floats_are_unknown():
    """A step from B to C has probability 7.3e-324 in all, a float 4.9e-324."""
    rare = [[1, 1e-60, 2e-290], [1, 0, 7.3e-264], [1, 0, 0]]
    assert pf.MarkovChain(rare).time_reversal[2, 1] < 0.7 * 3.65e-34
    sets = of_chain(pf.MarkovChain(rare), 9, Protection()).backward.sets
    assert not any(isinstance(one, ExactRows) for one in sets)
    periodic = pf.PeriodicChain([rare, [[1, 1e-60, 1e-60]] * 3])
    assert periodic.stationary_error < 1
    (process,) = of_periodic(periodic, 10**6, Protection())
    assert not process.backward.cycle.known
    subnormal = pf.MarkovChain([[0.5, 0.5, 5e-324], [0.4, 0.6, 1e-323], [0.5, 0.5, 5e-324]])
    assert pf.gk16(subnormal, 9, 1.0).scale is None


def test_distributions_that_may_be_off_add_to_leakages():
    """Lemma 7: the spreads of two nodes, or what total variation and the largest cost allow."""
    rows, spreads = np.array([[[0.9, 0.1], [0.2, 0.8]]]), np.array([0.4, 0.3, 0.1, 0.05])
    variation, apart = 2 * np.log1p(-np.expm1(-0.4) * np.expm1(0.1)), 1 - np.eye(2)
    for cost, added in ((15.0, spreads[:-1] + spreads[1:]), (0.1, [variation])):
        without, found = (
            Stretch(np.ones((4, 2), dtype=bool), rows, spreads=off).walk(
                0 * apart, cost * apart, 1e3, no_trees(2)
            )[0][1 : len(added) + 1, 0, 1]
            for off in (np.zeros(4), spreads)
        )
        assert found - without == pytest.approx(np.array(added), rel=1e-5)
    late, same = (ExactRows(*rows, spread=off) for off in (0.4, 0.0))
    for one, other in ((late.bound(15 * apart), same.bound(15 * apart)), (late.limit, same.limit)):
        assert one - other == pytest.approx(0.8 * apart, rel=1e-5)


def test_how_far_distributions_of_any_start_may_be_off(monkeypatch):
    """Of late nodes as far as the first of them; of the first node by any ratio."""
    hidden = pf.HiddenChain(pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]], "any"), [0, 1])
    for early in (2, 3):
        monkeypatch.setattr("pufferflow.bounds.process._EXACT_NODES", early)
        process = of_chain(hidden, 100, Protection())
        second, last = (np.log((1 + 0.2**node) / (1 - 0.2**node)) for node in (1, early - 1))
        assert second <= process.observed[1].spread <= second + 1e-12
        beyond, *_, end = process.backward.early._exact[2]
        for off in (end, process.observed[-1].spread, process.backward.sets[0].spread):
            assert last <= off <= last + 1e-12
        assert np.isinf(beyond)
        assert process.observed[0] is None


@pytest.mark.parametrize("side_information", ["none", "any"])
def test_costs_below_the_last_digit_of_leakages_count(side_information):
    """Every record tells all others, so that the loss is T·c."""
    swap, length = pf.MarkovChain([[0, 1], [1, 0]]), 2**62
    for cost in (1e-14, 1e-15, 1e-17):
        loss = pf.leakage_loss(swap, length, 1 / cost, side_information=side_information)
        assert loss >= length * cost


def test_logarithms_of_ratios():
    rows = RNG.dirichlet(np.ones(4), 4)
    rows[1] = rows[0] * (1 + 1e-15 * np.arange(4))  # nearly the same
    apart = ~np.eye(4, dtype=np.bool_)
    ratios = distribution_sets.largest_log_ratios(rows, apart)
    crosses = block(1, (rows, rows > 0), apart, None).limit
    p = [[Fraction(v) for v in row] for row in rows.tolist()]
    for x, y in permutations(range(4), 2):
        quotients = [a / b for a, b in zip(p[x], p[y], strict=True)]
        least, most = min(quotients), max(quotients)
        for table, ratio in ((ratios, most), (crosses, most / least)):
            exact = plain_influence.ball(ratio).log()
            assert arb(float(table[x, y])) >= exact
            assert float(table[x, y]) <= float(exact) * (1 + 1e-14) + 1e-12


def test_losses_and_scales_of_mixing_families():
    family = pf.MixingFamily(3, 0.25)
    with ctx.workprec(256):
        for cost in RNG.uniform(0.01, 2, 20).tolist():
            loss = arb(MixingLoss(family, 11).loss(cost).value)
            known = plain_influence.mixing_loss(3, 0.25, 11, cost)
            assert known <= loss <= known * (1 + arb(1e-15))
        for epsilon in EPSILONS[:20]:
            scale = pf.leakage(family, 11, epsilon).scale
            enough, too_little = (
                plain_influence.mixing_loss(3, 0.25, 11, 1 / Fraction(noise))
                for noise in (scale, scale * (1 - 1e-14))
            )
            assert enough <= arb(epsilon) < too_little


# -- the one short text of a number, however it is written -----------------------------------------

LONG = "1234567890123456789012345678901234567890.1"
SHORT = {"0.0": "0", "-0": "0", "+0.10": "0.1", "1.0e-3": "0.001", ".5": "0.5", "5.": "5"}
SHORT |= {"1e3": "1000", f"{LONG}0": LONG}
SHORT |= dict.fromkeys(["", "abc", "inf", "nan", "1e400", "1,5", "0x1", "1_0", " 1", "-", "１"])


@pytest.mark.parametrize(("text", "short"), SHORT.items())
def test_the_shortest_text(text, short):
    assert shortest(text) == short


@examples(12, 120)
@given(st.decimals("-1E300", "1E300"))
def test_the_shortest_text_is_the_same_number_exactly(number):
    short = shortest(str(number))
    assert short is not None
    assert Fraction(short) == Fraction(str(number))
    assert shortest(short) == shortest(f"{number:E}") == shortest(f"{number:f}") == short
