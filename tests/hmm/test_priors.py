"""Answers about every prior of a box against priors tried one by one."""

import math
from fractions import Fraction

import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow import hmm

ENTRIES = ["{x}", "{x}*(1 - {x})", "{x}**2", "({x} - 1/2)^2", "(1 + {x})/3", "1/4"]


@st.composite
def families(draw):
    def law():
        entry = draw(st.sampled_from(ENTRIES)).format(x=draw(st.sampled_from(["p", "q"])))
        return [entry, f"1 - ({entry})"]

    def row():
        a = draw(st.integers(0, 6))
        return [Fraction(a, 6), Fraction(6 - a, 6)]

    box = {name: draw(st.sampled_from([(0, 1), ("1/5", "2/3"), ("1/2", "1/2")])) for name in "pq"}
    return hmm.PriorFamily([row(), row()], [row(), row()], {"a": law(), "b": law()}, box)


def grid(family, points=5):
    for i in range(points):
        for j in range(points):
            steps = (Fraction(i, points - 1), Fraction(j, points - 1))
            yield {
                name: low + step * (high - low)
                for (name, (low, high)), step in zip(family.box.items(), steps, strict=True)
            }


@given(families(), st.integers(1, 2), st.sampled_from(["1", "21/20", "3/2", "2", "4"]))
@examples(10, 60)
def test_priors_tried_one_by_one(family, length, factor):
    limit = Fraction(factor)
    ratios = [hmm.largest_ratio(family.at(**prior), length).ratio for prior in grid(family)]
    violating = hmm.find_prior(family, factor, length)
    if violating is None:
        assert max(ratios) <= limit
    else:
        assert not hmm.check(family.at(**violating.prior), factor, length).holds
        assert violating.witness.ratio > limit
    try:
        satisfying = hmm.find_prior(family, factor, length, violates=False)
    except pf.ParameterError as error:
        if "irrational" not in str(error):
            raise
    else:
        if satisfying is None:
            assert min(ratios) > limit
        else:
            assert hmm.check(family.at(**satisfying.prior), factor, length).holds


@given(families(), st.integers(1, 2), st.sampled_from(["1", "21/20", "3/2", "2", "4"]))
@examples(8, 130)
def test_region_is_where_the_check_holds(family, length, factor):
    region = hmm.preserving_region(family, factor, length)
    holds = {
        tuple(at.values()): hmm.check(family.at(**at), factor, length).holds for at in grid(family)
    }
    for at in grid(family):
        assert region.contains(**at) == holds[tuple(at.values())]
    if not region.conditions:
        assert all(holds.values())
    for name in family.box:
        (other,) = set(family.box) - {name}
        if any(polynomial.degrees()["pq".index(name)] > 1 for polynomial in region.polynomials):
            with pytest.raises(pf.ParameterError, match="higher power"):
                region.interval(name, **{other: family.box[other][0]})
            continue
        low, high = family.box[name]
        for at in grid(family, 3):
            ends = region.interval(name, **{other: at[other]})
            inside = {low, high, (low + high) / 2}
            if ends is not None:
                width = Fraction(1, 10**9)
                assert low <= ends[0] <= ends[1] <= high
                assert all(region.contains(**at | {name: end}) for end in ends)
                inside |= {min(high, ends[1] + width), max(low, ends[0] - width)}
            for value in inside:
                within = ends is not None and ends[0] <= value <= ends[1]
                assert region.contains(**at | {name: value}) == within


@given(families(), st.integers(1, 2))
@examples(8, 90)
def test_supremum(family, length):
    found = hmm.sup_ratio(family, length, tolerance="1e-3")
    ratios = [hmm.largest_ratio(family.at(**prior), length).ratio for prior in grid(family)]
    assert max(ratios) <= found.upper
    assert found.lower <= found.upper
    assert (
        hmm.largest_ratio(family.at(**found.prior), length).ratio
        == found.lower
        == found.witness.ratio
    )
    if found.upper < math.inf:
        assert found.upper - found.lower <= found.lower / 1000


UNIT = [[1, 0], [0, 1]]


def squared(entry, other, box=(0, 1)):
    """The release is the first state: P(0 | a) = entry, P(0 | b) = other."""
    laws = {"a": [entry, f"1 - ({entry})"], "b": [other, f"1 - {other}"]}
    return hmm.PriorFamily(UNIT, UNIT, laws, {"p": box}, length=1)


@pytest.mark.parametrize(
    ("entry", "at", "largest"),
    [("p*(1 - p)", Fraction(1, 2), Fraction(1, 4)), ("p*(1 - p**2)", None, 2 * 3**-1.5)],
)
def test_maximum_inside_the_box(entry, at, largest):
    found = hmm.sup_ratio(squared(entry, "1/9", ["1/4", "13/20"]), tolerance="1e-12")
    assert (found.witness.secret, found.exact) == ("a", at is not None)
    if at is not None:
        assert (found.lower, found.prior["p"]) == (9 * largest, at)
    else:  # an irrational maximum is enclosed
        assert float(found.lower) == pytest.approx(9 * largest, rel=1e-11)
        assert found.lower < found.upper <= found.lower * (1 + Fraction(1, 10**12))
        assert float(found.prior["p"]) == pytest.approx(3**-0.5, abs=1e-5)
    # with the ends at which the entry is 0 an observation is possible under b only
    assert hmm.sup_ratio(squared(entry, "1/9")).lower == math.inf


def test_priors_that_satisfy_only_inside_the_box():
    found = hmm.find_prior(squared("p**2", "1/9"), 1, violates=False)
    assert (found.prior, found.witness) == ({"p": Fraction(1, 3)}, None)
    irrational = squared("p**2", "1/3")
    with pytest.raises(pf.ParameterError, match="irrational"):
        hmm.find_prior(irrational, 1, violates=False)
    near = hmm.find_prior(irrational, "1000001/1000000", violates=False)
    assert near.prior["p"] ** 2 != Fraction(1, 3)
    assert hmm.find_prior(squared("p**2/2", "2/3"), "5/4", violates=False) is None
