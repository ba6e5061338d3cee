"""Leakage calibration: known values, families, bad input, certificates."""

import itertools
import math
import threading
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.coupling import process
from pufferflow.coupling.blocks import Blocks, known_blocks, reweighted_blocks
from pufferflow.coupling.bounds import kept
from pufferflow.coupling.distribution_sets import ExactRows, costs_of, largest_log_cross_ratios, reweighted_columns
from pufferflow.coupling.process import of_chain
from pufferflow.coupling.solver import LeakageEquation, post_fixed_point
from pufferflow.errors import ParameterError

EPSILONS = (0.2, 1.0, 5.0)
TABLE = [  # stationary start, T = 100; scales for the three epsilons
    ((0.6, 0.6), (7.493, 1.467, 0.238)),
    ((0.9, 0.9), (44.925, 8.640, 0.794)),
    ((0.9, 0.6), (15.390, 3.336, 0.532)),
]


def binary(stay, start="stationary"):
    return pf.MarkovChain([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]], start)


@pytest.mark.parametrize(("stay", "scales"), TABLE)
def test_binary_chains_of_the_table_are_optimal(stay, scales):
    for epsilon, expected in zip(EPSILONS, scales, strict=True):
        upper = pf.leakage(binary(stay), 100, epsilon).scale
        lower = pf.lower_bound(binary(stay), 100, epsilon).scale
        assert upper == pytest.approx(expected, abs=6e-4)
        assert upper * (1 - 1e-6) <= lower <= upper


def test_a_negatively_correlated_chain_is_optimal_with_an_alternating_count():
    chain = binary((0.2, 0.1))
    lower = pf.lower_bound(chain, 100, 1.0)
    here, there = set(lower.states), {0, 1} - set(lower.states)
    assert [set(one) for one in lower.later[:6]] == [there, here] * 3
    assert lower.scale == pytest.approx(pf.leakage(chain, 100, 1.0).scale, rel=1e-6)
    assert pf.lower_bound(chain, 100, 1.0, alternating=False).scale < lower.scale


@pytest.mark.parametrize("length", [2, 100, 10**9])
def test_small_epsilon_has_a_limit(length):
    """The limit of one symmetric chain: the gap of two copies halves by λ = .8 with each step, on both sides."""
    steps = [0.8 * (1 - 0.8**n) / 0.2 for n in range(length if length < 1000 else 1000)]
    limit = 1 + max(steps[i] + steps[len(steps) - 1 - i] for i in range(len(steps)))
    for epsilon in (1e-9, 1e-6, 2e-4):
        scale = pf.leakage(binary((0.9, 0.9)), length, epsilon).scale
        assert limit / epsilon * (1 - 1e-9) <= scale <= limit / epsilon * (1 + 1e-3)


@pytest.mark.parametrize(
    ("chain", "length", "records"),
    [
        *((pf.MarkovChain([[0.2, 0.3, 0.5]] * 3, start), 1000, 1) for start in ("stationary", "any", [0.1, 0.2, 0.7])),
        *((pf.MarkovChain(np.eye(3)[order], "any"), 10**9, 10**9) for order in ([0, 1, 2], [1, 2, 0])),
        (pf.PeriodicChain([np.eye(2), np.eye(2)[::-1]], initial_distribution="any"), 1000, 1000),
        (pf.MarkovChain([[1.0]]), 10, 1),
    ],
)
def test_independent_records_need_the_noise_of_one_and_those_that_never_mix_that_of_all(chain, length, records):
    assert pf.leakage(chain, length, 0.5).scale == pytest.approx(2 * records, rel=1e-6)


def test_transient_states_are_no_secrets_of_a_stationary_chain():
    closed = binary((0.9, 0.6))
    wide = pf.MarkovChain([[0.9, 0.1, 0], [0.4, 0.6, 0], [0.1, 0.2, 0.7]])
    assert pf.leakage(wide, 50, 1.0).scale == pytest.approx(pf.leakage(closed, 50, 1.0).scale, rel=1e-12)
    assert pf.lower_bound(wide, 50, 1.0).scale == pytest.approx(pf.lower_bound(closed, 50, 1.0).scale, rel=1e-6)


