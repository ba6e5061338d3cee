"""Frameworks as data: distances, errors, tables and ``pufferflow related general``."""

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._util.rounding import float_up
from pufferflow.errors import ParameterError
from pufferflow.general import framework, max_divergence, wasserstein_infinity
from pufferflow.general.distributions import distribution

WELL = {0: "0.2", 1: "0.225", 2: "0.5", 3: "0.075"}
FLU = {"well": WELL, "ill": {4 - n: p for n, p in WELL.items()}}
COUNT = (10, 15, 50, 15, 10)
ROWS = "secret,value,probability\n" + "\n".join(
    f"{s},{n},{p}" for s, given in FLU.items() for n, p in given.items()
)


def clique(weights=COUNT):
    """Four people: every database with its probability; only the number of the ill matters."""
    return {
        d: Fraction(weights[sum(d)], sum(weights) * math.comb(4, sum(d)))
        for d in product((0, 1), repeat=4)
    }


def clique_table(weights=COUNT):
    rows = [f"{','.join(map(str, d))},{sum(d)},{p}" for d, p in clique(weights).items()]
    return "\n".join(["ann,bob,cem,dan,value,probability", *rows])


def test_distances_by_hand():
    def apart(p, q):
        return wasserstein_infinity(*(distribution(dict(enumerate(each))) for each in (p, q)))

    assert apart([1, 0, 0], [0, 0, 1]) == 2
    assert apart(["1/2", "1/2", 0], [0, "1/2", "1/2"]) == 1
    assert apart([0.3, 0.7], [0.3, 0.7]) == 0
    # the smallest mass counts
    assert apart([1, "1e-200", 0, 0], [1, 0, 0, "1e-200"]) == 2
    far = {"s": {0: 1}, "t": {10**400: 1}}
    assert pf.PufferfishFramework({"a": far}).wasserstein().scale(1.0) == math.inf
    p, q = distribution({1: 0.5, 2: 0.5}), distribution({1: 0.25, 2: 0.75})
    assert math.log(2) <= max_divergence(p, q) <= math.log(2) * (1 + 1e-14)
    assert max_divergence(q, p) == pytest.approx(math.log(1.5))
    assert max_divergence(q, distribution({1: 1})) == math.inf


def test_the_flu_clique_in_every_way(tmp_path):
    path = tmp_path / "flu.csv"
    path.write_text(ROWS)
    people = pf.PufferfishFramework.from_databases({"clique": clique()}, sum)
    for found in (
        pf.PufferfishFramework({"clique": FLU}),
        people,
        pf.PufferfishFramework.from_table(path),
    ):
        assert found.wasserstein().W == 2
        assert found.wasserstein().scale(0.5) == 4
        assert found.wasserstein().scale(0.1) * Fraction(0.1) >= 2
    assert people.group_sensitivity([["X4", "X1", "X3", "X2"]]).sensitivity == 4
    assert people.pairs == tuple(((f"X{i}", 0), (f"X{i}", 1)) for i in range(1, 5))


def test_floats_stand_for_their_decimals():
    """0.1 + 0.2 is not 0.3 in binary: two distributions would differ by a mass far away."""
    given = {"s": {0: 0.1, 1: 0.2, 9: 0.7}, "t": {0.0: np.float64(0.1), 1: 0.2, 9: 0.7}}
    found = pf.PufferfishFramework({"all": given})
    assert found.wasserstein() == framework.WassersteinSensitivity(0.0, None, None)
    assert found.wasserstein().scale(1e-90) == 0
    assert found.release(9, 1.0) == 9  # the query reveals nothing


