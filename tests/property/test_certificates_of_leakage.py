"""Certificates of leakage: how tight they are, and that nothing that was changed is believed."""

import copy
import json
from fractions import Fraction

import numpy as np
import pytest
from cases import SLACK, counts, examples
from hypothesis import example, given
from hypothesis import strategies as st
from random_chains import chains

import pufferflow as pf
from pufferflow.coupling.calibration import ChainLeakage

LENGTHS = st.sampled_from([1, 2, 3, 10, 60, 1000, 10**6])
EPSILONS = st.floats(-3, 1.3).map(lambda power: 10.0**power)

RARE = pf.MarkovChain([[1 - 1e-8, 0, 1e-8], [1e-4, 1 - 1e-4, 0], [0, 1, 0]], "any")
"""Forgets in some 100,000 steps."""
ONCE = pf.MarkovChain([[0, 1, 0], [0, 1 / 1.0001, 1 - 1 / 1.0001], [0, 0, 1]], "any")
"""Hardly anything moves to a state that hardly ever follows."""
CYCLIC = pf.MarkovChain([[0, 0.5, 0.5], [4.999997500001251e-7, 0.49999975000012503, 0.49999975000012503], [1, 0, 0]])
"""From some starts the search for what it tells leads to what a group tells."""


@given(chains(4), LENGTHS, EPSILONS)
@example(RARE, 10**6, 1.0)
@example(ONCE, 2, 10**1.25)
@example(CYCLIC, 1000, 10.0)
@examples(8, 160)
def test_certificates_hold_and_cost_little(chain, length, epsilon):
    """Never twice the scale that they certify (1.05 times in the median, on the same chains)."""
    document = json.loads(json.dumps(pf.certify(chain, length, epsilon, mechanism="leakage")))
    assert pf.verify_certificate(document).scale == document["scale"]
    scale = pf.leakage(chain, length, epsilon).scale
    assert scale * (1 - SLACK) <= float(document["scale"]) <= 2 * scale


@pytest.mark.parametrize(
    ("start", "length"),
    [
        *(("any", 10**6), ([0.7, 0.1, 0.2], 12), ("stationary", 12)),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (("any", 12), ([0.7, 0.1, 0.2], 10**6), ("stationary", 10**6))
        ),
    ],
)
def test_a_few_nodes_looked_at_one_by_one_suffice(length, start):
    """A chain that mixes well although its smallest steps, which nothing forgets by themselves, hardly ever occur."""
    matrix = np.array([[1 - 4e-12, 3e-12, 1e-12], [0.12, 0.29, 0.59], [0.125, 0.125, 0.75]])
    chain = pf.MarkovChain(matrix / matrix.sum(axis=1, keepdims=True), start)
    document = pf.certify(chain, length, 0.05, mechanism="leakage")
    pf.verify_certificate(document)
    assert float(document["scale"]) <= 1.01 * pf.leakage(chain, length, 0.05).scale


def claim_less(document, rng):
    """A scale that is a little smaller, with nothing else changed."""
    key = "cost" if "cost" in document else "epsilon"
    document[key] = repr(float(document[key]) * (1 + 1e-5))
    document["scale"] = repr(float(document["scale"]) * (1 - 0.99e-5))


def sides_of(document):
    kind = "steps" if "steps" in document else "couplings"
    return [(entry, name) for entry in document.get(kind, []) for name in ("ahead", "past")]


def bounds_of(document):
    for entry, name in sides_of(document):
        yield from entry[name] if isinstance(entry[name], list) else [entry[name]]


def lower_bounds(document, rng):
    """All bounds a little smaller, as the smaller scale needs them."""
    claim_less(document, rng)
    for bound in bounds_of(document):
        bound["leakages"] = [[repr(float(a) * (1 - 3e-5)) for a in row] for row in bound["leakages"]]