@pytest.mark.parametrize(
    ("start", "exact"),
    [
        *(("stationary", 400), ("any", 40), ([1, 0, 0], 40)),
        *(pytest.param(start, 400, marks=pytest.mark.long) for start in ("any", [1, 0, 0])),
    ],
)
def test_scales_do_not_fall_with_the_length(start, exact, monkeypatch):
    """Nor where nodes are no longer looked at one by one."""
    assert process._EXACT_NODES == 400
    monkeypatch.setattr(process, "_EXACT_NODES", exact)
    chain = pf.MarkovChain([[0.7, 0.3, 0], [0.2, 0.5, 0.3], [0.1, 0.4, 0.5]], start)
    lengths = (1, 2, 3, 10, 100, exact - 1, exact, exact + 1, 10**4, 10**9)
    scales = [pf.leakage(chain, length, 1.0).scale for length in sorted(lengths)]
    assert all(a <= b * (1 + 3e-6) for a, b in pairwise(scales))


def test_the_decisive_chain_of_a_family_and_the_binary_interval():
    family = pf.ChainFamily([binary((0.6, 0.6)), binary((0.9, 0.9))])
    result = pf.leakage(family, [5, 100], 1.0)
    assert (result.mechanism, result.chain, result.length, result.status) == ("leakage", 1, 100, "ok")
    assert result.scale == pf.leakage(binary((0.9, 0.9)), 100, 1.0).scale
    interval = pf.leakage(pf.BinaryInterval(0.2, 0.9), 40, 1.0).scale
    rng = np.random.default_rng(0)
    for stay in rng.uniform(0.2, 0.9, (12, 2)):
        assert pf.leakage(binary(stay, "any"), 40, 1.0).scale <= interval * (1 + 1e-6)


def test_without_couplings_blocks_remain():
    matrix = np.random.default_rng(3).dirichlet(np.ones(4), 4) * 0.2 + 0.8 * np.eye(4)
    for start in ("stationary", "any"):
        chain = pf.MarkovChain(matrix, start)
        quick, full = (pf.leakage(chain, 500, 1.0, max_states=n).scale for n in (0, 64))
        assert full <= quick <= pf.mqm_exact(chain, 500, 1.0).scale
    assert quick < pf.mqm_exact(chain, 500, 1.0).scale


def test_many_states_and_few():
    assert pf.lower_bound(pf.MarkovChain([[1.0]]), 10, 0.5).scale == 0
    chain = pf.MarkovChain(0.9 * np.eye(66) + 0.1 / 66)
    assert 1 < pf.leakage(chain, 8, 1.0).scale <= pf.mqm_exact(chain, 8, 1.0).scale


def test_the_largest_and_the_smallest_epsilon():
    chain = pf.MarkovChain([[0.7, 0.3, 0], [0.2, 0.5, 0.3], [0.1, 0.4, 0.5]])
    assert 1 <= pf.leakage(chain, 10**6, 1e90).scale * 1e90 * (1 + 1e-12) < 20
    assert pf.leakage(chain, 10**6, 1e-90).scale == pf.group_dp(chain, 10**6, 1e-90).scale


def test_blocks_are_never_above_a_quilt():
    """At α = ∞ Theorem 5 is the bound of a two-sided quilt."""
    chain = pf.MarkovChain([[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]])
    quilts = pf.mqm_exact(chain, 10**6, 1.0)
    cost = 1 / quilts.scale
    cap = 10**6 * cost * (1 - np.eye(3))
    ahead = Blocks(known_blocks(chain.transition_matrix, 0.0, 10**6)).caps(cap, cost, cost)
    past = Blocks(known_blocks(chain.time_reversal, 2 * chain.stationary_error, 10**6)).caps(cap, cost, cost)
    assert cost + (ahead + past).max() <= 1.0


