"""Certificates of known scales, what makes the verifier refuse, and the commands."""

import ast
import copy
import io
import json
import subprocess
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shipped_counts import electricity_transitions

import pufferflow as pf
from pufferflow import verify
from pufferflow.mechanisms import KNOWN
from pufferflow.verify import read_certificate

P1, P2 = [[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.3, 0.7]]
THETA_1, THETA_2 = pf.MarkovChain(P1, [1, 0]), pf.MarkovChain(P2, [0.9, 0.1])
THETA_3 = pf.MarkovChain([[0.5, 0.5], [1, 0]])


def symmetric(stay, start):
    return pf.MarkovChain([[stay, 1 - stay], [1 - stay, stay]], start)


WORKED = [
    (THETA_1, "exact", 12.934051),
    (THETA_1, "published", 13.02192350),
    (THETA_2, "exact", 10.64019298),
    (THETA_2, "published", 10.64019298),
    (pf.ChainFamily([THETA_1, THETA_2]), "exact", 12.934051),
    (pf.ChainFamily([THETA_2, THETA_1]), "published", 13.02192350),
    (pf.MarkovChain(P1, "any"), "exact", 13.02192),
    (symmetric(0.9, "stationary"), "exact", 31.7378),
    (symmetric(0.9, "any"), "exact", 33.6293),
    (symmetric(0.6, "stationary"), "exact", 3.5718),
    (symmetric(0.6, "any"), "exact", 3.9480),
    (symmetric(0.5, "stationary"), "exact", 1.0),
    (pf.BinaryInterval(0.3, 0.7), "exact", 7.22),
    (pf.BinaryInterval(0.1, 0.9), "exact", 33.63),
    (pf.BinaryInterval(0.1, 0.6), "exact", 33.63),
]


@pytest.fixture(scope="module")
def document():
    return pf.certify(THETA_1, 100, 1.0)


@pytest.fixture(scope="module")
def electricity():
    chain, _ = pf.fit_chain(electricity_transitions())
    return chain


def rejected(document, reason):
    with pytest.raises(pf.CertificateError, match=reason):
        pf.verify_certificate(document)


def test_the_verifier_shares_no_code_with_what_it_checks():
    folder = Path(verify.__file__).parent
    imported = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module)
    ours = {name for name in imported if name.split(".")[0] == "pufferflow"}
    assert ours - {f"pufferflow.verify.{path.stem}" for path in folder.glob("*.py")} == {"pufferflow.errors"}
    assert {name.split(".")[0] for name in imported - ours} <= {*sys.stdlib_module_names, "flint"}
    # nor does anything that it imports load the numerical code
    script = "import sys, pufferflow.verify; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "numba", "pufferflow.influence", "pufferflow.mechanisms", "pufferflow.markov"} & set(loaded)


# -- what is proved ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "convention", "scale"), WORKED)
def test_worked_examples(family, convention, scale):
    result = pf.mqm_exact(family, 100, 1.0, convention=convention, certified=True)
    assert result.scale == pytest.approx(scale, rel=1e-3 if scale in (7.22, 33.63) else 1e-5)
    assert result.scale == pytest.approx(pf.mqm_exact(family, 100, 1.0, convention=convention).scale, rel=1e-12)
    found = pf.verify_certificate(json.loads(json.dumps(result.certificate)))
    assert found.lower <= found.upper <= Fraction(result.scale)
    assert Fraction(result.scale) <= found.lower * (1 + Fraction(1, 10**15))
    lowered = result.certificate | {"scale": repr(result.scale * (1 - 1e-9))}
    rejected(lowered, "more than the scale")


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("family", [THETA_1, symmetric(0.9, "any"), pf.ChainFamily([THETA_1, THETA_2])])
def test_the_larger_scale_of_mqm_approx_is_proved_by_the_same_quilts(family, epsilon):
    scale = pf.mqm_approx(family, 100, epsilon).scale
    document = pf.certify(family, 100, epsilon, mechanism="mqm-approx")
    assert float(document["scale"]) == pytest.approx(scale, rel=1e-15)
    found = pf.verify_certificate(document)
    assert found.upper <= Fraction(document["scale"])
    too_small = float(found.lower) * (1 - 1e-9)
    rejected(document | {"scale": repr(too_small)}, "more than the scale")
    # as the smallest scale that quilts prove it is not accepted
    exact = {key: value for key, value in document.items() if key != "proved"} | {"mechanism": "mqm-exact"}
    if scale > 1.001 * float(found.upper):
        rejected(exact, "is not the scale that is proved")


