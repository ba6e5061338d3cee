"""Promises by brute force, that nothing spent comes back; what scales and several releases cost."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from cases import counts, seeds
from matplotlib.figure import Figure
from sequence_programs import largest_loss, sequence_law

import pufferflow as pf
from pufferflow.accounting.account import UNBOUNDED, Charge, Level, Promise, free_from, spent, whole
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import MECHANISMS

PARTICIPANT = Level(None)
LEVELS = [Level(1), Level(2), Level(1, "any"), Level(2, "any"), PARTICIPANT]


class Releases:
    """Adaptive releases of two participants whose records are independent draws of one chain.

    ``output[w, x1, x2]`` is the probability of all outputs given both records, each of the k^T.
    """

    def __init__(self, rng, k, length, releases):
        self.k, self.length = k, length
        self.records = list(itertools.product(range(k), repeat=length))
        matrix = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), k)
        start = rng.dirichlet(np.ones(k)) if rng.random() < 0.5 else "stationary"
        self.chain = pf.MarkovChain(matrix, start)
        x, p = np.array(self.records), self.chain.transition_matrix
        self.prior = self.chain.initial_distribution[x[:, 0]] * p[x[:, :-1], x[:, 1:]].prod(axis=1)
        self.output, self.charges = np.ones((1, len(x), len(x))), []
        for _ in range(releases):
            begin, end = sorted(rng.integers(length, size=2).tolist())
            self._release(rng, begin, end, int(rng.choice([2, 3])))

    def _release(self, rng, begin, end, outputs):
        """What is published depends on the readings from ``begin`` to ``end`` and the outputs."""
        read = list(itertools.product(range(self.k), repeat=end - begin + 1))
        place = np.array([read.index(x[begin : end + 1]) for x in self.records])
        shape = len(self.output), outputs, len(read), len(read)
        table = rng.uniform(0, rng.choice([0.05, 0.3, 1.5]), shape)
        if rng.random() < 0.5:  # a randomized response of how many readings are 0
            zeros = np.array([x.count(0) for x in read])
            steps = np.abs(np.arange(outputs)[:, None, None] - (zeros[:, None] + zeros) % outputs)
            table = steps * rng.choice([0.02, 0.2, 1.0]) * rng.choice([-1, 1], (shape[0], 1, 1, 1))
        distribution = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
        apart = (np.array(read)[:, None] != np.array(read)).sum(axis=2)
        both = np.log([distribution, distribution.swapaxes(2, 3)])
        worst = np.abs(both[..., None, :] - both[..., None, :, :]).max(axis=(0, 1, 2, 5))
        costs = worst[apart == 1].max(initial=0), worst.max()
        self.charges.append(Charge(*(Fraction(cost * (1 + 1e-12)) for cost in costs), begin, end))
        likelihood = distribution[:, :, place[:, None], place[None, :]]
        self.output = (self.output[:, None] * likelihood).reshape(-1, *self.output.shape[1:])

    def loss(self, level):
        """Largest log-ratio over all outputs, secrets and what else an adversary may know."""
        window, worst = self.length if level.whole else level.window, 0.0
        of_one = np.concatenate([self.output @ self.prior, self.output.swapaxes(1, 2) @ self.prior])
        for begin in range(self.length - window + 1):
            inside = range(begin, begin + window)
            others = [t for t in range(self.length) if t not in inside]
            sizes = range(len(others) + 1) if level.side_information == "any" else [0]
            for known in itertools.chain(*(itertools.combinations(others, r) for r in sizes)):
                worst = max(worst, self._ratio(of_one, inside, known))
        return worst

    def _ratio(self, density, inside, known):
        """``density`` is P(outputs | the record of one participant), the other one averaged."""
        groups, worst = {}, 0.0
        for i in np.flatnonzero(self.prior):
            side, secret = (tuple(self.records[i][t] for t in of) for of in (known, inside))
            groups.setdefault(side, {}).setdefault(secret, []).append(i)
        for secrets in groups.values():
            given = [density[:, i] @ self.prior[i] / self.prior[i].sum() for i in secrets.values()]
            worst = max(worst, np.log(np.max(given, axis=0) / np.min(given, axis=0)).max())
        return worst

    def bound(self, level, cost):
        """L_Θ: what the library proves of a cost at this level and length."""
        return pf.leakage_loss(self.chain, self.length, 1 / float(cost), **vars(level))


@pytest.mark.parametrize("cases", counts(200, 2000))
def test_promises_hold_against_every_output_and_adversary(cases):
    """C is at the costs, or on either side; what the account accepts never loses more than ε."""
    rng = np.random.default_rng(cases)
    accepted, closest = dict.fromkeys(LEVELS, 0), 0.0
    for _ in range(cases):
        k, length = ((2, 3), (2, 4), (3, 2), (3, 3))[rng.choice(4, p=[0.5, 0.2, 0.2, 0.1])]
        made = Releases(rng, k, length, int(rng.integers(1, 4)))
        for level in LEVELS:
            factor = Fraction(int(rng.choice([3, 4, 4, 5, 8])), 4)
            if level.whole:
                promise = Promise(level, float(whole(made.charges)[0] * factor) or 1.0, Fraction(0))
            else:
                cost = plain_top(made.charges) * factor or Fraction(1)
                promise = Promise(level, made.bound(level, cost), cost)
            if spent([promise], made.charges) <= 1:
                loss = made.loss(level)
                assert loss <= promise.epsilon * (1 + 1e-9)
                accepted[level] += 1
                closest = max(closest, loss / promise.epsilon)
    assert min(accepted.values()) > cases / 2
    assert closest > 0.95


def random_charge(rng, rich):
    cost = Fraction(rng.randrange(1, 60), rng.choice([7, 60, 1024]))
    cost = cost if rng.random() < 0.98 else UNBOUNDED
    first, last = sorted(rng.randrange(10) for _ in range(2))
    range_ = (first if rng.random() < 0.9 else None, last if rng.random() < 0.9 else None)
    rho, delta = (Fraction(rng.randrange(40), n) * rich for n in (2000, 10**9))
    return Charge(cost, cost * rng.randrange(1, 9), *range_, rho, 9 * rho, delta)


def random_promise(rng, rich):
    level = rng.choice(LEVELS)
    cost = Fraction(0) if level.whole else Fraction(rng.randrange(99), 20)
    delta = rng.choice([0.0, 1e-7, 1e-3]) * rich
    return Promise(level, rng.choice([0.1, 0.5, 3.0, 30.0]), cost, delta=delta)


def plain_top(charges, within=range(-1, 12)):
    met = [[c.cost for c in charges if c.range[0] <= t < c.range[1]] for t in within]
    return max(sum(costs, Fraction(0)) for costs in met)


@pytest.mark.parametrize("rich", [0, 1])
@pytest.mark.parametrize("seed", seeds(10, 100))
def test_the_sweep_and_what_is_free_against_a_reference_implementation(seed, rich):
    """2,000 mixes; what is spent never falls by a charge, another promise or a lower limit."""
    rng = random.Random(seed)
    assert Promise(Level(None, "any"), 1.0, 0).level == PARTICIPANT  # no reading is left to know
    for _ in range(100):
        new, *charges = (random_charge(rng, rich) for _ in range(rng.randrange(1, 6)))
        promise, *others = (random_promise(rng, rich) for _ in range(rng.randrange(1, 5)))
        lower = replace(promise, epsilon=promise.epsilon / 2, cost=promise.cost / 3)
        before = spent([promise], charges)
        for promises in ([promise], [lower], [promise, *others]):
            assert before <= spent(promises, charges) <= spent(promises, [new, *charges])
        free = free_from(promise, charges, new)
        for t in range(-1, 14):
            fits = spent([promise], [*charges, replace(new, first=t, last=t)]) <= 1
            assert fits >= (t >= free)
            assert not (fits and t == free - 1)
        within = [t for t in range(-1, 12) if new.range[0] <= t < new.range[1]]
        if rich and charges:
            continue
        by_whole = whole(charges)[0] / Fraction(promise.epsilon)
        by_time = plain_top(charges, within) / promise.cost if promise.cost else by_whole
        assert spent([promise], charges, new) == min(by_whole, by_time)


dp.enable_features("contrib")
HOUR = pf.MixingFamily(60, 0.4)
THREE = pf.MarkovChain([[0.8, 0.2, 0], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])
FAMILIES = [HOUR, pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), THREE, pf.BinaryInterval(0.3, 0.7)]
NOISY = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=5.0)


@pytest.mark.parametrize("seed", seeds(12, 100))
def test_costs_and_guarantees_hold_for_any_lipschitz_queries(seed):
    """The largest loss of all together, and of the first alone, is found by linear programs."""
    rng = np.random.default_rng(seed)
    k, length = (2, 4) if seed % 2 else (3, 3)
    start = rng.dirichlet(np.ones(k)) if seed % 3 else "stationary"
    chain = pf.MarkovChain(rng.dirichlet(np.full(k, 0.5), k), start)
    scales = 10 ** rng.uniform(-0.5, 1, 1 + seed % 3)
    accountant = pf.Accountant(chain, length)
    for scale in scales:
        accountant.add(scale)
    cost = min(accountant.cost().values())
    joint = sequence_law(chain.transition_matrix, chain.initial_distribution, length)
    assert largest_loss(joint, (1 / scales).sum()) <= cost * (1 + 1e-7)
    alone = largest_loss(joint, 1 / scales[0])
    for mechanism in ("mqm-exact", "leakage"):
        assert alone <= pf.Accountant.guarantee(chain, length, scales[0], mechanism) * (1 + 1e-7)


def test_a_guarantee_is_the_inverse_of_a_scale():
    chain, guarantee = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]]), pf.Accountant.guarantee
    for epsilon, name in itertools.product((0.01, 0.5, 3.0), ("mqm-exact", "group-dp", "leakage")):
        scale = MECHANISMS[name](chain, 50, epsilon).scale
        found = guarantee(chain, 50, scale, mechanism=name)
        assert found == pytest.approx(epsilon, rel=1e-7)
        assert MECHANISMS[name](chain, 50, found).scale <= scale
    cycle = pf.MarkovChain(np.eye(4)[[1, 2, 3, 0]])  # of 4 states in a row 2 are counted, of 2 any
    assert guarantee(cycle, [4, 2], 1.0, "wasserstein", states=[0, 1]) == pytest.approx(2, rel=1e-9)
    assert math.isinf(guarantee(cycle, 4, 1.0, "gk16"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("options", [{}, {"window": 5}, {"side_information": "any"}])
def test_a_measurement_may_spend_and_loses_what_leakage_says(family, options):
    """The curve is leakage_loss, its inverse event_epsilon; certificates prove points of it."""
    curve = pf.influence_curve(family, [500, 20], **options)
    for epsilon in (0.01, 7.0):
        event = pf.event_epsilon(family, 500, epsilon, **options)
        needed = pf.leakage(family, 500, epsilon, **options).scale
        assert event * needed == pytest.approx(1, rel=1e-6)  # couplings start from the last ones
        assert epsilon / 500 * (1 - 1e-12) <= event <= epsilon
    for event in (0.01, 0.3, 2.0):
        loss = pf.leakage_loss(family, 500, 1 / event, **options)
        assert curve(event) == pytest.approx(loss, rel=1e-9)
        assert curve(event / 3, event * 2 / 3) == pytest.approx(curve(event), rel=1e-9)
        assert curve.inverse(curve(event)) <= event * (1 + 1e-6)
    assert curve() == 0.0
    scale = pf.verify_certificate(curve.certificate(1.0)).scale
    assert 1.0 - 1e-2 < curve(1 / float(scale)) <= 1.0 + 1e-14
    curve.plot(axes := Figure().add_subplot())
    events, losses = axes.lines[0].get_data()
    assert losses.tolist() == sorted(map(curve, events))
    assert losses[[0, -1]] == pytest.approx([0.01, 10], rel=0.2)
    wrapped = pf.accounting.wrap(NOISY, family, 500, d_in=1, **options)
    assert 0.2 - 1e-16 <= wrapped.event_epsilon == pytest.approx(0.2)
    assert wrapped.scale <= 5.0
    stated = pf.leakage_loss(family, 500, 5.0, **options)
    assert stated * (1 - 1e-12) <= wrapped.loss == pytest.approx(stated, rel=1e-9)
    assert isinstance(wrapped(10), int)


def test_data_sets_that_differ_in_one_record():
    """A record goes and one comes: two changes of the symmetric distance."""
    data = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counted = data >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    assert pf.accounting.wrap(counted, HOUR, 100).event_epsilon == pytest.approx(counted.map(2))
    for measurement, d_in, said in (
        (counted, 1, "is 1 for SymmetricDistance.*none for data sets"),
        (NOISY, None, "is None for AbsoluteDistance"),
        (NOISY, 0.5, "at d_in = 0.5 is not known"),
    ):
        with pytest.raises(ParameterError, match=said):
            pf.accounting.wrap(measurement, HOUR, 100, d_in=d_in)
