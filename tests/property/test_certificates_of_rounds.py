"""Certificates of chains with a clock or with labels: proved, never below the scale, and no forged one accepted."""

import copy
import json
from itertools import product

import numpy as np
import pytest
from cases import SLACK, counts
from flint import arb

import pufferflow as pf
from pufferflow.verify import CertificateError, verify_certificate
from pufferflow.verify.rounds import _proved, _tree


def random_family(rng):
    k = int(rng.integers(2, 4))
    matrices = rng.dirichlet(np.full(k, rng.choice([0.5, 2.0])), (int(rng.integers(1, 4)), k)) * 0.99 + 0.01 / k
    kind = rng.integers(3)
    if kind == 0:
        return pf.PeriodicChain(matrices, repeat=int(rng.integers(1, 4)))
    if kind == 1:
        return pf.LabelledChain(pf.MarkovChain(matrices[0]), np.arange(k) % 2)
    return pf.LabelledChain.of_order(rng.dirichlet(np.ones(2), (2, 2)) * 0.9 + 0.05)


def certificate(seed):
    rng = np.random.default_rng([9, seed])
    family, epsilon = random_family(rng), float(rng.choice([0.1, 1.0, 3.0]))
    return rng, family, epsilon, pf.certify(family, 1000, epsilon, mechanism="leakage")


@pytest.mark.parametrize("seed", range(6))
def test_scales_are_proved_and_close(seed):
    _, family, epsilon, document = certificate(seed)
    scale = pf.leakage(family, 1000, epsilon).scale
    assert scale * (1 - SLACK) <= float(document["scale"]) <= scale * (1 + SLACK)
    found = verify_certificate(json.loads(json.dumps(document)))
    assert "public clock" in found.subject or "labels are seen" in found.subject


def places(value, path=()):
    """Paths to all numbers and strings of a document."""
    if isinstance(value, dict | list):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(entry, (*path, key))
    else:
        yield path


def forge(rng, document):
    """Make the chain worse or the noise smaller, or damage the proof: what must not be accepted as the same.

    A proof for ε has up to 1e-6 of it to spare, so smaller changes of numbers may leave it one.
    """
    forged = copy.deepcopy(document)
    kind = rng.integers(4)
    if kind == 0:  # less noise
        forged["cost"] = repr(float(forged["cost"]) * (1 + 10.0 ** int(rng.integers(-5, 1))))
        forged["scale"] = repr(1 / float(forged["cost"]))
    elif kind == 1:  # less of epsilon
        forged["epsilon"] = repr(float(forged["epsilon"]) * (1 - 10.0 ** int(rng.integers(-5, 0))))
    elif kind == 2:  # lower bounds than there are
        side = forged[rng.choice(["ahead", "past"])]
        side["start"] = [[repr(float(a) * float(rng.choice([0.0, 0.5, 0.9]))) for a in row] for row in side["start"]]
        if side["start"] == document[["ahead", "past"][side is forged["past"]]]["start"]:
            return None
    else:
        options = [path for path in places(forged) if path[0] in ("ahead", "past", "nodes", "family")]
        path = options[rng.integers(len(options))]
        at = forged
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = [None, -1, 99, "x", 1.5, "-0.5"][rng.integers(6)]
        if at[path[-1]] == -1 and path[0] != "family" and path[-2] != "start":
            return None  # another tree may prove the same
        if path[-1] == "repeat" and at[path[-1]] == 99:
            return None  # another chain, of which it may be a proof
    return forged


@pytest.mark.parametrize("wanted", counts(20, 1040))
def test_no_forged_certificate_is_accepted(wanted):
    known, forgeries = {}, 0
    seed = 0
    while forgeries < wanted:
        rng = np.random.default_rng([10, seed])
        if seed % 12 not in known:
            known[seed % 12] = certificate(seed % 12)[3]
        forged = forge(rng, known[seed % 12])
        seed += 1
        if forged is None:
            continue
        forgeries += 1
        with pytest.raises(CertificateError):
            verify_certificate(forged)
    print(f"{forgeries} forged certificates, none accepted")


def test_windows_and_informed_adversaries_have_none():
    chain = pf.PeriodicChain([[[0.6, 0.4], [0.5, 0.5]]])
    with pytest.raises(pf.ParameterError, match="only stationary starts have proofs"):
        pf.certify(
            pf.PeriodicChain([[[0.6, 0.4], [0.5, 0.5]]], initial_distribution="any"), 9, 1.0, mechanism="leakage"
        )
    with pytest.raises(pf.ParameterError, match="single records"):
        pf.certify(chain, 9, 1.0, mechanism="leakage", window=2)


def test_any_tree_proves_an_upper_bound():
    """Also one whose arcs lead the wrong way: what it leaves over at a state costs the way to the one with most."""
    rng = np.random.default_rng(11)
    for _ in range(12):
        p, q = rng.dirichlet(np.ones(3), 2)
        costs = rng.uniform(0.1, 3, (3, 3)) * (1 - np.eye(3))
        costs = np.minimum(costs, (costs[:, :, None] + costs[None, :, :]).min(axis=1))  # of three, one detour is all
        drawn = rng.uniform(-3, 3, (40, 3))
        drawn = np.concatenate([drawn, *(np.eye(3)[:, [i]].T * 9 * sign for i in range(3) for sign in (1, -1))])
        h = np.exp((drawn[:, None, :] + costs[None, :, :]).min(axis=2))  # h(z) <= h(y) e^costs[z, y]
        largest = ((h @ p) / (h @ q)).max()
        laws = [[arb(value) for value in law] for law in (p.tolist(), q.tolist())]
        growth = [[arb(value) for value in row] for row in np.exp(costs).tolist()]
        for root, signs in product(range(3), product((1, -1), repeat=2)):
            parents = [root + 1] * 3
            parents[root] = 0
            for state, sign in zip([v for v in range(3) if v != root], signs, strict=True):
                parents[state] *= sign
            assert float(_proved(*laws, _tree(parents, 3, ""), growth)) >= largest * (1 - 1e-12)
