"""Certificates of wasserstein against exact distributions: those accepted, those made."""

import json
import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from cases import examples
from enumeration import stationary_law
from hypothesis import assume, example, given
from hypothesis import strategies as st
from plain_transport import chain_wasserstein, laws_given_secrets
from rational_chains import loss, random_case, some_starts

import pufferflow as pf
from pufferflow.audit import chain_sensitivity
from pufferflow.errors import CertificateError, ChainError
from pufferflow.verify.balls import Work
from pufferflow.verify.counts import distributions_at_nodes
from pufferflow.verify.model import Model
from pufferflow.verify.parse import Chain

SEEDS = st.integers(0, 2**32 - 1)


def document(matrix, start, lengths, weights, reach, slack="0", epsilon="1"):
    """A certificate written by hand; the scale is that which it would prove."""
    rest = Fraction(epsilon) - Fraction(math.log1p(float(Fraction(slack))))
    scale = reach / rest * (1 if slack == "0" else 1 + Fraction(1, 10**14))
    chain = {
        "transition_matrices": [[[str(p) for p in row] for row in matrix]],
        "initial_distribution": start if isinstance(start, str) else [str(p) for p in start],
    }
    head = {"certificate": "pufferflow", "version": 2, "mechanism": "wasserstein", "window": 1}
    head |= {"side_information": "none", "length": max(lengths), "epsilon": epsilon}
    count = {"weights": weights, "lengths": lengths, "W": reach, "slack": slack}
    proof = {"family": {"chains": [chain]}, "scale": str(scale), "proofs": [{"count": count}]}
    return head | proof


def accepted(certificate):
    try:
        return pf.verify_certificate(json.loads(json.dumps(certificate))) is not None
    except CertificateError as error:
        reason = str(error)
    assert "are not within W" in reason or "bits do not decide" in reason
    return False


@examples(12, 120)
@given(SEEDS)
def test_the_laws_hold_the_exact_ones(seed):
    matrix, start, length, weights = random_case(np.random.default_rng(seed), 3)
    for node, laws in distributions_at_nodes(
        Model(Chain([matrix], start), Work(1e9)), length, weights
    ):
        exact = laws_given_secrets(matrix, start, length, weights, node)
        for x, [law] in enumerate(laws):
            assert law.possible == (x in exact)
            for n, mass in enumerate(law.masses):
                p = exact.get(x, {}).get(n, Fraction(0))
                assert mass.is_zero() == (p == 0)
                for found, value in ((mass, p), (law.below[n], _sum(exact, x, 0, n))):
                    assert abs(float(found.mid()) - float(value)) <= 1e-30 + 1e-12 * float(value)
                assert float(law.above[n].mid()) == pytest.approx(
                    float(_sum(exact, x, n + 1, 99)), rel=1e-12
                )


def _sum(laws, x, first, last):
    return sum((p for n, p in laws.get(x, {}).items() if first <= n <= last), Fraction(0))


@examples(12, 120)
@given(SEEDS, st.integers(0, 4))
@example(212471, 2)
def test_accepted_are_those_within_w_and_nothing_else(seed, reach):
    """Exactly equal values of the two distribution functions are the only ones left undecided.

    Where probabilities of 1e-80 are added to others, floats cannot say that they are equal.
    """
    matrix, start, length, weights = random_case(np.random.default_rng(seed), 3)
    length = min(length, 5)
    expected = chain_wasserstein(matrix, start, length, weights)
    found = accepted(document(matrix, start, [length], weights, reach))
    assert found <= (expected <= reach)
    rounded = pf.MarkovChain([[float(p) for p in row] for row in matrix], [float(p) for p in start])
    plain = chain_sensitivity(rounded, length, weights)
    if plain.strict == plain.W:
        assert found == (expected <= reach)
        if stationary_law(matrix) == start:
            assert accepted(document(matrix, "stationary", [length], weights, reach)) == found


@examples(12, 120)
@given(
    SEEDS, st.integers(0, 3), st.sampled_from(["1e-9", "1e-3", "1/2"]), st.sampled_from(["1", "3"])
)
def test_plans_prove_the_scale(seed, reach, slack, epsilon):
    """From the exact laws, whatever slack a certificate gives itself."""
    matrix, start, length, weights = random_case(np.random.default_rng(seed), 3)
    length = min(length, 5)
    certificate = document(matrix, start, [length], weights, reach, slack, epsilon)
    if not accepted(certificate):
        # what holds without slack holds with it
        assert chain_wasserstein(matrix, start, length, weights) > reach
        return
    scale = float(Fraction(certificate["scale"]))
    for node in range(1, length + 1):
        given = laws_given_secrets(matrix, start, length, weights, node).values()
        laws = [{n: v / sum(law.values()) for n, v in law.items()} for law in given]
        for p, q in permutations(laws, 2):
            if reach == 0:
                assert all(p[n] <= (1 + Fraction(slack)) * q.get(n, 0) for n in p)
            else:
                assert loss(p, q, scale) <= float(epsilon) * (1 + 1e-9)


@examples(12, 120)
@given(SEEDS, st.integers(0, 3), st.sampled_from(["0", "1e-9"]))
def test_any_start_covers_every_start(seed, reach, slack):
    rng = np.random.default_rng(seed)
    matrix, _, length, weights = random_case(rng, 3)
    k, length = len(matrix), min(length, 4)
    if not accepted(document(matrix, "any", [length], weights, reach, slack)):
        return
    for law in some_starts(rng, k, 5):
        if slack == "0":
            assert chain_wasserstein(matrix, law, length, weights) <= reach
        else:
            assert accepted(document(matrix, law, [length], weights, reach, slack))


@examples(12, 120)
@given(SEEDS, st.integers(1, 3), st.lists(st.integers(1, 12), min_size=1, max_size=3), st.data())
def test_certified_scales(seed, k, lengths, data):
    """What certify makes verifies, is the scale of the mechanism, and no smaller W would do."""
    rng = np.random.default_rng(seed)
    start = data.draw(st.sampled_from(["stationary", "any", "given"]))
    matrix = rng.dirichlet(np.full(k, data.draw(st.sampled_from([0.1, 1.0]))), k)
    try:
        chain = pf.MarkovChain(matrix, rng.dirichlet(np.ones(k)) if start == "given" else start)
    except ChainError:
        assume(False)
    epsilon = data.draw(st.sampled_from([1e-6, 0.3, 20.0]))
    states = sorted({int(x) for x in rng.integers(0, k, k)})
    plain = pf.wasserstein(chain, lengths, epsilon, states=states)
    proved = plain.certified(chain)
    assert plain.scale * (1 - 2e-9 / epsilon) <= proved.scale <= plain.scale * (1 + 1e-12)
    found = pf.verify_certificate(json.loads(json.dumps(proved.certificate)))
    assert found.loss <= Fraction(repr(epsilon))
    proof = proved.certificate["proofs"][0]["count"]
    assert sorted(set(lengths)) == proof["lengths"]
    weights = [int(x in states) for x in range(k)]
    if proof["W"] > chain_sensitivity(chain, lengths, weights).W:  # of ties
        return
    if proof["W"]:
        assert not accepted(
            proved.certificate | {"proofs": [{"count": proof | {"W": proof["W"] - 1}}]}
        )