def test_post_fixed_points_are():
    rng = np.random.default_rng(5)
    matrix = rng.dirichlet(np.ones(5), 5) * 0.3 + 0.7 * np.eye(5)
    for side in (ExactRows(matrix), reweighted_columns(matrix)):
        for cost in (1e-4, 0.02, 0.5, 3.0):
            cap = np.full((5, 5), 1e4 * cost)
            found = post_fixed_point(LeakageEquation(side, cost, cap), np.zeros((5, 5)))
            image = np.minimum(side.bound(costs_of(found, cost)), cap)
            np.fill_diagonal(image, 0.0)
            assert (image <= found).all()
            assert (found <= image * (1 + 1e-3)).all()


@pytest.mark.parametrize(
    ("start", "length"),
    [
        *(("stationary", 5), ("stationary", 10**6), ("any", 5), ([1.0, 0.0, 0.0], 5), ([1.0, 0.0, 0.0], 10**6)),
        pytest.param("any", 10**6, marks=pytest.mark.long),
    ],
)
def test_probabilities_near_the_end_of_floats(start, length):
    """Products that underflow must not pass for impossible: the rare state tells what a group tells."""
    rare = 1e-200
    matrix = [[0.5, 0.5, 0], [0.5, 0.5 - rare, rare], [rare, 0.5, 0.5 - rare]]
    chain = pf.MarkovChain(matrix, start)
    assert pf.lower_bound(chain, length, 1.0).scale <= pf.leakage(chain, length, 1.0).scale <= length


def test_threads_do_not_share_what_is_worked_out_in_place():
    chain = binary((0.9, 0.6))
    found = [kept(of_chain, chain, 30), kept(of_chain, chain, 30)]
    other = threading.Thread(target=lambda: found.append(kept(of_chain, chain, 30)))
    other.start()
    other.join()
    assert found[0] is found[1] is not found[2]


def test_rows_of_powers_that_look_alike_are_told_apart_by_rounding():
    # pairs of bits, one new bit a step: after two steps every row is (¼, ¼, ¼, ¼)
    matrix = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]] * 2)
    settled = list(known_blocks(matrix, 0.0, 10**6))[-1]
    assert settled.steps == 2
    assert ((settled.limit > 0) == (np.abs(matrix[:, None] - matrix).max(axis=-1) > 0)).all()
    assert settled.limit.max() < 1e-8
    alike = list(known_blocks(np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]), 0.0, 100))
    assert all(d.limit[0, 1] == 0 < d.limit[0, 2] for d in alike)
    assert all(d.distance[0, 1] == 0 < d.distance[0, 2] for d in alike)


def test_cross_ratios_are_those_of_fractions():
    rng = np.random.default_rng(4)
    for _ in range(40):
        rows = rng.integers(0, 4, (3, 4)) / 16
        secret = rows.any(axis=1)
        found = largest_log_cross_ratios(rows, secret)
        for x, y in itertools.product(range(3), repeat=2):
            largest = 1.0
            for z, other in itertools.product(range(4), repeat=2):
                above, below = rows[x, z] * rows[y, other], rows[y, z] * rows[x, other]
                if above > 0:
                    largest = max(largest, above / below if below > 0 else math.inf)
            # with no state that can precede both, nothing is known: there is no such pair of values of a node
            expected = math.log(largest) if secret[x] and secret[y] and x != y else 0.0
            assert expected <= found[x, y]
            if (rows[x] * rows[y]).any() or expected in (0.0, math.inf):
                assert found[x, y] == pytest.approx(expected, abs=1e-11)
    assert largest_log_cross_ratios(np.array([[0.3, 0.3], [0.1, 0.2]]), np.ones(2, bool))[0, 1] < 0.7


def test_blocks_forget_the_start():
    # whatever the first state is, far apart entries tell nothing of each other, also where states are unlike
    chain = pf.MarkovChain([[0.8, 0.15, 0.05], [0.7, 0.2, 0.1], [0.75, 0.15, 0.1]], "any")
    forgetting = list(reweighted_blocks(chain.transition_matrix, 10**6, pairwise=False))
    assert forgetting[-1].limit.max() < 1e-8