@pytest.mark.parametrize(
    ("given", "pairs", "message"),
    [
        ({}, None, "there is no scenario"),
        ([1], None, "distributions is a list; give a Mapping"),
        ({"a": 1}, None, "the scenario 'a' is an int"),
        ({"a": {"s": 1}}, None, "the distribution given 's' in the scenario 'a' is an int"),
        ({"a": {"s": {0: 1}}, "b": {"t": {0: 1}}}, None, "no pair of secrets"),
        (
            {"a": {"s": {0: 1}}, "b": {"t": {0: 1}}},
            [("s", "t")],
            "no scenario gives two secrets 's' and 't' positive",
        ),
        ({"a": FLU}, [], "no pair of secrets"),
        ({"a": FLU}, [("well", "sick")], "no scenario gives two secrets 'well' and 'sick'"),
        ({"a": FLU}, [("well", "well")], "two secrets 'well' and 'well'"),
        ({"a": FLU}, [("well",)], "two secrets 'well' positive"),
        (
            {"a": FLU | {"ill": {0: "0.5", 1: 0.4}}},
            None,
            "given 'ill' in the scenario 'a' sum to 0.9, not to 1",
        ),
        ({"a": FLU | {"ill": {}}}, None, "sum to 0, not to 1"),
        ({"a": FLU | {"ill": {0: math.nan}}}, None, "is nan; it must be a finite number"),
        ({"a": FLU | {"ill": {math.inf: 1}}}, None, "is inf; it must be a finite number"),
        ({"a": FLU | {"ill": {0: -0.5, 1: 1.5}}}, None, "lies outside 0 to 1"),
        ({"a": FLU | {"ill": {1: 0.5, "1.0": 0.5}}}, None, "the same value twice"),
        (
            {"a": FLU | {"ill": {n: Fraction(1, 10**600 + n) for n in range(3000)}}},
            None,
            "need decimals",
        ),
    ],
)
def test_bad_frameworks(given, pairs, message):
    with pytest.raises(ParameterError, match=message):
        pf.PufferfishFramework(given, pairs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenarios": {}}, "there is no scenario"),
        ({"scenarios": {"a": {(0,): 0.5, (1, 1): 0.5}}}, "tuples of the same records"),
        ({"scenarios": {"a": {0: 1}}}, "tuples of the same records"),
        ({"scenarios": {"a": {(0,): 0.5}}}, "the scenario 'a' sum to 0.5"),
        ({"query": str}, "the query of a database is not an exact number"),
        ({"records": ["a", "b", "c", "c"]}, "names of the 4 records"),
    ],
)
def test_bad_databases(change, message):
    with pytest.raises(ParameterError, match=message):
        pf.PufferfishFramework.from_databases(
            **{"scenarios": {"a": clique()}, "query": sum} | change
        )


def test_bad_questions():
    people = pf.PufferfishFramework.from_databases({"a": clique()}, sum)
    flu = pf.PufferfishFramework({"a": FLU})
    for asked, given, message in (
        (
            people.group_sensitivity,
            [["X1", "X9"]],
            "no record is 'X9'; the records are X1, X2, X3, X4",
        ),
        (people.group_sensitivity, [["X1", "X2"], ["X2"]], "'X2' is in two groups"),
        (people.group_sensitivity, [["X1", "X1"]], "'X1' is in two groups"),
        (flu.group_sensitivity, [["X1"]], "needs distributions of databases"),
        (flu.close_adversary, {"sick": {0: 1}}, "the adversary's secret 'sick' is in no scenario"),
        (people.privacy_loss, 1e-300, "too small for the query"),
    ):
        with pytest.raises(ParameterError, match=message):
            asked(given)


def test_secrets_that_a_scenario_excludes():
    found = pf.PufferfishFramework({"a": FLU, "b": {"well": {0: 1}}})
    assert found.wasserstein().scenario == "a"
    # an adversary for whom somebody may be ill is not close to scenario b
    assert found.close_adversary(FLU).scenario == "a"
    only = pf.PufferfishFramework(
        {"a": {"well": {0: 1}, "away": {0: 1}}, "b": FLU}, [("well", "away")]
    )
    # no pair is possible, so there is nothing to learn
    assert only.close_adversary({"well": {0: 1}}).delta == 0
    assert only.close_adversary({"well": {0: 1}, "away": {0: 1}}).delta == 0
    assert only.close_adversary({"well": {0: 1}, "away": {1: 1}}).delta == math.inf


# -- releases --------------------------------------------------------------------------------------


def test_the_noise_is_on_the_lattice_of_the_values(monkeypatch):
    scales = []

    def sampler(scale):
        scales.append(scale)
        return lambda counts: [count - 5 for count in counts]

    monkeypatch.setattr(framework, "vector_laplace", sampler)
    # steps of 1/2, W = 1
    halves = {"s": {"1/3": "1/2", "5/6": "1/2"}, "t": {"5/6": "1/2", "11/6": "1/2"}}
    assert pf.PufferfishFramework({"a": halves}).release("5/6", 0.1) == pytest.approx(5 / 6 - 5 / 2)
    assert scales == [float_up(2 / Fraction(0.1))]  # up, not to nearest
    assert pf.PufferfishFramework({"a": FLU}).release(np.int64(3), 1.0) == -2
    assert scales[1] == 2


