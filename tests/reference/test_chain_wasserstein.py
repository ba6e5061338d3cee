"""W of counts along chains against plain fractions, its kernels, and the privacy loss itself."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from cases import counts, examples
from enumeration import joint_law, stationary_law
from hypothesis import example, given
from hypothesis import strategies as st
from plain_transport import chain_wasserstein, infinity_distance, laws_given_secrets
from rational_chains import loss, random_case, some_starts

import pufferflow as pf
from pufferflow.audit import chain_sensitivity
from pufferflow.audit._count_kernels import NOTHING, distributions, movable
from pufferflow.audit._mixture_kernels import never_above
from pufferflow.audit.count_distributions import (
    counts_at_records,
    empty_numbers,
    log_sums,
    numbers,
    relative_error,
)
from pufferflow.audit.wasserstein import _moves


def floats(matrix, start):
    stationary = stationary_law(matrix) == start
    return pf.MarkovChain(
        [[float(p) for p in row] for row in matrix],
        "stationary" if stationary else [float(p) for p in start],
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
                assert all(
                    p / sum(found.values()) == Fraction(int(listed[n]), int(total))
                    for n, p in found.items()
                )


@pytest.mark.parametrize("cases", counts(50, 160))
def test_against_the_twin(cases):
    rng = np.random.default_rng(2)
    tied = inexact = 0
    for _ in range(cases):
        matrix, start, length, weights = random_case(rng)
        expected = chain_wasserstein(whole(matrix), start, length, weights)
        found = chain_sensitivity(floats(matrix, start), length, weights)
        assert expected <= found.strict
        assert expected <= found.W  # a tie counts as one, and nothing else does
        tied += found.strict > found.W
        inexact += expected != found.W
    assert tied > cases / 16
    assert inexact < cases / 16


@pytest.mark.parametrize("cases", counts(20, 60))
def test_any_start_is_the_supremum_over_starts(cases):
    rng = np.random.default_rng(3)
    attained = 0
    for _ in range(cases):
        matrix, _, length, weights = random_case(rng, 3)
        k, length = len(matrix), min(length, 5)
        laws = some_starts(rng, k, 3)
        largest = max(chain_wasserstein(whole(matrix), law, length, weights) for law in laws)
        found = chain_sensitivity(
            pf.MarkovChain([[float(p) for p in r] for r in matrix], "any"), length, weights
        )
        assert largest <= found.W <= found.strict
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
        scale = chain_sensitivity(floats(matrix, start), length, weights).scale(epsilon)
        for node in range(1, length + 1):
            laws = laws_given_secrets(matrix, start, length, weights, node).values()
            for first, second in combinations(laws, 2):
                if first != second:
                    worst = loss(first, second, scale)
                    assert worst <= epsilon * (1 + 1e-9)
                    reached = max(reached, worst)
    assert reached > 0.99 * epsilon


def test_tails_far_below_the_range_of_floats():
    """A tail of 1e-320 moves quantiles."""
    matrix = [[Fraction(99, 100), Fraction(1, 100)], [Fraction(98, 100), Fraction(2, 100)]]
    chain = pf.MarkovChain([[float(p) for p in row] for row in matrix], [1.0, 0.0])
    length = 200
    found = chain_sensitivity(chain, length, [0, 1])
    assert found.W == found.strict == 2
    # exactly, at one node
    laws = laws_given_secrets(whole(matrix), [Fraction(1), Fraction(0)], length, [0, 1], 3)
    assert float(laws[1][length - 1] / 100 ** (length - 1)) == 0.0
    assert infinity_distance(laws[0], laws[1]) == 2


def test_the_largest_segment_need_not_be_the_longest():
    swap = pf.MarkovChain([[0, 1], [1, 0]], "any")
    assert [chain_sensitivity(swap, n, [0, 1]).W for n in (1, 2, 3, 4, 5)] == [1, 0, 1, 0, 1]
    found = chain_sensitivity([swap, swap], [2, 3, 4], [0, 1])
    assert (found.W, found.length, found.chain) == (1, 3, 0)


def test_weights():
    chain = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])
    plain = chain_sensitivity(chain, 9, [0, 1, 1])
    assert chain_sensitivity(chain, 9, [-5, -4, -4]) == plain
    assert chain_sensitivity(chain, 9, [1, 0, 0]).W == plain.W
    assert chain_sensitivity(chain, 9, [0, 3, 3]).W == 3 * plain.W
    assert chain_sensitivity(chain, 9, [2, 2, 2]).W == 0


def test_scale_is_rounded_up():
    found = chain_sensitivity(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 20, [0, 1])
    assert found.strict == found.W
    for epsilon in (0.1, 0.3, 3.0):
        assert Fraction(found.scale(epsilon)) * Fraction(epsilon) >= found.W
    tie = chain_sensitivity(pf.MarkovChain([[0.9, 0.1], [0.9, 0.1]]), 20, [0, 1])
    assert (tie.W, tie.strict) == (1, 2)
    assert 1 < tie.scale(1.0) < 1 + 1e-8
    assert tie.scale(1e-9) == 2e9  # no room for the slack
    assert math.isclose(tie.scale(0.2), 5, rel_tol=1e-7)


@pytest.mark.parametrize(
    ("cases", "starts"), [(20, 21), pytest.param(60, 41, marks=pytest.mark.long)]
)
def test_mixed_starts_of_two_states(cases, starts):
    """No start needs more than "any" gives, and mixed starts may need more than certain ones."""
    rng = np.random.default_rng(7)
    mixed_matter = 0
    for _ in range(cases):
        matrix, length = rng.dirichlet([0.5, 0.5], 2), int(rng.integers(2, 12))
        shares = [0, 1, *(1 / (1 + np.exp(np.linspace(-12, 12, starts))))]
        laws = ("any", *([q, 1 - q] for q in shares))
        every, *needed = (
            chain_sensitivity(pf.MarkovChain(matrix, law), length, [0, 1]).W for law in laws
        )
        assert max(needed) <= every
        mixed_matter += max(needed) > max(needed[:2])
    assert mixed_matter > cases / 12


@pytest.mark.parametrize("cases", counts(10, 60))
def test_distributions_of_counts_against_the_twin(cases):
    """Every probability to the error stated, zeros exactly, and their sums from either end."""
    rng = np.random.default_rng(6)
    for _ in range(cases):
        matrix, start, length, weights = random_case(rng, 3)
        weights = [n - min(weights) for n in weights]
        chain, most = floats(matrix, start), length * max(weights) + 1
        error = relative_error(chain, length, most) + 1e-15  # of P itself, in floats
        secrets = [(x, x, own) for x, own in enumerate(weights)]
        found = counts_at_records(chain, length, weights, secrets)
        for node, (sizes, laws) in enumerate(found, 1):
            exact = laws_given_secrets(matrix, start, length, weights, node)
            assert np.flatnonzero(sizes[0] > -math.inf).tolist() == sorted(exact)
            for x, law in exact.items():
                m, e = (part[0, x] for part in laws)
                mass = sum(law.values())
                assert sizes[0, x] == pytest.approx(log_of(mass), rel=1e-12, abs=1e-12)
                for n, found in enumerate(fractions(m, e)):
                    p = law.get(n, Fraction(0)) / mass
                    assert abs(found - p) <= p * Fraction(error)
                check_sums(m, e, 2.0**-40 / 10)  # a tenth of what comparisons of W allow for


def fractions(m, e):
    return [
        Fraction(float(a)) * Fraction(2) ** int(b) if a else Fraction(0)
        for a, b in zip(m, e, strict=True)
    ]


def check_sums(m, e, tolerance):
    exact = fractions(m, e)
    below, above = log_sums((m, e))
    for n in range(len(m)):
        for logged, total in ((below[n], sum(exact[: n + 1])), (above[n], sum(exact[n + 1 :]))):
            assert logged == pytest.approx(
                log_of(total) if total else -math.inf, rel=1e-13, abs=tolerance
            )


def log_of(value):
    """Logarithm of a fraction of any size; a float error of a few roundings."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return math.log(value / Fraction(2) ** shift) + shift * math.log(2)


