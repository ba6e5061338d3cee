"""Hidden Markov models: worked examples, files, the command line, and bad input."""

import json
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import pufferflow as pf
from pufferflow import hmm
from pufferflow.hmm import checking, priors

I, J = ["16/25", "8/25", "1/25"], ["3/5", 0, "2/5"]
PRIORS = {"C": [I, J, [0, "1/2", "1/2"]], "not C": [I, J, ["1/2", "1/2", 0]]}
UNIT, COIN = [[1, 0], [0, 1]], [["3/4", "1/4"], [0.25, 0.75]]
SECRETS = {"yes": [1, 0], "no": [0, 1]}
SHORT = {"largest": 1, "release": "value"}
SHORT["priors"] = {"a": [["p", "1 - p"]], "b": [["1/2", "1/2"]]}


def released(rows, pairs=None):
    """One release of a mechanism: every input is a secret."""
    unit = np.eye(len(rows), dtype=int).tolist()
    laws = {str(x): law for x, law in enumerate(unit)}
    return hmm.HiddenMarkovModel(unit, rows, laws, pairs=pairs, length=1)


def model(**changes):
    parts = {"transition_matrix": UNIT, "observation_matrix": COIN}
    return json.dumps(parts | {"initial_distributions": SECRETS} | changes)


def test_example_7_1():
    index = hmm.NoisyMax().model(PRIORS)
    assert [index.probability("C", ("⊥", i)) for i in "012"] == [
        Fraction(559, 1500),
        Fraction(971, 3000),
        Fraction(911, 3000),
    ]
    worst = hmm.largest_ratio(index)
    assert (worst.ratio, worst.observations) == (Fraction(911, 550), ("⊥", "2"))
    holds, violated = hmm.check(index, 2), hmm.check(index, "8/5")
    assert (holds.holds, holds.every_length, holds.witness) == (True, True, None)
    assert violated.witness == worst
    assert hmm.check(index, Fraction(911, 550)).holds
    assert not hmm.check(index, Fraction(911, 550) - Fraction(1, 10**30)).holds


def test_free_priors_of_example_7_1():
    free = [["(1 - p1)^2", "2*p1*(1-p1)", "p1**2"], ["1 - p2", "0", "p2"]]
    initial = {secret: [*free, counts[2]] for secret, counts in PRIORS.items()}
    family = hmm.NoisyMax().family(initial, {"p1": [0, 1], "p2": [0, 1]})
    found = hmm.sup_ratio(family)
    assert (found.exact, found.lower) == (True, Fraction(9, 5))
    assert (found.prior, found.witness.observations) == ({"p1": 1, "p2": 1}, ("⊥", "2"))
    assert hmm.find_prior(family, "9/5") is None
    assert hmm.largest_ratio(family.at(p1="1/5", p2=0.4)).ratio == Fraction(911, 550)
    kept = [hmm.find_prior(family, c, violates=False) is None for c in ("8/5", "17/10")]
    assert kept == [True, False]
    region = hmm.preserving_region(family, "5/3")
    condition = "9*p1^2*p2 - 13*p1^2 - 18*p1*p2 + 22*p1 + 9*p2 - 7 <= 0"
    assert region.conditions == (condition,)
    assert region.interval("p2", p1="1/5") == (0, Fraction(13, 24))
    assert region.interval("p2", p1=1) is None
    for asked, message in [
        (lambda: region.interval("p1", p2=0), "p1 occurs to a higher power"),
        (lambda: region.interval("p2"), "the parameter p1 has no value"),
    ]:
        with pytest.raises(pf.ParameterError, match=message):
            asked()


@pytest.mark.parametrize("n", range(1, 13))
def test_example_7_2(n):
    ratios = [("one-by-one", 2), ("all-by-one", 2**n), ("one-anywhere", 4)]
    assert [(of, hmm.largest_value_ratio(n, of).ratio) for of, _ in ratios] == ratios


