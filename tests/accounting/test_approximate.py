"""(ε, δ): formulas against intervals, programs over all sequences, and exact Gaussian losses."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from cases import seeds
from flint import arb, ctx, fmpq
from scipy.optimize import linprog
from scipy.stats import norm
from sequence_programs import as_rows, lipschitz, log_ratios, sequence_law

import pufferflow as pf
from pufferflow.accounting import event_rho, pufferfish_delta
from pufferflow.accounting.account import UNBOUNDED, Charge, Level, Promise, spent
from pufferflow.errors import ParameterError

HOUR = pf.MixingFamily(steps=60, overlap=0.4)
dp.enable_features("contrib")


def share_of(ratio, kind):
    """What is multiplied by e^ε − 1, as an interval."""
    a = ratio if isinstance(ratio, arb) else arb(ratio)
    if kind == "concentrated":
        return (-a * a / 2 - 1).exp() / a**2
    density = (-a * a / 2).exp() / (2 * arb.pi()).sqrt()
    return density / a - (a / arb(2).sqrt()).erfc() / 2


@pytest.mark.parametrize("seed", seeds(20, 500))
def test_allowances_are_on_the_safe_side_and_tight(seed):
    rng = np.random.default_rng(seed)
    epsilon, delta = 10 ** rng.uniform(-6, 3), 10 ** rng.uniform(-40, -0.01)
    event = epsilon * rng.uniform(1e-3, 1)
    ratios = {
        "gaussian": pf.accounting.gaussian_ratio(epsilon, delta),
        "concentrated": event / math.sqrt(2 * event_rho(epsilon, delta, event)),
    }
    with ctx.workprec(300):
        gain = arb(epsilon).expm1()
        for kind, ratio in ratios.items():
            assert gain * share_of(ratio, kind) <= arb(delta)
            assert gain * share_of(ratio * (1 - 1e-4), kind) > arb(delta)
        share = pf.accounting.event_delta(epsilon, delta, event)
        exact = arb(delta) * arb(event).expm1() / gain
        assert share == 0 or exact * (1 - 1e-8) < arb(share) <= exact
        back = arb(pufferfish_delta(epsilon, event, share))
        assert back >= arb(share) * gain / arb(event).expm1()


@pytest.mark.parametrize("seed", seeds(20, 500))
def test_no_mechanism_has_a_larger_delta(seed):
    """Theorem A over all sequences of k = 2, 3: never above, and attained."""
    rng = np.random.default_rng(seed)
    k, length = [(2, int(rng.integers(1, 8))), (3, int(rng.integers(1, 5)))][seed % 2]
    matrix = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), k)
    joint = sequence_law(matrix, rng.dirichlet(np.ones(k)), length)
    node, cost = int(rng.integers(length)), 10 ** rng.uniform(-1.5, 0.5)
    above, below = (part / part.sum() for part in (joint.take(value, node) for value in (0, 1)))
    program = above.ravel(), below.ravel(), lipschitz(above.shape, cost)
    loss = cost + log_ratios([program])[0]
    # of a function of all records: the secret, first, and the others
    gap = np.stack([-above, math.exp(loss) * below])
    small = 10 ** rng.uniform(-6, -3) * (1 - math.exp(-loss))
    rows = as_rows([lipschitz(gap.shape, cost)], [gap.size])
    found = linprog(gap.ravel(), A_ub=rows, b_ub=np.full(rows.shape[0], small), bounds=(0, 1))
    assert found.status == 0
    delta = -found.fun  # the largest P(A | secret) − e^ε P(A | other) of (c, δ0)-DP mechanisms
    stated = pufferfish_delta(loss, cost, small)
    assert delta <= stated * (1 + 1e-6) + 1e-8
    if small * math.exp(cost * length) <= math.expm1(cost):  # the extremal one is a probability
        assert delta >= stated * (1 - 1e-3) - 1e-8


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_gaussian_noise_hides_records(seed):
    """∫ max(0, p − e^ε q) of the noisy count of ones, to 1e-10, over all secrets."""
    rng = np.random.default_rng(seed)
    length, epsilon, delta = int(rng.integers(2, 9)), rng.choice([0.5, 1, 3]), 1e-3
    chain = pf.MarkovChain(rng.dirichlet([1, 1], 2))
    sigma = pf.accounting.gaussian_scale(chain, length, epsilon, delta)
    joint = sequence_law(chain.transition_matrix, chain.initial_distribution, length)
    ones, x = sum(np.indices(joint.shape)), np.arange(-12 * sigma, length + 12 * sigma, sigma / 200)
    densities = norm.pdf(x[:, None], np.arange(length + 1), sigma)
    for node, value in itertools.product(range(length), range(2)):
        given = []
        for secret in (value, 1 - value):
            part, count = (np.take(array, secret, node) for array in (joint, ones))
            exact = np.bincount(count.ravel(), part.ravel(), length + 1) / part.sum()
            given.append(densities @ exact)
        gap = given[0] - math.exp(epsilon) * given[1]
        assert np.clip(gap, 0, None).sum() * sigma / 200 <= delta


@pytest.mark.parametrize("seed", seeds(20, 500))
def test_what_an_account_accepts_keeps_delta(seed):
    """Pure, zero-concentrated and approximate costs of the same readings, nearly all of a promise.

    Disjoint readings take the maximum; of participants the promise is about the whole costs.
    """
    rng = np.random.default_rng(seed)
    epsilon, delta = 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-9, -2)
    cost = Fraction(epsilon if seed % 4 == 3 else epsilon * rng.uniform(0.01, 1))
    level = Level(None) if seed % 4 == 3 else Level(1)
    promise = Promise(level, epsilon, cost * (not level.whole), delta=delta)
    pure, share = map(Fraction, rng.uniform(0, 1, 2) * rng.integers(0, 2, 2))
    share *= not level.whole  # of participants no δ0 is known
    root = Fraction((1 - pure) * Fraction(math.sqrt(1 - share)) * Fraction(rng.uniform(0.9, 1.1)))
    rho = Fraction(event_rho(epsilon, delta, float(cost))) * root**2
    approximate = Fraction(pf.accounting.event_delta(epsilon, delta, float(cost))) * share
    charges = [
        Charge(pure * cost, pure * cost + UNBOUNDED * (not level.whole), 0, 9),
        Charge(Fraction(0), Fraction(0), 5, 14, rho=rho / 2, whole_rho=rho / 2),
        Charge(Fraction(0), Fraction(0), 9, 9, rho=rho / 2, whole_rho=rho / 2, delta=approximate),
    ]
    used = spent([promise], charges)
    assert used == pytest.approx(float(max(share, pure + root / Fraction(math.sqrt(1 - share)))))
    assert spent([replace(promise, delta=0.0)], charges) > 1
    apart = [*charges, *(replace(one, first=20, last=29) for one in charges)]
    assert level.whole or spent([promise], apart) == used
    with ctx.workprec(300):
        numbers = (cost, cost * (1 - pure), rho, approximate)
        whole, left, rho, approximate = (arb(fmpq(*x.as_integer_ratio())) for x in numbers)
        total = share_of(left / (2 * rho).sqrt(), "concentrated") * left.expm1() + approximate
        assert used > 1 or total * arb(epsilon).expm1() / whole.expm1() <= arb(delta)


def test_measurements_with_a_delta():
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    event = pf.event_epsilon(HOUR, 10**6, 1.0)
    rho = event_rho(1.0, 1e-6, event)
    gaussian = dp.m.make_gaussian(*whole, scale=1 / math.sqrt(2 * rho))
    wrapped = pf.accounting.wrap(gaussian, HOUR, 10**6, d_in=1)
    assert math.isinf(wrapped.loss)
    assert wrapped.delta(1.0) == pytest.approx(1e-6, rel=1e-4)
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-8)
    approximate = pf.accounting.wrap(fixed, HOUR, 10**6, d_in=1)
    loss, share = approximate.loss, fixed.map(1)
    assert approximate.delta(loss) == pufferfish_delta(loss, *share) > 1e-8
    assert approximate.delta(loss / 2) == 1.0
    with pytest.raises(ParameterError, match="SmoothedMaxDivergence"):
        pf.accounting.wrap(dp.c.make_zCDP_to_approxDP(gaussian), HOUR, 10**6, d_in=1)


def test_account_with_a_delta():
    """Laplace alone as before, Gaussian alone as stated, both never below the larger one."""
    event, accounts = pf.event_epsilon(HOUR, 10**6, 1.0), []
    for scale, rho in itertools.product((None, 4 / event), (None, event_rho(1.0, 1e-6, event) / 4)):
        accounts.append(pf.Accountant(HOUR, 10**6))
        if scale:
            accounts[-1].add(scale)
        if rho:
            for _ in range(4):
                accounts[-1].add_concentrated(rho)
    neither, gaussian, laplace, both = accounts
    assert neither.delta(1.0) == laplace.delta(1.0) == 0.0
    assert laplace.delta(0.01) == 1.0
    assert gaussian.delta(1.0) == pytest.approx(1e-6, rel=1e-6)
    assert gaussian.delta(1.0) < both.delta(1.0) < 1e-3
    assert {*both.cost().values()} == {math.inf}
    assert "5 releases" in repr(both)
    assert pf.accounting.concentrated_delta(1.0, event, event**2) < 1


@pytest.mark.parametrize("seed", seeds(20, 300))
def test_a_budget_that_is_reset_against_all_extreme_mechanisms(seed):
    """Three periods of two binary records; each release of a period changes by at most e^ε."""
    rng, event = np.random.default_rng(seed), [0.1, 1.0, 3.0][seed % 3]
    chain = pf.MarkovChain(rng.dirichlet([0.3, 0.3] if seed % 2 else [2, 2], 2))
    start, matrix = chain.initial_distribution, chain.transition_matrix
    two = start[:, None] * matrix  # of a period, and of the next one given the last record
    after = matrix[:, :, None] * matrix
    paths = np.einsum("ab,bcd,def->abcdef", two, after, after).reshape(4, 4, 4)
    extreme = np.exp(event * np.array(list(itertools.product([0, 1], repeat=4))))
    outputs = np.einsum("abc,xa,yb,zc->xyzabc", paths, *[extreme] * 3, optimize=True)
    outputs = outputs.reshape(-1, *[2] * 6)
    for window, hidden in ((1, [2]), (1, [3]), (2, [2, 3]), (2, [1, 2]), (2, [3, 4])):
        others = tuple(i for i in range(6) if i not in hidden)
        chances = paths.reshape([2] * 6).sum(axis=others)
        given = outputs.sum(axis=tuple(i + 1 for i in others)) / chances
        logs = np.log(given.reshape(len(given), -1))
        loss = (logs.max(axis=1) - logs.min(axis=1)).max()
        curve = pf.influence_curve(chain, 6, window=window)
        assert loss <= curve.reset(event, 2) * (1 + 1e-9)
        assert curve.reset(event, 2) <= curve(event)
    sticky = pf.influence_curve(pf.MarkovChain([[0.95, 0.05], [0.05, 0.95]]), 10**4)
    assert sticky.reset(event, 200) == pytest.approx(min(sticky(event), 3 * event), rel=1e-6)


def test_audit_of_event_level_privacy(run, tmp_path):
    """The command prints what the curve states, for both adversaries and of a reset budget."""
    chain, path = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), tmp_path / "m.json"
    path.write_text(json.dumps(pf.ChainFamily([chain]).document()))
    asked = "audit", path, "--length", 90, "--event-epsilon", 0.3, "--json"
    two, informed = json.loads(run(*asked, "--protect", 2)[1])
    for row, known in ((two, "none"), (informed, "any")):
        curve = pf.influence_curve(chain, 90, window=2, side_information=known)
        assert row["loss"] == curve(0.3)
    assert two["certainty"] == 1 / (1 + math.exp(-two["loss"]))
    code, out, _ = run(*asked, "--reset", 24)
    one, reset, _ = json.loads(out)
    assert (code, one["readings"], reset["readings"]) == (0, 1, 24)
    wanted = pf.influence_curve(chain, 90).reset(0.3, 24)
    assert reset["loss"] == pytest.approx(wanted, rel=1e-9)
