"""A noisy histogram is not always worst in its tails: counterexamples (docs/histograms.md)."""

import math
from fractions import Fraction

import pytest
from enumeration import stationary_law
from plain_counts import conditional_densities, largest_ratios, log_fraction

import pufferflow as pf
from pufferflow.audit import CountQuery, HistogramQuery

HALF = Fraction(1, 2)
# alternates for ever (states 0 and 1) or tosses a coin for ever (2 and 3), with equal chances
FAIR = [0, 0, 0.5, 0.5]
TWO_REGIMES = pf.MarkovChain([[0, 1, 0, 0], [1, 0, 0, 0], FAIR, FAIR], [0.25] * 4)
NONE, SURE = Fraction(0), Fraction(1)
THREE_STATES = [[NONE, SURE, NONE], [HALF, NONE, HALF], [HALF, HALF, NONE]]


@pytest.mark.parametrize(
    ("ratio", "inside", "tail"),
    [("1/4", "1088/83", "49/4"), ("1/2", "80/23", "13/4"), ("4/5", "1025/692", "91/64")],
)
def test_three_states_three_records(ratio, inside, tail):
    """Stationary, e^(1/2σ) = 4, 2, 5/4: the histogram (0, 2, 1) tells X_2 = 2 from X_2 = 1 better
    than any tail.
    """
    law, ratio, inside = stationary_law(THREE_STATES), Fraction(ratio), Fraction(inside)
    assert law == [Fraction(1, 3), Fraction(4, 9), Fraction(2, 9)]
    place = (2, (2, 1), (0, 2, 1))
    densities = conditional_densities(THREE_STATES, law, 3, range(3), 3, ratio)
    largest, (corner, *_) = largest_ratios(densities, 3)
    assert (largest, corner) == ((inside, *place), Fraction(tail))
    assert inside > corner
    chain = pf.MarkovChain([[0, 1, 0], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    found = pf.privacy_loss(chain, 3, -1 / (2 * math.log(ratio)), HistogramQuery())
    assert found.lower <= log_fraction(inside) <= found.loss
    assert (found.node, found.pair, found.output) == place


@pytest.mark.parametrize("length", [4, 8, 16, 64, 200])
def test_two_regimes_exceed_the_tail_like_the_root_of_the_length(length):
    """Exactly: T/2 while alternating; 0 or 1 plus T − 1 tosses otherwise. e^(−1/σ) = 1 − 1/T²."""
    ratio = 1 - Fraction(1, length**2)
    tosses = [Fraction(math.comb(length - 1, n), 2 ** (length - 1)) for n in range(length)]
    laws = [{length // 2: 1}, dict(enumerate(tosses)), dict(enumerate(tosses, 1))]

    def density(law, w):
        return sum(p * ratio ** abs(w - n) for n, p in law.items())

    middle, high, low = ([density(law, w) for law in laws] for w in (length // 2, length, 0))
    inside = max(middle) / min(middle)
    tail = max(max(high) / min(high), max(low) / min(low))
    assert tail == 1 / ratio
    excess = log_fraction(inside) / log_fraction(tail)
    assert excess == pytest.approx(mean_distance(length), rel=0.02)
    assert inside > tail or length < 8
    scale = -1 / log_fraction(ratio)
    found = pf.privacy_loss(TWO_REGIMES, length, scale, CountQuery({1, 3}))
    assert found.lower <= max(log_fraction(inside), log_fraction(tail)) <= found.loss


def mean_distance(length):
    """E|B − T/2|, B binomial with T − 1 tosses."""
    return (length - 1) * math.comb(length - 2, length // 2 - 1) / 2 ** (length - 1)
