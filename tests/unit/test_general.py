"""Frameworks given as data: their errors, their tables and the command ``pufferflow general``."""

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._work import MOST_WORK, allowing
from pufferflow.general import noise, sensitivity, tables

WELL = {0: "0.2", 1: "0.225", 2: "0.5", 3: "0.075"}
FLU = {"well": WELL, "ill": {4 - n: p for n, p in WELL.items()}}
LAW = (10, 15, 50, 15, 10)


def clique(law=LAW):
    """Four people: every database with its probability, the number of the ill being all that matters."""
    return {d: Fraction(law[sum(d)], sum(law) * math.comb(4, sum(d))) for d in product((0, 1), repeat=4)}


def clique_table(law=LAW, scenario=""):
    rows = ["ann,bob,cem,dan,value,probability" + ",scenario" * bool(scenario)]
    rows += [f"{','.join(map(str, d))},{sum(d)},{p}" + f",{scenario}" * bool(scenario) for d, p in clique(law).items()]
    return "\n".join(rows)


LAWS = "secret,value,probability\n" + "\n".join(f"{s},{n},{p}" for s, law in FLU.items() for n, p in law.items())


# -- from Python -------------------------------------------------------------------------------------


def test_the_flu_clique_in_every_way(tmp_path):
    given = pf.PufferfishFramework({"clique": FLU})
    people = pf.PufferfishFramework.from_databases({"clique": clique()}, sum)
    sampled = pf.PufferfishFramework.from_databases({"clique": ((d, p / 2) for d, p in [*clique().items()] * 2)}, sum)
    named = pf.PufferfishFramework.from_databases(
        {"clique": clique()}, sum, secrets={"well": lambda d: not d[2], "ill": lambda d: d[2]}
    )
    path = tmp_path / "flu.csv"
    path.write_text(LAWS)
    table = pf.PufferfishFramework.from_table(path)
    for framework in (given, people, sampled, named, table):
        found = framework.wasserstein()
        assert found.W == 2
        assert found.scale(0.5) == 4
        assert found.scale(0.1) * Fraction(0.1) >= 2
    for framework in (people, sampled, named):
        assert framework.group_sensitivity([["X4", "X1", "X3", "X2"]]).sensitivity == 4
    assert people.pairs == tuple(((f"X{i}", 0), (f"X{i}", 1)) for i in range(1, 5))
    assert repr(given) == "PufferfishFramework(1 scenarios, 1 pairs of secrets)"


def test_floats_stand_for_their_decimals():
    """0.1 + 0.2 is not 0.3 in binary, which would make two laws differ by a mass far away."""
    found = pf.PufferfishFramework(
        {"all": {"s": {0: 0.1, 1: 0.2, 9: 0.7}, "t": {0.0: np.float64(0.1), 1: 0.2, 9: 0.7}}}
    )
    assert found.wasserstein() == sensitivity.WassersteinSensitivity(0.0, None, None)
    assert found.wasserstein().scale(1e-90) == 0
    assert found.release(9, 1.0) == 9  # the query tells nothing of the secrets


