"""Certificates against enumeration in exact fractions: what the verifier accepts is true."""

import copy
import math
from fractions import Fraction

import plain_influence
import pytest
from cases import examples
from enumeration import stationary_law
from hypothesis import assume, given
from hypothesis import strategies as st
from random_chains import chains as random_chains

import pufferflow as pf
from pufferflow import verify

WEIGHTS = st.sampled_from([0.0, 0.0, 1e-12, 0.01, 0.2, 0.5, 1.0, 1.0, 3.0])
POSITIVE = st.sampled_from([0.05, 0.2, 0.3, 0.5, 1.0])
EPSILONS = st.sampled_from([0.05, 0.3, 1.0, 2.5, 10.0, 1000.0])
CONVENTIONS = st.sampled_from(["exact", "published"])


def chains(max_states=4):
    """Sparse chains and positive ones."""
    return random_chains(max_states, WEIGHTS) | random_chains(max_states, POSITIVE, permutations=False)


def exact_chains(document):
    """Chains of a certificate in fractions, the stationary law from the linear equations."""
    for entry in document["family"]["chains"]:
        P = [[Fraction(p) for p in row] for row in entry["transition_matrix"]]
        start = entry["initial_distribution"]
        if start == "stationary":
            start = stationary_law(P)
        elif start != "any":
            start = [Fraction(p) for p in start]
        yield P, start


def enumerated(document, shift=0.0):
    """Largest card/(ε − e) over the nodes of a certificate, each with its stated quilt; ε moved by ``shift``."""
    T, epsilon = document["length"], float(Fraction(document["epsilon"])) + shift
    largest = 0.0
    for (P, start), ranges in zip(exact_chains(document), document["nodes"], strict=True):
        for entry in ranges:
            for node in range(entry["first"], entry["last"] + 1):
                a, b = entry["left"], entry["right"]
                if not ((a is None or 1 <= a < node) and (b is None or 1 <= b <= T - node)):
                    return math.inf
                card = (T if b is None else node + b - 1) if a is None else T - node + a if b is None else a + b - 1
                ratio = 1
                if a is not None or b is not None:
                    ratio = plain_influence.max_influence_ratio(P, start, node, a, b, document["convention"])
                largest = max(largest, plain_influence.score(card, ratio, epsilon))
    return largest


SHIFT = 1e-12


@examples(10, 220)
@given(chains(), st.integers(1, 9), EPSILONS, CONVENTIONS)
def test_certificates_verify_and_give_the_enumerated_scale(chain, length, epsilon, convention):
    result = pf.mqm_exact(chain, length, epsilon, convention=convention, certified=True)
    document = result.certificate
    found = pf.verify_certificate(document)
    assert float(found.lower) <= result.scale <= float(found.upper) * (1 + 1e-15)
    assert Fraction(result.scale) >= found.lower
    [(P, start)] = exact_chains(document)
    plain = [plain_influence.noise_scale(P, start, length, epsilon + s, convention) for s in (SHIFT, -SHIFT)]
    assert plain[0] * (1 - 1e-11) <= result.scale <= plain[1] * (1 + 1e-11)


@examples(12, 120)
@given(chains(3), st.integers(1, 8), EPSILONS, CONVENTIONS, st.data())
def test_the_enclosure_holds_for_any_quilts(chain, length, epsilon, convention, data):
    """Not only for those the search chooses: the verifier alone decides."""
    document = pf.certify(chain, length, epsilon, convention=convention)
    ranges, first = [], 1
    while first <= length:
        last = min(length, first + data.draw(st.sampled_from([0, 0, 1, 4])))
        left = data.draw(st.sampled_from([None, *range(1, first)]))
        right = data.draw(st.sampled_from([None, *range(1, length - last + 1)]))
        ranges.append({"first": first, "last": last, "left": left, "right": right})
        first = last + 1
    document["nodes"] = [ranges]
    exact = all(r["first"] == r["last"] for r in ranges) or chain.start == "stationary"
    try:
        found = [bound for _, bound in verify.parse(document).bounds()][-1]
    except pf.CertificateError:
        assert not exact or enumerated(document, -SHIFT) == math.inf
        return
    assert enumerated(document, SHIFT) <= float(found.upper) * (1 + 1e-11)
    # cards are the largest of a range, so only single nodes have equality
    if all(r["first"] == r["last"] for r in ranges):
        assert float(found.lower) <= enumerated(document, -SHIFT) * (1 + 1e-11)


def replaced(number, change):
    return str(change(Fraction(number)))


def lower_scale(document, draw):
    document["scale"] = replaced(document["scale"], lambda s: s * (1 - Fraction(1, 10**9)))


def raise_scale(document, draw):
    document["scale"] = replaced(document["scale"], lambda s: s * (1 + Fraction(1, 10**9)))


def change_entry(document, draw):
    row = draw(st.sampled_from(document["family"]["chains"][0]["transition_matrix"]))
    index = draw(st.integers(0, len(row) - 1))
    step = Fraction(draw(st.sampled_from([1, -1])), 10 ** draw(st.integers(1, 30)))
    row[index] = replaced(row[index], lambda p: abs(p + step))


