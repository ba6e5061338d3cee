"""How long a check may take: no document takes more than was allowed, whatever it says."""

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
from pufferflow.errors import CertificateError
from pufferflow.mechanisms import MECHANISMS
from pufferflow.verify import MOST_WORK
from pufferflow.verify.model import PRECISIONS, Supports
from pufferflow.verify.parse import parse
from pufferflow.verify.work import MOST_KEPT, work_of

NEAR = [[0.55, 0.45], [0.45, 0.55]]
SAMPLES = {
    "leakage": pf.MarkovChain(NEAR, "any"),
    "mqm-exact": pf.MarkovChain(NEAR, "any"),
    "wasserstein": pf.MarkovChain(NEAR, "any"),
    "group-dp": pf.MarkovChain(NEAR, "any"),
    "intervals": pf.IntervalFamily(np.array(NEAR) - 0.01, np.array(NEAR) + 0.01),
    "phases": pf.PeriodicChain([NEAR, NEAR[::-1]], repeat=20),
}


@cache
def certified(kind):
    return pf.certify(SAMPLES[kind], 50, 1.0, mechanism=kind if kind in MECHANISMS else "leakage")


@pytest.fixture(params=SAMPLES)
def document(request):
    """A certificate of every kind."""
    return deepcopy(certified(request.param))


@pytest.fixture
def unchecked(monkeypatch):
    """Nothing is computed in balls."""

    def started(claim):
        raise AssertionError("the check was started")

    monkeypatch.setattr("pufferflow.verify.interpret", started)


def test_every_kind_is_bounded(document):
    found = pf.verify_certificate(document)
    work = work_of(parse(document))
    needed = sum(work.at(bits) for bits in PRECISIONS if bits <= found.precision)
    assert 0 < needed < MOST_WORK
    assert pf.verify_certificate(document, most_work=needed) == found
    with pytest.raises(CertificateError, match=r"takes about .* operations, at most .* are allowed; allow more"):
        pf.verify_certificate(document, most_work=needed - 1)


def test_it_is_refused_before_it_starts(document, unchecked):
    with pytest.raises(CertificateError, match=r"operations, at most 0.* are allowed"):
        pf.verify_certificate(document, most_work=0)
    with pytest.raises(AssertionError, match="the check was started"):
        pf.verify_certificate(document)


def rows(k):
    return [[str(Fraction(1, k))] * k] * k


def certificate(mechanism, family, length, proof):
    known = {"certificate": "pufferflow", "version": 2, "mechanism": mechanism, "family": family, "epsilon": "1"}
    known |= {"window": 1, "side_information": "none", "proofs": [proof]}
    return known | {"length": length, "scale": "1e300"}


def of_chain(mechanism, k, start, length, proof):
    chain = {"transition_matrix": rows(k), "initial_distribution": start}
    return certificate(mechanism, {"chains": [chain]}, length, proof)


def program(k, many=0, trees=(), **step):
    start = [["1"] * k] * k
    side = {"prefix": [step] * many, "start": start, "cycle": [step]}
    return {"witnesses": list(trees), "forward": side, "backward": side}


def all_trees(k):
    return [[[x + 1, y + 1, [0, *[1] * (k - 1)]] for x in range(k) for y in range(k) if x != y]]


def single_nodes(distances, length):
    """A quilt of its own for every one of many nodes."""
    begin = 10**9
    nodes = [[1, begin - 1, None, None]]
    nodes += [[begin + i, begin + i, 2 * i + 1, 3 * i + 1] for i in range(distances)]
    return {"quilts": [*nodes, [begin + distances, length, None, None]]}


def counts(length, weight):
    return {"weights": [0, weight], "lengths": [length], "W": 3, "slack": "0"}


HOSTILE = {
    "quilts": of_chain("mqm-exact", 20, "any", 10**12, single_nodes(3000, 10**12)),
    "quilts of a stationary chain": of_chain("mqm-approx", 20, "stationary", 10**12, single_nodes(3000, 10**12)),
    "any distribution": of_chain("leakage", 70, "any", 10**6, program(70, power=1)),
    "many steps": of_chain("leakage", 20, "any", 10**6, program(20, 1000, power=1)),
    "many trees": of_chain("leakage", 30, "stationary", 10**6, program(30, 1000, all_trees(30), witnesses=0)),
    "period": certificate(
        "leakage",
        {"periodic": {"transition_matrices": [rows(4)], "repeat": 10**6, "initial_distribution": "stationary"}},
        9,
        program(4, 0, all_trees(4), witnesses=0),
    ),
    "wasserstein": of_chain("wasserstein", 2, "stationary", 2000, counts(2000, 1)),
    "wasserstein, weights": of_chain("wasserstein", 2, "any", 10, counts(10, 10**9)),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_are_refused_in_one_sentence(hostile, unchecked):
    with pytest.raises(CertificateError, match=r"takes about .* (operations|bytes), at most .* are allowed") as error:
        pf.verify_certificate(hostile)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_memory_is_bounded_whatever_is_allowed(unchecked):
    huge = of_chain("wasserstein", 2, "stationary", 10**5, counts(10**5, 1))
    assert work_of(parse(huge)).memory(128) > MOST_KEPT
    with pytest.raises(CertificateError, match=r"bytes, at most 5.0e[+]08 are allowed$"):
        pf.verify_certificate(huge, most_work=10**30)


@pytest.mark.parametrize("digits", [1200, 700])
def test_denominators_that_multiply_up_are_refused(digits):
    """The exact sum of such a row takes time and memory by the square of its length."""
    numbers = [f"1/{10**digits - 1 - 2 * i}" for i in range(20)]
    for family in (
        {"chains": [{"transition_matrix": [numbers] * 20, "initial_distribution": "any"}]},
        {"interval": {"low": [numbers] * 20, "high": [["1"] * 20] * 20}},
    ):
        with pytest.raises(CertificateError, match="common denominator of its numbers has over 8000 bits"):
            pf.verify_certificate(certificate("group-dp", family, 5, {}))


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
    supports = Supports(matrix, [Fraction(begin >> x & 1) for x in range(k)])
    first = data.draw(st.integers(1, 60))
    last = data.draw(st.integers(first, first + 60))
    states, seen, union = begin, set(), 0
    for node in range(1, last + 1):
        assert supports.possible(node) == states
        if node >= first:
            seen.add(states)
            union |= states
        states = _next(rows_, states)
    assert supports.sets(first, last) == seen
    assert supports.between(first, last) == union
    assert len(seen) <= supports.settling


def _next(rows_, states):
    following = 0
    for x, row in enumerate(rows_):
        following |= row if states >> x & 1 else 0
    return following
