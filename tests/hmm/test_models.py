"""Hidden Markov models: worked examples, files, the command line, and bad input."""

import json
from fractions import Fraction

import pytest

from pufferflow import hmm
from pufferflow.errors import ParameterError
from pufferflow.hmm import checking, priors

I, J = ["16/25", "8/25", "1/25"], ["3/5", 0, "2/5"]
PRIORS = {"C": [I, J, [0, "1/2", "1/2"]], "not C": [I, J, ["1/2", "1/2", 0]]}
UNIT, COIN = [[1, 0], [0, 1]], [["3/4", "1/4"], [0.25, 0.75]]
SECRETS = {"yes": [1, 0], "no": [0, 1]}
SHORT = {"largest": 1, "release": "value"}
SHORT["priors"] = {"a": [["p", "1 - p"]], "b": [["1/2", "1/2"]]}


def model(**changes):
    parts = {"transition_matrix": UNIT, "observation_matrix": COIN}
    return json.dumps(parts | {"initial_distributions": SECRETS} | changes)


# -- files and the command line ----------------------------------------------------------------


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
    initial = {"a": ["p", "1-p"], "b": [0, 1]}
    family = hmm.PriorFamily(UNIT, UNIT, initial, {"p": [0, "1/2"]}, length=1)
    for call, said in (
        (lambda: hmm.largest_ratio(wild, 9), "NP-hard"),
        (lambda: hmm.sup_ratio(family, 3), "more than 1 sequences of 1 observations"),
    ):
        with pytest.raises(ParameterError, match=said):
            call()
