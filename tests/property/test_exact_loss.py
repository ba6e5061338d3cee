"""The exact loss against enumeration with fractions; a histogram is not always worst in tails."""

import json
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from cases import examples
from enumeration import random_chain, random_matrix, stationary_law
from hypothesis import example, given
from hypothesis import strategies as st
from plain_counts import conditional_densities, largest_ratios, log_fraction
from processes import chains
from sequence_programs import sequence_law

import pufferflow as pf
from pufferflow.audit import CountQuery, HistogramQuery
from pufferflow.audit.loss import Densities
from pufferflow.errors import ChainError, ParameterError

THETA = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])


def chain_with_one_law(rng, k):
    return next(one for one in iter(lambda: random_chain(rng, k), None) if one.start != "any")


def query_of(rng, k):
    """A query with the bins and number of coordinates of its plain twin."""
    if rng.random() < 0.5:
        states = {int(x) for x in np.flatnonzero(rng.random(k) < 0.5)} or {0}
        return CountQuery(states), [0 if x in states else None for x in range(k)], 1
    return HistogramQuery(), list(range(k)), k


@given(st.integers(0, 2**32 - 1))
@examples(10, 330)
def test_loss_encloses_enumeration(seed):
    """Any chain, zeros and periods included: scales from 1/60 to 300 records per bit."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 5))
    chain = chain_with_one_law(rng, k)
    length = int(rng.integers(1, {1: 8, 2: 8, 3: 6, 4: 4}[k]))
    query, bins, coordinates = query_of(rng, k)
    window = min(int(rng.integers(1, 4)), length) if isinstance(query, CountQuery) else 1
    ratio = Fraction(int(rng.integers(1, 301)), 301)
    if rng.random() < 0.3:
        ratio = Fraction(1, int(rng.integers(2, 2**30)))
    scale = -1 / (query.lipschitz * log_fraction(ratio))
    family = pf.MarkovChain(*chain.floats())
    found = pf.privacy_loss(family, length, scale, query, window=window)
    law = chain.initial_laws[0]
    densities = conditional_densities(chain.matrix, law, length, bins, coordinates, ratio, window)
    (largest, *_), _ = largest_ratios(densities, length)
    exact = log_fraction(largest)
    # of the scale, which stands for the fraction, and of the logarithm
    rounding = 1e-15 * (1 + exact)
    assert found.lower - rounding <= exact <= found.loss + rounding
    assert found.loss - found.lower <= 1e-9 * (1 + exact)
    assert exact <= pf.leakage_loss(family, length, scale, window=window) * (1 + 1e-9) + rounding
    assert json.loads(json.dumps(found.to_dict()))["window"] == window
    if found.node is None:
        assert exact <= 1e-9
    else:
        x, y = found.pair
        w = found.output if isinstance(found.output, tuple) else (found.output,)
        named = densities[found.node, x][w] / densities[found.node, y][w]
        assert log_fraction(named) == pytest.approx(exact, rel=1e-9, abs=1e-9)


@given(st.integers(0, 2**32 - 1))
@examples(8, 90)
def test_no_initial_law_loses_more_than_any_and_some_mixture_nearly_as_much(seed):
    """Of those tried: a fine grid over mixtures of two states, and general ones."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4))
    matrix = [[float(p) for p in row] for row in random_matrix(rng, k)]
    length = int(rng.integers(1, 6))
    query, _, _ = query_of(rng, k)
    window = int(rng.integers(1, 4)) if isinstance(query, CountQuery) else 1
    scale = float(np.exp(rng.uniform(-1, 3)))

    def loss(start):
        chain = pf.MarkovChain(matrix, start)
        return pf.privacy_loss(chain, length, scale, query, window=window)

    found, laws = loss("any"), [*rng.dirichlet(np.full(k, 0.2), 30)]
    for one, other in combinations(np.eye(k), 2):
        laws += [(one + odds * other) / (1 + odds) for odds in np.exp(np.linspace(-23, 23, 47))]
    losses = list(map(loss, laws))
    assert max(each.lower for each in losses) <= found.loss
    assert max(each.loss for each in losses) >= found.lower * 0.98 - 1e-6
    assert found.loss - found.lower <= 1e-9
    bound = pf.leakage_loss(pf.MarkovChain(matrix, "any"), length, scale, window=window)
    assert found.loss <= bound * (1 + 1e-9)


@given(st.integers(0, 2**32 - 1))
@examples(10, 30)
def test_outputs_that_are_not_whole_lose_no_more(seed):
    """The densities at random real outputs, in the range and beyond, by enumeration in floats."""
    rng = np.random.default_rng(seed)
    k, length = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    chain = chain_with_one_law(rng, k)
    scale = float(np.exp(rng.uniform(-1, 2)))
    found = pf.privacy_loss(pf.MarkovChain(*chain.floats()), length, scale, HistogramQuery())
    matrix, law = (np.array(part, float) for part in (chain.matrix, chain.initial_laws[0]))
    joint = sequence_law(matrix, law, length)
    paths = np.indices(joint.shape).reshape(length, -1)
    counts = np.array([(paths == x).sum(axis=0) for x in range(k)])
    outputs = rng.uniform(-1, length + 1, (400, k))
    kernel = np.exp(-np.abs(outputs[:, :, None] - counts[None]).sum(axis=1) / (2 * scale))
    for node in paths:
        weights = [joint.ravel() * (node == x) for x in range(k)]
        logs = [np.log(kernel @ w / w.sum()) for w in weights if w.sum() > 0]
        assert np.ptp(logs, axis=0).max() <= found.loss + 1e-12


