"""The distribution of what is released, against the exact one; the noise of running counts.

The noise of a release has no seed. Its tests raise a false alarm less than once in 10^7 runs; what
has a seed fails on a change only.
"""

import copy
import math
import pickle
from collections import Counter
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate, pairwise, permutations, product
from threading import Thread

import numpy as np
import pytest
import samplers
from cases import counts, examples
from flint import arb_series, ctx
from forks import ended
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.accounting.account import Charge, Level, whole
from pufferflow.accounting.approximate import event_rho
from pufferflow.dp.classical import laplace_probability
from pufferflow.errors import BudgetError, ParameterError
from pufferflow.publish import running_count
from pufferflow.publish.noise import Noise, calibrate, most_frequent, noise_scale, shortfall
from pufferflow.publish.running_count import PARTS, RunningCount, SquareRootNoise, tree
from reproduction.beyond import peers

CHAIN = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
LENGTH, EPSILON, REACH = 3, 2.0, 60
SCALE = noise_scale(calibrate(pf.ChainFamily([CHAIN]), Level(1), EPSILON).cost, 2)
P, Q = CHAIN.transition_matrix, CHAIN.stationary_distribution
PATHS = {
    path: Q[path[0]] * np.prod([P[x, y] for x, y in pairwise(path)])
    for path in product((0, 1), repeat=LENGTH)
}


def outputs(paths):
    """Probability of each pair of noisy counts within reach, given the chances of sequences."""
    noise = laplace_probability(np.arange(-REACH, REACH + 1), SCALE)
    total = np.zeros((2 * REACH + 1, 2 * REACH + 1))
    for path, chance in paths.items():
        total += chance * np.outer(np.roll(noise, LENGTH - sum(path)), np.roll(noise, sum(path)))
    return total


def p_value(drawn, expected):
    """Chi-square of outcomes, by their places in ``expected``; those elsewhere are one cell."""
    seen = Counter(drawn)
    at = [seen[place] for place in np.ndindex(expected.shape)]
    chances = [*expected.ravel(), max(1 - expected.sum(), 0)]
    return samplers.p_value([*at, seen.total() - sum(at)], chances)


@pytest.mark.parametrize("number", counts(2_000, 20_000))
def test_releases_follow_the_exact_distribution(number):
    rng, exact = np.random.default_rng(11), outputs(PATHS)

    def drawn(size, factor):
        for j in rng.choice(len(PATHS), size=size, p=list(PATHS.values())):
            n = sum(list(PATHS)[j])
            zeros, ones = Noise(factor * SCALE).add(np.array([LENGTH - n, n])).tolist()
            yield zeros + REACH, ones + REACH

    assert p_value(list(drawn(number, 1)), exact) > 1e-9
    assert p_value(list(drawn(max(number, 4_000), 0.8)), exact) < 1e-12


def test_the_loss_of_the_discrete_noise_is_within_epsilon():
    """Exactly, over all outputs, given two values of any reading."""
    worst, inner = 0.0, slice(LENGTH, -LENGTH)
    for node in range(LENGTH):
        one, other = (
            outputs({p: chance / Q[v] for p, chance in PATHS.items() if p[node] == v})[inner, inner]
            for v in (0, 1)
        )
        worst = max(worst, np.abs(np.log(one / other)).max())
    assert 0.6 * EPSILON < worst <= EPSILON


@pytest.mark.parametrize("scale", [0.3, 2.0, 17.0])
def test_seeded_noise_has_the_same_distribution(scale):
    noise = Noise(scale).add(np.full(20_000, 9), np.random.default_rng(3))
    chance = laplace_probability(np.arange(-9, 300), scale)
    assert p_value([(z,) for z in noise.tolist()], chance) > 1e-6
    many = np.repeat([2**62, -(2**62)], 1000)
    assert np.abs(Noise(2.0**60).add(many, np.random.default_rng(3))).max() == 2**63 - 1


@examples(15, 60)
@given(st.floats(0.05, 40), st.floats(0.01, 0.999), st.integers(1, 5))
def test_quantiles_are_the_smallest_that_suffice(scale, confidence, bins):
    z, noise = np.arange(-3000, 3001), Noise(scale)
    chance = laplace_probability(z, scale)
    single = np.array([chance[np.abs(z) <= h].sum() for h in range(800)])
    h = noise.quantile(confidence, bins)
    assert single[h] ** bins >= confidence * (1 - 1e-9)
    assert h == 0 or single[h - 1] ** bins < confidence * (1 + 1e-9)