def test_distribution_of_releases():
    """P(Z = z) ∝ exp(−|z|/s), s = W/ε = 1: shares of a run within six standard errors."""
    flu = pf.PufferfishFramework({"a": FLU})
    n, p = 5000, math.exp(-1)
    counts = Counter(flu.release(3, 2.0) - 3 for _ in range(n))
    for z in range(-3, 4):
        probability = (1 - p) / (1 + p) * p ** abs(z)
        assert abs(counts[z] / n - probability) < 6 * math.sqrt(probability * (1 - probability) / n)


def test_values_that_cannot_be_released():
    flu = pf.PufferfishFramework({"a": FLU})
    for value in (7, 2.5, "x", math.nan, None, [3], "7777"):
        with pytest.raises(ParameterError, match="impossible in every scenario") as raised:
            flu.release(value, 1.0)
        assert "7" not in str(raised.value)
        assert raised.value.__cause__ is None
    for largest in (1, 10**400):
        fine = {"s": {0: 1}, "t": {largest: "1/2", Fraction(1, 10**20): "1/2"}}
        with pytest.raises(ParameterError, match="too fine for exact noise"):
            pf.PufferfishFramework({"a": fine}).release(0, 1.0)
    for epsilon in (0, -1, math.nan, 1e91):
        with pytest.raises(ParameterError, match="epsilon"):
            flu.release(3, epsilon)


def test_releases_of_one_query_add_up():
    """Two releases with their own noise, exactly: one coupling serves both."""
    given = [{n: float(Fraction(p)) for n, p in law.items()} for law in FLU.values()]
    for first, second in ((0.5, 0.5), (1.0, 0.2)):
        worst = 0.0
        for x, y in product(range(-2, 7), repeat=2):
            # W = 2
            noise = {
                n: math.exp(-abs(x - n) * first / 2 - abs(y - n) * second / 2) for n in range(5)
            }
            one, other = (sum(p * noise[n] for n, p in law.items()) for law in given)
            worst = max(worst, abs(math.log(one / other)))
        assert first + second >= worst > max(first, second) / 2


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def general(run, tmp_path):
    """Runs the command on a table; files of the options are given as their content."""

    def call(table, *options, **files):
        for name, content in {"table": table, **files}.items():
            (tmp_path / name).write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
        named = [f"--{name}={tmp_path / name}" for name in files]
        return run("related", "general", str(tmp_path / "table"), *named, *options)

    return call


def test_scales_groups_and_adversaries(general):
    people, other = clique_table(), clique_table((5, 20, 50, 20, 5))
    options = ("--epsilon", 1, "--epsilon", 0.5, "--group", "ann,bob,cem,dan")
    options += ("--pair", "bob=0", "bob=1", "--json")
    code, out, err = general(people, *options, adversary=other)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["W"], answer["scenario"], answer["pair"]) == (2, "all", ["bob=0", "bob=1"])
    assert answer["scales"] == [{"epsilon": 1, "scale": 2}, {"epsilon": 0.5, "scale": 4}]
    assert (answer["group"]["sensitivity"], answer["group"]["independent"]) == (4, True)
    (adversary,) = answer["adversaries"]
    assert adversary["delta"] == pytest.approx(math.log(2))
    assert adversary["losses"][0]["loss"] == pytest.approx(1 + 2 * math.log(2))
    assert (
        json.loads(general(people, "--epsilon", 1, "--group", "ann,bob")[1])["group"]["independent"]
        is False
    )
    # a secret means the same in both kinds of table
    belief = "secret,value,probability\nbob=0,0,1\nbob=1,9,1\n"
    (adversary,) = json.loads(general(people, "--epsilon", 1, adversary=belief)[1])["adversaries"]
    assert adversary["delta"] is None
    assert adversary["losses"] == [{"epsilon": 1, "loss": None}]


def test_release(general, run, tmp_path):
    """The true value comes from a file and is not shown; the noise is drawn anew each time."""
    answers = [
        json.loads(general(ROWS, "--epsilon", 0.1, "--json", release=" 3\n")[1]) for _ in range(30)
    ]
    assert answers[0].keys() == {"W", "scenario", "pair", "scales", "release"}
    assert len({answer["release"] for answer in answers}) > 8
    assert (
        '"release": '
        in run("related", "general", tmp_path / "table", "--epsilon=1", "--release=-", stdin="3")[1]
    )
    assert '"release": ' not in run("related", "general", "-", "--epsilon", 1, stdin=ROWS)[1]


