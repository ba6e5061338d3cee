"""Forgetting families: closed form against plain recursion, and certificates, true ones and forged ones."""

import copy
import json
from fractions import Fraction

import numpy as np
import plain_forgetting
import pytest
from cases import counts, examples
from hypothesis import example, given
from hypothesis import strategies as st

import pufferflow as pf

STEPS = st.integers(1, 9)
OVERLAPS = st.sampled_from([1e-6, 0.01, 0.2, 0.4, 0.65, 0.99, 1.0])
LENGTHS = st.integers(1, 60)
COSTS = st.sampled_from([1e-12, 1e-4, 0.01, 0.1, 0.5, 1.0, 3.0, 20.0])
EPSILONS = st.sampled_from([1e-60, 1e-6, 0.05, 0.3, 1.0, 5.0, 60.0, 1e5, 1e60])


@examples(12, 120)
@given(STEPS, OVERLAPS, LENGTHS, COSTS)
def test_the_closed_form_is_the_recursion_at_the_worst_node(steps, overlap, length, cost):
    found = pf.leakage_loss(pf.MixingFamily(steps, overlap), length, 1 / cost)
    plain = plain_forgetting.loss(steps, overlap, length, cost)
    assert plain * (1 - 1e-11) <= found <= plain * (1 + 1e-11)
    assert found <= length * cost * (1 + 1e-14)


@examples(12, 120)
@given(STEPS, OVERLAPS, LENGTHS, st.sampled_from([0.05, 0.3, 1.0, 5.0, 60.0]))
def test_the_scale_is_the_smallest(steps, overlap, length, epsilon):
    result = pf.leakage(pf.MixingFamily(steps, overlap), length, epsilon)
    assert plain_forgetting.loss(steps, overlap, length, 1 / result.scale) <= epsilon * (1 + 1e-11)
    assert plain_forgetting.loss(steps, overlap, length, 1 / result.scale / (1 - 1e-9)) > epsilon * (1 + 1e-10)
    side = plain_forgetting.leakages(steps, overlap, length - 1, 1 / result.scale)
    if result.node is not None:  # a node that decides
        there = 1 / result.scale + side[result.node - 1] + side[length - result.node]
        assert there == pytest.approx(epsilon, rel=1e-9)


@examples(8, 270)
@given(st.integers(1, 300), OVERLAPS, st.sampled_from([1, 7, 1000, 10**6, 2**62]), EPSILONS)
def test_certificates_prove_the_scale(steps, overlap, length, epsilon):
    result = pf.leakage(pf.MixingFamily(steps, overlap), length, epsilon)
    certified = result.certified(pf.MixingFamily(steps, overlap))
    assert certified.scale == pytest.approx(result.scale, rel=1e-14)
    assert len(json.dumps(certified.certificate)) < 300
    found = pf.verify_certificate(json.loads(json.dumps(certified.certificate)))
    assert found.lower <= Fraction(certified.certificate["scale"])
    assert found.upper <= found.lower * (1 + Fraction(1, 10**20))


def test_values_of_the_theory():
    """Section 7 (f), to six digits; a minute of two years."""
    for steps, overlap, scales in ((60, 0.4, (1541.21, 349.528, 131.077)), (120, 0.65, (1874.45, 405.353, 132.095))):
        for epsilon, scale in zip((0.2, 1.0, 5.0), scales, strict=True):
            found = pf.leakage(pf.MixingFamily(steps, overlap), 1_051_200, epsilon)
            assert found.scale == pytest.approx(scale, rel=4e-6)
            assert (found.mechanism, found.chain, found.reason) == ("leakage", None, "")


def lower(text, by):
    return str(Fraction(text) * (1 - by))


def forge(document, rng):
    """Change what the certificate claims so that it is no longer true, or no longer the smallest scale."""
    forged, family = copy.deepcopy(document), document["family"]["forgetting"]
    by = Fraction(1, 10 ** int(rng.integers(1, 10)))
    kind = rng.choice(["scale", "more", "overlap", "steps", "length", "epsilon", "mechanism", "shape"])
    new = forged["family"]["forgetting"]
    match kind:
        case "scale":
            forged["scale"] = lower(document["scale"], by)
        case "more":
            forged["scale"] = lower(document["scale"], -by)
        case "overlap":
            new["overlap"] = str(Fraction(family["overlap"]) * (1 + rng.choice([-1, 1]) * by))
        case "steps":
            new["steps"] = int(rng.choice([family["steps"] + 1, 2 * family["steps"], max(family["steps"] - 1, 1)]))
        case "length":
            forged["length"] = int(document["length"] + rng.choice([-1, 1, 5]))
        case "epsilon":
            forged["epsilon"] = lower(document["epsilon"], rng.choice([-1, 1]) * by)
        case "mechanism":
            forged["mechanism"] = str(rng.choice(["mqm-exact", "group-dp", "wasserstein", "mqm-approx"]))
        case "shape":
            odd = [0, -1, "0", "-1", "1.5", True, None, [], {}, "nan", 2**70, "1/0"]
            key = rng.choice(["steps", "overlap", "epsilon", "length", "scale", "version", "extra"])
            (new if key in ("steps", "overlap", "extra") else forged)[str(key)] = odd[int(rng.integers(len(odd)))]
    return forged


def smallest(document):
    """The smallest scale of a claim by the plain recursion, to 1e-11; None where it is malformed."""
    family = document["family"]["forgetting"]
    steps, overlap = family["steps"], float(Fraction(family["overlap"]))
    epsilon, length = float(Fraction(document["epsilon"])), document["length"]
    low, high = 1 / epsilon, length / epsilon
    while high > low * (1 + 1e-12):
        middle = (low + high) / 2
        if plain_forgetting.loss(steps, overlap, length, 1 / middle) <= epsilon:
            high = middle
        else:
            low = middle
    return high


@pytest.mark.parametrize("wanted", counts(20, 1040))
def test_no_forged_certificate_is_accepted(wanted):
    rng = np.random.default_rng(5)
    rejected = 0
    while rejected < wanted:
        family = pf.MixingFamily(int(rng.integers(2, 12)), float(rng.choice([0.05, 0.2, 0.4, 0.65, 0.9])))
        document = pf.certify(
            family, int(rng.integers(30, 60)), float(rng.choice([0.1, 1.0, 4.0])), mechanism="leakage"
        )
        pf.verify_certificate(document)
        forged = forge(document, rng)
        try:
            pf.verify_certificate(forged)
        except pf.CertificateError:
            rejected += 1
        else:  # the claim was changed to another true one: that of another T or overlap with the same scale
            assert smallest(forged) == pytest.approx(float(Fraction(forged["scale"])), rel=3e-12)
            assert forged["mechanism"] == "leakage"


ODD = st.sampled_from([None, True, -1, 0, 1.5, 2**70, "", "nan", "-1", "1/0", [], {}, [1], {"steps": 1}, "x" * 50])


@examples(12, 120)
@example("overlap", "0")
@example("overlap", "1.01")
@given(st.sampled_from(["family", "epsilon", "length", "scale", "forgetting", "steps", "overlap"]), ODD)
def test_anything_else_is_rejected_in_one_sentence(key, value):
    document = pf.certify(pf.MixingFamily(), 500, 1.0, mechanism="leakage")
    place = document["family"] if key == "forgetting" else document
    (document["family"]["forgetting"] if key in ("steps", "overlap") else place)[key] = value
    with pytest.raises(pf.CertificateError) as caught:
        pf.verify_certificate(document)
    assert 15 < len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)