@pytest.mark.parametrize("length", [1, 2, 3, 100, 10**9])
@pytest.mark.parametrize(
    "chain",
    [
        pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]], [0.9, 0.1]),
        pf.MarkovChain(np.full((3, 3), 1 / 3), "any"),
        pf.BinaryInterval(0.5, 0.5),
        pf.MarkovChain([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [1, 0, 0]),  # known in advance
        pf.MarkovChain([[0.25, 0.75, 0], [0.25, 0.75, 0], [0, 0.5, 0.5]]),  # the third state never occurs
    ],
)
def test_entry_dp_of_independent_records(chain, length):
    for epsilon in (0.1, 0.3, 1.0):
        document = pf.certify(chain, length, epsilon, mechanism="entry-dp")
        assert float(document["scale"]) == pytest.approx(1 / epsilon, rel=1e-15)
        assert Fraction(document["scale"]) >= 1 / Fraction(str(epsilon))
        pf.verify_certificate(document)


def test_entry_dp_of_correlated_records():
    with pytest.raises(pf.ParameterError, match=r"^no certificate for entry-dp: chain 1: its records are correlated "):
        pf.certify(THETA_1, 100, 1.0, mechanism="entry-dp")
    slightly = pf.MarkovChain([[0.5, 0.5], [0.5 + 1e-15, 0.5 - 1e-15]], "any")
    for length, start in ((100, slightly), (3, pf.ChainFamily([symmetric(0.5, "any"), slightly]))):
        with pytest.raises(pf.ParameterError, match=r"rows 1 and 2 differ\), and of correlated ones .* use mqm-exact$"):
            pf.certify(start, length, 1.0, mechanism="entry-dp")
    pf.verify_certificate(pf.certify(THETA_1, 1, 1.0, mechanism="entry-dp"))


@pytest.mark.parametrize(("epsilon", "length"), [(0.2, 20), (5.0, 20), pytest.param(1.0, 100, marks=pytest.mark.long)])
def test_wasserstein(epsilon, length):
    for family in (THETA_1, THETA_2, pf.ChainFamily([THETA_1, THETA_2]), pf.MarkovChain(P1, "any")):
        result = pf.wasserstein(family, length, epsilon).certified(family)
        assert Fraction(result.scale) >= 4 / Fraction(repr(epsilon))
        assert result.scale == pytest.approx(4 / epsilon, rel=1e-15)
        found = pf.verify_certificate(json.loads(json.dumps(result.certificate)))
        assert found.lower == found.upper == 4 / Fraction(repr(epsilon))
        smaller = result.certificate | {"W": 3, "scale": repr(3 / epsilon)}
        reason = r"chain 1, \d+ records, node \d+: given states 1 and 2 the laws .* not within W = 3$"
        rejected(smaller, reason)


def test_wasserstein_of_independent_records():
    """W = 1, but the distribution functions are equal there: rounding decides, and plans with slack prove it."""
    for chain in (symmetric(0.5, "any"), pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]]), pf.BinaryInterval(0.5, 0.5)):
        document = pf.certify(chain, 30, 1.0, mechanism="wasserstein")
        assert (document["W"], document["slack"]) == (1, "1e-9")
        assert 1 < pf.verify_certificate(document).upper < 1 + Fraction(2, 10**9)
    # no room for it: an epsilon of the size of the slack
    document = pf.certify(symmetric(0.5, "any"), 30, 1e-9, mechanism="wasserstein")
    assert (document["W"], document["slack"]) == (2, "0")