def change_start(document, draw):
    start = document["family"]["chains"][0]["initial_distribution"]
    assume(isinstance(start, list))
    index = draw(st.integers(0, len(start) - 1))
    start[index] = replaced(start[index], lambda p: p + Fraction(1, 10**20))


def remove_range(document, draw):
    document["nodes"][0].pop(draw(st.integers(0, len(document["nodes"][0]) - 1)))


def double_range(document, draw):
    index = draw(st.integers(0, len(document["nodes"][0]) - 1))
    document["nodes"][0].insert(index, document["nodes"][0][index])


def reverse_ranges(document, draw):
    assume(len(document["nodes"][0]) > 1)
    document["nodes"][0].reverse()


def overlap(document, draw):
    assume(len(document["nodes"][0]) > 1)
    document["nodes"][0][0]["last"] += 1


def raise_length(document, draw):
    document["length"] += draw(st.integers(1, 10**6))


def lower_length(document, draw):
    document["length"] -= 1


def change_epsilon(document, draw):
    factor = 1 + Fraction(draw(st.sampled_from([1, -1])), 10 ** draw(st.integers(1, 9)))
    document["epsilon"] = replaced(document["epsilon"], lambda e: e * factor)


TAMPERINGS = [
    lower_scale,
    raise_scale,
    change_entry,
    change_start,
    remove_range,
    double_range,
    reverse_ranges,
    overlap,
    raise_length,
    lower_length,
    change_epsilon,
]


@pytest.mark.parametrize("tamper", TAMPERINGS)
@examples(7, 60)
@given(chain=chains(), length=st.sampled_from([1, 2, 5, 30, 1000]), epsilon=EPSILONS, data=st.data())
def test_tampering_is_rejected(tamper, chain, length, epsilon, data):
    document = pf.certify(chain, length, epsilon)
    tampered = copy.deepcopy(document)
    tamper(tampered, data.draw)
    assume(tampered != document)
    with pytest.raises(pf.CertificateError):
        pf.verify_certificate(tampered)


@examples(12, 120)
@given(chains(3), st.integers(2, 8), EPSILONS, st.data())
def test_a_changed_quilt_is_rejected_or_serves_as_well(chain, length, epsilon, data):
    document = pf.certify(chain, length, epsilon)
    entry = data.draw(st.sampled_from(document["nodes"][0]))
    side = data.draw(st.sampled_from(["left", "right"]))
    entry[side] = data.draw(st.sampled_from([None, *range(0, length)]).filter(lambda d: d != entry[side]))
    try:
        pf.verify_certificate(document)
    except pf.CertificateError:
        return
    assert enumerated(document, SHIFT) <= float(Fraction(document["scale"])) * (1 + 1e-11)


def assert_certified_in_few_ranges(chain, length, epsilon, convention="exact"):
    result = pf.mqm_exact(chain, length, epsilon, convention=convention, certified=True)
    pf.verify_certificate(result.certificate)
    assert len(result.certificate["nodes"][0]) <= 5000
    low, high = (pf.mqm_exact(chain, length, epsilon * (1 + s), convention=convention).scale for s in (1e-9, -1e-9))
    # laws that change over 10⁹ steps and more take larger tolerances; the search rounds influences of 10¹² steps up
    more, less = (1e-9, 1e-9) if length <= 10**9 else (2.0**-3, 0.5)
    assert low * (1 - less) <= result.scale <= high * (1 + more)


@examples(8, 110)
@given(chains(3), st.integers(0, 18).map(lambda n: 10**n), EPSILONS, CONVENTIONS)
def test_any_length(chain, length, epsilon, convention):
    assert_certified_in_few_ranges(chain, length, epsilon, convention)


@pytest.mark.parametrize("start", [[1, 0, 0], [0, 1, 0], [0, 0, 1], "any", "stationary"])
def test_states_left_once_in_a_million_million_steps(start):
    # scores rise by 10⁻¹³ from node to node: a range for each would be 10¹² of them
    rates = [[0, 1, 1e-12], [3.3e-7, 1, 3.3e-13], [1e-12, 1e-20, 1]]
    matrix = [[p / sum(row) for p in row] for row in rates]
    assert_certified_in_few_ranges(pf.MarkovChain(matrix, start), 10**14, 0.3)


ODD = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        3,
        10**30,
        0.5,
        "",
        "0",
        "1",
        "-1",
        "1e999",
        "1/3",
        "x",
        [],
        ["1"],
        [[1, 0]],
        {},
        {"low": []},
    ]
)
SOUND = [
    pf.certify(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), 20, 0.5),
    pf.certify(pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 20, 0.5, mechanism="entry-dp"),
]


def places(value, path=()):
    """Yield the paths of keys to all parts of a document."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@examples(20, 300)
@given(st.sampled_from(SOUND), st.data())
def test_anything_else_is_rejected_in_one_sentence(document, data):
    odd = {"document": copy.deepcopy(document)}
    *keys, last = data.draw(st.sampled_from(list(places(odd))[1:]))
    part = odd
    for key in keys:
        part = part[key]
    part[last] = data.draw(ODD)
    try:
        pf.verify_certificate(odd["document"])
    except pf.CertificateError as error:
        message = str(error)
        assert 15 < len(message) < 250
        assert "\n" not in message
