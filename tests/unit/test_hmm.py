"""Hidden Markov models: worked examples, builders, files, the command line, and bad input."""

import json
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import pufferflow as pf
from pufferflow import hmm
from pufferflow._numbers import written_number
from pufferflow.related.hmm import checking

I, J = ["16/25", "8/25", "1/25"], ["3/5", 0, "2/5"]
PRIORS = {"C": [I, J, [0, "1/2", "1/2"]], "not C": [I, J, ["1/2", "1/2", 0]]}
UNIT = [[1, 0], [0, 1]]
COIN = {
    "transition_matrix": UNIT,
    "observation_matrix": [["3/4", "1/4"], [0.25, 0.75]],
    "initial_distributions": {"yes": [1, 0], "no": [0, 1]},
}


def model(**changes):
    return json.dumps(COIN | changes)


# -- worked examples ---------------------------------------------------------------------------------


def test_example_7_1():
    index = hmm.noisy_max(PRIORS)
    law = {s: list(index.observation_law(s).values()) for s in PRIORS}
    assert law["C"] == [Fraction(559, 1500), Fraction(971, 3000), Fraction(911, 3000)]
    assert law["not C"] == [Fraction(941, 2000), Fraction(2077, 6000), Fraction(11, 60)]
    worst = hmm.largest_ratio(index)
    assert (worst.ratio, worst.observations, worst.secret) == (Fraction(911, 550), ("⊥", "2"), "C")
    holds = hmm.check(index, 2)
    assert (holds.holds, holds.every_length, holds.witness) == (True, True, None)
    violated = hmm.check(index, "8/5")
    assert not violated.holds
    assert violated.witness == worst
    assert hmm.check(index, Fraction(911, 550)).holds
    assert not hmm.check(index, Fraction(911, 550) - Fraction(1, 10**30)).holds


def test_factor_one_half_is_violated_at_index_0():
    laws = [hmm.index_law(hmm.noisy_laws(prior)) for prior in PRIORS.values()]
    released = hmm.mechanism_model(laws, {"C": [1, 0], "not C": [0, 1]})
    assert hmm.check(released, "1/2").witness.observations == ("0",)
    assert hmm.check(released, "8/5").witness.observations == ("2",)
    assert hmm.largest_ratio(released).ratio == Fraction(911, 550)


def test_edges_into_0_2_1():
    index = hmm.noisy_max(PRIORS)
    into = index.states.index("noisy 0,2,1")
    edge = {name: row[into] for name, row in zip(index.states, index.transition_matrix, strict=True)}
    assert edge["counts 0,1,1"] == Fraction(2, 3) * Fraction(1, 3) * Fraction(1, 3)
    assert edge["counts 1,2,0"] == Fraction(1, 3) * Fraction(2, 3) * Fraction(1, 6)
    assert edge["counts 2,0,2"] == Fraction(1, 6) ** 3


def test_free_priors():
    free = [["(1 - p1)^2", "2*p1*(1-p1)", "p1**2"], ["1 - p2", "0", "p2"]]
    family = hmm.noisy_max_family({s: [*free, law[2]] for s, law in PRIORS.items()}, {"p1": [0, 1], "p2": [0, 1]})
    found = hmm.sup_ratio(family)
    assert found.exact
    assert (found.lower, found.prior) == (Fraction(9, 5), {"p1": 1, "p2": 1})
    assert found.witness.observations == ("⊥", "2")
    assert hmm.find_prior(family, 2) is None
    assert hmm.find_prior(family, "9/5") is None
    assert hmm.find_prior(family, "179/100").witness.ratio > Fraction(179, 100)
    assert hmm.largest_ratio(family.at(p1="1/5", p2=0.4)).ratio == Fraction(911, 550)
    assert hmm.find_prior(family, "8/5", violates=False) is None
    assert hmm.find_prior(family, "17/10", violates=False) is not None