def test_wasserstein_of_all_segments():
    """The largest W may be that of a short segment: the certificate covers every length."""
    swap = pf.MarkovChain([[0, 1], [1, 0]], "any")
    result = pf.wasserstein(swap, [2, 3, 4], 1.0)
    assert (result.length, result.scale, result.count) == (3, 1.0, ((1,), (2, 3, 4)))
    document = result.certified(swap).certificate
    assert (document["lengths"], document["length"], document["W"]) == ([2, 3, 4], 4, 1)
    rejected(document | {"W": 0, "scale": "0"}, "chain 1, 3 records, node 1")
    pf.verify_certificate(document | {"W": 0, "scale": "0", "lengths": [2, 4]})


def test_wasserstein_of_any_count():
    chain = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]], "any")
    document = pf.certify(chain, 12, 2.0, mechanism="wasserstein", states=[0, 2])
    assert document["weights"] == [1, 0, 1]
    pf.verify_certificate(document)
    rejected(document | {"weights": [1, 0]}, "weights must hold one integer of at least 0 for every state")
    for weight in (10**9, 10**400):
        rejected(document | {"weights": [1, 0, weight]}, "takes about .* operations, at most 4.0E[+]7 are allowed")
    with pytest.raises(pf.ParameterError, match=r"^no certificate for wasserstein: the query is missing"):
        pf.certify(chain, 12, 2.0, mechanism="wasserstein")


@pytest.mark.parametrize(
    ("states", "length", "start"), [(1, 10**11, "any"), (1, 10**7, "any"), (40, 10, "any"), (20, 1000, "any")]
)
def test_wasserstein_refuses_what_would_take_hours_or_gigabytes(states, length, start):
    """Small documents all the same."""
    rows = [[str(Fraction(1, states))] * states] * states
    chain = {"transition_matrix": rows, "initial_distribution": start}
    document = {"certificate": "pufferflow", "version": 1, "mechanism": "wasserstein", "family": {"chains": [chain]}}
    document |= {"epsilon": "1", "length": length, "scale": "0"}
    document |= {"weights": [0] * states, "lengths": [length], "W": 0, "slack": "0"}
    rejected(document, "to check it with 128 bits takes about .* operations, at most 4.0E[+]7 are allowed")


def test_wasserstein_of_a_class_is_not_that_of_its_worst_chain():
    document = pf.certify(symmetric(0.7, "any"), 20, 1.0, mechanism="wasserstein")
    document["family"] = {"binary_interval": ["0.3", "0.7"]}
    rejected(document, "the largest W over all chains between bounds is not known; give chains")
    document["family"] = {"binary_interval": ["0.7", "0.7"]}
    pf.verify_certificate(document)


def test_certificates_where_fixed_points_jump():
    """One step of the cost leads from a loss of 40 to the cap of 4090: the search for a cost that suffices ends."""
    rows = [[0.999, 0, 0.00092, 0.00008], [0.0001, 0.999, 0.0004, 0.0005], [0, 0.001, 0.999, 0], [0, 0.0001, 0, 0.9999]]
    found = pf.leakage(pf.MarkovChain(rows), 1000, 40.0).certified(pf.MarkovChain(rows))
    assert found.certificate is not None
    assert found.scale <= pf.mqm_exact(pf.MarkovChain(rows), 1000, 40.0).scale * (1 + 1e-9)


# -- all mechanisms ----------------------------------------------------------------------------------

INTERVALS = pf.IntervalFamily(
    [[0.5, 0.1, 0.1], [0.2, 0.4, 0.1], [0.1, 0.2, 0.5]], [[0.7, 0.3, 0.25], [0.4, 0.6, 0.2], [0.3, 0.35, 0.6]]
)
FAMILIES = [
    THETA_1,
    pf.ChainFamily([THETA_1, THETA_2]),
    pf.BinaryInterval(0.4, 0.6),
    pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], [1, 0]),
    pf.MarkovChain([[0, 1], [1, 0]], [0.5, 0.5]),
    pf.MarkovChain([[1.0]]),
    INTERVALS,
]


