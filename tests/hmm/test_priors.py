"""Answers about every prior of a box against priors tried one by one; files, the command line."""

import json
import math
from fractions import Fraction
from itertools import product

import pytest
from cases import examples
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from pufferflow import hmm
from pufferflow.errors import ParameterError
from pufferflow.hmm import checking, priors

ENTRIES = ["{x}", "{x}*(1 - {x})", "{x}**2", "({x} - 1/2)^2", "(1 + {x})/3", "1/4"]
I, J = ["16/25", "8/25", "1/25"], ["3/5", 0, "2/5"]
PRIORS = {"C": [I, J, [0, "1/2", "1/2"]], "not C": [I, J, ["1/2", "1/2", 0]]}
UNIT, COIN = [[1, 0], [0, 1]], [["3/4", "1/4"], [0.25, 0.75]]
SECRETS = {"yes": [1, 0], "no": [0, 1]}
SHORT = {"largest": 1, "release": "value"}
SHORT["priors"] = {"a": [["p", "1 - p"]], "b": [["1/2", "1/2"]]}
FACTORS = st.sampled_from(["1", "21/20", "3/2", "2", "4"])


@st.composite
def families(draw):
    def entries():
        entry = draw(st.sampled_from(ENTRIES)).format(x=draw(st.sampled_from(["p", "q"])))
        return [entry, f"1 - ({entry})"]

    def row():
        a = draw(st.integers(0, 6))
        return [Fraction(a, 6), Fraction(6 - a, 6)]

    box = {name: draw(st.sampled_from([(0, 1), ("1/5", "2/3"), ("1/2", "1/2")])) for name in "pq"}
    initial = {"a": entries(), "b": entries()}
    return hmm.PriorFamily([row(), row()], [row(), row()], initial, box)


def grid(family, points=5):
    ends = [[Fraction(i, points - 1) for i in range(points)]] * len(family.box)
    for steps in product(*ends):
        pairs = zip(steps, family.box.items(), strict=True)
        yield {name: low + step * (high - low) for step, (name, (low, high)) in pairs}


@given(families(), st.integers(1, 2), FACTORS)
@examples(10, 60)
def test_priors_tried_one_by_one(family, length, factor):
    holds = [hmm.check(family.at(**prior), factor, length).holds for prior in grid(family)]
    for violates in (True, False):
        try:
            found = hmm.find_prior(family, factor, length, violates=violates)
        except ParameterError as error:
            if "irrational" not in str(error):
                raise
            continue
        if found is None:
            assert all(one == violates for one in holds)
        else:
            assert hmm.check(family.at(**found), factor, length).holds != violates


@given(families(), st.integers(1, 2), FACTORS)
@examples(8, 130)
def test_region_is_where_the_check_holds(family, length, factor):
    region = hmm.preserving_region(family, factor, length)

    def holds(**at):
        return hmm.check(family.at(**at), factor, length).holds

    for at in grid(family):
        point = [fmpq(value.numerator, value.denominator) for value in at.values()]
        assert all(polynomial(*point) <= 0 for polynomial in region.polynomials) == holds(**at)
    for name in family.box:
        (other,) = set(family.box) - {name}
        if any(polynomial.degrees()["pq".index(name)] > 1 for polynomial in region.polynomials):
            with pytest.raises(ParameterError, match="higher power"):
                region.interval(name, **{other: family.box[other][0]})
            continue
        low, high = family.box[name]
        for at in grid(family, 3):
            ends = region.interval(name, **{other: at[other]})
            tried = {low, high, (low + high) / 2}
            if ends is not None:
                width = Fraction(1, 10**9)
                assert low <= ends[0] <= ends[1] <= high
                tried |= {*ends, min(high, ends[1] + width), max(low, ends[0] - width)}
            for value in tried:
                within = ends is not None and ends[0] <= value <= ends[1]
                assert holds(**at | {name: value}) == within


@given(families(), st.integers(1, 2))
@examples(8, 90)
def test_supremum(family, length):
    found = hmm.sup_ratio(family, length, tolerance="1e-3")
    ratios = [hmm.largest_ratio(family.at(**prior), length).ratio for prior in grid(family)]
    assert max(ratios) <= found.upper
    assert found.lower <= found.upper
    at = hmm.largest_ratio(family.at(**found.prior), length).ratio
    assert at == found.lower == found.witness.ratio
    if found.upper < math.inf:
        assert found.upper - found.lower <= found.lower / 1000


def squared(entry, other, box=(0, 1)):
    """The release is the first state: P(0 | a) = entry, P(0 | b) = other."""
    initial = {"a": [entry, f"1 - ({entry})"], "b": [other, f"1 - {other}"]}
    return hmm.PriorFamily(UNIT, UNIT, initial, {"p": box}, length=1)