@pytest.mark.parametrize("scale", [0.4, 3.0, 20.0])
def test_discrete_gaussian_noise_and_its_quantiles(scale):
    z = np.arange(-300, 301)
    chance = np.exp(-((z / scale) ** 2) / 2)
    chance /= chance.sum()
    noise, many = Noise(scale, gaussian=True), np.full(4_000, 300)
    drawn, seeded = (noise.add(many, rng).tolist() for rng in (None, np.random.default_rng(3)))
    assert p_value([(z,) for z in drawn], chance) > 1e-9
    assert scale < 3 or p_value([(z,) for z in seeded], chance) > 1e-6  # it is rounded
    single = np.array([chance[np.abs(z) <= h].sum() for h in range(300)])
    for confidence, bins in product((0.5, 0.95, 0.999), (1, 7, 300)):
        h = noise.quantile(confidence, bins)
        assert single[h] ** bins >= confidence
        assert h < 2 or single[h - 2] ** bins < confidence


@cache
def lists(counts, top, decay):
    """Probability of each list of ``top`` states, by all orders in which they may be flipped.

    ``decay`` is e^(−1/scale), which makes all of it exact if it is a fraction.
    """
    left = [state for state, count in enumerate(counts) if count is not None]
    if not top:
        return {(): 1}
    total, most = dict.fromkeys(left, 0), max(counts[state] for state in left)
    for order in permutations(left):
        chance = decay**0 / math.factorial(len(left))
        for state in order:
            total[state] += chance * decay ** (most - counts[state])
            chance *= 1 - decay ** (most - counts[state])
    found = {}
    for first in left:
        rest = (None if state == first else count for state, count in enumerate(counts))
        after = lists((*rest,), top - 1, decay)
        found |= {(first, *others): total[first] * chance for others, chance in after.items()}
    return found


def moved(counts):
    """The counts after one reading has another value."""
    for one, other in permutations(range(len(counts)), 2):
        if counts[one]:
            yield tuple(n - (j == one) + (j == other) for j, n in enumerate(counts))


@pytest.mark.parametrize(("states", "top"), [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3)])
def test_a_list_changes_by_at_most_its_length_and_one(states, top):
    """Exactly, for all small counts and their neighbours; and no smaller constant suffices."""
    decay, worst = Fraction(1, 2), 0
    small = [n for n in product(range(4), repeat=states) if 0 < sum(n) <= 4]
    for some in [*small, (30, *[0] * (states - 1)), (30, 31, *[0] * (states - 2))]:
        exact = lists(some, top, decay)
        assert sum(exact.values()) == 1
        for nearby in moved(some):
            other = lists(nearby, top, decay)
            worst = max(worst, *(max(p / other[of], other[of] / p) for of, p in exact.items()))
    assert 0.999 * 2 ** (top + 1) < worst <= 2 ** (top + 1)


@pytest.mark.parametrize("top", [1, 2])
def test_the_loss_of_names_is_within_epsilon(top):
    """Exactly, over all lists, given two values of any reading of a chain of three states."""
    chain = pf.MarkovChain([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]])
    cost = calibrate(pf.ChainFamily([chain]), Level(1), EPSILON).cost
    decay, start = math.exp(-1 / noise_scale(cost, top + 1)), chain.stationary_distribution
    given = {(node, value): Counter() for node in range(4) for value in range(3)}
    for path in product(range(3), repeat=4):
        chance = start[path[0]]
        chance *= math.prod(chain.transition_matrix[x, y] for x, y in pairwise(path))
        for names, p in lists((*map(path.count, range(3)),), top, decay).items():
            for secret in enumerate(path):
                given[secret][names] += chance * p / start[secret[1]]
    losses = (
        abs(math.log(given[node, x][names] / given[node, y][names]))
        for node, x, y in product(range(4), range(3), range(3))
        for names in given[0, 0]
    )
    assert 0.4 * EPSILON < max(losses) <= EPSILON


