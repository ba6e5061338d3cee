"""What a check takes is estimated before it starts, and bounded."""

import json
from copy import deepcopy
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.verify import MOST_WORK, PROOFS, parse
from pufferflow.verify.balls import Supports
from pufferflow.verify.parsing import Chain
from pufferflow.verify.proof import MOST_KEPT, Proof

NEAR = [[0.55, 0.45], [0.45, 0.55]]
SAMPLES = {
    **{name: pf.MarkovChain(NEAR, "any") for name in PROOFS},
    "entry-dp": pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]),
    "mqm-approx": pf.MarkovChain(NEAR),
}


@cache
def certified(kind):
    if kind == "intervals":
        return pf.certify(pf.IntervalFamily(np.array(NEAR) - 0.01, np.array(NEAR) + 0.01), 50, 1.0, mechanism="leakage")
    return pf.certify(SAMPLES[kind], 50, 1.0, mechanism=kind)


@pytest.fixture(params=[*SAMPLES, "intervals"])
def document(request):
    """A certificate of every kind."""
    return deepcopy(certified(request.param))


@pytest.fixture
def unchecked(monkeypatch):
    """Nothing is computed in balls."""

    def started(proof):
        raise AssertionError("the check was started")

    for kind in _kinds(Proof):
        if "bound" in vars(kind):
            monkeypatch.setattr(kind, "bound", started)


def _kinds(kind):
    return [kind, *(below for child in kind.__subclasses__() for below in _kinds(child))]


def test_every_kind_is_bounded(document):
    found = pf.verify_certificate(document)
    proof = parse(document)
    needed = sum(proof.work().at(bits) for bits in proof.precisions if bits <= found.precision)
    assert 0 < needed < MOST_WORK
    assert pf.verify_certificate(document, most_work=needed) == found
    with pytest.raises(pf.CertificateError, match=r"takes about .* operations, at most .* are allowed; allow more"):
        pf.verify_certificate(document, most_work=needed - 1)


def test_it_is_refused_before_it_starts(document, unchecked):
    with pytest.raises(pf.CertificateError, match="operations, at most 0 are allowed"):
        pf.verify_certificate(document, most_work=0)
    with pytest.raises(AssertionError, match="the check was started"):
        pf.verify_certificate(document)


def rows(k):
    return [[str(Fraction(1, k))] * k] * k


def certificate(mechanism, family, length, **fields):
    known = {"certificate": "pufferflow", "version": 1, "mechanism": mechanism, "family": family, "epsilon": "1"}
    return known | {"length": length, "scale": "1e300"} | fields


def of_chain(mechanism, k, start, length, **fields):
    chain = {"transition_matrix": rows(k), "initial_distribution": start}
    return certificate(mechanism, {"chains": [chain]}, length, **fields)


def side(k):
    return {"leakages": [["1"] * k] * k, "flows": []}


def single_nodes(distances, length):
    """A quilt of its own for every one of many nodes."""
    begin = 10**9
    nodes = [{"first": 1, "last": begin - 1, "left": None, "right": None}]
    nodes += [{"first": begin + i, "last": begin + i, "left": 2 * i + 1, "right": 3 * i + 1} for i in range(distances)]
    return [[*nodes, {"first": begin + distances, "last": length, "left": None, "right": None}]]