def drop_a_bound(document, rng):
    claim_less(document, rng)
    sides = [entry[name] for entry, name in sides_of(document) if isinstance(entry[name], list) and entry[name]]
    if sides:
        side = sides[rng.integers(len(sides))]
        side.pop(int(rng.integers(len(side))))


def move_a_bound(document, rng):
    """One that stands for later nodes, or for none, in place of another."""
    lower_bounds(document, rng)
    sides = [entry[name] for entry, name in sides_of(document) if isinstance(entry[name], list) and entry[name]]
    if sides:
        side = sides[rng.integers(len(sides))]
        i, j = rng.integers(len(side), size=2)
        side[i] = copy.deepcopy(side[j])


def change_flows(document, rng):
    lower_bounds(document, rng)
    for bound in bounds_of(document):
        for entry in bound["flows"]:
            for part in entry["flow"]:
                part[2] = repr(float(part[2]) * float(rng.choice([0.9999, 1.0001, 0.5, 2.0])))


def drop_flows(document, rng):
    """Then another kind of proof is asked for."""
    lower_bounds(document, rng)
    for bound in bounds_of(document):
        if rng.random() < 0.5:
            bound["flows"] = []


def change_blocks(document, rng):
    lower_bounds(document, rng)
    k = len(document["family"]["chains"][0]["transition_matrix"])
    for bound in bounds_of(document):
        if isinstance(bound, dict) and "steps" in document and rng.random() < 0.5:
            pair = [int(x) + 1 for x in rng.permutation(k)[:2]]
            bound["blocks"] = [[*pair, int(rng.choice([1, 2, 5, 400]))]] if k > 1 else []


def change_the_chain(document, rng):
    """Probabilities that need more noise, or other proofs."""
    claim_less(document, rng)
    rows = document["family"]["chains"][0]["transition_matrix"]
    row = rows[rng.integers(len(rows))]
    rng.shuffle(row)


def lengthen(document, rng):
    claim_less(document, rng)
    document["length"] += int(rng.integers(1, 1000))


FORGERIES = [
    claim_less,
    lower_bounds,
    drop_a_bound,
    move_a_bound,
    change_flows,
    drop_flows,
    change_blocks,
    change_the_chain,
    lengthen,
]


def true_claim(document):
    """Whether the loss at the stated scale is at most ε by the bounds of the library."""
    entry = document["family"]["chains"][0]
    start = entry["initial_distribution"]
    matrix = [[float(Fraction(p)) for p in row] for row in entry["transition_matrix"]]
    chain = pf.MarkovChain(matrix, start if isinstance(start, str) else [float(Fraction(p)) for p in start])
    length, epsilon = document["length"], float(document["epsilon"])
    if pf.mqm_exact(chain, length, epsilon).scale <= float(document["scale"]):
        return True
    return ChainLeakage(chain, length).loss(1 / float(document["scale"])).value <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("wanted", counts(20, 1040))
def test_nothing_forged_is_believed(wanted):
    """What is accepted would be true: another chain may need less noise."""
    rng = np.random.default_rng(7)
    rejected, accepted = 0, 0
    while rejected < wanted:
        k = int(rng.integers(2, 5))
        matrix = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0])), k)
        start = ["any", "stationary", rng.dirichlet(np.ones(k))][rng.integers(3)]
        length, epsilon = int(rng.choice([2, 8, 50, 10**5])), float(rng.choice([0.02, 0.5, 3.0]))
        document = json.loads(
            json.dumps(pf.certify(pf.MarkovChain(matrix, start), length, epsilon, mechanism="leakage"))
        )
        pf.verify_certificate(document)
        for forge in FORGERIES:
            forged = copy.deepcopy(document)
            forge(forged, rng)
            try:
                pf.verify_certificate(forged)
            except pf.CertificateError:
                rejected += 1
            else:
                accepted += 1
                assert true_claim(forged), forge.__name__
    assert accepted <= rejected / 20