@pytest.mark.parametrize(
    ("laws", "pairs", "message"),
    [
        ({}, None, "there is no scenario"),
        ([1], None, "laws is a list; give a Mapping"),
        ({"a": 1}, None, "the scenario 'a' is an int"),
        ({"a": {"s": 1}}, None, "the distribution given 's' in the scenario 'a' is an int"),
        ({"a": {"s": {0: 1}}}, None, "no pair of secrets"),
        ({"a": {"s": {0: 1}}, "b": {"t": {0: 1}}}, None, "no pair of secrets"),
        ({"a": {"s": {0: 1}}, "b": {"t": {0: 1}}}, [("s", "t")], "no scenario gives both 's' and 't' positive"),
        ({"a": FLU}, [], "no pair of secrets"),
        ({"a": FLU}, [("well", "sick")], "a pair has the secret 'sick', which no scenario has"),
        ({"a": FLU}, [("well", "well")], "two different secrets"),
        ({"a": FLU}, [("well",)], "two different secrets"),
        ({"a": FLU | {"ill": {0: "0.5", 1: 0.4}}}, None, "given 'ill' in the scenario 'a' sum to 0.9, not to 1"),
        ({"a": FLU | {"ill": {}}}, None, "sum to 0, not to 1"),
        ({"a": FLU | {"ill": {0: math.nan}}}, None, "is nan; it must be a finite number"),
        ({"a": FLU | {"ill": {math.inf: 1}}}, None, "is inf; it must be a finite number"),
        ({"a": FLU | {"ill": {0: -0.5, 1: 1.5}}}, None, "lies outside 0 to 1"),
        ({"a": FLU | {"ill": {1: 0.5, "1.0": 0.5}}}, None, "the same value twice"),
        ({"a": FLU | {"ill": {10**101: 1}}}, None, "beyond 1e\\+100"),
        ({"a": {n: {0: 1} for n in range(1500)}}, None, "1,500 secrets have more than 1,000,000 pairs"),
        ({"a": FLU | {"ill": {n: Fraction(1, 10**600 + n) for n in range(3000)}}}, None, "no common denominator"),
    ],
)
def test_bad_frameworks(laws, pairs, message):
    with pytest.raises(pf.ParameterError, match=message):
        pf.PufferfishFramework(laws, pairs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenarios": {}}, "there is no scenario"),
        ({"scenarios": {"a": {(0,): 0.5, (1, 1): 0.5}}}, "differ in their number of records"),
        ({"scenarios": {"a": {0: 1}}}, "no tuple of records"),
        ({"scenarios": {"a": [(0, 1, 2)]}}, "pairs of a database and its probability"),
        ({"scenarios": {"a": [([0], 1)]}}, "a database is a list"),
        ({"scenarios": {"a": {(0,): 0.5}}}, "the scenario 'a' sum to 0.5"),
        ({"query": 1}, "query is an int"),
        ({"query": str}, "the query of a database is not an exact number"),
        ({"records": ["a"]}, "names of the 4 records"),
        ({"records": ["a", "b", "c", "c"]}, "names of the 4 records"),
        ({"secrets": {"s": 1}}, "no function of a database"),
    ],
)
def test_bad_databases(change, message):
    with pytest.raises(pf.ParameterError, match=message):
        pf.PufferfishFramework.from_databases(**{"scenarios": {"a": clique()}, "query": sum} | change)


def test_bad_questions():
    people = pf.PufferfishFramework.from_databases({"a": clique()}, sum)
    for groups, message in (
        ([["X1", "X9"]], "record 'X9'; the records are X1, X2, X3, X4"),
        ([["X1", "X2"], ["X2"]], "'X2' is in two groups"),
        ([["X1", "X1"]], "'X1' is in two groups"),
    ):
        with pytest.raises(pf.ParameterError, match=message):
            people.group_sensitivity(groups)
    with pytest.raises(pf.ParameterError, match="do not say how records change it"):
        pf.PufferfishFramework({"a": FLU}).group_sensitivity([["X1"]])
    with pytest.raises(pf.ParameterError, match="has the secret 'sick', which no other has"):
        pf.PufferfishFramework({"a": FLU}).close_adversary({"sick": {0: 1}})
    with pytest.raises(pf.ParameterError, match="give a scale nearer"):
        people.privacy_loss(1e-300)
    large = {n: Fraction(1, 3000) for n in range(3000)}
    with allowing(MOST_WORK / 10), pytest.raises(pf.ParameterError, match="densities of all pairs would take about"):
        pf.PufferfishFramework({"a": {"s": large, "t": large}}).privacy_loss(1.0)


def test_secrets_that_a_scenario_excludes():
    framework = pf.PufferfishFramework({"a": FLU, "b": {"well": {0: 1}}})
    assert framework.wasserstein().law == "a"
    # an adversary for whom somebody may be ill is no close one of scenario b
    assert framework.close_adversary(FLU).scenario == "a"
    only = pf.PufferfishFramework({"a": {"well": {0: 1}, "away": {0: 1}}, "b": FLU}, [("well", "away")])
    assert only.close_adversary({"well": {0: 1}}).delta == 0  # no pair is possible, so there is nothing to learn
    assert only.close_adversary({"well": {0: 1}, "away": {0: 1}}).delta == 0
    assert only.close_adversary({"well": {0: 1}, "away": {1: 1}}).delta == math.inf


