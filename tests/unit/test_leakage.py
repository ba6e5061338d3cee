"""Leakage calibration: limits, extremes of floats, what no computation may do, periodic chains."""

import math
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product

import numpy as np
import pytest
from shipped_counts import electricity_transitions

import pufferflow as pf
from pufferflow.bounds.rounds import Cycle
from pufferflow.influence.quilts import QuiltSearch

THREE = [[0.7, 0.3, 0], [0.2, 0.5, 0.3], [0.1, 0.4, 0.5]]


@pytest.mark.parametrize("length", [2, 100, 10**9])
def test_small_epsilon_has_a_limit(length):
    """The limit of a symmetric chain: the gap of two copies shrinks by λ = .8 a step, both ways."""
    steps = [0.8 * (1 - 0.8**n) / 0.2 for n in range(length if length < 1000 else 1000)]
    limit = 1 + max(steps[i] + steps[len(steps) - 1 - i] for i in range(len(steps)))
    chain = pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]])
    for epsilon in (1e-9, 1e-6, 2e-4):
        scale = pf.leakage(chain, length, epsilon).scale
        assert limit / epsilon * (1 - 1e-9) <= scale <= limit / epsilon * (1 + 1e-3)


@pytest.mark.parametrize("start", ["stationary", "any", [1, 0, 0]])
@pytest.mark.parametrize("side_information", ["none", "any"])
def test_losses_do_not_fall_with_the_length(start, side_information):
    """Nor where nodes are no longer looked at one by one."""
    chain = pf.MarkovChain(THREE, start)
    asked = {"side_information": side_information}
    lengths = (1, 2, 3, 10, 100, 399, 400, 401, 10**4, 10**9)
    losses = [pf.leakage_loss(chain, length, 10.0, **asked) for length in lengths]
    assert all(a <= b * (1 + 3e-6) for a, b in pairwise(losses))


def test_the_noise_for_an_hour_is_little_more_than_for_a_minute():
    joined = electricity_transitions().reshape(17, 3, 17, 3).sum(axis=(1, 3))
    chain, _ = pf.fit_chain(joined)
    minute, hour = (pf.leakage(chain, 1_051_200, 1.0, window=w).scale for w in (1, 60))
    assert minute < hour <= 1.5 * minute


@pytest.mark.parametrize("seed", range(3))
def test_informed_adversaries_against_the_bound_of_extreme_probabilities(seed):
    """Theorem K3, of "Balancing Privacy and Utility in Correlated Data"."""
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(0.2, 1, (3, 3))
    chain = pf.MarkovChain(matrix / matrix.sum(axis=1, keepdims=True), "any")
    spread = 4 * math.log(chain.transition_matrix.max() / chain.transition_matrix.min())
    for window, epsilon in product((1, 3), (spread + 0.1, 3 * spread)):
        found = pf.leakage(chain, 40, epsilon, window=window, side_information="any").scale
        assert found <= window / (epsilon - spread) * (1 + 1e-6)


# -- extremes of floats ----------------------------------------------------------------------------

FAMILIES = (
    *(pf.MarkovChain(THREE), pf.MarkovChain(THREE, "any"), pf.MixingFamily(3, 0.5)),
    *(pf.HiddenChain(pf.MarkovChain(THREE), [0, 1, 1]), pf.TotalVariationFamily(THREE, 0.01)),
    pf.PeriodicChain([THREE, np.roll(THREE, 1, axis=0)]),
    pf.IntervalFamily(np.array(THREE) * 0.9, np.minimum(np.array(THREE) * 1.1, 1)),
)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("length", [5, 10**6])
@pytest.mark.parametrize("side_information", ["none", "any"])
def test_costs_beyond_exponentials_prove_nothing(family, length, side_information):
    """Losses grow with c, from one record's on, and end at that of all or at a ratio that no cost
    changes.
    """
    asked = {"side_information": side_information}
    scales = [10.0**power for power in (12, 6, 3, 0, -1, -2, -3, -6, -30)]
    losses = [pf.leakage_loss(family, length, scale, **asked) for scale in scales]
    for scale, loss in zip(scales, losses, strict=True):
        assert 1 / scale * (1 - 1e-12) <= loss <= length / scale * (1 + 1e-12)
    assert all(few <= more * (1 + 1e-6) for few, more in pairwise(losses))
    for epsilon in (1e-90, 1e90):
        records = pf.leakage(family, length, epsilon).scale * epsilon
        assert 1 - 1e-12 <= records <= length * (1 + 1e-11)