def loss_or_reason(chain, length, scale, query):
    """The loss, or None beyond floats: too small a scale, too different starts, rare states."""
    try:
        return pf.privacy_loss(chain, length, scale, query)
    except (ParameterError, ChainError) as error:
        if "is computed for scales of at least" in str(error) or "range of floats" in str(error):
            return None
        raise


@given(chains(4), st.integers(1, 8), st.floats(-90, 90), st.booleans())
# one state tells nothing: the smallest scale computed is found
@example(pf.MarkovChain([[1.0]], "any"), 1, 0.0, True)
# T/ε is the answer, or within rounding of it; then floats end
@example(THETA, 1, -90.0, True)
@example(THETA, 2, -14.0, True)
@example(THETA, 2, -5.0, True)
@example(THETA, 3, 5.999, False)
@example(pf.MarkovChain(THETA.transition_matrix, "any"), 7, 90.0, True)
@example(pf.MarkovChain(THETA.transition_matrix, "any"), 7, 90.0, False)
@examples(10, 220)
def test_smallest_scale_of_any_epsilon_is_proved(chain, length, exponent, counts):
    """Tiny and huge ε, every start, single records: a proved loss, or the reason for none."""
    epsilon = 10.0 ** (exponent if exponent < -3 or exponent == 90 else exponent % 6 - 3)
    query = CountQuery([chain.states - 1]) if counts else HistogramQuery()
    enough = max(length / epsilon, Densities(chain, length, query).finest) * (1 + 1e-8)
    try:
        found = pf.audit.smallest_scale(chain, length, epsilon, query)
    except ChainError:
        assert loss_or_reason(chain, length, enough, query) is None
        return
    assert found.lower <= found.loss <= epsilon
    assert found == pf.privacy_loss(chain, length, found.scale, query)
    assert found.scale <= enough
    less = loss_or_reason(chain, length, found.scale * (1 - 1e-8), query)
    assert less is None or less.loss > epsilon * (1 - 3e-9) or epsilon < 1e-8 * length


def test_extended_exponents_agree_with_fractions_where_floats_end():
    """T = 400, scale 0.1: densities down to e^(−4000); this chain is worst in its tails."""
    length, ratio = 400, Fraction(1, 22026)
    chain = pf.MarkovChain([[0.9375, 0.0625], [0.25, 0.75]], [0.5, 0.5])
    found = pf.privacy_loss(chain, length, -1 / log_fraction(ratio), CountQuery({1}))
    # a recursion with fractions, each step to 400 bits
    matrix = np.array([[Fraction(p) for p in row] for row in chain.transition_matrix.tolist()])
    half, one, best = np.array([Fraction(1, 2)] * 2), np.array([Fraction(1)] * 2), 0.0
    for reward in (1 / ratio, ratio):
        weight = np.array([Fraction(1), reward])
        after, before, mass = [one], [half], [half]
        for _ in range(length - 1):
            after.append(short(matrix @ (weight * after[-1])))
            before.append(short((before[-1] * weight) @ matrix))
            mass.append(short(mass[-1] @ matrix))
        for told, plain, rest in zip(before, mass, after[::-1], strict=True):
            x, y = told * weight * rest / plain
            best = max(best, abs(log_fraction(x / y)))
    assert math.isclose(found.loss, best, rel_tol=1e-9)
    assert best - 1e-9 <= found.lower <= found.loss


@np.vectorize
def short(value):
    """The fraction to 400 significant bits."""
    shift = 400 - value.numerator.bit_length() + value.denominator.bit_length()
    return Fraction(int(value * Fraction(2) ** shift)) / Fraction(2) ** shift


# -- counterexamples of docs/histograms.md ---------------------------------------------------------

# alternates for ever (states 0 and 1) or tosses a coin for ever (2 and 3), with equal chances
FAIR = [0, 0, 0.5, 0.5]
TWO_REGIMES = pf.MarkovChain([[0, 1, 0, 0], [1, 0, 0, 0], FAIR, FAIR], [0.25] * 4)
THREE_STATES = [[0, 1, 0], [0.5, 0, 0.5], [0.5, 0.5, 0]]
LARGEST = [("1/4", "1088/83", "49/4"), ("1/2", "80/23", "13/4"), ("4/5", "1025/692", "91/64")]


@pytest.mark.parametrize(("ratio", "inside", "tail"), LARGEST)
def test_three_states_three_records(ratio, inside, tail):
    """Stationary, e^(1/2σ) = 4, 2, 5/4: the histogram (0, 2, 1) tells X_2 = 2 from X_2 = 1 better
    than any tail.
    """
    ratio, inside = Fraction(ratio), Fraction(inside)
    matrix = [list(map(Fraction, row)) for row in THREE_STATES]
    law = stationary_law(matrix)
    assert law == [Fraction(1, 3), Fraction(4, 9), Fraction(2, 9)]
    place = (2, (2, 1), (0, 2, 1))
    densities = conditional_densities(matrix, law, 3, range(3), 3, ratio)
    largest, (corner, *_) = largest_ratios(densities, 3)
    assert (largest, corner) == ((inside, *place), Fraction(tail))
    assert inside > corner
    chain = pf.MarkovChain(THREE_STATES)
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