def test_mechanisms_and_lengths():
    third, sixth = Fraction(1, 3), Fraction(1, 6)
    rows = (2 * third, sixth, sixth), (third,) * 3, (sixth, sixth, 2 * third)
    assert hmm.truncated_geometric(2) == rows
    for m, ratio in ((1, "1/2"), (2, "1/7"), (5, "9/10")):
        pairs = [(str(x), str(x + 1)) for x in range(m)]
        of = released(hmm.truncated_geometric(m, ratio), pairs=pairs)
        assert hmm.largest_ratio(of).ratio == 1 / Fraction(ratio)
    # a constant answer asked again and again is not protected, the bits of a chain are
    constant = hmm.HiddenMarkovModel(UNIT, COIN, SECRETS)
    assert [hmm.largest_ratio(constant, n).ratio for n in (1, 2, 5)] == [3, 9, 243]
    coin = np.array([[0.75, 0.25], [0.25, 0.75]])
    mixing = hmm.HiddenMarkovModel([["1/2", "1/2"]] * 2, coin, SECRETS)
    assert hmm.largest_ratio(mixing, 20).ratio == 3
    assert hmm.check(mixing, 3, 1000).every_length
    worst = hmm.largest_ratio(released([[1, 0], ["1/2", "1/2"]]))
    assert (worst.ratio, worst.observations, worst.secret) == (math.inf, ("1",), "1")
    assert worst.to_dict()["ratio"] == "infinite"
    same = hmm.HiddenMarkovModel(UNIT, COIN, {"a": [1, 0], "b": [1, 0]})
    assert (hmm.largest_ratio(same, 3).ratio, hmm.largest_ratio(same, 3).observations) == (1, ())
    # more digits than Python turns into a string by default
    digits = Fraction(f"0.{'7' * 900}")
    long = hmm.HiddenMarkovModel(UNIT, [[digits, 1 - digits], ["1/7", "6/7"]], SECRETS)
    assert len(hmm.largest_ratio(long, 9).to_dict()["ratio"]) > 4300


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
    for text, message in [
        ("[0, 7771]", "count 2 is not a whole number from 0 to 2"),
        ('[0, "7771"]', "count 2 is not a whole number"),
        ("[]", "there are no counts"),
        ('{"counts": [7771]}', "the counts must be a list, not an object"),
    ]:
        code, out, err = run("related", "noisymax", "-", stdin=text)
        assert (code, out, err.count("\n"), message in err) == (2, "", 1, True)
        assert "7771" not in err


def test_check_needs_no_solver_without_parameters():
    unit = "[[1, 0], [0, 1]]"
    made = f"hmm.HiddenMarkovModel({unit}, {unit}, {{'a': [1, 0], 'b': [0, 1]}})"
    code = f"import sys; from pufferflow import hmm; hmm.check({made}, 2, 1); "
    code += "print('z3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def seen(*rows):
    return model(observation_matrix=[*rows, [0, 1]][:2])


def max_of(**described):
    return json.dumps({"noisy_max": described})


