"""Certificates of leakage between bounds: what is proved, and forged ones."""

import copy
from fractions import Fraction

import numpy as np
import pytest
from cases import SLACK, counts, examples
from hypothesis import example, given
from hypothesis import strategies as st
from interval_families import family

import pufferflow as pf


def some_family(rng):
    k = int(rng.integers(2, 4))
    width, sticky = float(rng.choice([0.01, 0.05])), float(rng.choice([0.3, 0.7]))
    if rng.random() < 0.6:
        box = family(rng, k, width, sticky)
        if rng.random() < 0.5:
            return box
        return pf.IntervalFamily(box.low, box.high, backward=family(rng, k, width, sticky))
    matrices = [(1 - sticky) * rng.dirichlet(np.ones(k), k) + sticky * np.eye(k) for _ in range(2)]
    backward = pf.TotalVariationFamily(matrices[1], width) if rng.random() < 0.5 else None
    return pf.TotalVariationFamily(matrices[0], width * rng.random(k), backward=backward)


@example(193, 0.05, 40)
@example(36, 0.05, 10**9)  # a backward family that fits no chain of the forward one: the columns decide
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.05, 1.0, 6.0]), st.sampled_from([1, 2, 40, 10**9]))
@examples(5, 40)
def test_certified_scales(seed, epsilon, length):
    rng = np.random.default_rng(seed)
    theta = some_family(rng)
    protection = {"window": int(rng.choice([1, 3])), "knows": str(rng.choice(["nothing", "any records"]))}
    plain = pf.leakage(theta, length, epsilon, **protection)
    document = pf.certify(theta, length, epsilon, mechanism="leakage", **protection)
    found = pf.verify_certificate(document)
    assert found.upper <= Fraction(document["scale"]) <= found.upper * (1 + Fraction(1, 10**15))
    assert plain.scale * (1 - SLACK) <= float(document["scale"])
    endless = pf.leakage(theta, 10**9, epsilon, **protection).scale  # what is proved serves all lengths
    assert float(document["scale"]) <= 1.3 * min(endless, max(2, length) / epsilon)
    assert ("forwards and backwards" in found.subject) == (theta.backward is not None)


def scaled(number, factor):
    return str(Fraction(number) * Fraction(factor))


def pick(rng, things):
    return things[int(rng.integers(len(things)))]


def forge(document, rng):
    """A certificate that states more than the one it is made from: less noise, or more chains."""
    forged = copy.deepcopy(document)
    fields = forged["couplings"][0]
    sides = [fields[name] for name in ("ahead", "past", "columns") if name in fields]
    side = pick(rng, sides)
    less = 1 - float(rng.uniform(1e-6, 0.3))

    def lower_scale():
        forged["cost"] = scaled(forged["cost"], 1 / Fraction(less))
        forged["scale"] = str(1 / Fraction(forged["cost"]))

    def lower_leakages():
        for one in sides:
            one["leakages"] = [[scaled(a, less) for a in row] for row in one["leakages"]]
        lower_scale()

    def drop_flows():
        side["flows"] = side["flows"][1:]
        lower_scale()

    def change_flow():
        if side["flows"]:
            entry = pick(rng, side["flows"])
            table = pick(rng, [entry["flow"], *entry["surplus"], *entry["reserve"]])
            if table:
                part = pick(rng, table)
                part[2] = scaled(part[2], float(rng.uniform(0, 3)))
        lower_leakages()

    def empty_shares():
        for entry in side["flows"]:
            entry["surplus"] = [[[z, y, "1"] for z, y in ((1, 2), (2, 1))] for _ in entry["surplus"]]
        lower_leakages()

    def twice():
        side["flows"] = side["flows"] * 2
        lower_scale()

    def more_chains():
        (numbers,) = forged["family"].values()
        if "radius" in numbers:
            numbers["radius"] = [scaled(Fraction(r) + Fraction(1, 50), 3) for r in numbers["radius"]]
        else:
            numbers["low"] = [[scaled(p, Fraction(1, 4)) for p in row] for row in numbers["low"]]
            numbers["high"] = [
                [str(1 - sum(map(Fraction, row), Fraction()) + Fraction(p)) for p in row] for row in numbers["low"]
            ]

    def more_hidden():
        forged["window"] = forged.get("window", 1) + 3

    def less_loss():
        forged["epsilon"] = scaled(forged["epsilon"], less)

    def no_more_noise():
        forged["scale"] = scaled(forged["scale"], less)

    changes = [lower_scale, lower_leakages, drop_flows, change_flow, empty_shares, twice]
    pick(rng, [*changes, more_hidden, more_chains, less_loss, no_more_noise])()
    return forged


@pytest.mark.parametrize("wanted", counts(20, 1040))
def test_forged_certificates_are_rejected(wanted):
    rng = np.random.default_rng(14)
    rejected = 0
    while rejected < wanted:
        theta = some_family(rng)
        document = pf.certify(
            theta,
            int(rng.choice([50, 1000])),
            float(rng.choice([0.2, 1.0])),
            mechanism="leakage",
            window=int(rng.choice([1, 4])),
            knows=str(rng.choice(["nothing", "any records"])),
        )
        whole = document["length"] / float(document["epsilon"])
        if "couplings" not in document or float(document["scale"]) > 0.99 * whole:  # quilts, or every record is hidden
            continue
        for _ in range(20):
            with pytest.raises(pf.CertificateError):
                pf.verify_certificate(forge(document, rng))
            rejected += 1