@pytest.mark.parametrize("start", ["stationary", "any", [1.0, 0.0, 0.0]])
@pytest.mark.parametrize("length", [5, 10**6])
def test_probabilities_near_the_end_of_floats(start, length):
    """Products that underflow are not impossible: the rare state tells what a group tells."""
    rare = 1e-200
    matrix = [[0.5, 0.5, 0], [0.5, 0.5 - rare, rare], [rare, 0.5, 0.5 - rare]]
    chain = pf.MarkovChain(matrix, start)
    lower, upper = (bound(chain, length, 1.0).scale for bound in (pf.lower_bound, pf.leakage))
    assert lower <= upper <= length


def test_states_of_different_pace_take_no_minute():
    """Where some pairs of states differ much longer than others iterations took 1000s of steps."""
    k, began = 20, time.process_time()
    leave = np.full(k, 1e-8)
    leave[0] = 1e-3
    matrix = leave[:, None] / (k - 1) * (1 - np.eye(k)) + np.diag(1 - leave)
    assert 1e8 < pf.leakage(pf.MarkovChain(matrix, np.full(k, 1 / k)), 10**11, 1.0).scale < 1e10
    assert time.process_time() - began < 20


# -- what no computation may do --------------------------------------------------------------------


def test_threads_give_what_one_gives():
    """Nothing that is worked out in place is shared."""
    rngs = (np.random.default_rng(i % 3) for i in range(12))
    chains = [pf.MarkovChain(rng.dirichlet(np.ones(4), 4)) for rng in rngs]
    alone = [pf.leakage(chain, 30, 1.0).scale for chain in chains]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda chain: pf.leakage(chain, 30, 1.0).scale, chains))
        tables = pool.submit(QuiltSearch, chains[0], 30, 1.0).result().tables
    assert tables is not QuiltSearch(chains[0], 30, 1.0).tables
    assert together == pytest.approx(alone, rel=1e-9)