@pytest.mark.parametrize("name", verify.PROOFS)
def test_every_mechanism_has_a_certificate_or_a_reason(name):
    reasons = set()
    for family in FAMILIES:
        for length in (1, 20):
            try:
                document = pf.certify(family, length, 0.5, mechanism=name)
            except pf.ParameterError as error:
                reasons.add(str(error))
                continue
            assert document["mechanism"] == name
            assert pf.verify_certificate(json.loads(json.dumps(document))).upper <= Fraction(document["scale"])
    assert all(reason.startswith(f"no certificate for {name}: ") and len(reason) > 50 for reason in reasons)
    assert len(reasons) < 2 * len(FAMILIES)
    if name == "group-dp":
        assert not reasons


def test_mechanisms_without_proofs_are_told_from_those_with():
    assert set(KNOWN) == {*verify.PROOFS, "gk16"}
    for name in ("laplace", *(set(pf.MECHANISMS) - set(verify.PROOFS))):
        with pytest.raises(
            pf.ParameterError, match=f"^no certificate for '{name}': only the scales of mqm-exact, .* have proofs$"
        ):
            pf.certify(THETA_1, 100, 1.0, mechanism=name)


def change(document, path, edit):
    """Replace what is at the path of keys; a missing part of the file is one that the edit turns into None."""
    *keys, last = path
    for key in keys:
        document = document[key]
    document[last] = edit(document[last])
    if document[last] is None:
        del document[last]


def times(factor):
    return lambda number: str(Fraction(number) * Fraction(factor))


def remove(value):
    return None


CHAIN_ENTRY = ("family", "chains", 0, "transition_matrix", 0, 0)
TAMPERED = [
    (("epsilon",), times("1.000001")),
    (("epsilon",), times("0.999999")),
    (("length",), lambda length: length + 1),
    (("length",), lambda length: length - 1),
]
LOWERED = ("scale",), times("0.999999999")
CASES = {
    "mqm-exact": (THETA_1, [LOWERED, (CHAIN_ENTRY, times("1.000001")), (("nodes", 0, 1), remove)]),
    "mqm-approx": (
        THETA_2,
        [
            (("scale",), times("0.1")),
            (("proved",), times("1.000001")),
            (("proved",), times("0.999999")),
            (CHAIN_ENTRY, times("1.000001")),
            (("nodes", 0, 1), remove),
        ],
    ),
    "group-dp": (
        THETA_2,
        [LOWERED, (CHAIN_ENTRY, times("0.999999")), (("family", "chains", 0, "transition_matrix", 1), remove)],
    ),
    "entry-dp": (
        pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]]),
        [
            LOWERED,
            (CHAIN_ENTRY, times("1.000001")),
            (("family", "chains", 0, "transition_matrix", 0), lambda row: row[::-1]),
            (("nodes", 0, 1), remove),
        ],
    ),
    "wasserstein": (
        THETA_2,
        [
            LOWERED,
            (("W",), lambda reach: reach - 1),
            (("W",), lambda reach: reach + 1),
            (("W",), lambda reach: -reach),
            (("slack",), lambda slack: "0.001"),
            (("slack",), lambda slack: "1"),
            (("weights", 1), lambda weight: 2),
            (("weights", 1), lambda weight: -1),
            (("weights", 1), remove),
            (("lengths", 0), remove),
            (("lengths", 0), lambda length: 50),
            (CHAIN_ENTRY, times("1.000001")),
        ],
    ),
}
"""By mechanism (or kind of family): a certificate and what may happen to it."""


@cache
def verified(name):
    family, _ = CASES[name]
    document = pf.certify(family, 100, 0.5, mechanism=name)
    pf.verify_certificate(document)
    return document


