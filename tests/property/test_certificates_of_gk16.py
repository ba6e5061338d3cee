"""Certificates of gk16 against Γ by enumeration, with the numbers they are made with and with others."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cases import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from local_influence import NEARLY_ONE_STATE, influence_matrix, weak_chain

import pufferflow as pf
from pufferflow import verify

SEEDS = st.integers(0, 2**32 - 1)
STARTS = st.lists(st.sampled_from(["stationary", "given", "with zeros", "any"]), min_size=1, max_size=3)
TOLERANCE = 1e-9


def family_and_gamma(rng, k, starts, length):
    chains = [weak_chain(rng, k, start) for start in starts]
    laws = [NEARLY_ONE_STATE[k] if c.start == "any" else [c.initial_distribution] for c in chains]
    gammas = [influence_matrix(chain, length, law) for chain, law in zip(chains, laws, strict=True)]
    return pf.ChainFamily(chains), np.maximum.reduce(gammas)


def enumerated(gamma, epsilon):
    return 2 * np.linalg.inv(np.eye(len(gamma)) - gamma).sum(axis=1).max() / epsilon


@examples(12, 120)
@given(SEEDS, st.sampled_from([2, 3]), STARTS, st.integers(1, 6), st.sampled_from([0.01, 0.7, 30.0]))
def test_scales(seed, k, starts, length, epsilon):
    rng = np.random.default_rng(seed)
    family, gamma = family_and_gamma(rng, k, starts, length)
    norm = np.linalg.norm(gamma, 2)
    assume(abs(norm - 1) > 1e-6)
    if norm > 1:
        with pytest.raises(pf.ParameterError, match="the spectral norm of the influence matrix is not below 1"):
            pf.certify(family, length, epsilon, mechanism="gk16")
        return
    document = pf.certify(family, length, epsilon, mechanism="gk16")
    found = pf.verify_certificate(document)
    exact = enumerated(gamma, epsilon)
    assert float(found.lower) * (1 - TOLERANCE) <= exact <= float(document["scale"]) * (1 + TOLERANCE)
    assert float(document["scale"]) <= exact * (1 + TOLERANCE)
    assert abs(pf.gk16(family, length, epsilon).scale / float(document["scale"]) - 1) <= TOLERANCE


@examples(12, 120)
@given(SEEDS, st.sampled_from([2, 3]), st.integers(1, 6), st.data())
def test_any_numbers_prove_the_norm_and_enclose_the_scale_or_are_rejected(seed, k, length, data):
    """The verifier alone decides, also where the norm is not below 1."""
    rng = np.random.default_rng(seed)
    family, gamma = family_and_gamma(rng, k, ["given"], length)
    ranges, first = [], 1
    inverse = np.linalg.inv(np.eye(length) - gamma).sum(axis=1) if np.linalg.norm(gamma, 2) < 1 else np.ones(length)
    spread = [1, data.draw(st.sampled_from([1e-3, 0.5, 1, 1, 1, 2, 1e3])), 1]  # of u: any other proves less
    while first <= length:
        last = min(length, first + data.draw(st.sampled_from([0, 0, 1, 3, 5])))
        values = rng.uniform(0.9, 1.1, 3) * [abs(inverse[first - 1]), 2, 2] * spread
        s, u, v = (repr(float(value)) for value in values)
        ranges.append({"first": first, "last": last, "row_sum": s, "weights": [u, v]})
        first = last + 1
    document = {
        "certificate": "pufferflow",
        "version": 1,
        "mechanism": "gk16",
        "family": pf.certify(family, 1, 1.0, mechanism="gk16")["family"],
        "epsilon": "1",
        "length": length,
        "scale": "0",
        "nodes": ranges,
    }
    try:
        bounds = [bound for _, bound in verify.parse(document).bounds()]
    except pf.CertificateError:
        return
    assert np.linalg.norm(gamma, 2) < 1 + TOLERANCE
    exact = enumerated(gamma, 1.0)
    for bound in bounds:
        assert float(bound.lower) * (1 - TOLERANCE) <= exact <= float(bound.upper) * (1 + TOLERANCE)


@pytest.mark.parametrize(
    ("matrix", "start"),
    [([[0.87, 0.13], [0.45, 0.55]], [1 - 1e-9, 1e-9]), ([[0.985, 0.015], [0.85, 0.15]], [0.8, 0.2])],
)
def test_no_weights_prove_a_norm_of_one_or_more(matrix, start):
    """Here the row sums are finite and proved: the spectral radius of Γ is below 1."""
    chain = pf.MarkovChain(matrix, start)
    gamma = influence_matrix(chain, 2, [chain.initial_distribution])
    assert max(abs(np.linalg.eigvals(gamma))) < 0.9 < 1.04 < np.linalg.norm(gamma, 2)
    document = pf.certify(chain, 1, 1.0, mechanism="gk16") | {"length": 2}
    sums = np.linalg.inv(np.eye(2) - gamma).sum(axis=1)
    for one, other in product(product(["0.001", "0.9", "1", "1000"], repeat=2), repeat=2):
        document["nodes"] = [
            {"first": node, "last": node, "row_sum": repr(float(s)), "weights": list(weights)}
            for node, s, weights in zip((1, 2), sums, (one, other), strict=True)
        ]
        with pytest.raises(pf.CertificateError, match="prove no norm below 1"):
            list(verify.parse(document).bounds())


@examples(10, 260)
@given(SEEDS, st.integers(2, 5), st.sampled_from([7, 60, 10**4, 10**6, 10**18]))
def test_long_chains(seed, k, length):
    rng = np.random.default_rng(seed)
    family = pf.ChainFamily([weak_chain(rng, k, start) for start in ("stationary", "given")])
    plain = pf.gk16(family, length, 1.0)
    assume(plain.scale is not None)
    document = pf.certify(family, length, 1.0, mechanism="gk16")
    found = pf.verify_certificate(document)
    assert found.lower <= found.upper <= Fraction(document["scale"])
    # beyond 100,000 nodes gk16 itself takes the limit of the middle, or a bound of it
    assert float(found.lower) <= plain.scale * (1 + TOLERANCE)
    if length <= 100_000:
        assert float(document["scale"]) >= plain.scale * (1 - TOLERANCE)
        assert float(document["scale"]) <= plain.scale * (1 + TOLERANCE)