def test_priors_of_example_7_1_that_preserve():
    free = [["(1 - p1)^2", "2*p1*(1-p1)", "p1**2"], ["1 - p2", "0", "p2"]]
    family = hmm.noisy_max_family({s: [*free, law[2]] for s, law in PRIORS.items()}, {"p1": [0, 1], "p2": [0, 1]})
    region = hmm.preserving_region(family, "5/3")
    assert region.conditions == ("9*p1^2*p2 - 13*p1^2 - 18*p1*p2 + 22*p1 + 9*p2 - 7 <= 0",)
    assert region.interval("p2", p1=0) == (0, Fraction(7, 9))
    assert region.interval("p2", p1="1/5") == (0, Fraction(13, 24))
    assert region.interval("p2", p1=1) is None
    assert region.contains(p1="1/5", p2="2/5")
    assert hmm.preserving_region(family, 2).conditions == ()
    for asked, message in [
        (lambda: region.interval("p1", p2=0), "p1 occurs to a higher power"),
        (lambda: region.interval("p3", p2=0), "parameter is .p3.; choose from p1, p2"),
        (lambda: region.interval("p2"), "the parameter p1 has no value"),
        (lambda: region.interval("p2", p1=2), "p1 is 2; give a value in"),
        (lambda: region.contains(p1=0), "the parameter p2 has no value"),
    ]:
        with pytest.raises(pf.ParameterError, match=message):
            asked()


@pytest.mark.parametrize("n", range(1, 13))
def test_example_7_2(n):
    assert hmm.largest_value_ratio(n, "one-by-one").ratio == 2
    assert hmm.largest_value_ratio(n, "all-by-one").ratio == 2**n
    assert hmm.largest_value_ratio(n, "one-anywhere").ratio == 4


# -- builders ----------------------------------------------------------------------------------------


def test_truncated_geometric():
    third, sixth = Fraction(1, 3), Fraction(1, 6)
    assert hmm.truncated_geometric(2) == ((2 * third, sixth, sixth), (third,) * 3, (sixth, sixth, 2 * third))
    for m in (1, 2, 5):
        for ratio in ("1/2", "1/7", 0.9):
            rows = hmm.truncated_geometric(m, ratio)
            assert all(sum(row) == 1 for row in rows)
            # every value is released as the sum of what falls on and beyond it
            a, far = written_number(ratio, "ratio"), 400
            tail = [(1 - a) / (1 + a) * a ** abs(d) for d in range(-far, far + 1)]
            clipped = sum(tail[d + far] for d in range(-far, far + 1) if min(max(1 + d, 0), m) == m)
            assert float(rows[1][m]) == pytest.approx(float(clipped), rel=1e-12)
            pairs = [(str(x), str(x + 1)) for x in range(m)]
            assert hmm.largest_ratio(hmm.mechanism_model(rows, pairs=pairs)).ratio == 1 / a


def test_mechanisms_too_large_to_write_down_are_refused():
    for largest, ratio in ((10**18, "1/2"), (2000, "1/2"), (300, f"1/{10**300}")):
        with pytest.raises(pf.ParameterError, match=r"holds about .* bits, above 2e[+]09; give a smaller"):
            hmm.truncated_geometric(largest, ratio)
    with pytest.raises(pf.ParameterError, match=r"number of values is .*; it must be an integer of at most 2000"):
        hmm.randomised_response("3/4", 10**18)


def test_randomised_response():
    assert hmm.randomised_response() == ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    coin = hmm.mechanism_model(hmm.randomised_response())
    assert hmm.check(coin, 3).holds
    assert not hmm.check(coin, "2.999").holds
    assert hmm.largest_ratio(hmm.mechanism_model(hmm.randomised_response("1/2", 5))).ratio == 4
    # a constant answer asked about again and again is not protected, the bits of a chain are
    constant = hmm.HiddenMarkovModel(UNIT, hmm.randomised_response(), {"a": [1, 0], "b": [0, 1]})
    assert [hmm.largest_ratio(constant, n).ratio for n in (1, 2, 5)] == [3, 9, 243]
    mixing = hmm.HiddenMarkovModel([["1/2", "1/2"]] * 2, hmm.randomised_response(), {"a": [1, 0], "b": [0, 1]})
    assert hmm.largest_ratio(mixing, 20).ratio == 3
    assert hmm.check(mixing, 3, 1000).every_length