@pytest.mark.parametrize(
    ("name", "path", "edit"),
    [(name, path, edit) for name, (_, edits) in CASES.items() for path, edit in TAMPERED + edits],
)
def test_tampering_with_any_certificate_is_rejected(name, path, edit):
    document = copy.deepcopy(verified(name))
    change(document, path, edit)
    with pytest.raises(pf.CertificateError, match=r"\w{3}"):
        pf.verify_certificate(document)


@pytest.mark.parametrize(
    ("epsilon", "scale"),
    [(1.0, 595.126), *(pytest.param(*known, marks=pytest.mark.long) for known in ((0.2, 4145.006), (5.0, 66.156)))],
)
def test_electricity(electricity, epsilon, scale):
    result = pf.mqm_exact(electricity, 1_051_200, epsilon, certified=True)
    assert result.scale == pytest.approx(scale, abs=6e-4)
    found = pf.verify_certificate(read_certificate(json.dumps(result.certificate)))
    assert Fraction(result.scale) <= found.lower * (1 + Fraction(1, 10**15))
    assert found.ranges == 3
    rejected(result.certificate | {"scale": repr(result.scale - 1e-9)}, "more than the scale")
    entry = copy.deepcopy(result.certificate)
    row = entry["family"]["chains"][0]["transition_matrix"][17]
    row[17] = str(Fraction(row[17]) - Fraction(1, 10**12))
    rejected(entry, "chain 1, row 18 does not sum to 1 exactly but to 1 - 1E-12")
    rejected(result.certificate | {"nodes": [result.certificate["nodes"][0][:-1]]}, "have no proof")


@pytest.mark.parametrize("start", ["any", "stationary", [1, 0, 0]])
def test_the_number_of_ranges_does_not_grow_with_the_length(start):
    chain = pf.MarkovChain([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]], start)
    short, long = (pf.certify(chain, length, 0.5) for length in (1000, 10**9))
    assert short["scale"] == long["scale"]
    assert len(short["nodes"][0]) == len(long["nodes"][0]) <= 20
    pf.verify_certificate(long)


def test_periodic_and_reducible_chains():
    cycle = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert pf.mqm_exact(pf.MarkovChain(cycle, [1, 0, 0]), 10**9, 2.0, certified=True).scale == 0.5
    assert pf.mqm_exact(pf.MarkovChain(cycle), 10**6, 2.0, certified=True).scale == 5e5
    split = pf.MarkovChain(np.eye(2), [0.5, 0.5])
    assert pf.mqm_exact(split, 10**9, 1.0, certified=True).scale == 1e9
    transient = pf.MarkovChain([[0.5, 0.25, 0.25], [0, 0.6, 0.4], [0, 0.4, 0.6]])
    pair = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    assert pf.certify(transient, 100, 1.0)["scale"] == pf.certify(pair, 100, 1.0)["scale"]


def test_tiny_probabilities_need_more_bits():
    chain = pf.MarkovChain([[1 - 1e-5, 1e-5], [0.5, 0.5]])
    for epsilon in (0.01, 30.0):
        pf.verify_certificate(pf.certify(chain, 1000, epsilon))
    pf.verify_certificate(pf.certify(pf.MarkovChain([[0.5, 0.5, 0], [0, 1, 1e-300], [1, 0, 0]]), 50, 1000.0))


def test_a_looser_cover_where_too_many_ranges_are_needed(monkeypatch):
    monkeypatch.setattr("pufferflow.certificates.quilts.MOST_RANGES", 3)
    chain = pf.MarkovChain([[0.95, 0.05], [0.1, 0.9]], [1, 0])
    result = pf.mqm_exact(chain, 1000, 1.0, certified=True)
    pf.verify_certificate(result.certificate)
    assert len(result.certificate["nodes"][0]) <= 3
    assert pf.mqm_exact(chain, 1000, 1.0).scale < result.scale < 1000


def test_fields_of_the_noise_scale():
    plain, certified = (pf.mqm_exact(THETA_1, 100, 1.0, certified=c) for c in (False, True))
    assert plain.certificate is None
    assert certified.certificate == pf.certify(THETA_1, 100, 1.0)
    assert "certificate" not in certified.to_dict()
    assert "certificate" not in repr(certified)
    assert (certified.node, certified.quilt, certified.chain) == (plain.node, plain.quilt, plain.chain)


