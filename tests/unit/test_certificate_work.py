"""How long a check may take: no document takes more than was allowed, whatever it says."""

import time
from fractions import Fraction

import pytest

import pufferflow as pf
from pufferflow.errors import CertificateError

SHORT = 20_000


def rows(k):
    return [[str(Fraction(1, k))] * k] * k


def certificate(mechanism, family, length, proof):
    known = {
        "certificate": "pufferflow",
        "version": 2,
        "mechanism": mechanism,
        "family": family,
        "epsilon": "1",
    }
    known |= {"window": 1, "side_information": "none", "proofs": [proof]}
    return known | {"length": length, "scale": "1e300"}


def of_chain(mechanism, k, start, length, proof, period=1):
    chain = {"transition_matrices": [rows(k)] * period, "initial_distribution": start}
    return certificate(mechanism, {"chains": [chain]}, length, proof)


def program(k, many=0, trees=(), period=1, **step):
    side = {"prefix": [step] * many, "start": [["1"] * k] * k, "cycle": [step] * period}
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
    return {"count": {"weights": [0, weight], "lengths": [length], "W": 3, "slack": "0"}}


BOUNDS = {"interval": {"low": [["0.3", "0.3"]] * 2, "high": [["0.6", "0.6"]] * 2}}
HOSTILE = {
    "quilts": of_chain("mqm-exact", 20, "any", 10**12, single_nodes(3000, 10**12)),
    "any distribution": of_chain("leakage", 70, "any", 10**6, program(70, power=1)),
    "many steps": of_chain("leakage", 20, "any", 10**6, program(20, 1000, power=1)),
    "many trees": of_chain(
        "leakage", 30, "stationary", 10**6, program(30, 1000, all_trees(30), witnesses=0)
    ),
    "period": of_chain(
        "leakage", 4, "stationary", 9, program(4, 0, all_trees(4), 20_000, witnesses=0), 20_000
    ),
    "power of rows": certificate("leakage", BOUNDS, 10**18, program(2, power=10**15)),
    "power of phases": of_chain("leakage", 2, "any", 10**18, program(2, period=2, power=10**15), 2),
    "wasserstein": of_chain("wasserstein", 2, "stationary", 2000, counts(2000, 1)),
    "wasserstein, weights": of_chain("wasserstein", 2, "any", 10, counts(10, 10**9)),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_are_refused_in_one_sentence(hostile):
    begun = time.process_time()
    with pytest.raises(
        CertificateError, match=r"over 2.0e\+04 operations; allow more|away from step 1 of"
    ) as error:
        pf.verify_certificate(hostile, most_work=SHORT)
    assert time.process_time() - begun < 5
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("digits", [1200, 700])
def test_denominators_that_multiply_up_are_refused(digits):
    """The exact sum of such a row takes time and memory by the square of its length."""
    numbers = [f"1/{10**digits - 1 - 2 * i}" for i in range(20)]
    for family in (
        {"chains": [{"transition_matrices": [[numbers] * 20], "initial_distribution": "any"}]},
        {"interval": {"low": [numbers] * 20, "high": [["1"] * 20] * 20}},
    ):
        with pytest.raises(CertificateError, match="the common denominator has over 8000 bits"):
            pf.verify_certificate(certificate("group-dp", family, 5, {}))