# -- releases ----------------------------------------------------------------------------------------


def drawn(monkeypatch, shift=0):
    """Make the sampler add ``shift`` steps; the scales that it was asked for."""
    scales = []

    def vector(scale, *, whole):
        scales.append(scale)
        assert whole
        return lambda counts: [count + shift for count in counts]

    monkeypatch.setattr(noise, "vector_laplace", vector)
    return scales


def test_the_noise_is_on_the_lattice_of_the_values(monkeypatch):
    scales = drawn(monkeypatch, shift=-5)
    halves = {"s": {"1/3": "1/2", "5/6": "1/2"}, "t": {"5/6": "1/2", "11/6": "1/2"}}  # steps of 1/2, W = 1
    assert pf.PufferfishFramework({"a": halves}).release("5/6", 0.1) == pytest.approx(5 / 6 - 5 / 2)
    assert scales == [pytest.approx(1 / 0.5 / 0.1)]
    assert Fraction(scales[0]) * Fraction(0.1) >= 2  # up, not to nearest
    assert pf.PufferfishFramework({"a": FLU}).release(np.int64(3), 1.0) == -2
    assert scales[1] == 2


def test_the_law_of_releases():
    """P(Z = z) ∝ exp(−|z|/s), s = W/ε = 1: shares of a run within six standard errors."""
    framework = pf.PufferfishFramework({"a": FLU})
    n = 5000
    counts = Counter(framework.release(3, 2.0) - 3 for _ in range(n))
    p = math.exp(-1)
    for z in range(-3, 4):
        probability = (1 - p) / (1 + p) * p ** abs(z)
        assert abs(counts[z] / n - probability) < 6 * math.sqrt(probability * (1 - probability) / n)


def test_values_that_cannot_be_released():
    framework = pf.PufferfishFramework({"a": FLU})
    for value in (7, 2.5, "x", math.nan, None, [3], "7777"):
        with pytest.raises(pf.ParameterError, match="none that the query has under any scenario") as raised:
            framework.release(value, 1.0)
        assert "7" not in str(raised.value)
        assert raised.value.__cause__ is None
    fine = {"s": {0: 1}, "t": {1: "1/2", Fraction(1, 10**20): "1/2"}}
    with pytest.raises(pf.ParameterError, match="passes 64 bits"):
        pf.PufferfishFramework({"a": fine}).release(0, 1.0)
    for epsilon in (0, -1, math.nan, 1e91):
        with pytest.raises(pf.ParameterError, match="epsilon"):
            framework.release(3, epsilon)


def test_releases_of_one_query_add_up():
    """Two releases with their own noise, exactly: one coupling of the laws serves both."""
    framework = pf.PufferfishFramework({"a": FLU})
    w = framework.wasserstein().W
    laws = [{n: float(Fraction(p)) for n, p in law.items()} for law in FLU.values()]
    for first, second in ((0.5, 0.5), (1.0, 0.2)):
        worst = 0.0
        for x, y in product(range(-2, 7), repeat=2):
            one, other = (
                sum(p * math.exp(-abs(x - n) * first / w - abs(y - n) * second / w) for n, p in law.items())
                for law in laws
            )
            worst = max(worst, abs(math.log(one / other)))
        assert first + second >= worst > max(first, second) / 2


# -- the command -------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def test_scales(run, table):
    code, out, err = run("related", "general", table(LAWS), "--epsilon", 1, "--epsilon", 0.5)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["W"], answer["scenario"], answer["pair"]) == (2, "all", ["well", "ill"])
    assert answer["scales"] == [{"epsilon": 1, "scale": 2}, {"epsilon": 0.5, "scale": 4}]