def test_thirds_are_thirds():
    document = pf.certify(pf.MarkovChain(np.full((3, 3), 1 / 3)), 10, 1.0)
    assert document["family"]["chains"][0]["transition_matrix"] == [["1/3"] * 3] * 3


# -- what is rejected --------------------------------------------------------------------------------


def test_ranges(document):
    def nodes(*ranges):
        keys = ("first", "last", "left", "right")
        return document | {"nodes": [[dict(zip(keys, r, strict=True)) for r in ranges]]}

    good = [(1, 7, None, 5), (8, 8, 7, 5), (9, 9, 5, 5), (10, 95, 5, 5), (96, 100, 5, None)]
    assert nodes(*good) == document
    rejected(nodes(*good[1:]), "starts at node 8 must start at 1")
    rejected(nodes(*good[:2], *good[3:]), "starts at node 10 must start at 9")
    rejected(nodes(*good[:-1]), "nodes 96 to 100 have no proof")
    rejected(nodes(*good[::-1]), "starts at node 96 must start at 1")
    rejected(nodes((1, 8, None, 5), *good[1:]), "starts at node 8 must start at 9")
    rejected(nodes(*good[:-1], (96, 101, 5, None)), "no range within 1 to 100")
    rejected(nodes(*good[:3], (10, 9, 5, 5)), "no range")
    rejected(nodes(*good[:3], (10, 95, 10, 5), good[4]), "does not fit")
    rejected(nodes(*good[:3], (10, 95, 5, 6), good[4]), "does not fit")
    rejected(nodes(*good[:3], (10, 95, 0, 5), good[4]), "does not fit")
    rejected(nodes(*good[:3], (10, 95, -1, 5), good[4]), "does not fit")
    rejected(nodes(good[0], (8, 8, 6, 5), *good[2:]), "nodes 8 to 8, quilt distances 6 and 5: .* is at least")
    rejected(nodes(good[0], (8, 8, 7, 4), *good[2:]), "is at least")
    rejected(nodes(*good[:3], (10, 95, 1, 1), good[4]), "max-influence is not below epsilon")
    rejected(nodes((1, 100, None, None)), "is at least 100")
    rejected(document | {"nodes": []}, "0 lists of ranges for 1 chains")
    rejected(document | {"nodes": document["nodes"] * 2}, "2 lists of ranges for 1 chains")
    rejected(document | {"nodes": [[[1, 100]]]}, "is a list, not an object")


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("scale", 12.93, "scale holds 12.93; numbers are strings"),
        ("scale", "nan", "scale holds 'nan'"),
        ("scale", "-1", "scale holds '-1'"),
        ("scale", "1e999999999", "scale holds"),
        ("scale", "9" * 5000, "scale holds"),
        ("scale", "1/0", "scale holds"),
        ("scale", "1_0", "scale holds"),
        ("scale", "13", "13 is not the scale that is proved"),
        ("scale", "1e999", "is not the scale that is proved"),
        ("scale", "0", "more than the scale 0"),
        ("epsilon", "1.1", "not the scale that is proved"),
        ("epsilon", "0.9", "is at least"),
        ("epsilon", "0", "epsilon is 0"),
        ("epsilon", "1e-999", "not below epsilon"),
        ("epsilon", None, "epsilon holds None"),
        ("length", 101, "nodes 101 to 101 have no proof"),
        ("length", 99, "no range within 1 to 99|does not fit"),
        ("length", 100.0, "length is 100.0, not an integer"),
        ("length", True, "length is True, not an integer"),
        ("length", 0, "length is 0"),
        ("length", 10**400, "length is 1000"),
        ("version", 2, "version is 2; this program reads version 1"),
        ("version", "1", "version is '1'"),
        ("certificate", "other", "certificate is 'other'"),
        ("mechanism", "group-dp", "unknown key 'convention'"),
        ("mechanism", "laplace", "mechanism is 'laplace', not mqm-exact or"),
        ("convention", "Exact", "convention is 'Exact'"),
        ("convention", "published", "max-influence|is at least"),
        ("convention", ["exact"], "convention is a list"),
        ("family", {}, "family lacks the key chains"),
        ("family", [], "family is a list"),
        ("family", {"chains": []}, "no chain"),
        ("family", {"chains": [3]}, "chain 1 is 3, not an object"),
        ("family", {"chains": [], "binary_interval": ["0.3", "0.7"]}, "unknown key 'binary_interval'"),
        ("family", {"binary_interval": ["0.3"]}, "two numbers"),
        ("family", {"binary_interval": ["0.7", "0.3"]}, "two numbers"),
        ("nodes", {}, "nodes is a dict"),
        ("extra", 1, "unknown key 'extra'"),
    ],
)
def test_fields(document, key, value, reason):
    rejected(document | {key: value}, reason)