def test_ties():
    laws = [["1/2", "1/2"]] * 3
    half = Fraction(1, 2)
    assert hmm.index_law(laws) == (Fraction(5, 8), Fraction(1, 4), Fraction(1, 8))
    assert hmm.index_law(laws, "last") == (Fraction(1, 8), Fraction(1, 4), Fraction(5, 8))
    assert hmm.index_law(laws, "uniform") == (Fraction(1, 3),) * 3
    assert hmm.value_law(laws) == (half**3, 1 - half**3)


def test_infinite_ratio_and_equal_secrets():
    certain = hmm.mechanism_model([[1, 0], ["1/2", "1/2"]])
    worst = hmm.largest_ratio(certain)
    assert (worst.ratio, worst.observations, worst.secret) == (math.inf, ("1",), "1")
    assert worst.to_dict()["ratio"] == "infinite"
    assert not hmm.check(certain, 10**100).holds
    same = hmm.HiddenMarkovModel(UNIT, COIN["observation_matrix"], {"a": [1, 0], "b": [1, 0]})
    assert (hmm.largest_ratio(same, 3).ratio, hmm.largest_ratio(same, 3).observations) == (1, ())
    assert hmm.check(same, 1, 5).every_length


def test_numbers_of_many_digits():
    secrets, rows = {"a": [1, 0], "b": [0, 1]}, [["9/10", "1/10"], ["1/7", "6/7"]]
    chain = hmm.HiddenMarkovModel([["1/2", "1/2"], ["1/4", "3/4"]], rows, secrets)
    assert len(hmm.largest_ratio(chain, 200).to_dict()["probability"]) > 200
    # more digits than Python turns into text unasked
    digits = Fraction(f"0.{'7' * 900}")
    constant = hmm.HiddenMarkovModel(UNIT, [[digits, 1 - digits], ["1/7", "6/7"]], secrets)
    assert len(hmm.largest_ratio(constant, 9).to_dict()["ratio"]) > 4300


def test_too_many_prefixes(monkeypatch):
    slow = [["18/19", "1/190", "9/190"], ["3/160", "147/160", "1/16"], ["9/410", "1/205", "399/410"]]
    seen = [["5/7", "1/21", "1/42", "3/14"], ["1/41", "9/41", "30/41", "1/41"], ["3/7", "9/70", "3/7", "1/70"]]
    wild = hmm.HiddenMarkovModel(slow, seen, {"a": ["10/11", "1/33", "2/33"], "b": ["2/5", "1/5", "2/5"]})
    assert hmm.largest_ratio(wild, 3).ratio < hmm.largest_ratio(wild, 9).ratio
    monkeypatch.setattr(checking, "MOST_PREFIXES", 1)
    with pytest.raises(pf.ParameterError, match="NP-hard"):
        hmm.largest_ratio(wild, 9)


# -- files and the command line ----------------------------------------------------------------------


@pytest.fixture
def check(run):
    return lambda text, *arguments: run("related", "check", "-", *arguments, stdin=text)