def ordered(counts, top, scale):
    """Probabilities of lists by sorting three counts with Laplace noise; the first of equals."""
    z = np.arange(-REACH, REACH + 1)
    joint = np.array(np.meshgrid(*[z] * 3, indexing="ij")).reshape(3, -1)
    chance = laplace_probability(joint, scale).prod(axis=0)
    names = np.argsort(-joint - np.array(counts)[:, None], axis=0, kind="stable")
    exact = np.zeros([len(counts)] * top)
    np.add.at(exact, tuple(names[:top]), chance)
    return np.ndenumerate(exact)


WAYS = [("noisy max", [9, 8, 0], 1, 5.0), ("sorted", [3, 4, 2], 2, 2.0)]
WAYS += [("one by one", [3, 5, 4, 0], 3, 2.0)]


@pytest.mark.parametrize(("way", "counts", "top", "scale"), WAYS)
def test_names_follow_the_exact_distribution(way, counts, top, scale):
    by_flips = lists(tuple(counts), top, math.exp(-1 / scale)).items()
    exact, rng = np.zeros([len(counts)] * top), np.random.default_rng(5)
    for names, chance in ordered(counts, top, scale) if way == "sorted" else by_flips:
        exact[names] += chance
    draw = peers.one_by_one if way == "one by one" else most_frequent
    many = np.tile(counts, (4000, 1))
    drawn = [draw(many, top, factor * scale, rng) for factor in (1, 0.6)]
    if way != "one by one":
        drawn.insert(0, most_frequent(many, top, scale))
    *right, wrong = (p_value(map(tuple, names.tolist()), exact) for names in drawn)
    assert min(right) > 1e-9
    assert wrong < 1e-9


@examples(15, 60)
@given(st.floats(0.05, 40), st.integers(2, 7))
def test_a_named_state_is_seldom_far_below_the_largest(scale, states):
    """Exactly for the counts at which that is most likely: all but one as far below."""

    def missed(below):
        return 1 - lists((below, *[0] * (states - 1)), 1, math.exp(-1 / scale))[(0,)]

    below = shortfall(scale, 1, states, 1)
    assert missed(below + 1) <= 0.05
    assert missed(max(below - 1 - 0.2 * scale, 0)) > 0.05 or below == 0


def test_a_state_of_a_list_is_seldom_far_below_a_later_one():
    counts = np.random.default_rng(8).integers(0, 60, (4000, 6))
    named = most_frequent(counts, 3, 4.0, np.random.default_rng(6))
    found, rest = np.take_along_axis(counts, named, axis=1), counts.copy()
    np.put_along_axis(rest, named, 0, axis=1)
    later = np.maximum.accumulate(np.c_[found, rest.max(axis=1)][:, ::-1], axis=1)[:, ::-1]
    far = (later[:, 1:] - found).max(axis=1)
    assert (far <= shortfall(4.0, 3, 6, 1)).mean() > 0.95
    assert (far <= shortfall(4.0, 3, 6, 1) / 4).mean() < 0.95


