"""Frameworks as data, and ``pufferflow related general``; see refusals.txt too."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.general import framework, wasserstein_infinity
from pufferflow.general.distributions import distribution

WELL = {0: "0.2", 1: "0.225", 2: "0.5", 3: "0.075"}
FLU = {"well": WELL, "ill": {4 - n: p for n, p in WELL.items()}}
LINES = [f"{secret},{n},{p}" for secret, given in FLU.items() for n, p in given.items()]
ROWS = "\n".join(["secret,value,probability", *LINES])
CLIQUE = (10, 15, 50, 15, 10)


def clique(weights=CLIQUE):
    """Four people: every database with its probability; only the number of the ill matters."""
    return {
        d: Fraction(weights[sum(d)], sum(weights) * math.comb(4, sum(d)))
        for d in product((0, 1), repeat=4)
    }


def clique_table(weights=CLIQUE):
    rows = [f"{','.join(map(str, d))},{sum(d)},{p}" for d, p in clique(weights).items()]
    return "\n".join(["ann,bob,cem,dan,value,probability", *rows])


def test_the_smallest_mass_counts_and_so_does_the_farthest_value():
    one, other = ([1, "1e-200", 0, 0], [1, 0, 0, "1e-200"])
    p, q = (distribution(dict(enumerate(law))) for law in (one, other))
    assert wasserstein_infinity(p, q) == 2
    far = {"s": {0: 1}, "t": {10**400: 1}}
    assert pf.PufferfishFramework({"a": far}).wasserstein().scale(1.0) == math.inf


def test_the_flu_clique_in_every_way(tmp_path):
    path = tmp_path / "flu.csv"
    path.write_text(ROWS)
    people = pf.PufferfishFramework.from_databases({"clique": clique()}, sum)
    secrets = pf.PufferfishFramework({"clique": FLU})
    for found in (secrets, people, pf.PufferfishFramework.from_table(path)):
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


def test_secrets_that_a_scenario_excludes():
    found = pf.PufferfishFramework({"a": FLU, "b": {"well": {0: 1}}})
    assert found.wasserstein().scenario == "a"
    # an adversary for whom somebody may be ill is not close to scenario b
    assert found.close_adversary(FLU).scenario == "a"
    away = {"a": {"well": {0: 1}, "away": {0: 1}}, "b": FLU}
    only = pf.PufferfishFramework(away, [("well", "away")])
    # without a possible pair there is nothing to learn
    for belief, delta in (({}, 0), ({"away": {0: 1}}, 0), ({"away": {1: 1}}, math.inf)):
        assert only.close_adversary({"well": {0: 1}} | belief).delta == delta


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def general(run, tmp_path):
    """Runs the command on a table; files of the options are given as their content."""

    def call(table, *options, **files):
        for name, content in {"table": table, **files}.items():
            (tmp_path / name).write_text(content)
        named = [f"--{name}={tmp_path / name}" for name in files]
        return run("related", "general", tmp_path / "table", *named, *options)

    return call


def test_scales_groups_and_adversaries(general, run):
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
    part = general(people, "--epsilon", 1, "--group", "ann,bob")[1]
    assert json.loads(part)["group"]["independent"] is False
    # a secret means the same in both kinds of table
    belief = "secret,value,probability\nbob=0,0,1\nbob=1,9,1\n"
    (adversary,) = json.loads(general(people, "--epsilon", 1, adversary=belief)[1])["adversaries"]
    assert adversary["delta"] is None
    assert adversary["losses"] == [{"epsilon": 1, "loss": None}]
    assert json.loads(run("related", "general", "-", "--epsilon", 1, stdin=ROWS)[1])["W"] == 2