@pytest.mark.parametrize(
    ("entry", "at", "largest"),
    [("p*(1 - p)", 1 / 2, 1 / 4), ("p*(1 - p**2)", 3**-0.5, 2 * 3**-1.5)],
)
def test_maximum_inside_the_box(entry, at, largest):
    found = hmm.sup_ratio(squared(entry, "1/9", ["1/4", "13/20"]), tolerance="1e-12")
    assert found.witness.secret == "a"
    assert float(found.lower) == pytest.approx(9 * largest, rel=1e-11)
    assert found.lower <= found.upper <= found.lower * (1 + Fraction(1, 10**12))
    assert float(found.prior["p"]) == pytest.approx(at, abs=1e-5)
    # with the ends at which the entry is 0 an observation is possible under b only
    assert hmm.sup_ratio(squared(entry, "1/9")).lower == math.inf


def test_priors_that_satisfy_only_inside_the_box():
    assert hmm.find_prior(squared("p**2", "1/9"), 1, violates=False) == {"p": Fraction(1, 3)}
    irrational = squared("p**2", "1/3")
    with pytest.raises(ParameterError, match="irrational"):
        hmm.find_prior(irrational, 1, violates=False)
    assert hmm.find_prior(irrational, "1000001/1000000", violates=False)["p"] ** 2 != Fraction(1, 3)
    assert hmm.find_prior(squared("p**2/2", "2/3"), "5/4", violates=False) is None


def model(**changes):
    parts = {"transition_matrix": UNIT, "observation_matrix": COIN}
    return json.dumps(parts | {"initial_distributions": SECRETS} | changes)


@pytest.fixture
def check(run):
    return lambda text, *arguments: run("related", "check", "-", *arguments, stdin=text)


def test_models_on_the_command_line(check, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(model(observation_matrix=[[0.1, 0.9], ["2/3", "1/3"]], length=2))
    assert hmm.read_hidden_markov_model(path).observation_matrix[0][0] == Fraction(1, 10)
    described = {"priors": PRIORS, "release": "value", "mechanism": [["1/2", "1/2"]] * 3}
    path.write_text(json.dumps({"noisy_max": described, "pairs": [["not C", "C"]]}))
    found = hmm.read_hidden_markov_model(path)
    assert (found.pairs, found.observations) == ((("not C", "C"),), ("0", "1", "⊥"))
    text = json.dumps({"noisy_max": {"priors": PRIORS}})
    code, out, err = check(text, "--factor", "1.6", "--json")
    index = hmm.NoisyMax().model(PRIORS)
    largest = {"largest": hmm.largest_ratio(index).to_dict()}
    assert (code, err) == (0, "")
    assert json.loads(out) == hmm.check(index, "8/5").to_dict() | largest
    assert "--preserving is about free parameters" in check(text, "--factor", 2, "--preserving")[2]


def test_free_parameters_on_the_command_line(check):
    initial = {"a": ["p^2", "1 - p^2"], "b": ["1/2", "1/2"]}
    text = model(initial_distributions=initial, parameters={"p": [0.1, 1]})
    found = json.loads(check(text, "--factor", "3/2", "--length", 2)[1])
    largest = found["largest"]
    assert (found["holds"], largest["exact"], largest["prior"]) == (False, True, {"p": "1"})
    assert largest["witness"]["ratio"] == "5"
    assert found["violation"]["prior"] == {"p": "1/10"}
    assert Fraction(found["violation"]["witness"]["ratio"]) > Fraction(3, 2)
    text = json.dumps({"noisy_max": SHORT, "parameters": {"p": [0, 1]}})
    found = json.loads(check(text, "--factor", "5/4", "--preserving")[1])["preserving"]
    # from the ratios (1 + p)/3 : 1/2 and (2 - p)/3 : 1/2 and their inverses
    conditions = ["-5*p + 1 <= 0", "-8*p + 1 <= 0", "5*p - 4 <= 0", "8*p - 7 <= 0"]
    assert (found["prior"], sorted(found["conditions"])) == ({"p": "1/2"}, conditions)
    narrow = json.dumps({"noisy_max": SHORT, "parameters": {"p": [0.9, 1]}})
    found = json.loads(check(narrow, "--factor", "11/10", "--preserving")[1])
    assert (found["violation"]["prior"], found["preserving"]["prior"]) == ({"p": "9/10"}, None)


def test_noisy_max_on_the_command_line(run):
    drawn = [json.loads(run("related", "noisymax", "-", stdin="[0, 2, 1]")[1]) for _ in range(60)]
    assert {0, 1} <= {one["index"] for one in drawn}
    assert {one["factor"] for one in drawn} == {"2"}
    words = ("--release", "value", "--largest", 4, "--ratio", "1/3", "--json")
    found = json.loads(run("related", "noisymax", "-", *words, stdin="[0, 4]")[1])
    assert (found["value"] in range(5), found["factor"]) == (True, "3")


def test_what_grows_without_bound_is_refused(monkeypatch):
    monkeypatch.setattr(checking, "MAX_ENTRIES", 1)
    monkeypatch.setattr(priors, "MAX_SEQUENCES", 1)
    wild = hmm.HiddenMarkovModel([["2/3", "1/3"], ["1/4", "3/4"]], COIN, SECRETS)
    with pytest.raises(ParameterError, match="NP-hard"):
        hmm.largest_ratio(wild, 9)
    with pytest.raises(ParameterError, match="more than 1 sequences of 1 observations"):
        hmm.sup_ratio(squared("p", "0", [0, "1/2"]), 3)