def test_numbers_are_read_as_written(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(model(observation_matrix=[[0.1, 0.9], ["2/3", "1/3"]], length=2))
    found = hmm.read_hidden_markov_model(path)
    assert found.observation_matrix[0][0] == Fraction(1, 10)
    again = hmm.parse_hidden_markov_model(json.loads(json.dumps(found.document())))
    assert again.document() == found.document()
    assert (again.length, again.pairs) == (2, (("yes", "no"),))


def test_numpy_arrays_and_floats():
    chain = hmm.HiddenMarkovModel(np.eye(2), np.array([[0.1, 0.9], [0.3, 0.7]]), {"a": np.array([1, 0]), "b": [0, 1]})
    assert hmm.largest_ratio(chain, 1).ratio == 3


def test_noisy_max_as_a_file(check):
    text = json.dumps(hmm.noisy_max(PRIORS).document())
    code, out, err = check(text, "--factor", 2)
    found = json.loads(out)
    assert (code, err, found["holds"]) == (0, "", True)
    assert (found["largest"]["ratio"], found["largest"]["observations"]) == ("911/550", ["⊥", "2"])
    code, out, _ = check(text, "--factor", "8/5", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["holds"] is False
    assert found["witness"] == found["largest"]
    assert found["witness"]["ratio"] == "911/550"
    assert json.loads(check(text, "--factor", "1.6")[1])["factor"] == "8/5"


def test_free_parameters_on_the_command_line(check):
    text = model(initial_distributions={"a": ["p^2", "1 - p^2"], "b": ["1/2", "1/2"]}, parameters={"p": [0.1, 1]})
    code, out, _ = check(text, "--factor", "3/2", "--length", 2)
    assert code == 0
    found = json.loads(out)
    largest = found["largest"]
    assert (found["holds"], largest["witness"]["ratio"], largest["prior"]) == (False, "5", {"p": "1"})
    assert json.loads(check(text, "--factor", 5, "--length", 2)[1])["holds"] is True
    found = json.loads(check(text, "--factor", 2, "--length", 2, "--json")[1])
    assert list(found["violation"]["prior"]) == ["p"]
    assert found["largest"]["exact"] is True


SHORT = {"release": "value", "priors": {"a": [["p", "1 - p"]], "b": [["1/2", "1/2"]]}}


def test_noisy_max_from_a_few_numbers(check):
    code, out, err = check(json.dumps({"noisy_max": {"priors": PRIORS}}), "--factor", 2)
    assert (code, err) == (0, "")
    assert out == check(json.dumps(hmm.noisy_max(PRIORS).document()), "--factor", 2)[1]
    described = {"priors": PRIORS, "release": "value", "ties": "last", "mechanism": [["1/2", "1/2"]] * 3}
    found = hmm.parse_hidden_markov_model({"noisy_max": described, "pairs": [["not C", "C"]]})
    assert found.document() == hmm.noisy_max(pairs=[("not C", "C")], **described).document()


def test_priors_that_preserve_on_the_command_line(check):
    text = json.dumps({"noisy_max": SHORT, "parameters": {"p": [0, 1]}})
    found = json.loads(check(text, "--factor", "5/4", "--preserving")[1])["preserving"]
    # from the ratios (1 + p)/3 : 1/2 and (2 - p)/3 : 1/2 and their inverses
    conditions = ["-5*p + 1 <= 0", "-8*p + 1 <= 0", "5*p - 4 <= 0", "8*p - 7 <= 0"]
    assert (found["prior"], sorted(found["conditions"])) == ({"p": "1/2"}, conditions)
    family = hmm.noisy_max_family(**SHORT, parameters={"p": [0, 1]})
    found = json.loads(check(text, "--factor", "5/4", "--preserving", "--json")[1])["preserving"]
    assert found["conditions"] == list(hmm.preserving_region(family, "5/4").conditions)
    assert hmm.check(family.at(**found["prior"]), "5/4").holds
    assert json.loads(check(text, "--factor", 2, "--preserving")[1])["preserving"]["conditions"] == []
    narrow = json.dumps({"noisy_max": SHORT, "parameters": {"p": [0.9, 1]}})
    assert json.loads(check(narrow, "--factor", "11/10", "--preserving")[1])["preserving"]["prior"] is None
    fixed = json.dumps({"noisy_max": {"priors": PRIORS}})
    assert "--preserving is about free parameters" in check(fixed, "--factor", 2, "--preserving")[2]


def test_noisy_max_on_the_command_line(run):
    drawn = [json.loads(run("related", "noisymax", "-", stdin="[0, 2, 1]")[1]) for _ in range(60)]
    assert {0, 1} <= {one["index"] for one in drawn}
    assert all(one["factor"] == "2" for one in drawn)
    words = ("--release", "value", "--largest", 4, "--ratio", "1/3", "--json")
    found = json.loads(run("related", "noisymax", "-", *words, stdin="[0, 4]")[1])
    assert found["value"] in range(5)
    assert found["factor"] == "3"
    for text, message in [
        ("[0, 7771]", "count 2 is no whole number from 0 to 2"),
        ('[0, "7771"]', "count 2 is no whole number"),
        ("[]", "there are no counts"),
        ('{"counts": [7771]}', "count 1 is no whole number"),
    ]:
        code, out, err = run("related", "noisymax", "-", stdin=text)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
        assert "7771" not in err


def test_check_needs_no_solver_without_parameters():
    code = "import sys; from pufferflow import hmm; hmm.check(hmm.mechanism_model([[1, 0], [0, 1]]), 2); "
    code += "print([m for m in ('z3', 'flint') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


BAD = [
    (model(transition_matrix=[[1, 0], [0.5, 0.4]]), "transition_matrix, row 2 sums to 9/10, not exactly to 1"),
    (model(observation_matrix=[[1.5, -0.5], [0, 1]]), "row 1, entry 1 is above 1; probabilities lie between 0 and 1"),
    (model(observation_matrix=[["1/3", 0.67], [0, 1]]), "sums to 301/300"),
    (model(observation_matrix=[["1/0", 1], [0, 1]]), "a division by zero"),
    (model(observation_matrix=[["1e9999999", 1], [0, 1]]), "not an exact number"),
    (model(observation_matrix=[["9" * 3000, 1], [0, 1]]), "has 3000 characters"),
    (model(observation_matrix=[["x", 1], [0, 1]]), "row 1, entry 1 is not an exact number"),
    (model(observation_matrix=[[True, 0], [0, 1]]), "not a truth value"),
    (model(observation_matrix=[[1, 0]]), "observation_matrix has 1 rows; give 2"),
    (model(observation_matrix=[[1, 0], [1]]), "row 2 has 1 probabilities; give 2"),
    (model(observation_matrix=[[], []]), "row 1 has 0 probabilities; give at least one"),
    (model(transition_matrix=[]), "transition_matrix has no rows"),
    (model(transition_matrix="x"), "must be a list of rows, not a string"),
    (model(transition_matrix=[1]), "row 1 must be a list of probabilities, not a number"),
    (model(initial_distributions={"a": [1, 0]}), "at least two to tell apart"),
    (model(initial_distributions=[[1, 0]]), "one law a secret by its name, not a list"),
    (model(initial_distributions={"a": [1, 0], "b": [1]}), "initial distribution of 'b' has 1 probabilities; give 2"),
    (model(pairs=[["yes", "maybe"]]), "'maybe' is no secret"),
    (model(pairs=[["yes", "yes"]]), "is not a pair"),
    (model(pairs=[]), "pairs must be a list of pairs"),
    (model(states=["a"]), "states has 1 names for 2"),
    (model(observations=["a", "a"]), "the name 'a' twice"),
    (model(observations=[1, 2]), "must be texts"),
    (model(length=0), "length is 0"),
    (model(extra=1), "unknown key 'extra'"),
    ("{}", "has no transition_matrix"),
    ("[]", "is an object, not a list"),
    ("", "is empty; it must hold"),
    ("{", "is not JSON"),
    (model(), "no length of observation sequences"),
    ('{"noisy_max": 1}', "noisy_max must be an object with"),
    ('{"noisy_max": {}}', "noisy_max must be an object with"),
    ('{"noisy_max": {"priors": 1}}', "priors is an int; give a Mapping"),
    ('{"noisy_max": {"priors": {"a": [[1]]}, "n": 1}}', "noisy_max has the unknown key 'n'"),
    ('{"noisy_max": {"priors": {"a": [[1, 0]]}, "release": "x"}}', "release is 'x'; choose from index, value"),
    ('{"noisy_max": {"priors": {}}, "length": 2}', "the model has the unknown key 'length'"),
]
LAW = {"b": [0, 1]}
BAD_FREE = [
    ({"a": ["2*p", "1 - 2*p"]}, {"p": [0, 1]}, "entry 2 is negative at p = 1"),
    ({"a": ["p*(1-p)*5", "1 - 5*p*(1-p)"]}, {"p": [0, 1]}, "is negative at p = 1/2"),
    ({"a": ["p", "p"]}, {"p": [0, 1]}, "sums to 2*p, not to 1 for every prior"),
    ({"a": ["q", "1-q"]}, {"p": [0, 1]}, "'q' is no parameter"),
    ({"a": ["1/p", "1 - 1/p"]}, {"p": [0.5, 1]}, "is no polynomial in p"),
    ({"a": ["p/0", "1"]}, {"p": [0, 1]}, "is no polynomial in p"),
    ({"a": ["p**99", "1-p**99"]}, {"p": [0, 1]}, "of degree at most 64"),
    ({"a": ["((9**64)**64)**64", "1"]}, {"p": [0, 1]}, "no polynomial in p"),
    ({"a": ["p +", "1"]}, {"p": [0, 1]}, "is no polynomial; write it"),
    ({"a": ["p(1)", "1"]}, {"p": [0, 1]}, "is no polynomial in p"),
    ({"a": ["1 if p else 0", "1"]}, {"p": [0, 1]}, "is no polynomial in p"),
    ({"a": ["p", "1-p"]}, {"p": [1, 0]}, "the lowest value 1 is above the highest, 0"),
    ({"a": ["p", "1-p"]}, {"p": [0]}, "must have an interval"),
    ({"a": ["p", "1-p"]}, {}, "must give each free parameter its interval"),
    ({"a": ["p", "1-p"]}, {"2p": [0, 1]}, "is no name"),
    ({"a": ["p"]}, {"p": [0, 1]}, "sums to p"),
]
BAD += [(model(initial_distributions=law | LAW, parameters=box, length=1), text) for law, box, text in BAD_FREE]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_models(check, text, message):
    code, out, err = check(text, "--factor", 2)
    assert (code, out) == (2, "")
    assert err.startswith("pufferflow: error: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("factor", ["0", "-1", "x", "nan", "inf", "1/0", ""])
def test_bad_factors(check, factor):
    code, _, err = check(model(), f"--factor={factor}", "--length", 1)
    assert code == 2
    assert "factor is" in err


def test_bad_arguments():
    free = hmm.PriorFamily(UNIT, UNIT, {"a": ["p", "1-p"], "b": [0, 1]}, {"p": [0, "1/2"]}, length=1)
    coin = hmm.mechanism_model(hmm.randomised_response())
    for work, message in [
        (lambda: hmm.truncated_geometric(0), "largest value is 0"),
        (lambda: hmm.truncated_geometric(2, 1), "ratio of the geometric mechanism is 1"),
        (lambda: hmm.randomised_response("5/4"), "truth is 5/4"),
        (lambda: hmm.randomised_response("1/2", 1), "number of values is 1"),
        (lambda: hmm.largest_value_ratio(0, "one-by-one"), "number of queries is 0"),
        (lambda: hmm.largest_value_ratio(1, "other"), "relation is 'other'"),
        (lambda: hmm.noisy_max(PRIORS, ties="never"), "ties is 'never'"),
        (lambda: hmm.noisy_max(PRIORS, release="both"), "release is 'both'"),
        (lambda: hmm.noisy_max({s: [I] * 9 for s in "ab"}), "states, above"),
        (lambda: free.at(p=1), "p is 1; give a value in"),
        (lambda: free.at(p="x"), "p is not an exact number"),
        (lambda: free.at(), "has no value"),
        (lambda: free.at(p=0, q=1), "'q' is no parameter"),
        (lambda: hmm.check(coin, 2, True), "length is True"),
        (lambda: coin.probability("2", []), "is no secret"),
        (lambda: coin.probability("1", ["7"]), "is no observation"),
        (lambda: hmm.check_by_solver(coin, 2, timeout_seconds=0), "timeout_seconds is 0"),
    ]:
        with pytest.raises(pf.ParameterError, match=message):
            work()
    for work, message in [
        (lambda: hmm.noisy_max({}), "no priors"),
        (lambda: hmm.noisy_max({"a": [I], "b": [I, J]}), "different numbers of counts"),
        (lambda: hmm.noisy_max({"a": [I], "b": [J]}, [[1, 0]]), "1 rows for counts 0 … 2"),
        (lambda: hmm.index_law([]), "no counts"),
        (lambda: hmm.mechanism_model([]), "no rows"),
    ]:
        with pytest.raises(pf.ModelError, match=message):
            work()