POLYNOMIAL, INTERVAL = "entry 1 is not a polynomial in p", "must have an interval"
BAD = [
    (model(transition_matrix=[[1, 0], [0.5, 0.4]]), "row 2 sums to 9/10, not exactly to 1"),
    (seen([1.5, -0.5]), "row 1, entry 1 is not between 0 and 1"),
    (seen(["1/3", 0.67]), "sums to 301/300"),
    (seen(["1/0", 1]), "a division by zero"),
    (seen(["1e9999999", 1]), "not an exact number"),
    (seen(["9" * 3000, 1]), "has 3000 characters"),
    (seen([True, 0]), "not a truth value"),
    (model(observation_matrix=[[1, 0]]), "observation_matrix has 1 rows; give 2"),
    (seen([1, 0], [1]), "row 2 has 1 probabilities; give 2"),
    (seen([], []), "row 1 has 0 probabilities; give at least one"),
    (model(transition_matrix=[]), "transition_matrix has 0 rows"),
    (model(transition_matrix="x"), "transition_matrix is 'x'; it must be a list"),
    (model(initial_distributions={"a": [1, 0]}), "has 1 secrets; give names of at least two"),
    (model(initial_distributions=[[1, 0]]), "must give one per secret, not a list"),
    (model(initial_distributions={"a": [1, 0], "b": [1]}), "of 'b' has 1 probabilities; give 2"),
    *((model(pairs=[["yes", x]]), "not two different secrets") for x in ("maybe", "yes")),
    (model(pairs=[]), "pairs is empty"),
    *((model(states=x), "states must be 2 different strings") for x in (["a"], ["a"] * 2, [1, 2])),
    (model(length=0), "length is 0"),
    (model(extra=1), "unknown key 'extra'"),
    ("{}", "has no transition_matrix"),
    ("[]", "the model must be an object with"),
    ("", "is empty; it must hold"),
    (model(), "no length of observation sequences"),
    (max_of(), "priors is a NoneType; give a Mapping"),
    (json.dumps({"noisy_max": 1}), "noisy_max must be an object with"),
    (max_of(n=1), "noisy_max has the unknown key 'n'"),
    (max_of(release="x"), "release is 'x'; choose from index, value"),
    (max_of(ties="x"), "ties is 'x'; choose from"),
    (max_of(priors={"a": [[1, 0]], "b": [[1, 0]] * 2}), "each prior needs as many counts"),
    (max_of(mechanism=[[1]]), "mechanism has 1 rows"),
    (max_of(priors=dict.fromkeys("ab", [I] * 9)), "more than 2000 states"),
    (json.dumps({"noisy_max": SHORT, "length": 2}), "the model has the unknown key 'length'"),
]
for law, box, message in (
    (["2*p", "1 - 2*p"], {"p": [0, 1]}, "entry 2 is negative at p = "),
    (["p*(1-p)*5", "1 - 5*p*(1-p)"], {"p": [0, 1]}, "is negative at p = 1/2"),
    (["p", "p"], {"p": [0, 1]}, "sums to 2*p, not to 1 for every prior"),
    (["1/p", "1 - 1/p"], {"p": [0.5, 1]}, POLYNOMIAL),
    *(
        ([text, "1"], {"p": [0, 1]}, POLYNOMIAL)
        for text in ("q", "p/0", "p**99", "((9**64)**64)**64", "p +", "p(1)", "1 if p else 0")
    ),
    *((["p", "1-p"], {"p": ends}, INTERVAL) for ends in ([1, 0], [0])),
    (["p", "1-p"], {}, "parameters must give each an interval"),
    (["p", "1-p"], {"2p": [0, 1]}, "impossible name"),
):
    both = {"a": law, "b": [0, 1]}
    BAD.append((model(initial_distributions=both, parameters=box, length=1), message))


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_models(check, text, message):
    code, out, err = check(text, "--factor", 2)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("pufferflow: error: ")
    assert message in err


def test_bad_arguments(monkeypatch):
    free = hmm.PriorFamily(
        UNIT, UNIT, {"a": ["p", "1-p"], "b": [0, 1]}, {"p": [0, "1/2"]}, length=1
    )
    coin = released(COIN)
    monkeypatch.setattr(checking, "MAX_ENTRIES", 1)
    monkeypatch.setattr(priors, "MAX_SEQUENCES", 1)
    wild = hmm.HiddenMarkovModel([["2/3", "1/3"], ["1/4", "3/4"]], COIN, SECRETS)
    for work, message in [
        (lambda: hmm.truncated_geometric(0), "largest value is 0"),
        (lambda: hmm.truncated_geometric(2000), "too large for a ratio of so many digits"),
        (
            lambda: hmm.truncated_geometric(2, 1),
            "ratio of the geometric mechanism must lie between",
        ),
        (lambda: hmm.largest_value_ratio(0, "one-by-one"), "number of queries is 0"),
        (lambda: hmm.largest_value_ratio(1, "other"), "relation is 'other'"),
        (lambda: free.at(p=1), "p is outside its interval"),
        (lambda: free.at(p="x"), "p is not an exact number"),
        (lambda: free.at(), "has no value"),
        (lambda: free.at(p=0, q=1), "'q' is not one of p"),
        (lambda: hmm.sup_ratio(free, 3), "more than 1 sequences of 1 observations"),
        (lambda: hmm.check(coin, 2, True), "length is True"),
        *((lambda of=of: hmm.check(coin, of), "factor is") for of in ("0", -1, "x", "nan", "1/0")),
        (lambda: hmm.largest_ratio(wild, 9), "NP-hard"),
        (lambda: coin.probability("2", []), "the secret is not one of '0', '1'"),
        (lambda: coin.probability("1", ["7"]), "is not an observation"),
        (lambda: hmm.NoisyMax().distribution([]), "there are no counts"),
    ]:
        with pytest.raises(pf.ParameterError, match=message):
            work()