@pytest.mark.parametrize("key", ["certificate", "version", "family", "epsilon", "length", "scale", "nodes"])
def test_missing_keys(document, key):
    rejected({k: v for k, v in document.items() if k != key}, f"the certificate lacks the key {key}")


@pytest.mark.parametrize(
    ("matrix", "start", "reason"),
    [
        ([], "any", "has no rows"),
        ([["1"], ["1"]], "any", "row 1 has 1 entries for 2 states"),
        ([["0.9", "0.2"], ["0.4", "0.6"]], ["1", "0"], r"row 1 does not sum to 1 exactly but to 1 \+ 0.1"),
        ([["0.9", "0.1"], ["0.4", "0.6"]], ["1", "0", "0"], "initial_distribution has 3 entries"),
        ([["0.9", "0.1"], ["0.4", "0.6"]], "anything", "initial_distribution is 'anything'"),
        ([["1", "0"], ["0", "1"]], "stationary", "not unique"),
        ([["0.91", "0.09"], ["0.4", "0.6"]], ["1", "0"], "is at least|not the scale that is proved"),
        ("1", "any", "transition_matrix is '1'"),
    ],
)
def test_chains(document, matrix, start, reason):
    chain = {"transition_matrix": matrix, "initial_distribution": start}
    rejected(document | {"family": {"chains": [chain]}}, reason)


def test_the_interval_decides_about_its_chain():
    document = pf.certify(pf.BinaryInterval(0.2, 0.7), 100, 1.0)
    pf.verify_certificate(document)
    rejected(document | {"family": {"binary_interval": ["0.19", "0.7"]}}, "is at least")
    rejected(document | {"family": {"binary_interval": ["0.2", "0.81"]}}, "is at least")
    rejected(document | {"family": {"binary_interval": ["0.21", "0.7"]}}, "not the scale that is proved")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff", b"[" * 100_000, b'{"a": 1, "a": 2}', b'{"length": ' + b"9" * 5000 + b"}"]
)
def test_texts_that_are_no_json(text):
    with pytest.raises(pf.CertificateError):
        read_certificate(text)


@pytest.mark.parametrize("text", ["null", "3", "[]", "NaN", '"x"', "{}"])
def test_texts_that_are_no_certificate(text):
    rejected(read_certificate(text), "the certificate")


# -- the commands ------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    model = tmp_path / "model.json"
    model.write_text(json.dumps({"chains": [{"transition_matrix": P1, "initial_distribution": [1, 0]}]}))
    return model, tmp_path / "out.json"


