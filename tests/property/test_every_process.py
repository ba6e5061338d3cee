"""Bounds of every process: no less than is revealed, equal to plain recursions; rules of scales."""

from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from cases import SLACK, counts, seeds
from processes import KINDS, a_start, drawn, matrices, overlap, protection, reversed_steps
from sequence_programs import largest_loss, largest_loss_of_counts, log_ratios, plain_program
from written_calls import BUILDERS, built

import pufferflow as pf
from pufferflow.bounds import of_families
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import compute_scale

COSTS = [0.01, 0.1, 0.5, 1.5, 4.0]
FEW = {"MAX_STATES": 0, "MAX_HISTORIES": 0, "MAX_ROBUST_STATES": 0}
LOSSES = pf.leakage_loss, patch.multiple(of_families, **FEW)(pf.leakage_loss)
"""With couplings, and by the bounds for many states."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cases", counts(14, 500))
def test_never_below_the_program(kind, cases):
    """All functions of all sequences: no Markov property, coupling or count unless one is known."""
    found = 0
    for seed in range(cases):
        if (one := drawn(kind, seed, {2: 6, 3: 4})) is None:
            continue
        rng, length, process = one
        cost = min(float(rng.choice(COSTS)), 9 / length)  # beyond 10/T the solver gives up
        what = protection(rng, length)
        told = largest_loss if what["side_information"] == "none" else largest_loss_of_counts
        program = max(told(joint, cost, what["window"]) for joint in process.joints())
        bounds = [loss(process.family, length, 1 / cost, **what) for loss in LOSSES]
        assert min(bounds) >= program * (1 - 1e-6), (seed, what)  # the tolerance of the solver
        found += what["window"] < length and bounds[0] < length * cost * (1 - 1e-6)
    assert found  # below the loss of all records together


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_a_period_of_which_one_step_mixes_is_bounded_from_there(seed):
    """Blocks of several phases say no less than a program for a short segment after that step."""
    rng = np.random.default_rng(seed)
    slow = 0.96 * np.eye(3) + np.diag([0.04, 0.02], 1) + np.diag([0.02, 0.04], -1)
    parts, cost = int(rng.integers(4, 6)), float(rng.choice([0.1, 0.5]))
    steps = np.array([np.full((3, 3), 1 / 3), *[slow * rng.dirichlet(np.ones(3), 3)] * (parts - 1)])
    steps /= steps.sum(axis=2, keepdims=True)
    joint = rng.dirichlet([1, 0.1, 1])
    for matrix in steps[1:]:  # a segment that begins after the step that mixes
        joint = joint[..., None] * matrix
    chain = pf.PeriodicChain(steps, initial_distribution="any")
    assert largest_loss(joint, cost) <= pf.leakage_loss(chain, 10**4, 1 / cost) < 1.3 * parts * cost


@pytest.mark.parametrize("name", ["gk16", "mqm-approx", "mqm-exact"])
@pytest.mark.parametrize("kind", ["stationary", "given", "any", "chains", "binary_interval"])
@pytest.mark.parametrize("cases", counts(5, 200))
def test_no_other_mechanism_has_too_little_noise(name, kind, cases):
    for seed in range(cases):
        if (one := drawn(kind, seed, {2: 6, 3: 4})) is None:
            continue
        rng, length, process = one
        epsilon, window = (
            min(float(10 ** rng.uniform(-1, 0.8)), 9 / length),
            int(rng.integers(1, 3)),
        )
        scale = compute_scale(name, process.family, length, epsilon, window=window).scale
        for joint in process.joints() if scale else []:
            assert largest_loss(joint, 1 / scale, window) <= epsilon * (1 + 1e-6), seed


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_programs_equal_plainer_ones(seed):
    """Over functions of all records and all values of all sets of known records, not counts."""
    rng, _, process = drawn("given", seed, {2: 4, 3: 3})
    (joint,) = process.joints()
    cost, window = float(rng.choice([0.01, 0.5, 1.5])), int(rng.integers(1, 3))
    assert largest_loss(joint, cost) == pytest.approx(plain_program(joint, cost), rel=1e-6)
    every = largest_loss(joint, cost, window, "any")
    assert largest_loss_of_counts(joint, cost, window) == pytest.approx(every, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(4, 500))
def test_no_count_tells_more(kind, seed):
    """More records and values than linear programs allow; bounds of longer segments hold too."""
    if (one := drawn(kind, seed, {k: 40 // k for k in (2, 3, 4, 5, 7)})) is None:
        return
    rng, length, process = one
    cost = min(float(rng.choice([*COSTS, 30.0])), 300 / length)
    what = protection(rng, length)
    start, steps = process.chains[rng.integers(len(process.chains))]
    window = int(rng.integers(length - what["window"] + 1)), what["window"]
    known = {}
    if what["side_information"] == "any":
        known = seen_of(rng, steps, start, process.seen, window)
    told = worst_count(rng, steps, start, cost, process.seen, window, known)
    for records in (length, int(rng.choice([500, 10**6]))):
        bound = LOSSES[rng.choice([0, 0, 1])](process.family, records, 1 / cost, **what)
        assert bound >= told * (1 - 1e-9) - 1e-12


def seen_of(rng, steps, start, labels, window):
    """Some records outside of the window, as they came out once."""
    states = [rng.choice(len(start), p=start / start.sum())]
    for step in steps:
        states.append(rng.choice(len(start), p=step[states[-1]] / step[states[-1]].sum()))
    inside = range(window[0], sum(window))
    return {t: labels[x] for t, x in enumerate(states) if t not in inside and rng.random() < 0.25}


def worst_count(rng, steps, law, cost, labels, window, known):
    """Largest loss of a count that an ascent finds: one record and label after the other counts or
    not, whatever tells more. Known are some records' labels.
    """
    first, width = window
    length, kinds = len(steps) + 1, labels.max() + 1
    shows = np.eye(kinds)[:, labels]
    seen = np.array([shows[known[t]] if t in known else np.ones(len(law)) for t in range(length)])

    def told(factors):
        """E[e^(-count)] times the probability of each sequence of labels in the window."""
        before, after = law, np.ones(len(law))
        for t in range(first):
            before = (before * factors[t]) @ steps[t]
        for t in range(length - 1, first + width - 1, -1):
            after = steps[t - 1] @ (factors[t] * after)
        paths = before * factors[first] * shows
        for t in range(first + 1, first + width):
            paths = ((paths @ steps[t - 1])[:, None] * factors[t] * shows).reshape(-1, len(law))
        return paths @ after

    plain, counted = told(seen), rng.random((length, kinds)) < 0.5
    possible = plain > 1e-250

    def loss():
        factors = seen * np.where(counted, np.exp(-cost), 1.0)[:, labels]
        return np.ptp(np.log(told(factors)[possible] / plain[possible])) if possible.any() else 0.0

    best, before = loss(), -1.0
    while best > before * 1.001 + 1e-12:
        before = best
        for t in sorted(set(range(length)) - set(known), key=lambda t: abs(t - first)):
            for kind in range(kinds):
                counted[t, kind] ^= True
                if (now := loss()) > best:
                    best = now
                else:
                    counted[t, kind] ^= True
    return best


# -- plain recursions ------------------------------------------------------------------------------


def plain_steps(sides):
    """Φ of docs/leakage.md for (rows, costs): a linear program for each pair of rows."""
    found, at, programs = [np.zeros_like(costs) for _, costs in sides], [], []
    for table, (rows, costs) in zip(found, sides, strict=True):
        one, other = np.nonzero(~np.eye(len(rows), dtype=bool))
        at += [(table, pair) for pair in zip(one, other, strict=True)]
        limits = one, other, np.exp(costs[one, other])
        programs += [(rows[x], rows[y], limits) for x, y in zip(one, other, strict=True)]
    for (table, pair), log in zip(at, log_ratios(programs), strict=True):
        table[pair] = log
    return found


def plain_loss(start, steps, cost):
    """Both sides of each node, one step after the other."""
    apart = cost * (1 - np.eye(len(start)))
    told = [[np.zeros_like(apart)] * 2]
    for sides in zip(steps[::-1], reversed_steps(start, steps), strict=True):
        both = zip(sides, told[-1], strict=True)
        told.append(plain_steps([(rows, apart + one) for rows, one in both]))
    ahead, past = zip(*told, strict=True)
    worst, now = cost, start
    for t, (a, b) in enumerate(zip(ahead[::-1], past, strict=True)):
        now = now @ steps[t - 1] if t else now
        worst = max(worst, cost + (a + b)[np.ix_(now > 0, now > 0)].max(initial=0))
    return worst


@pytest.mark.parametrize("kind", ["stationary", "given", "periodic"])
@pytest.mark.parametrize(("k", "length"), [(2, 60), (3, 12), (6, 5), (12, 3)])
@pytest.mark.parametrize("seed", seeds(3, 23))
def test_known_chains_equal_the_plain_recursion(kind, k, length, seed):
    rng = np.random.default_rng([seed, k])
    cost = float(rng.choice([0.01, 0.3, 1.0]))
    found = matrices(rng, k, 2) * 0.97 + 0.03 / k
    if kind == "periodic":
        process = pf.PeriodicChain(found)
        tours = [[found[(phase + t) % 2] for t in range(length - 1)] for phase in (0, 1)]
        both = zip(process.stationary_distributions, tours, strict=True)
        plain = max(plain_loss(start, steps, cost) for start, steps in both)
    else:
        process = pf.MarkovChain(found[0], a_start(rng, k) if kind == "given" else kind)
        plain = plain_loss(process.initial_distribution, [found[0]] * (length - 1), cost)
    assert pf.leakage_loss(process, length, 1 / cost) == pytest.approx(plain, rel=1e-5)


# -- what scales obey ------------------------------------------------------------------------------

LONG = ("fifty_one", "twenty", "intervals_of_four", "line_of_twelve", "second_order_of_three")
LONG += ("intervals_of_three", "total_variation_of_two")
LARGER = ("periodic_day", "seventy", "intervals_of_seven", "intervals_of_fourteen")
"""Of more states than are certified, or certified in minutes."""
NAMES = [name for name in BUILDERS if not name.startswith(LARGER)]
EPSILONS = [0.3, 2.0]
FEW = {(name, EPSILONS[i % 2]) for i, name in enumerate(NAMES) if not name.startswith(LONG)}
"""One ε each in every run."""
HAVE_CHAINS = (pf.MarkovChain, pf.ChainFamily, pf.BinaryInterval)


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        pytest.param(*case, marks=[] if case in FEW else pytest.mark.long)
        for case in product(NAMES, EPSILONS)
    ],
)
def test_scales_of_all_families(name, epsilon):
    obeys(built(name), 12, epsilon)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", seeds(2, 100))
def test_scales_of_random_processes(kind, seed):
    if (one := drawn(kind, seed, {2: 30, 3: 20, 4: 9})) is not None:
        rng, length, process = one
        epsilon = float(rng.choice([0.01, 0.3, 2.0, 6.0]))
        obeys(process.family, length, epsilon, may_lack_a_proof=True)


def obeys(family, length, epsilon, may_lack_a_proof=False):
    """More is never cheaper; the loss is ε; from lower bound to MQMExact; with a certificate."""

    def scale(length, **asked):
        return pf.leakage(family, length, epsilon, **asked).scale

    found = pf.leakage(family, length, epsilon)
    one = found.scale
    assert (1 - 1e-9) / epsilon <= one <= length / epsilon * (1 + 1e-9)
    if found.quilt is None:
        assert pf.leakage_loss(family, length, one) <= epsilon * (1 + 1e-5)
    all_records = pf.leakage_loss(family, length, one, window=length)
    assert all_records == pytest.approx(length / one, rel=1e-12)
    for more in (scale(2 * length), scale(length, window=2), scale(length, side_information="any")):
        assert more >= one * (1 - SLACK)
    if isinstance(family, HAVE_CHAINS):
        assert pf.lower_bound(family, length, epsilon).scale <= one
        assert one <= pf.mqm_exact(family, length, epsilon).scale * (1 + 1e-9)
    group = pf.group_dp(family, length, epsilon).certified(family).certificate
    assert pf.verify_certificate(group).scale == group["scale"]
    try:
        document = found.certified(family).certificate
    except ParameterError as error:
        if may_lack_a_proof and "near this scale" in str(error):
            return
        raise
    assert pf.verify_certificate(document, most_work=10**10).scale == document["scale"]
    assert float(document["scale"]) >= one * (1 - SLACK)


def nested(rng, k):
    """Families of which the second holds the first, and how many times the loss it may have."""
    P, Q = 0.9 * matrices(rng, k, 2) + 0.1 * rng.dirichlet(np.ones(k), (2, k))
    starts = ("stationary", a_start(rng, k), "any")
    chain, given, free = (pf.MarkovChain(P, start) for start in starts)
    R, low, high = chain.time_reversal, 0.9 * P, np.minimum(1.05 * P + 0.01, 1)
    exact, wide, back = (pf.IntervalFamily(*of) for of in ((P, P), (low, high), (R, R)))
    clock, steps = pf.PeriodicChain([P, Q], repeat=3), int(rng.integers(1, 4))
    clock_any = pf.PeriodicChain([P, Q], repeat=3, initial_distribution="any")
    a, b, c, d = np.sort(rng.uniform(0.1, 0.9, 4))
    binary, between = pf.MarkovChain([[b, 1 - b], [1 - c, c]], "any"), pf.BinaryInterval(a, d)
    box = pf.IntervalFamily([[a, 1 - d], [1 - d, a]], [[d, 1 - a], [1 - a, d]])
    transient = np.vstack([np.pad(P, ((0, 0), (0, 1))), rng.dirichlet(np.ones(k + 1))])
    slow, past = (0.1 * rows + 0.9 * np.eye(k) for rows in (P, R))
    more = [np.pad(np.vstack([rows, P[:1]]), ((0, 0), (0, 1))) for rows in (slow, past)]
    before = pf.IntervalFamily(more[1], more[1])
    never = pf.IntervalFamily(more[0], more[0], backward=before)
    again = pf.MarkovChain(P, chain.initial_distribution)
    balls = (pf.TotalVariationFamily(P, radius) for radius in (0.0, 0.01, 0.03))
    exact_ball, small_ball, large_ball = balls
    least = overlap(chain.initial_distribution, [P] * 9, steps)
    mixing, slower = pf.MixingFamily(steps, 0.5), pf.MixingFamily(steps + 1, 0.4)
    return {
        "any start": (given, free, np.inf),
        "any start of a stationary one": (chain, free, np.inf),
        "a given start that is stationary": (chain, again, 1 + SLACK),
        "a state that no record has": (chain, pf.MarkovChain(transient), 1 + SLACK),
        "one that is never entered": (pf.MarkovChain(slow), never, np.inf),
        "two chains": (chain, pf.ChainFamily([pf.MarkovChain(Q), chain]), np.inf),
        "equal matrices": (chain, pf.PeriodicChain([P, P], repeat=2), 1.15),
        "observations are the states": (given, pf.HiddenChain(given, range(k)), 1.15),
        "order 1": (free, pf.HiddenChain.of_order(P, "any"), 1.15),
        "idle order": (chain, pf.HiddenChain.of_order(np.stack([P] * k)), 4),
        "any start of a period": (clock, clock_any, np.inf),
        "a phase for each": (clock, pf.PeriodicChain(np.repeat([P, Q], 3, axis=0)), 1.15),
        "no intervals": (free, exact, 1.3),
        "wider intervals": (exact, wide, np.inf),
        "no intervals both ways": (chain, pf.IntervalFamily(P, P, backward=back), 1.15),
        "one way alone": (pf.IntervalFamily(low, high, backward=wide), wide, np.inf),
        "no distance": (exact, exact_ball, 1.15),
        "larger distances": (small_ball, large_ball, np.inf),
        "binary class": (binary, between, np.inf),
        "intervals of a binary class": (between, box, np.inf),
        "chains that mix": (chain, pf.MixingFamily(steps, least), np.inf),
        "slower mixing": (mixing, slower, np.inf),
    }


@pytest.mark.parametrize("name", nested(np.random.default_rng(0), 2))
@pytest.mark.parametrize("seed", seeds(2, 50))
def test_larger_families_never_lose_less(name, seed):
    rng = np.random.default_rng([seed, 3])
    few, more, most = nested(rng, int(rng.integers(2, 5)))[name]
    length, cost = int(rng.choice([2, 9, 60, 10**6])), float(rng.choice(COSTS))
    what = protection(rng, length)
    if most < np.inf:  # bounds for those who know records are computed in other ways for each kind
        what["side_information"] = "none"
    one, other = (pf.leakage_loss(family, length, 1 / cost, **what) for family in (few, more))
    slack = SLACK if what["side_information"] == "none" else 0.05
    assert one * (1 - slack) <= other <= one * most * (1 + slack)
    if isinstance(few, HAVE_CHAINS) and isinstance(more, HAVE_CHAINS):
        asked = {"epsilon": 2.0, "window": what["window"]}
        one, other = (pf.mqm_exact(family, length, **asked).scale for family in (few, more))
        assert one <= other * (1 + 1e-9)