def test_tiny_epsilon_and_huge_length_from_any_start():
    chain = binary((0.9, 0.6), "any")
    assert 3.3e8 < pf.leakage(chain, 2**62, 1e-8).scale < 3.4e8
    rounded = pf.leakage(chain, 2**62, 1e-30)
    assert rounded.scale == pf.mqm_exact(chain, 2**62, 1e-30).scale
    assert rounded.reason == "epsilon is below 1e-11, where rounding would count: the scale of mqm-exact"


def test_an_iteration_that_diverges_is_not_heard_of():
    """Values with their repeats: a chain on which the solver of the couplings overflows, which is an error here."""
    runs = (
        *((0, 3), (814, 2), (28, 1), (888, 5), (412, 5), (190, 2), (666, 1), (347, 2), (546, 1), (888, 7)),
        *((116, 10), (791, 2), (190, 2), (310, 7), (51, 4), (523, 1), (509, 1), (213, 3), (472, 1), (213, 1)),
        *((458, 1), (370, 1), (740, 1), (791, 2), (555, 1), (865, 2), (518, 1), (523, 7), (777, 2), (842, 1)),
        *((148, 2), (592, 2), (805, 3), (88, 3)),
    )
    values = [value for value, repeats in runs for _ in range(repeats)]
    edges = [edge for edge in range(50, 900, 50) if edge not in (250, 600)]
    fitted = pf.fit(pd.DataFrame({"value": values}), edges=edges, start="any")
    chain = fitted.model.family.chains[0]
    assert 0 < pf.leakage(chain, 90, 1.0).scale <= pf.mqm_exact(chain, 90, 1.0).scale


def test_states_of_different_pace_take_few_steps_of_the_iteration(monkeypatch):
    """Thousands of steps, and a minute for one scale, where some pairs of states differ far longer than others."""
    from scipy.sparse import linalg

    steps, solve = [0], linalg.bicgstab

    def counted(*arguments, **options):
        def step(_):
            steps[-1] += 1

        steps.append(0)
        return solve(*arguments, callback=step, **options)

    monkeypatch.setattr(linalg, "bicgstab", counted)
    monkeypatch.setattr(linalg, "spsolve", lambda *_: pytest.fail("the iteration broke down"))
    k = 20
    leave = np.full(k, 1e-8)
    leave[0] = 1e-3
    matrix = leave[:, None] / (k - 1) * (1 - np.eye(k)) + np.diag(1 - leave)
    scale = pf.leakage(pf.MarkovChain(matrix, np.full(k, 1 / k)), 10**11, 1.0).scale
    assert 1e8 < scale < 1e10
    assert max(steps) < 100


@pytest.mark.parametrize("length", counts(8, 100))
def test_couplings_of_many_states_are_not_proved(length):
    """Where leakage leaves its couplings out, their certificate would take minutes, and memory for k³ plans."""
    matrix = np.full((65, 65), 1 / 65)
    chain = pf.MarkovChain(0.9 * np.eye(65) + 0.1 * matrix)
    with pytest.raises(ParameterError, match="65 states; couplings are proved for at most 64"):
        pf.certify(chain, length, 1.0, mechanism="leakage")
    assert pf.leakage(chain, length, 1.0).scale > 0


def test_above_some_states_the_scale_is_that_of_the_quilts():
    """Blocks take time in proportion to more than the cube of the states."""
    matrix = np.full((201, 201), 1 / 201)
    chain = pf.MarkovChain(0.9 * np.eye(201) + 0.1 * matrix)
    found = pf.leakage(chain, 100, 1.0)
    assert found.scale == pf.mqm_exact(chain, 100, 1.0).scale
    assert "201 states" in found.reason


def test_steps_that_hardly_ever_occur_make_no_noise_on_the_way_to_a_lower_bound():
    """Quotients of the smallest floats are infinite, which is meant: warnings are errors here."""
    chain = pf.MarkovChain([[1, 0, 0], [0, 1, 0], [5e-324, 0.25, 0.75]], "any")
    assert 0 < pf.lower_bound(chain, 3, 1.0).scale <= pf.leakage(chain, 3, 1.0).scale