def test_groups_and_adversaries(run, table):
    people = table(clique_table())
    belief = table(clique_table((5, 20, 50, 20, 5), "other"), "belief.csv")
    options = ("--group", "ann,bob,cem,dan", "--adversary", belief, "--pair", "bob=0", "bob=1")
    code, out, err = run("related", "general", people, "--epsilon", 1, *options, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    close = pf.PufferfishFramework.from_databases({"a": clique()}, sum).close_adversary(
        pf.PufferfishFramework.from_databases({"b": clique((5, 20, 50, 20, 5))}, sum).laws["b"]
    )
    assert answer["W"] == 2
    assert answer["pair"] == ["bob=0", "bob=1"]
    assert (answer["group"]["sensitivity"], answer["group"]["independent"]) == (4, True)
    (adversary,) = answer["adversaries"]
    assert adversary["delta"] == close.delta == pytest.approx(math.log(2))
    assert adversary["losses"] == [{"epsilon": 1.0, "loss": close.loss(1.0)}]
    _, out, _ = run("related", "general", people, "--epsilon", 1, "--group", "ann,bob")
    assert json.loads(out)["group"]["independent"] is False
    # a secret means the same in both kinds of table
    laws = table("secret,value,probability\nbob=0,0,1\nbob=1,9,1\n", "laws.csv")
    code, out, _ = run("related", "general", people, "--epsilon", 1, "--adversary", laws)
    [adversary] = json.loads(out)["adversaries"]
    assert (code, adversary["delta"], adversary["secret"]) == (0, None, "bob=0")
    assert adversary["losses"] == [{"epsilon": 1, "loss": None}]


def test_release(run, table):
    """The true value comes from a file and is not shown; the noise is drawn anew each time."""
    laws, value = table(LAWS), table(" 3\n", "value")
    seen = set()
    for _ in range(40):
        code, out, err = run("related", "general", laws, "--epsilon", 0.1, "--release", value, "--json")
        assert (code, err) == (0, "")
        answer = json.loads(out)
        assert answer.keys() == {"W", "scenario", "pair", "scales", "release"}
        seen.add(answer["release"])
    assert len(seen) > 10


SECRET_NUMBER = "71828"


@pytest.mark.parametrize(
    "content",
    [
        SECRET_NUMBER,
        f"{SECRET_NUMBER}x",
        f"{SECRET_NUMBER}/0",
        f"3\n{SECRET_NUMBER}",
        f"1e{SECRET_NUMBER}",
        b"\xff71828",
        "7" * 20_000,
    ],
)
def test_a_value_is_never_shown(run, table, content):
    code, out, err = run("related", "general", table(LAWS), "--epsilon", 1, "--release", table(content, "value"))
    assert (code, out) == (2, "")
    assert err.startswith("pufferflow: error: ")
    assert err.count("\n") == 1
    assert SECRET_NUMBER not in err
    assert "777" not in err


def test_a_fault_shows_nothing(run, table, monkeypatch):
    def fails(*_):
        raise RuntimeError(SECRET_NUMBER)

    monkeypatch.setattr(pf.PufferfishFramework, "release", fails)
    code, out, err = run("related", "general", table(LAWS), "--epsilon", 1, "--release", table("3", "value"))
    assert (code, out) == (2, "")
    assert "a fault of this program: RuntimeError (fails, line" in err
    assert SECRET_NUMBER not in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; its first line must name the columns"),
        ("\n\n", "is empty"),
        ("secret,value,probability\n", "there are no rows below the header"),
        ("a,value,probability\n", "there are no rows below the header"),
        ("secret,value\ns,1\n", "there is no column probability"),
        ("secret,weight,value,probability\ns,1,1,1\n", "unknown column 'weight'"),
        ("value,probability\n1,1\n", "neither a column secret nor one of a record"),
        ("secret,value,value,probability\n", "'value' is there twice"),
        ("x," * 1000 + "value,probability\n", "1,002 columns; at most 1,000"),
        ("secret,value,probability\ns,1,1e-400\n", "sum to 0, not to 1"),
        ("secret,,value,probability\n", "names of columns must be"),
        ("a=b,value,probability\n1,1,1\n", "has an = in it"),
        ("secret,value,probability\ns,1\n", "line 2: 2 fields, the header has 3"),
        ("secret,value,probability\ns,1,nan\n", "line 2: probability is not an exact number"),
        ("secret,value,probability\ns,nan,1\n", "line 2: value is not an exact number"),
        ("secret,value,probability\ns,1,1/0\n", "division by zero"),
        ("secret,value,probability\ns,1,-1\n", "line 2: probability lies outside 0 to 1"),
        ("secret,value,probability\ns,1,0.5\nt,1,1\n", "given 's' in the scenario 'all' sum to 0.5, not to 1"),
        ("secret,value,probability\ns,1,0.5\ns,1.0,0.5\n", "line 3: the secret has this value already"),
        ("secret,value,probability\n ,1,1\n", "line 2: secret must be 1 to 80 printable"),
        ("secret,value,probability\ns,1,1\n", "no pair of secrets"),
        ("scenario,secret,value,probability\na,s,1,1\nb,t,1,1\n", "no pair of secrets"),
        ("x,value,probability\n0,1,0.5\n0,1,0.5\n", "line 3: the scenario has this database already"),
        ("x,value,probability,scenario\n0,1,1,a\n0,2,1,b\n", "line 3: the query has another value"),
        ("x,value,probability\n0,1,0.5\n1,1,0.6\n", "the scenario 'all' sum to 1.1"),
        (b"secret,value,probability\n\xff,1,1\n", "is not UTF-8 text"),
        ('secret,value,probability\n"s,1,1\n', "mend that line"),
        ("secret,value,probability\n" + "s,1,0\n" * 2, "has this value already"),
    ],
)
def test_bad_tables(run, table, content, message):
    code, out, err = run("related", "general", table(content), "--epsilon", 1)
    assert (code, out) == (2, "")
    assert err.startswith("pufferflow: error: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "0"], "epsilon is 0.0"),
        (["--epsilon", "nan"], "epsilon is nan"),
        (["--epsilon", "1", "--pair", "well", "sick"], "a pair has the secret 'sick', which no scenario has"),
        (["--epsilon", "1", "--pair", "well"], "expected 2 arguments"),
        (["--epsilon", "1", "--group", "ann"], "do not say how records change it"),
        (["--epsilon", "1", "--adversary", "missing.csv"], "cannot read missing.csv"),
        (["--epsilon", "1", "--release", "missing"], "cannot read missing"),
        (["--epsilon", "1", "--epsilon", "2", "--release", "missing"], "--release needs a single --epsilon"),
        (["--epsilon", "1", "--adversary", "-", "--release", "-"], "only one of the files can be standard input"),
        ([], "the following arguments are required: --epsilon"),
    ],
)
def test_bad_options(run, table, options, message):
    code, out, err = run("related", "general", table(LAWS), *options)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_long_tables_are_refused(run, table, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 5)
    long = "secret,value,probability\n" + "".join(f"{s},{n},1/3\n" for s in "st" for n in range(3))
    assert "has more than 5 rows" in run("related", "general", table(long), "--epsilon", 1)[2]
    monkeypatch.setattr(tables, "MOST_ROWS", 6)
    assert run("related", "general", table(long), "--epsilon", 1)[0] == 0


def test_the_value_may_come_from_a_pipe(run, table):
    assert '"release": ' in run("related", "general", table(LAWS), "--epsilon", 1, "--release", "-", stdin="3\n")[1]
    assert '"release": ' not in run("related", "general", "-", "--epsilon", 1, stdin=LAWS)[1]


def test_pairs_that_no_scenario_allows(run, table):
    text = "scenario,secret,value,probability\na,s,1,1\na,t,1,1\nb,u,1,1\n"
    code, _, err = run("related", "general", table(text), "--epsilon", 1, "--pair", "s", "u")
    assert code == 2
    assert "no scenario gives both 's' and 'u' positive probability" in err
    assert run("related", "general", table(text), "--epsilon", 1)[0] == 0