def test_scale_and_verify(files, run, monkeypatch):
    model, out = files
    code, printed, _ = run("scale", model, "--length", 100, "--epsilon", 1, "--certificate", out)
    assert code == 0
    assert "12.934051086186495" in printed
    assert run("verify", out) == (
        0,
        "verified: mqm-exact at epsilon 1 for 1 chain of 2 states, segments of up to 100 records: "
        "hides single records from those who know no record: "
        "scale 12.934051086186495 >= largest card/(epsilon - e) in "
        "[12.93405108618649356261619, 12.93405108618649356261620], ranges of nodes: 5\n",
        "",
    )
    code, printed, _ = run("verify", out, "--json")
    fields = json.loads(printed)
    assert (code, fields["verified"], fields["scale"], fields["chain"]) == (0, True, "12.934051086186495", 0)
    assert (fields["first"], fields["last"], fields["left"], fields["right"]) == (8, 8, 7, 5)
    assert Fraction(fields["lower"]) < Fraction(fields["upper"]) < Fraction(fields["scale"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(out.read_bytes())))
    assert run("verify", "-")[0] == 0


@pytest.mark.parametrize("mechanism", verify.PROOFS)
@pytest.mark.parametrize(
    "model",
    [
        {"chains": [{"transition_matrix": [[0.5, 0.5], [0.5, 0.5]]}]},
        {"binary_interval": [0.4, 0.55]},
        {"interval": {"low": [[0.6, 0.2], [0.3, 0.5]], "high": [[0.8, 0.4], [0.5, 0.7]]}},
    ],
)
def test_scale_and_verify_every_mechanism(files, run, mechanism, model):
    path, out = files
    path.write_text(json.dumps(model))
    code, printed, message = run(
        "scale", path, "--length", 50, "--epsilon", 1, "--mechanism", mechanism, "--certificate", out, "--json"
    )
    if code:
        assert (code, printed, message.count("\n"), out.exists()) == (2, "", 1, False)
        assert (mechanism, len(model.get("chains", ()))) not in (("mqm-exact", 1), ("entry-dp", 1))
        assert message.startswith("pufferflow: error: ")
        return
    [result] = json.loads(printed)
    code, printed, _ = run("verify", out)
    assert code == 0
    assert printed.startswith(f"verified: {mechanism} at epsilon 1 for ")
    assert f": scale {result['scale']!r} >= largest " in printed
    code, printed, _ = run("verify", out, "--json")
    fields = json.loads(printed)
    assert float(fields["lower"]) <= float(fields["upper"]) <= result["scale"]
    assert fields["first"] <= fields["last"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("12.934051086186495", "12.934051085186495", "chain 1, nodes 8 to 8, quilt distances 7 and 5: card"),
        ('"0.9"', '"0.9000001"', "chain 1, row 1 does not sum to 1 exactly"),
        ('{"first": 9, "last": 9, "left": 5, "right": 5}, ', "", "starts at node 10 must start at 9"),
        ("{", "", "the file is not JSON"),
    ],
)
def test_verify_rejects(files, run, old, new, reason):
    model, out = files
    run("scale", model, "--length", 100, "--epsilon", 1, "--certificate", out)
    text = out.read_text()
    assert old in text
    out.write_text(text.replace(old, new, 1))
    code, printed, message = run("verify", out)
    assert (code, printed, message.count("\n")) == (2, "", 1)
    assert message.startswith("pufferflow: error: certificate rejected: ")
    assert reason in message


def test_the_scale_that_was_asked_for_is_the_one_certified(files, run):
    model, out = files
    arguments = ("scale", model, "--length", 100, "--epsilon", 1, "--mechanism", "mqm-approx", "--eigengap", "general")
    _, plain, _ = run(*arguments, "--json")
    code, certified, _ = run(*arguments, "--json", "--certificate", out)
    assert code == 0
    assert json.loads(certified) == json.loads(plain)
    assert json.loads(out.read_text())["scale"] == repr(json.loads(plain)[0]["scale"])
    assert run("verify", out)[0] == 0


def test_commands_that_cannot_be_obeyed(files, run):
    model, out = files
    arguments = ("scale", model, "--length", 10, "--epsilon", 1, "--certificate", out)
    for more in (("--epsilon", 2), ("--mechanism", "gk16", "--mechanism", "mqm-exact")):
        code, _, message = run(*arguments, *more)
        assert code == 2
        assert "--certificate needs a single --epsilon" in message
    code, _, message = run("verify", out)
    assert code == 2
    assert "cannot read" in message
    assert not out.exists()