def pairs(entries):
    m, e = numbers(np.array([m for m, _ in entries]))
    return m, np.where(m > 0, e + np.array([e for _, e in entries]), NOTHING)


entries = st.lists(
    st.tuples(st.floats(0, 1), st.integers(-3000, 3000)) | st.tuples(st.just(0.0), st.just(0)),
    min_size=1,
    max_size=12,
)


@example([(0.0, 0), (0.09375, 0), (2.225073858507203e-309, 725)], [(1.0, 0)])
@examples(12, 120)
@given(entries, entries)
def test_sums_of_numbers_of_any_size_lose_nothing(first, second):
    """Convolved and added up from either end, over blocks of every size."""
    exact = [Fraction(0)] * (len(first) + len(second))
    for i, (m, e) in enumerate(first):
        for j, (n, f) in enumerate(second):
            exact[i + j + 1] += Fraction(m) * Fraction(n) * Fraction(2) ** (e + f)
    (past, future), sizes = map(pairs, (first, second)), np.empty((1, 1))
    out = empty_numbers(1, 1, len(exact))
    past, future = [one[None, None] for one in past], [one[None] for one in future]
    distributions(tuple(past), tuple(future), np.array([[0, 0, 1]]), sizes, out)
    (m, e), total = (one[0, 0] for one in out), sum(exact)
    assert sizes[0, 0] == pytest.approx(log_of(total) if total else -math.inf, rel=1e-13, abs=1e-13)
    for found, value in zip(fractions(m, e), exact, strict=True):
        assert abs(found * total - value) <= value * Fraction(1, 2**47)
    check_sums(m, e, 1e-13)