BEGUN = """
import signal
import numba
import numpy as np
import pufferflow as pf
from pufferflow._util import jit
signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line has it
jit.PATIENCE = -1
rng, slow = np.random.default_rng(0), pf.MarkovChain([[1 - 1e-7, 1e-7], [3e-7, 1 - 3e-7]], [1, 0])
pf.leakage_loss(pf.PeriodicChain(rng.dirichlet(np.ones(12), (2, 12))), 10**6, 3.0)
pf.mqm_exact(slow, 10**4, 1.0)
# a piece of many steps
minutes = pf.PeriodicChain(rng.dirichlet(np.ones(12), (1, 12)), repeat=10**5)
hours = pf.PeriodicChain(rng.dirichlet(np.ones(48), (6, 48)), repeat=60)  # many rounds of few
works = [lambda: [pf.mqm_exact(slow, 2**62, epsilon) for epsilon in np.geomspace(0.1, 10, 10**4)]]
works += [lambda chain=chain: pf.leakage_loss(chain, 10**7, 3.0) for chain in (minutes, hours)] * 2
for i, work in enumerate(works):
    numba.config.NUMBA_NUM_THREADS = 1 if i < 3 else 2
    print("begun", flush=True)
    try:
        work()
        print("done", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_signals_end_what_takes_long():
    """Within 2 s; what this machine does besides is the rest."""
    command = [sys.executable, "-c", BEGUN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            for _ in range(5):
                assert child.stdout.readline() == "begun\n"
                time.sleep(0.4)
                child.send_signal(signal.SIGTERM)
                told = time.monotonic()
                assert child.stdout.readline() == "interrupted\n"
                assert time.monotonic() - told < 5
        finally:
            child.kill()


def test_a_semi_markov_chain_of_few_records_is_certified():
    """At the c of so few records no round closes: leakages grew to ∞, passed as closed and hung."""
    lasts = {0.6283: [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]}
    lasts |= {0.4766: [[0.45, 0.14, 0.41], [0.26, 0.18, 0.56]]}
    for most, shares in lasts.items():
        chain = pf.HiddenChain.with_durations([[0, 1], [1, 0]], shares)
        document = pf.certify(chain, 5, 5.0, mechanism="leakage")
        assert pf.leakage(chain, 5, 5.0).scale * (1 - 1e-3) <= float(document["scale"]) <= most
        pf.verify_certificate(document)


# -- periodic chains -------------------------------------------------------------------------------

FAST, SLOW = np.array([[0.6, 0.4], [0.5, 0.5]]), np.array([[0.95, 0.05], [0.1, 0.9]])
DAY = pf.PeriodicChain([FAST, SLOW, SLOW], repeat=20)


@pytest.mark.parametrize("length", [3, 10**6])
@pytest.mark.parametrize("protection", [{}, {"window": 2}, {"side_information": "any"}])
def test_equal_matrices_are_one_chain(length, protection):
    chains = pf.MarkovChain(SLOW), pf.PeriodicChain([SLOW, SLOW], repeat=3)
    for scale in (0.5, 3.0, 40.0):
        one, other = (pf.leakage_loss(chain, length, scale, **protection) for chain in chains)
        assert other == pytest.approx(one, rel=1e-5)
    one, other = (pf.leakage(chain, length, 1.0, **protection).scale for chain in chains)
    assert other == pytest.approx(one, rel=1e-5)


def test_slow_hours_decide():
    scale = pf.leakage(DAY, 10**6, 1.0).scale
    assert 1 - 1e-5 < pf.leakage_loss(DAY, 10**6, scale) <= 1
    slow, fast = (pf.leakage(pf.MarkovChain(matrix), 10**6, 1.0).scale for matrix in (SLOW, FAST))
    assert fast < scale < slow


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("forward", [True, False])
def test_leakages_are_the_same_wherever_the_search_begins(forward, known, monkeypatch):
    """Those that a period raises bound no node; a search that has no time for more ends above."""
    chain = pf.PeriodicChain([SLOW, (SLOW + np.eye(2)) / 2])
    rounds = Cycle(chain, 10**6, forward=forward, known=known)
    rounds.begin()
    usual, start = np.array(rounds.tables(0.1)), rounds._start
    for factor in (0.0, 0.3, 0.8, 5.0):
        rounds._start, rounds._found_at = factor * start, 0.0
        np.testing.assert_allclose(rounds.tables(0.1), usual, rtol=1e-4)
    for limit, passes in (("_PASSES", 1), ("_STEPS", 0)):
        monkeypatch.setattr(f"pufferflow.bounds.rounds.{limit}", passes)
    rounds._start, rounds._found_at = 0 * start, 0.0
    assert (np.array(rounds.tables(0.1)) >= usual * (1 - 1e-4)).all()


def test_segments_may_begin_at_any_phase():
    """From phase 0 on five records are independent; who begins at another phase needs five times
    the noise of these.
    """
    mixes, keeps = np.full((2, 2), 0.5), np.array([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]])
    chain = pf.PeriodicChain([mixes] * 4 + [keeps] * 6)
    scale = pf.leakage(chain, 5, 1.0)
    assert 4.99 < scale.scale <= 5
    assert 1 <= scale.node <= 5


@pytest.mark.parametrize("length", [50, 10**18])
@pytest.mark.parametrize("epsilon", [30.0, 1000.0])
def test_large_budgets_cost_hardly_more_than_a_record(epsilon, length):
    """No distribution reveals more than the log of a ratio, where flows lose their digits."""
    chain = pf.PeriodicChain(np.random.default_rng(0).dirichlet(np.ones(5), (3, 5)))
    most = np.zeros((3, 5, 5))  # of the next record, and of the one before
    for phase, matrix in enumerate(chain.transition_matrices):
        joint = (chain.stationary_distributions[phase][:, None] * matrix).T
        for at, rows in ((phase, matrix), ((phase + 1) % 3, joint / joint.sum(axis=1)[:, None])):
            most[at] += np.log(rows[:, None] / rows).max(axis=2)
    scale = pf.leakage(chain, length, epsilon).scale
    assert 1 / epsilon < scale <= (1 + 1e-5) / (epsilon - most.max())
    assert pf.leakage_loss(chain, length, scale) <= epsilon * (1 + 1e-9)


EAST = [[0.79, 0, 0.16, 0.05], [0, 0.9, 0, 0.1], [0, 0, 0.99, 0.01], [0.01, 0, 0, 0.99]]
WEST = [[0.9, 0, 0, 0.1], [0.01, 0.98, 0, 0.01], [0, 0, 1, 0], [0, 0, 0, 1]]
NEVER = pf.PeriodicChain([np.eye(4), EAST, WEST, np.eye(4)], repeat=2)
"""No record has the second state. If one might, it would be a short cut between the others."""


def test_a_state_that_no_record_has_is_no_short_cut():
    """The same chain without it loses no more."""
    others = np.delete(np.delete(NEVER.transition_matrices, 1, axis=1), 1, axis=2)
    without = pf.PeriodicChain(others / others.sum(axis=2, keepdims=True), repeat=2)
    for length, cost in product((5, 40, 10**6), (0.01, 1.0)):
        whole, part = (pf.leakage_loss(chain, length, 1 / cost) for chain in (NEVER, without))
        assert whole >= part * (1 - 1e-3)
    document = pf.certify(NEVER, 1000, 1.0, mechanism="leakage")
    least = pf.leakage(without, 1000, 1.0).scale * (1 - 1e-3)
    assert float(pf.verify_certificate(document).scale) >= least


def test_blocks_see_what_single_steps_do_not():
    """A state hardly ever left looks remembered for ever, step by step, with side information."""
    day = np.array([[0.9, 0.1 - 1e-7, 1e-7], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    night = np.array([[0.99, 0.01 - 1e-9, 1e-9], [0.6, 0.4 - 1e-9, 1e-9], [0.4, 0.4, 0.2]])
    chain = pf.PeriodicChain([day, night], repeat=60)
    plain, informed = (
        pf.leakage(chain, 10**6, 1.0, side_information=known).scale for known in ("none", "any")
    )
    assert plain < informed < 20 * plain


def test_a_clock_with_a_matrix_an_hour_is_fitted():
    counts = np.array([[[8, 2], [4, 6]], [[0, 0], [1, 9]]])
    chain, states = pf.fit_chain(counts, repeat=60)
    assert (states.tolist(), chain.period) == ([0, 1], 120)
    fitted = [[[0.8, 0.2], [0.4, 0.6]], [[0.8, 0.2], [0.1, 0.9]]]
    np.testing.assert_allclose(chain.transition_matrices, fitted)
    smoothed, _ = pf.fit_chain(counts, repeat=1, smoothing=10)
    rows = [[0.8, 0.2], [(4 + 2.5) / 20, (6 + 7.5) / 20]]
    np.testing.assert_allclose(smoothed.transition_matrix(0), rows)


def test_distributions_that_floats_cannot_hold_are_not_used():
    """The first state leads to the third by two steps of 1e-200: how often it occurs is unknown."""
    away, back = [[1, 1e-200, 0], [0, 1, 0], [0, 0, 1]], [[1, 0, 0], [1, 0, 1e-200], [0.5, 0, 0.5]]
    chain, anything = (
        pf.PeriodicChain([away, back], initial_distribution=s) for s in ("stationary", "any")
    )
    assert np.isinf(chain.stationary_error)
    assert chain.possible.tolist() == [[True, False, True], [True, True, True]]
    assert pf.leakage(chain, 50, 1.0).scale == pytest.approx(pf.leakage(anything, 50, 1.0).scale)