NUMBER = "71828"


@pytest.mark.parametrize(
    "content",
    [
        NUMBER,
        f"{NUMBER}x",
        f"{NUMBER}/0",
        f"3\n{NUMBER}",
        f"1e{NUMBER}",
        b"\xff71828",
        NUMBER * 5000,
    ],
)
def test_a_value_is_never_shown(general, content):
    code, out, err = general(ROWS, "--epsilon", 1, release=content)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("pufferflow: error: ")
    assert NUMBER not in err


def test_a_fault_shows_nothing(general, monkeypatch):
    def fails(*_):
        raise RuntimeError(NUMBER)

    monkeypatch.setattr(pf.PufferfishFramework, "release", fails)
    code, out, err = general(ROWS, "--epsilon", 1, release="3")
    assert (code, out) == (2, "")
    assert "a fault of this program: RuntimeError (fails, line" in err
    assert NUMBER not in err


HEAD = "secret,value,probability\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the columns must be value, probability"),
        ("a,value\n", "the columns must be value, probability"),
        ("a=b,value,probability\n", "the columns must be value, probability"),
        ("value,probability\n1,1\n", "the columns must be"),
        ("secret,w,value,probability\n1,1\n", "the columns must be"),
        ("value,value,probability\n1,1\n", "the columns must be"),
        (",value,probability\n1,1\n", "the columns must be"),
        (HEAD, "has no rows below the header"),
        (f"{HEAD}s,1\n", "line 2: the line has not as many fields"),
        (f"{HEAD}s,1,1,1\n", "line 2: the line has not as many fields"),
        (
            f"{HEAD}s,1,nan\n",
            "probability of the distribution given 's' in the scenario 'all' is not an exact",
        ),
        (
            f"{HEAD}s,nan,1\n",
            "a value of the distribution given 's' in the scenario 'all' is not an exact number",
        ),
        (f"{HEAD}s,1,1/0\n", "division by zero"),
        (f"{HEAD}s,1,-1\n", "lies outside 0 to 1"),
        (f"{HEAD}s,1,0.5\nt,1,1\n", "given 's' in the scenario 'all' sum to 0.5, not to 1"),
        (f"{HEAD}s,1,0.5\ns,1,0.5\n", "line 3: another row has a probability of the same"),
        (f"{HEAD}s,1,0.5\ns,1.0,0.5\n", "the same value twice"),
        (f"{HEAD} ,1,1\n", "line 2: a field is empty"),
        (f"scenario,{HEAD}a,s,1,1\nb,t,1,1\n", "no pair of secrets"),
        (
            "x,value,probability\n0,1,0.5\n0,1,0.5\n",
            "line 3: another row has a probability of the same",
        ),
        (
            "x,value,probability,scenario\n0,1,1,a\n0,2,1,b\n",
            "line 3: another row has another value",
        ),
        ("x,value,probability\n0,1,0.5\n1,1,0.6\n", "the scenario 'all' sum to 1.1"),
        (HEAD.encode() + b"\xff,1,1\n", "is not UTF-8 text"),
        (f'{HEAD}"s,1,1\n', "unexpected end of data"),
    ],
)
def test_bad_tables(general, content, message):
    code, out, err = general(content, "--epsilon", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("pufferflow: error: ")
    assert message in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "nan"], "epsilon is nan"),
        (
            ["--epsilon", "1", "--pair", "well", "sick"],
            "no scenario gives two secrets 'well' and 'sick'",
        ),
        (["--epsilon", "1", "--group", "ann"], "needs distributions of databases"),
        (["--epsilon", "1", "--adversary", "missing.csv"], "cannot read missing.csv"),
        (
            ["--epsilon", "1", "--epsilon", "2", "--release", "missing"],
            "--release needs a single --epsilon",
        ),
        (
            ["--epsilon", "1", "--adversary", "-", "--release", "-"],
            "only one of the files can be standard input",
        ),
        ([], "the following arguments are required: --epsilon"),
    ],
)
def test_bad_options(general, options, message):
    code, out, err = general(ROWS, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