@examples(30, 300)
@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_what_is_proved_of_all_mixtures_of_starts_holds_for_each(starts, random):
    """Σ r_u r_v c_uv ≥ 0 is proved only if true, and wherever it is clearly so of two starts."""

    def drawn(choices):
        return np.array([random.choice(choices) for _ in range(starts)])

    p, q = drawn([0.0, -1.0, -3.0]), drawn([0.0, -2.0, -math.inf])
    f, g = drawn([-math.inf, -4.0, -1.5, -1.0]), drawn([-4.0, -1.5, -1.0, 0.0])
    proved = never_above(p, q, f, g, 2.0**-30)
    form = np.exp(p)[:, None] * np.exp(q) * (np.exp(g) - np.exp(f)[:, None])
    if proved:
        weights = np.random.default_rng(random.randrange(2**32)).dirichlet(
            np.full(starts, 0.5), 400
        )
        weights = np.concatenate([np.eye(starts), weights])
        assert np.einsum("nu,uv,nv->n", weights, form, weights).min() >= -1e-15
    else:
        s = (form + form.T) / 2
        own = s.diagonal()
        assert own.min() < 1e-8 or (s < -np.sqrt(np.outer(own, own)) + 1e-8).any()


def test_transport_plans_against_all_intervals():
    """Mass p fits into slack times q if and only if no interval has more than its surroundings."""
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
        power, shifts = rng.integers(-1500, 1500), rng.integers(-3, 4, (2, width))
        # the same exponents on both sides, written in different ways
        first, second = (
            (np.ldexp(one, -by), power + by) for one, by in zip((p, q), shifts, strict=True)
        )
        assert movable(first, second, slack, reach) == expected
        answers.append(expected)
    assert 50 < sum(answers) < 250


@pytest.mark.parametrize(
    ("excess", "possible"), [(0.0, True), (1e-10, True), (1e-8, False), (0.1, False)]
)
def test_plans_allow_a_billionth(excess, possible):
    m = np.array([[[0.5, 0.5, 0.0], [0.0, 0.5 * (1 - excess), 0.5 * (1 + excess)]]])
    given = m, np.zeros(m.shape, dtype=np.int64)
    sizes = np.zeros((1, 2))
    assert _moves(given, sizes, 1) == possible
    assert _moves(given, sizes, 2)
