"""W of counts along chains against the plain twin, with fractions, and against the privacy loss itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import counts
from enumeration import joint_law, stationary_law
from plain_transport import chain_wasserstein, laws_given_secrets
from rational_chains import loss, random_case

import pufferflow as pf
from pufferflow.transport import chains as transport
from pufferflow.transport._kernels import flows, movable


def floats(matrix, start):
    stationary = stationary_law(matrix) == start
    return pf.MarkovChain(
        [[float(p) for p in row] for row in matrix], "stationary" if stationary else [float(p) for p in start]
    )


def whole(matrix):
    """The same up to a factor, which cancels, in whole numbers, which are faster."""
    common = math.lcm(*(p.denominator for row in matrix for p in row))
    return [[p * common for p in row] for row in matrix]


def test_the_twin_against_a_list_of_all_paths():
    rng = np.random.default_rng(1)
    for _ in range(20):
        matrix, start, length, weights = random_case(rng, 3)
        length = min(length, 4)
        law = joint_law(matrix, start, length)
        counts = np.array(weights)[np.indices(law.shape)].sum(axis=0)
        for node in range(1, length + 1):
            given = laws_given_secrets(matrix, start, length, weights, node)
            for x in range(len(matrix)):
                inside = np.atleast_1d(np.asarray(law.take(x, axis=node - 1), dtype=object))
                places = np.atleast_1d(counts.take(x, axis=node - 1))
                listed = {n: inside[places == n].sum() for n in set(places[inside > 0].tolist())}
                found = given.get(x, {})
                assert set(found) == set(listed)
                total = sum(listed.values())
                assert all(p / sum(found.values()) == Fraction(int(listed[n]), int(total)) for n, p in found.items())


@pytest.mark.parametrize("cases", counts(50, 160))
def test_against_the_twin(cases):
    rng = np.random.default_rng(2)
    tied = inexact = 0
    for _ in range(cases):
        matrix, start, length, weights = random_case(rng)
        expected = chain_wasserstein(whole(matrix), start, length, weights)
        found = pf.chain_sensitivity(floats(matrix, start), length, weights)
        assert found.lower <= expected <= found.strict
        # a tie counts as one, and nothing else does
        assert expected == found.W or (not found.tied and found.lower <= expected <= found.W)
        tied += found.tied
        inexact += found.lower != found.W
    assert tied > cases / 16
    assert inexact < cases / 16


@pytest.mark.parametrize("cases", counts(20, 60))
def test_any_start_is_the_supremum_over_starts(cases):
    rng = np.random.default_rng(3)
    attained = 0
    for _ in range(cases):
        matrix, _, length, weights = random_case(rng, 3)
        k, length = len(matrix), min(length, 5)
        points = [[Fraction(int(x == y)) for x in range(k)] for y in range(k)]
        mixed = [[Fraction(int(n), 10 ** int(m)) for n, m in rng.integers((0, 0), (4, 9), (k, 2))] for _ in "123"]
        laws = [[p / sum(law) for p in law] for law in [*points, *mixed] if any(law)]
        largest = max(chain_wasserstein(whole(matrix), law, length, weights) for law in laws)
        found = pf.chain_sensitivity(pf.MarkovChain([[float(p) for p in r] for r in matrix], "any"), length, weights)
        assert found.lower <= found.W <= found.strict
        assert largest <= found.strict
        assert largest <= found.W or found.tied
        if k <= 2:
            assert found.lower == found.W
        attained += largest == found.W
    assert attained > cases * 2 / 3


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_noise_of_the_scale_is_private(epsilon):
    """From the exact laws, and for ties in particular."""
    rng = np.random.default_rng(4)
    reached = 0.0
    for _ in range(40):
        matrix, start, length, weights = random_case(rng, 3)
        if max(weights) == min(weights):
            continue
        scale = pf.chain_sensitivity(floats(matrix, start), length, weights).scale(epsilon)
        for node in range(1, length + 1):
            laws = list(laws_given_secrets(matrix, start, length, weights, node).values())
            for index, first in enumerate(laws):
                for second in laws[:index]:
                    if first != second:
                        worst = loss(first, second, scale)
                        assert worst <= epsilon * (1 + 1e-9)
                        reached = max(reached, worst)
    assert reached > 0.99 * epsilon


def test_tails_far_below_the_range_of_floats():
    """A tail of 1e-320 moves quantiles; without tilts it is lost, and the bound is wide."""
    matrix = [[Fraction(99, 100), Fraction(1, 100)], [Fraction(98, 100), Fraction(2, 100)]]
    chain = pf.MarkovChain([[float(p) for p in row] for row in matrix], [1.0, 0.0])
    length = 200
    found = pf.chain_sensitivity(chain, length, [0, 1])
    assert found.W == found.lower == 2
    # exactly, at one node
    laws = laws_given_secrets(whole(matrix), [Fraction(1), Fraction(0)], length, [0, 1], 3)
    assert float(laws[1][length - 1] / 100 ** (length - 1)) == 0.0
    points = range(length + 1)
    exact = pf.divergences.wasserstein_infinity(points, *([law.get(n, 0) for n in points] for law in laws.values()))
    assert exact == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "TILTS", ())
        transport._sensitivity.cache_clear()
        blind = pf.chain_sensitivity(chain, length, [0, 1])
        transport._sensitivity.cache_clear()
    assert blind.W > 2 >= blind.lower


def test_the_largest_segment_need_not_be_the_longest():
    swap = pf.MarkovChain([[0, 1], [1, 0]], "any")
    assert [pf.chain_sensitivity(swap, n, [0, 1]).W for n in (1, 2, 3, 4, 5)] == [1, 0, 1, 0, 1]
    found = pf.chain_sensitivity([swap, swap], [2, 3, 4], [0, 1])
    assert (found.W, found.length, found.chain) == (1, 3, 0)


def test_weights():
    chain = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])
    plain = pf.chain_sensitivity(chain, 9, [0, 1, 1])
    assert pf.chain_sensitivity(chain, 9, [-5, -4, -4]) == plain
    assert pf.chain_sensitivity(chain, 9, [1, 0, 0]).W == plain.W
    assert pf.chain_sensitivity(chain, 9, [0, 3, 3]).W == 3 * plain.W
    assert pf.chain_sensitivity(chain, 9, [2, 2, 2]).W == 0
    for weights in ([0, 1], [0.5, 1, 1], [[0, 1, 2]]):
        with pytest.raises(pf.ParameterError, match="give one integer for each of 3 states"):
            pf.chain_sensitivity(chain, 9, weights)
    for lengths in (0, []):
        with pytest.raises(pf.ParameterError, match="segment length"):
            pf.chain_sensitivity(chain, lengths, [0, 1, 1])


def test_scale_is_rounded_up():
    found = pf.chain_sensitivity(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 20, [0, 1])
    assert not found.tied
    for epsilon in (0.1, 0.3, 3.0):
        assert Fraction(found.scale(epsilon)) * Fraction(epsilon) >= found.W
    tie = pf.chain_sensitivity(pf.MarkovChain([[0.9, 0.1], [0.9, 0.1]]), 20, [0, 1])
    assert (tie.W, tie.strict, tie.tied) == (1, 2, True)
    assert 1 < tie.scale(1.0) < 1 + 1e-8
    assert tie.scale(1e-9) == 2e9  # no room for the slack
    assert math.isclose(tie.scale(0.2), 5, rel_tol=1e-7)


@pytest.mark.parametrize(("cases", "starts"), [(20, 21), pytest.param(60, 41, marks=pytest.mark.long)])
def test_mixed_starts_of_two_states(cases, starts):
    """No start needs more than "any" gives, and mixed starts may need more than certain ones."""
    rng = np.random.default_rng(7)
    mixed_matter = 0
    for _ in range(cases):
        matrix = np.array([rng.dirichlet([0.5, 0.5]), rng.dirichlet([0.5, 0.5])])
        length = int(rng.integers(2, 12))
        found = pf.chain_sensitivity(pf.MarkovChain(matrix, "any"), length, [0, 1])
        shares = 1 / (1 + np.exp(np.linspace(-12, 12, starts)))
        needed = [pf.chain_sensitivity(pf.MarkovChain(matrix, [q, 1 - q]), length, [0, 1]).W for q in shares]
        pure = [pf.chain_sensitivity(pf.MarkovChain(matrix, q), length, [0, 1]).W for q in ([1, 0], [0, 1])]
        assert max(needed + pure) <= found.W
        mixed_matter += max(needed) > max(pure)
    assert mixed_matter > cases / 12


def test_transport_plans_against_all_intervals():
    """Mass p can be moved into slack times q if and only if no interval holds more than its surroundings take."""
    rng = np.random.default_rng(8)
    answers = []
    for _ in range(300):
        width, reach = int(rng.integers(1, 8)), int(rng.integers(0, 4))
        p, q = rng.integers(0, 5, (2, width)).astype(float)
        slack = float(rng.choice([1.0, 1.5, 2.0]))
        expected = all(
            p[a:b].sum() <= slack * q[max(a - reach, 0) : b + reach].sum()
            for a in range(width)
            for b in range(a + 1, width + 1)
        )
        powers = rng.integers(-1500, 1500, 2)
        shifts = rng.integers(-3, 4, (2, width))
        common = powers[0]  # the same exponents on both sides, written in different ways
        found = flows(
            np.ldexp(p, -shifts[0]), common + shifts[0], np.ldexp(q, -shifts[1]), common + shifts[1], slack, reach
        )
        assert found == expected
        answers.append(found)
    assert 50 < sum(answers) < 250


@pytest.mark.parametrize(("excess", "possible"), [(0.0, True), (1e-10, True), (1e-8, False), (0.1, False)])
def test_plans_allow_a_billionth(excess, possible):
    laws = transport._Laws(2, 1, 3)
    laws.lower[0, 0] = laws.upper[0, 0] = [0.5, 0.5, 0.0]
    laws.lower[1, 0] = laws.upper[1, 0] = [0.0, 0.5 * (1 - excess), 0.5 * (1 + excess)]
    laws.totals[:] = 0.0
    bounds = (laws.lower, laws.upper, laws.exponents), laws.totals
    assert movable(*bounds, np.array([True, True]), 1) == possible
    assert movable(*bounds, np.array([True, True]), 2)
    assert movable(*bounds, np.array([True, False]), 0)