HOSTILE = {
    "quilts": of_chain("mqm-exact", 20, "any", 10**12, convention="exact", nodes=single_nodes(3000, 10**12)),
    "quilts of a stationary chain": of_chain(
        "mqm-approx", 20, "stationary", 10**12, convention="exact", nodes=single_nodes(3000, 10**12), proved="1"
    ),
    "leakage": of_chain("leakage", 200, "stationary", 9, cost="1", couplings=[{"ahead": side(200), "past": side(200)}]),
    "leakage of any start": of_chain(
        "leakage", 70, "any", 9, cost="1", couplings=[{"ahead": side(70), "past": side(70)}]
    ),
    "wasserstein": of_chain("wasserstein", 2, "stationary", 2000, weights=[0, 1], lengths=[2000], W=3, slack="0"),
    "wasserstein, weights": of_chain(
        "wasserstein", 2, "any", 10, weights=[0, 10**9], lengths=[10], W=3, slack="0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_are_refused_in_one_sentence(hostile, unchecked):
    with pytest.raises(
        pf.CertificateError, match=r"takes about .* (operations|bytes), at most .* are allowed"
    ) as error:
        pf.verify_certificate(hostile)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_memory_is_bounded_whatever_is_allowed(unchecked):
    lengths = {"lengths": [10**5], "W": 3, "slack": "0"}
    huge = of_chain("wasserstein", 2, "stationary", 10**5, weights=[0, 1], **lengths)
    assert parse(huge).work().memory(128) > MOST_KEPT
    with pytest.raises(pf.CertificateError, match=r"bytes, at most 5.0E[+]8 are allowed$"):
        pf.verify_certificate(huge, most_work=10**30)


def test_more_bits_are_not_tried_beyond_the_bound():
    """Here 128 bits leave it open: what the next precision takes decides whether it is tried."""
    document = pf.certify(pf.MarkovChain(NEAR), 50, 1.0)
    found = pf.verify_certificate(document)
    document["scale"] = str((found.lower + found.upper) / 2)
    first = parse(document).work().at(128)
    with pytest.raises(pf.CertificateError, match="to check it with 256 bits takes about"):
        pf.verify_certificate(document, most_work=first)


@pytest.mark.parametrize("digits", [1200, 700])
def test_denominators_that_multiply_up_are_refused(digits):
    """The exact sum of such a row takes time and memory by the square of its length."""
    numbers = [f"1/{10**digits - 1 - 2 * i}" for i in range(20)]
    for family in (
        {"chains": [{"transition_matrix": [numbers] * 20, "initial_distribution": "any"}]},
        {"interval": {"low": [numbers] * 20, "high": [["1"] * 20] * 20}},
    ):
        with pytest.raises(pf.CertificateError, match="common denominator of its numbers has over 8000 bits"):
            pf.verify_certificate(certificate("group-dp", family, 5))


def test_the_command_allows_more_work(tmp_path, run):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(pf.certify(SAMPLES["leakage"], 50, 1.0)))
    code, out, error = run("verify", path, "--most-work", 1)
    assert (code, out) == (2, "")
    assert "certificate rejected: mqm-exact at epsilon 1 for 1 chain of 2 states" in error
    assert error.count("\n") == 1
    assert run("verify", path, "--most-work", "1e9")[0] == 0
    for wrong in ("0", "-1", "nan", "inf"):
        code, _, error = run("verify", path, f"--most-work={wrong}")
        assert code == 2
        assert "argument --most-work: invalid number" in error


@examples(20, 60)
@given(st.integers(1, 5), st.data())
def test_supports_are_those_of_the_steps_one_by_one(k, data):
    rows_ = data.draw(st.lists(st.integers(1, 2**k - 1), min_size=k, max_size=k))
    begin = data.draw(st.integers(1, 2**k - 1))
    matrix = [[Fraction(row >> y & 1) for y in range(k)] for row in rows_]
    supports = Supports(Chain(matrix, [Fraction(begin >> x & 1) for x in range(k)]))
    first = data.draw(st.integers(1, 60))
    last = data.draw(st.integers(first, first + 60))
    states, seen = begin, set()
    for node in range(1, last + 1):
        if node >= first:
            seen.add(states)
        states = _next(rows_, states)
    found = supports.between(first, last)
    assert set(found) == seen
    assert len(found) == len(seen) <= supports.settling()


def _next(rows_, states):
    following = 0
    for x, row in enumerate(rows_):
        following |= row if states >> x & 1 else 0
    return following
