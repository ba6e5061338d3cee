"""Kernels of W∞ on a chain against plain twins: sums over many orders of magnitude, and the shift for one start."""

import math
from fractions import Fraction

import numpy as np
from cases import examples
from hypothesis import example, given
from hypothesis import strategies as st

from pufferflow.transport._kernels import cumulate, every_start, movable, one_start

entries = st.lists(
    st.tuples(st.floats(0, 1), st.integers(-2000, 2000)) | st.tuples(st.just(0.0), st.just(0)), min_size=1, max_size=12
)


def log2(value):
    """log2 of a fraction of any size; a float error of a few roundings."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return math.log2(value / Fraction(2) ** shift) + shift


# the first sum from above is small, and the second large beside it: its logarithm is a difference of large numbers
@example([(0.0, 0), (0.09375, 0), (2.225073858507203e-309, 725)], 0.0)
@examples(12, 120)
@given(entries, st.floats(0, 1e-9))
def test_bounds_of_distribution_functions_enclose_the_exact_sums_closely(law, slack):
    values = np.array([mantissa for mantissa, _ in law])
    exponents = np.array([exponent for _, exponent in law], dtype=np.int64)
    below, above = np.empty((2, len(law))), np.empty((2, len(law)))
    cumulate(values, values, exponents, 0, len(law) - 1, slack, below, above)
    exact = [Fraction(mantissa) * Fraction(2) ** exponent for mantissa, exponent in law]
    for n in range(len(law)):
        for (low, high), total in ((below[:, n], sum(exact[: n + 1])), (above[:, n], sum(exact[n + 1 :]))):
            if total == 0:
                assert low == high == -math.inf or not exact[n + 1 :]
                continue
            room = slack + (abs(log2(total)) + 304) * 2.0**-49  # sums up to 2^300 keep their exponent
            assert low <= log2(total) + 1e-15 * abs(log2(total))
            assert high >= log2(total) - 1e-15 * abs(log2(total))
            assert high - low <= 2 * room


@examples(12, 120)
@given(st.integers(1, 9), st.integers(0, 3), st.booleans(), st.randoms(use_true_random=False))
def test_the_shift_of_one_start_is_that_of_the_general_comparison(width, shift, strict, random):
    def bounds(*shape):
        """Pairs low ≤ high of logarithms, equal or −∞ often."""
        low = np.array([random.choice([-math.inf, -3.0, -2.0, -1.0, 0.0]) for _ in range(math.prod(shape))])
        high = np.array([value + random.choice([0.0, 0.0, 1.0]) for value in low])
        return np.stack([low, high]).reshape(2, *shape)

    def rows():
        return np.ascontiguousarray(bounds(width)[None])

    below, above = (rows(), rows()), (rows(), rows())
    totals = tuple(np.ascontiguousarray(bounds(1).reshape(1, 2)) for _ in range(2))
    general = every_start(below, above, totals, shift, strict)
    single = [tuple(one[0] for one in pair) for pair in (below, above, totals)]
    assert one_start(*single, shift, strict) == general
    assert general >= shift


@examples(12, 120)
@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 5), st.integers(0, 3), st.randoms(use_true_random=False))
def test_plans_move_laws_as_the_masses_of_intervals_say(states, starts, width, reach, random):
    """Every interval holds at most the mass of its neighbourhood (Hall); these masses are equal or far from it."""
    shape = states, starts, width
    laws = np.array([random.choice([0.0, 0.25, 0.5, 1.0]) for _ in range(math.prod(shape))]).reshape(shape)
    exponents = np.array([random.choice([-1, 0, 1]) for _ in range(math.prod(shape))]).reshape(shape)
    totals = np.array([random.choice([-math.inf, -1.0, 0.0, 2.0]) for _ in range(states * starts)])
    supported = np.array([random.random() < 0.8 for _ in range(states)])
    bounds = np.repeat(totals.reshape(states, starts, 1), 2, axis=2)
    sizes, values = 2 ** bounds[:, :, 0], laws * 2.0**exponents

    def moves(x, y, u, v):
        p = values[x, u] * sizes[y, v] + values[x, v] * sizes[y, u]
        q = values[y, v] * sizes[x, u] + values[y, u] * sizes[x, v]
        intervals = [(a, b) for a in range(width) for b in range(a + 1, width + 1)]
        return all(p[a:b].sum() <= q[max(a - reach, 0) : b + reach].sum() for a, b in intervals)

    pairs = [(x, y) for x in range(states) for y in range(states) if x != y and supported[x] and supported[y]]
    expected = all(moves(x, y, u, v) for x, y in pairs for u in range(starts) for v in range(starts))
    assert movable((laws, laws, exponents), bounds, supported, reach) == expected
