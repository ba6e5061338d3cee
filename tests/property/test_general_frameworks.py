"""Any finite framework: W, close adversaries and group privacy against plain twins."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import networkx as nx
import numpy as np
import pytest
from cases import examples
from hypothesis import assume, given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow._util.numbers import log_bound
from pufferflow._util.rounding import float_up

VALUES = st.sampled_from([Fraction(n, d) for n in range(-6, 7) for d in (1, 2, 3)])
MASSES = st.sampled_from([0, 0, 1, 1, 2, 3, 7, 10**9])


@st.composite
def laws(draw, most=5):
    """A law of at most five values, some with probability 0."""
    values = draw(st.lists(VALUES, min_size=1, max_size=most, unique=True))
    masses = draw(st.lists(MASSES, min_size=len(values), max_size=len(values)).filter(any))
    return {value: Fraction(mass, sum(masses)) for value, mass in zip(values, masses, strict=True)}


@st.composite
def frameworks(draw):
    """Scenarios that give some of three secrets positive probability, at least two of them."""
    scenarios = {}
    for name in draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=3, unique=True)):
        secrets = draw(st.lists(st.sampled_from("xyz"), min_size=2, max_size=3, unique=True))
        shared = draw(st.booleans()) and draw(laws())  # equal laws: nothing to hide
        scenarios[name] = {secret: shared or draw(laws()) for secret in secrets}
    return scenarios


def likely_pairs(scenarios):
    return [
        (name, a, b) for name, given in scenarios.items() for a in given for b in given if a != b
    ]


# -- by their definitions --------------------------------------------------------------------------


def w_infinity(p, q):
    """Smallest d such that a flow carries all mass of p to q over distances of at most d."""
    whole = math.lcm(*(mass.denominator for mass in (*p.values(), *q.values())))
    for distance in sorted({abs(x - y) for x in p if p[x] for y in q if q[y]}):
        graph = nx.DiGraph()
        graph.add_edges_from(("all", (0, x), {"capacity": int(p[x] * whole)}) for x in p)
        graph.add_edges_from(((1, y), "same", {"capacity": int(q[y] * whole)}) for y in q)
        graph.add_edges_from(((0, x), (1, y)) for x in p for y in q if abs(x - y) <= distance)
        if nx.maximum_flow_value(graph, "all", "same") == whole:
            return distance
    raise AssertionError("the largest distance always suffices")


def conditional(law, query, secret):
    """Law of the query given a secret."""
    inside = {database: mass for database, mass in law.items() if mass and secret(database)}
    found = {}
    for database, mass in inside.items():
        value = Fraction(query(database))
        found[value] = found.get(value, 0) + mass / sum(inside.values())
    return found


def divergence(p, q):
    """D∞ of two laws."""
    return max(
        (math.log(mass / q[x]) if q.get(x) else math.inf for x, mass in p.items() if mass),
        default=0.0,
    )


def density(law, w, scale):
    """Of F + Lap(scale) at w."""
    return sum(
        float(mass) * math.exp(-abs(w - float(x)) / scale) / (2 * scale) for x, mass in law.items()
    )


def largest_change(query, databases, group):
    """Over all pairs of databases that agree outside the group."""
    return max(
        abs(Fraction(query(x)) - Fraction(query(y)))
        for x in databases
        for y in databases
        if all(a == b for place, (a, b) in enumerate(zip(x, y, strict=True)) if place not in group)
    )


@given(frameworks())
@examples(15, 660)
def test_sensitivity_is_the_smallest_gap_of_a_coupling(scenarios):
    found = pf.PufferfishFramework(scenarios).wasserstein()
    exact = {
        (n, a, b): w_infinity(scenarios[n][a], scenarios[n][b])
        for n, a, b in likely_pairs(scenarios)
    }
    widest = max(exact.values())
    assert float_up(widest) == found.W
    if widest:
        assert exact[(found.scenario, *found.pair)] == widest
    else:
        assert (found.scenario, found.pair) == (None, None)


@given(frameworks(), st.sampled_from([1e-90, 1e-3, 0.1, 1.0, 5.0, 300.0, 1e90]))
@examples(10, 440)
def test_noise_of_the_mechanism_loses_at_most_epsilon(scenarios, epsilon):
    framework = pf.PufferfishFramework(scenarios)
    found = framework.wasserstein()
    scale = found.scale(epsilon)
    assert Fraction(scale) * Fraction(epsilon) >= Fraction(found.W)
    assert scale <= found.W / epsilon * (1 + 1e-15)
    if not found.W or not 1e-6 < epsilon < 1e3:
        return
    loss = framework.privacy_loss(scale)
    assert loss <= epsilon * (1 + 1e-9) + 1e-12
    if epsilon >= 100:  # densities are below what floats can hold
        return

    def told(w):
        ratios = (
            [density(scenarios[name][secret], w, scale) for secret in pair]
            for name, *pair in likely_pairs(scenarios)
        )
        return max((math.log(p / q) for p, q in ratios if p > 0 and q > 1e-280), default=0.0)

    laws = [law for one in scenarios.values() for law in one.values()]
    points = sorted({float(value) for law in laws for value in law})
    grid = np.linspace(points[0] - 1, points[-1] + 1, 40)
    assert max(map(told, grid)) <= loss + 1e-9
    assert loss == pytest.approx(max(map(told, points)), abs=1e-9)


@given(frameworks(), frameworks(), st.sampled_from([0.1, 1.0, 5.0]))
@examples(10, 440)
def test_close_adversaries(scenarios, beliefs, epsilon):
    """Δ against sums over points; Theorem 2.4: an adversary outside Θ learns at most ε + 2Δ."""
    framework = pf.PufferfishFramework(scenarios)
    known = {secret for one in scenarios.values() for secret in one}
    belief = {
        secret: law for secret, law in next(iter(beliefs.values())).items() if secret in known
    }
    asked = {s for pair in framework.pairs if set(pair) <= belief.keys() for s in pair}

    def distance(one):
        if not asked <= one.keys():
            return math.inf
        both = ((belief[secret], one[secret]) for secret in asked)
        gaps = (max(divergence(p, q), divergence(q, p)) for p, q in both)
        return max(gaps, default=0.0)

    distances = {name: distance(one) for name, one in scenarios.items()}
    close = framework.close_adversary(belief)
    assert close.delta == pytest.approx(min(distances.values()), rel=1e-12)
    assert distances[close.scenario] == pytest.approx(close.delta, rel=1e-12)
    for own in scenarios.values():  # a belief in Θ is no distance away
        inside = framework.close_adversary(own)
        assert (inside.delta, inside.secret, inside.loss(epsilon)) == (0.0, None, epsilon)
    w = framework.wasserstein().W
    if w and asked and math.isfinite(close.delta):
        learnt = pf.PufferfishFramework(
            {"adversary": belief}, [p for p in framework.pairs if set(p) <= asked]
        )
        assert learnt.privacy_loss(w / epsilon) <= close.loss(epsilon) + 1e-9


# -- databases and groups --------------------------------------------------------------------------


@st.composite
def grouped(draw):
    """Scenarios over up to four records in independent groups, and a query."""
    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=2))
    parts = [list(product((0, 1), repeat=size)) for size in sizes]
    scenarios = {}
    for name in draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=2, unique=True)):
        weights = [st.lists(MASSES, min_size=len(p), max_size=len(p)).filter(any) for p in parts]
        masses = [
            dict(zip(part, draw(w), strict=True)) for part, w in zip(parts, weights, strict=True)
        ]
        scenarios[name] = {
            sum(chosen, ()): math.prod(
                Fraction(mass[one], sum(mass.values()))
                for mass, one in zip(masses, chosen, strict=True)
            )
            for chosen in product(*parts)
        }
    databases = list(next(iter(scenarios.values())))
    values = draw(st.lists(VALUES, min_size=len(databases), max_size=len(databases)))
    names, groups = iter(f"X{i + 1}" for i in range(sum(sizes))), []
    for size in sizes:
        groups.append([next(names) for _ in range(size)])
    return scenarios, dict(zip(databases, values, strict=True)), groups


@given(grouped())
@examples(15, 660)
def test_the_wasserstein_mechanism_never_needs_more_noise_than_group_privacy(model):
    """Theorem 3.3, over random frameworks with independent groups."""
    scenarios, query, groups = model
    possible = [[database for database, p in law.items() if p] for law in scenarios.values()]
    assume(any(len(set(values)) > 1 for some in possible for values in zip(*some, strict=True)))
    framework = pf.PufferfishFramework.from_databases(scenarios, query.__getitem__)
    group = framework.group_sensitivity(groups)
    assert group.independent
    assert group.sensitivity >= framework.wasserstein().W
    places = [[int(name[1:]) - 1 for name in names] for names in groups]
    changes = [largest_change(query.__getitem__, list(query), place) for place in places]
    assert group.sensitivity == float_up(max(changes))
    for scenario, law in scenarios.items():
        for (record, value), found in framework.distributions[scenario].items():
            place = int(record[1:]) - 1
            exact = conditional(law, query.__getitem__, lambda d, i=place, x=value: d[i] == x)
            assert found == exact


def test_dependent_groups_are_seen():
    twins = {"twins": {(0, 0): "1/2", (1, 1): "1/2"}}
    framework = pf.PufferfishFramework.from_databases(twins, sum, records=["ann", "bob"])
    alone = framework.group_sensitivity([])
    # no two listed databases differ in one record
    assert (alone.sensitivity, alone.independent) == (0.0, False)
    assert framework.group_sensitivity([["bob", "ann"]]).sensitivity == 2
    assert framework.group_sensitivity([["bob", "ann"]]).independent
    assert framework.wasserstein().W == 2


def test_logarithms_round_up():
    """Against decimals of 400 digits."""
    rng = np.random.default_rng(3)
    assert log_bound(Fraction(1)) == 0
    with localcontext(prec=400):
        for _ in range(300):
            bits = int(rng.choice([2, 20, 60, 400]))
            low = int.from_bytes(rng.bytes(bits), "little") + 1
            more = int.from_bytes(rng.bytes(int(rng.integers(1, bits + 2))), "little")
            ratio = Fraction(low + 1 + more, low)
            exact = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            above = exact * (1 + Decimal("1e-14")) + Decimal("1e-320")
            assert exact <= Decimal(float_up(log_bound(ratio))) <= above
