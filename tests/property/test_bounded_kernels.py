"""No kernel runs for ever or for long: numbers beyond floats prove nothing, signals arrive, portions change no bit."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._util.protection import Protection
from pufferflow.coupling import calibration, periodic, sides
from pufferflow.coupling.interval_leakage import IntervalLeakage
from pufferflow.coupling.periodic import CouplingWay, walk_once
from pufferflow.coupling.robust import AscendingSide, RobustSide
from pufferflow.coupling.sides import CouplingSide, ForgettingSide, RatioSide

BEGUN = """
import signal
import numpy as np
import pufferflow as pf
from pufferflow._util.protection import Protection
from pufferflow._util.jit import compile_at_once
signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line has it
compile_at_once()
{prepare}
print("begun", flush=True)
try:
    {work}
except KeyboardInterrupt:
    print("interrupted")
except ParameterError as error:
    print(error)
"""


def run(prepare, work, seconds):
    """What a process prints that is told to end after so many seconds; fails where it does not."""
    child = subprocess.Popen(
        [sys.executable, "-c", BEGUN.format(prepare=prepare, work=work)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "begun\n"
        try:
            return child.communicate(timeout=seconds)[0], 0.0
        except subprocess.TimeoutExpired:
            told = time.monotonic()
            child.send_signal(signal.SIGTERM)
            return child.communicate(timeout=20)[0], time.monotonic() - told
    finally:
        child.kill()
        child.communicate()


SEMI_MARKOV = "chain = pf.HiddenChain.with_durations({jumps}, {lasts})"
ALTERNATING, THREE = [[0, 1], [1, 0]], [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.1, 0.1, 0.8]]


@pytest.mark.parametrize(
    ("jumps", "lasts", "length", "epsilon", "said"),
    [
        (ALTERNATING, [[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]], 5, 5.0, "0.62815"),
        (ALTERNATING, [[0.45, 0.14, 0.41], [0.26, 0.18, 0.56]], 5, 5.0, "0.47659"),
        (THREE, [[0.3, 0.5, 0.2], [0.1, 0.7, 0.2], [0.5, 0, 0.5]], 2, 1.0, "1.96"),
    ],
)
def test_a_semi_markov_chain_of_few_records_is_decided(jumps, lasts, length, epsilon, said):
    """At the c of so few records its rounds never close: leakages grew to ∞, which passed as closed and hung."""
    work = f'print(pf.certify(chain, {length}, {epsilon}, mechanism="leakage")["scale"])'
    printed, waited = run(SEMI_MARKOV.format(jumps=jumps, lasts=lasts), work, 120)
    assert printed.startswith(said)
    assert not waited


CLOCK = "import numba; numba.config.NUMBA_NUM_THREADS = {0}; rng = np.random.default_rng(0)\n"
CLOCK += "pf.leakage_loss(pf.PeriodicChain(rng.dirichlet(np.ones(12), (2, 12))), 10**6, 3.0); chain = {1}"
SEARCH = "chain = pf.MarkovChain([[1 - 1e-7, 1e-7], [3e-7, 1 - 3e-7]], [1, 0]); pf.mqm_exact(chain, 10**4, 1.0)"
GRID = "[pf.mqm_exact(chain, 2**62, epsilon) for epsilon in np.geomspace(0.1, 10, 10**4)]"


@pytest.mark.parametrize(
    ("prepare", "work"),
    [
        *(
            (CLOCK.format(threads, chain), "pf.leakage_loss(chain, 10**7, 3.0)")
            for threads in (1, 2)
            for chain in (
                "pf.PeriodicChain(rng.dirichlet(np.ones(12), (1, 12)), repeat=10**5)",  # a piece of many steps
                "pf.PeriodicChain(rng.dirichlet(np.ones(48), (6, 48)), repeat=60)",  # many rounds of few
            )
        ),
        (SEARCH, GRID),
    ],
)
def test_signals_end_what_takes_long(prepare, work):
    """Within 2 s; what this machine does besides is the rest."""
    printed, waited = run(prepare, work, 6)
    assert printed == "interrupted\n"
    assert waited < 5


# -- numbers beyond floats -------------------------------------------------------------------------


ROWS = np.random.default_rng(1).dirichlet(np.ones(4), 4)


def spoilt(number):
    costs = np.ones((4, 4)) - np.eye(4)
    costs[1, 2] = number
    return costs


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_costs_beyond_floats_prove_nothing(number):
    apart = ~np.eye(4, dtype=bool)
    coupled = CouplingSide(ROWS).apply(spoilt(number))
    assert np.isposinf(coupled[apart]).all()
    assert (coupled[~apart] == 0).all()
    bounds = pf.IntervalFamily(ROWS * 0.9, np.minimum(ROWS * 1.1, 1)).rows
    assert np.isposinf(RobustSide(bounds).apply(spoilt(number))[apart]).all()
    assert not AscendingSide(bounds).apply(spoilt(number)).any()  # values that some laws attain: none is known
    told, _ = walk_once(ROWS, np.ones(4, dtype=bool), spoilt(number), np.zeros((4, 4)))
    assert told == np.inf
    out = CouplingWay(pf.PeriodicChain([ROWS]), ahead=True, trees_alone=True).walk(0, spoilt(number), 0.1, 50.0)
    assert (out[0][apart] == 50).all()


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("length", [5, 10**6])
def test_what_is_no_number_proves_nothing(number, length):
    """All of the records then count, or the largest ratio, near the ends and far from them."""
    chain = pf.MarkovChain(ROWS)
    bounds, wanted = calibration.ChainLeakage(chain, length), length * 0.1
    if bounds.exact:
        bounds._all_nodes = lambda name, view: np.full((length, 4, 4), number)
    else:
        bounds._ahead.apply = lambda costs: np.full((4, 4), number)
        bounds._ahead_blocks.caps = lambda cost: np.full((4, 4), length * cost)
        wanted = 0.1 + bounds._ahead.limit.max()
    assert bounds.loss(0.1).value >= wanted
    theta = IntervalLeakage(pf.IntervalFamily(ROWS, ROWS), length, Protection())
    theta._past[0].apply = theta._ahead[0].apply = lambda costs: np.full((4, 4), number)
    theta._blocks.clear()
    both = float((theta._past[0].limit + theta._ahead[0].limit).max())
    assert theta.loss(0.1).value >= min(length * 0.1, 0.1 + both)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_any_law_lets_through_is_never_less_than_for_large_costs(number):
    bounds = pf.IntervalFamily(ROWS * 0.9, np.minimum(ROWS * 1.1, 1)).rows
    for side in (ForgettingSide(ROWS), RatioSide(bounds.log_column_ratios())):
        assert (side.apply(spoilt(number)) >= side.apply(spoilt(1e6)) * (1 - 1e-12)).all()


def test_trees_that_were_never_found_prove_nothing():
    way = CouplingWay(pf.PeriodicChain([ROWS]), ahead=True, trees_alone=True)
    way.freeze()
    out = way.walk(0, np.zeros((4, 4)), 0.1, 50.0)
    assert (out[0] == 50.0 * (1 - np.eye(4))).all()


def test_newton_steps_that_are_no_numbers_are_left(monkeypatch):
    """A start or a step that is no number costs nothing but time."""
    chain = pf.MarkovChain(ROWS)
    expected = pf.leakage_loss(chain, 10**6, 2.0)
    monkeypatch.setattr(sides, "_newton_step", lambda side, now, *others: np.full_like(now, np.nan))
    found = pf.leakage_loss(pf.MarkovChain(ROWS), 10**6, 2.0)
    assert expected * (1 - 1e-5) <= found <= expected * 1.01


# -- portions --------------------------------------------------------------------------------------


def results():
    calibration._kept.clear()  # bounds of the same chain, which would begin where they ended last
    rng = np.random.default_rng(5)
    matrices = rng.dirichlet(np.ones(3), (2, 3))
    slow = 0.98 * np.eye(4) + 0.02 * rng.dirichlet(np.ones(4), 4)
    for start in ("stationary", "any"):
        chain = pf.PeriodicChain(matrices, repeat=7, initial_distribution=start)
        yield pf.mechanisms.loss_profile(chain, 10**6, 2.0)["loss_nats"].tolist()
    day = pf.PeriodicChain([[[0.6, 0.4], [0.5, 0.5]], [[0.95, 0.05], [0.1, 0.9]]], repeat=20)
    yield pf.certify(day, 1000, 1.0, mechanism="leakage")
    yield pf.certify(pf.HiddenChain(pf.MarkovChain(slow), [0, 0, 1, 1]), 1000, 1.0, mechanism="leakage")


def test_portions_change_no_bit(monkeypatch):
    expected = list(map(str, results()))
    for module in (sides, periodic):
        monkeypatch.setattr(module, "PORTION", 50)  # a pair at a time
    assert list(map(str, results())) == expected