@examples(10, 25)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.data())
def test_the_noise_is_that_of_a_sum_of_noisy_node_counts(length, seed, data):
    """With the counts themselves for noise the sum is twice the count: weights and nodes fit."""
    stream = np.random.default_rng(seed).integers(0, 2, length).tolist()
    shapes = [tree(length)[1], (2,) * max(1, (length - 1).bit_length()), (3, 4, -(-length // 12))]
    counter = with_nodes(stream, data.draw(st.sampled_from(shapes)))
    for t in range(1, length + 1):
        counter.level = 0
        assert counter.add(stream[t - 1]) == 2 * sum(stream[:t])


def with_nodes(stream, arities):
    """A counter on that tree whose noise is the counts of its nodes, drawn from the leaves up."""
    counter, begun = RunningCount(len(stream), 1.0), [0] * len(arities)
    counter.arities, counter.level = arities, 0

    def drawn(arity):
        size, first = math.prod(arities[: counter.level]), begun[counter.level]
        begun[counter.level] += arity
        counter.level += 1
        nodes = (sum(stream[i * size : (i + 1) * size]) for i in range(first, first + arity))
        return [*accumulate(nodes, initial=0)]

    counter._drawn, counter._sums = drawn, [*map(drawn, arities)]
    return counter


@given(st.integers(1, 2**40))
def test_trees_hold_every_reading_once_a_level(length):
    counter = RunningCount(length, 0.5)
    assert math.prod(counter.arities) >= length
    assert Fraction(0.499) < counter.cost <= Fraction(0.5)
    assert counter.cost == len(counter.arities) / Fraction(counter.scale)


@examples(30, 300)
@given(st.integers(1, 60), st.floats(1e-9, 100), st.integers(0, 2**32 - 1))
def test_gaussian_noise_is_a_function_of_what_zcdp_covers(length, rho, seed):
    """R x + z stays the same where one reading changes and z with it: so does all that is said."""
    rng = np.random.default_rng(seed)
    root = SquareRootNoise(length, rho)
    entries, unit = root._entries, 2**root._bits
    assert [x / unit for x in entries] == pytest.approx(
        [math.comb(2 * j, j) / 4**j for j in range(length)], abs=1 / unit + 1e-12
    )
    assert root.rho == Fraction(sum(x * x for x in entries)) / 2 / Fraction(root.scale * unit) ** 2
    assert 0.998 * rho < root.rho <= Fraction(rho)
    stream, place = rng.integers(0, 2, length), int(rng.integers(length))
    other = stream.copy()
    other[place] ^= 1
    noise = [int(z) for z in root.scale * unit * rng.standard_normal(length)]
    moved = [int(stream[place] - other[place]) * x for x in entries[: length - place]]
    shifted = noise[:place] + [z + x for z, x in zip(noise[place:], moved, strict=True)]
    said = []
    for values, drawn in ((stream, noise), (other, shifted)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Noise, "add", lambda *_, drawn=drawn: np.array(drawn))
            parts = root.drawn(PARTS)
        said.append([PARTS * int(n) + z for n, z in zip(np.cumsum(values), parts, strict=True)])
    assert said[0] == said[1]
    exact = []  # w = R⁻¹ z, then its prefix sums, in fractions
    for t in range(length):
        known = sum(entries[t - j] * w for j, w in enumerate(exact))
        exact.append((noise[t] - known) / Fraction(entries[0]))
    sums = accumulate(exact)
    counted = accumulate(map(int, stream))
    assert said[0] == [
        PARTS * n + math.floor(PARTS * z + Fraction(1, 3))
        for n, z in zip(counted, sums, strict=True)
    ]


def test_noise_of_every_count_is_drawn_though_another_thread_shortens_series(monkeypatch):
    made = []

    def shortened(*values):
        made.append(values)
        ctx.cap = 10 if len(made) <= 2 else 50
        return arb_series(*values)

    monkeypatch.setattr(running_count, "arb_series", shortened)
    monkeypatch.setattr(ctx, "cap", ctx.cap)
    assert 0 not in SquareRootNoise(50, 0.01).drawn(2**20)
    assert len(made) == 4


@pytest.mark.parametrize("rho", [None, 1])
def test_no_count_has_the_noise_of_another_one(rho):
    counter = RunningCount(9, 0.5, rho)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(ParameterError, match="has the same noise"):
            copied(counter)
    assert ended(partial(counter.add, 1)) == [1]


def test_threads_count_one_reading_after_the_other_and_none_without_noise(monkeypatch):
    monkeypatch.setattr(Noise, "add", lambda _, counts: counts)  # exact counts
    counter, counted, calls = RunningCount(9, 0.5), [], []
    path, other = counter._path, Thread(target=lambda: counted.append(counter.add(1)))

    def slow(readings):
        calls.append(readings)
        if len(calls) == 1:
            raise MemoryError
        if len(calls) == 2:
            other.start()
            other.join(0.2)
        return path(readings)

    counter._path = slow
    with pytest.raises(MemoryError):
        counter.add(1)
    counted.append(counter.add(1))
    other.join()
    assert (sorted(counted), calls, counter._readings) == ([1, 2], [1, 1, 2], 2)


def test_the_running_count_takes_the_smaller_error():
    plain, much, little = (RunningCount(30, 0.5, rho) for rho in (None, 1, 0.001))
    assert (plain.gaussian, much.gaussian, little.gaussian) == (False, True, False)
    assert much.errors["gaussian"] < plain.errors["laplace"] < little.errors["gaussian"]
    assert (much.cost, much.rho <= 1, little.cost, little.rho) == (0, True, plain.cost, 0)
    for length, published in ((1000, 1.27), (10_000, 1.07), (100_000, 0.94)):  # docs/approximate.md
        gaussian = SquareRootNoise(length, event_rho(1.0, 1e-6, 0.001)).error
        laplace = RunningCount(length, 0.001).errors["laplace"]
        assert gaussian / laplace == pytest.approx(published, abs=6e-3)
    assert math.isinf(RunningCount(2**22, 0.5, 1e9).errors["gaussian"])
    assert math.isinf(RunningCount(2, 0.5, 1e-18).errors["gaussian"])


@pytest.mark.parametrize("rho", [None, 1])
@pytest.mark.parametrize("times", counts(300, 1000))
def test_errors_are_as_stated_and_half_widths_hold(times, rho):
    length, errors = 40, []
    for _ in range(times):
        counter = RunningCount(length, 0.5, rho)
        errors.append([counter.add(1) - t for t in range(1, length + 1)])
    errors = np.array(errors)
    if rho is None:
        weights = np.array([counter._squares(t) for t in range(1, length + 1)])
        stated = np.sqrt(weights / 2) / math.sinh(0.5 / counter.scale)  # 2p/(1 − p)², p = e^(−1/s)
    else:
        stated = counter.scale * np.sqrt(counter._root.squares)
    named = counter.errors["laplace" if rho is None else "gaussian"]
    assert np.sqrt((stated**2).mean()) == pytest.approx(named, rel=0.2)  # of the tree: about
    found = np.sqrt((errors**2).mean(axis=0))
    # a fourth moment of at most 6 times the square
    assert np.abs(found / stated - 1).max() < 6 * math.sqrt(5 / times)
    assert np.abs(errors.mean(axis=0) / stated).max() < 6 / math.sqrt(times)
    widths = np.array([counter.half_width(t) for t in range(1, length + 1)])
    assert (np.abs(errors) <= widths).mean(axis=0).min() > 0.95
    assert (widths < 5 * stated).all()


MINUTES = {"value": "door", "step": "1min", "first": "2024-01-01", "timezone": "UTC"}
HOUR = pf.mixing("1h", 0.4)


def test_a_stream_is_one_row_for_its_whole_horizon(tmp_path):
    ledger = tmp_path / "ledger"
    ask = partial(RunningCount.in_ledger, ledger, epsilon=1.0)
    halves = [ask(10_080, HOUR, share="1/2", **MINUTES) for _ in range(2)]
    book, cost = pf.Ledger(ledger).book, halves[0].cost
    [promise] = book.promises.values()
    span = 1704067200, 1704067200 + 7 * 86_400 - 1
    assert [*book.charges] == [Charge(cost, 10_080 * cost, *span)] * 2
    assert promise.cost * Fraction(999, 1000) < 2 * cost <= promise.cost
    assert 0.999 < halves[1].paid.spent <= 1
    with pytest.raises(BudgetError):
        ask(60, HOUR, **(MINUTES | {"first": "2024-01-07T23:59"}))
    ask(60, HOUR, **(MINUTES | {"first": "2024-01-08"}))


def test_a_stream_with_a_delta(tmp_path):
    """Where ε is large and δ not small Gaussian noise is better for short streams, too."""
    counter = RunningCount.in_ledger(tmp_path / "l", 900, HOUR, delta=0.3, share="1/2", **MINUTES)
    [charge] = pf.Ledger(tmp_path / "l").book.charges
    assert counter.gaussian
    assert (charge.cost, charge.rho, charge.whole_rho) == (0, counter.rho, 900**2 * counter.rho)
    assert 0.499 < counter.paid.spent <= 0.5


def test_streams_of_participants_and_of_states(tmp_path):
    RunningCount.in_ledger(tmp_path / "people", 100, None, 1.0, protect="participant", **MINUTES)
    assert 0.99 < whole(pf.Ledger(tmp_path / "people").book.charges)[0] <= 1
    RunningCount.in_ledger(tmp_path / "chain", 100, CHAIN, 1.0, states=["off", "on"])
    assert pf.Ledger(tmp_path / "chain").book.states == ["off", "on"]
