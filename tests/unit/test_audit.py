"""The exact loss: published and worked values, queries, bad input, the command."""

import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._util.rounding import divide_up
from pufferflow.audit import CountQuery, HistogramQuery, privacy_losses
from pufferflow.errors import ChainError, ParameterError
from pufferflow.mechanisms import MECHANISMS

THETA_1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
THETA_2 = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
ONE = CountQuery({1})


@pytest.mark.parametrize(
    ("chain", "convention", "loss"),
    [(THETA_1, "published", 0.2375), (THETA_2, "published", 0.2847), (THETA_1, "exact", 0.2391)],
)
def test_actual_loss_of_mqm_exact(chain, convention, loss):
    scale = pf.mqm_exact(chain, 100, 1.0, convention=convention).scale
    for state in (0, 1):
        assert round(pf.privacy_loss(chain, 100, scale, CountQuery([state])).loss, 4) == loss


@pytest.mark.parametrize(
    ("chain", "epsilon", "scale"),
    [
        (THETA_1, 0.5, 6.345),
        (THETA_1, 1, 3.317),
        (THETA_1, 3, 1.123),
        (THETA_2, 0.5, 6.069),
        (THETA_2, 1, 3.021),
        (THETA_2, 3, 0.853),
    ],
)
def test_smallest_scale_of_the_sum(chain, epsilon, scale):
    found = pf.audit.smallest_scale(chain, 20, epsilon, ONE)
    assert round(found.scale, 3) == scale
    assert epsilon * (1 - 1e-8) < found.loss <= epsilon


@pytest.mark.parametrize("scale", [0.5, 2.0, 40.0])
def test_independent_records_lose_one_over_the_scale(scale):
    chain = pf.MarkovChain([[0.5, 0.3, 0.2]] * 3)
    for query in (ONE, HistogramQuery(), HistogramQuery([[0, 2], [1]])):
        found = pf.privacy_loss(chain, 9, scale, query)
        assert found.lower <= 1 / scale <= found.loss <= 1 / scale + 1e-11


def test_a_family_loses_what_its_worst_chain_loses():
    single = [pf.privacy_loss(c, 15, 3.0, ONE) for c in (THETA_2, THETA_1)]
    both = pf.privacy_loss(pf.ChainFamily([THETA_2, THETA_1]), 15, 3.0, ONE)
    assert both.loss == max(one.loss for one in single)
    assert both.chain == int(np.argmax([one.loss for one in single]))


def test_queries_that_reveal_nothing():
    for query in (CountQuery({0}), HistogramQuery()):
        found = pf.privacy_loss(pf.MarkovChain([[1.0]]), 7, 1.0, query)
        assert found.loss == found.lower == 0
        assert found.node is found.pair is found.output is None
    found = pf.privacy_loss(THETA_1, 30, 1.0, CountQuery({0, 1}))
    assert found.lower == 0 <= found.loss < 1e-10
    assert found.node is None
    # a full turn is the same from anywhere
    cycle = pf.MarkovChain([[0, 1, 0], [0, 0, 1], [1, 0, 0]], "any")
    assert pf.privacy_loss(cycle, 6, 1.0, HistogramQuery()).loss < 1e-12
    assert pf.privacy_loss(cycle, 7, 1.0, HistogramQuery()).loss == pytest.approx(1.0)


def test_long_chains_reach_a_limit():
    losses = [pf.privacy_loss(THETA_1, length, 5.0, ONE) for length in (200, 400)]
    assert losses[0].loss == pytest.approx(losses[1].loss, rel=1e-9)
    assert losses[1].loss - losses[1].lower < 1e-10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((THETA_1, 10, 0.0, ONE), "scale is 0.0"),
        ((THETA_1, 10, math.nan, ONE), "scale is nan"),
        ((THETA_1, 10, 0.001, ONE), "of at least 0.00667"),
        ((THETA_1, 10**6, 1.0, ONE), r"multiplications, above 3e\+12; .*leakage_loss bounds it"),
        ((THETA_1, 0, 1.0, ONE), "length is 0; it must be an integer of at least 1"),
        ((THETA_1, [3, 4], 1.0, ONE), "length is a list; it must be an integer"),
        (
            (THETA_1, 10, 1.0, CountQuery({2})),
            "state 2 is requested, but the chain has the states 0 to 1",
        ),
        ((THETA_1, 10, 1.0, "count"), "give a CountQuery or a HistogramQuery"),
        ((THETA_1, 10**5, 1.0, HistogramQuery()), "GiB"),
        ((THETA_1, 100, 0.01, HistogramQuery()), "for scales of at least 0.2"),
        ((THETA_1, 10, 1.0, HistogramQuery([[0]])), "state 1 is in no bin"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        pf.privacy_loss(*arguments)


@pytest.mark.parametrize(
    ("query", "given", "message"),
    [
        (CountQuery, set(), "at least one state"),
        (CountQuery, {-1}, "a negative number is no state"),
        (CountQuery, {1.5}, "a float is no state"),
        (CountQuery, 1, "give a set of states"),
        (HistogramQuery, [[0], []], "every bin at least one state"),
        (HistogramQuery, [[0, 1], [1]], "in two bins"),
    ],
)
def test_bad_queries_are_refused(query, given, message):
    with pytest.raises(ParameterError, match=message):
        query(given)


def test_probabilities_near_and_beyond_the_range_of_floats():
    rare = pf.MarkovChain([[1 - 1e-100, 1e-100], [1e-100, 1 - 1e-100]], [1, 0])
    # X_4 = 1: the count is 2, 3 or 4 with equal chances; X_4 = 0: 0, but for one chance in 10^100
    assert pf.privacy_loss(rare, 5, 1 / 150, ONE).loss == pytest.approx(600 - math.log(3))
    # X_2 = 1 has probability 1e-300, which no rounding of the count's distribution is lost in
    unlikely = pf.MarkovChain([[0, 1e-300, 1], [1, 0, 0], [1, 0, 0]], [1, 0, 0])
    assert pf.privacy_loss(unlikely, 5, 1.0, ONE).loss == pytest.approx(1.0)
    assert pf.privacy_loss(unlikely, 5, 1.0, HistogramQuery()).loss == pytest.approx(1.0)
    with pytest.raises(ChainError, match="beyond the range of floats"):
        pf.privacy_loss(pf.MarkovChain([[0.5, 0.5]] * 2, [1 - 1e-300, 1e-300]), 5, 1.0, ONE)


def test_smallest_scale_ends_at_the_finest_it_can_prove():
    for query in (ONE, HistogramQuery()):
        found = pf.audit.smallest_scale(THETA_1, 3, 1000.0, query)
        assert found.loss <= 1000
        assert found == pf.privacy_loss(THETA_1, 3, found.scale, query)


@pytest.mark.parametrize("chain", [pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), THETA_1])
@pytest.mark.parametrize("epsilon", [1e-90, 1e-14, 1e-5])
def test_smallest_scale_where_every_record_counts(chain, epsilon):
    """T/ε is the answer, or within rounding of it: SciPy's bracket had no change of sign."""
    for length in (1, 2):
        found = pf.audit.smallest_scale(chain, length, epsilon, CountQuery([0]))
        assert found.loss <= epsilon
        assert found.scale <= divide_up(length, epsilon)
    alone = pf.audit.smallest_scale(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 1, epsilon, ONE)
    assert Fraction(alone.scale) * Fraction(epsilon) >= 1  # the one record loses 1/scale


@pytest.mark.parametrize("query", [ONE, HistogramQuery()])
@pytest.mark.parametrize("epsilon", [100.0, 1e90])
def test_smallest_scale_from_any_start_stops_where_floats_do(query, epsilon):
    found = pf.audit.smallest_scale(
        pf.MarkovChain(THETA_1.transition_matrix, "any"), 7, epsilon, query
    )
    assert found.loss <= epsilon
    assert found.scale <= 7 / 150 * (1 + 1e-9)


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def audit(tmp_path, run):
    path = tmp_path / "model.json"
    chain = {"transition_matrix": [[0.9, 0.1], [0.4, 0.6]], "initial_distribution": [1, 0]}
    path.write_text(json.dumps({"chains": [chain]}))

    return lambda *arguments: run("audit", path, *arguments)


def test_audit_of_a_mechanism(audit):
    arguments = ("--length", 100, "--count", 1, "--mechanism", "mqm-exact", "--epsilon", 1)
    arguments += ("--convention", "published")
    code, out, err = audit(*arguments, "--json")
    assert (code, err) == (0, "")
    (row,) = json.loads(out)
    assert (row["mechanism"], row["guarantee"], round(row["loss"], 4)) == ("mqm-exact", 1.0, 0.2375)
    assert row["ratio"] == row["loss"] / row["guarantee"]
    assert row["lower"] <= row["loss"]
    code, out, _ = audit(*arguments)
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["mechanism", "scale"]
    assert "0.23746252" in out


def test_audit_of_windows(audit):
    code, out, _ = audit("--length", 40, "--count", 1, "--epsilon", 1, "--protect", 5, "--json")
    rows = {row["mechanism"]: row for row in json.loads(out)}
    assert code == 0
    scale = pf.leakage(THETA_1, 40, 1.0, window=5).scale
    assert (rows["leakage"]["scale"], rows["leakage"]["window"]) == (scale, 5)
    assert (
        rows["leakage"]["loss"]
        == pf.privacy_loss(THETA_1, 40, scale, CountQuery([1]), window=5).loss
        <= 1
    )
    assert rows["wasserstein"]["scale"] is None
    assert "windows of 5" in audit("--length", 40, "--count", 1, "--scale", 30, "--protect", 5)[1]
    for query, window, said in (
        ("--histogram", 5, "--count STATE"),
        ("--count=1", 0, "at least 1"),
    ):
        code, out, err = audit("--length", 40, query, "--scale", 30, "--protect", window)
        assert (code, out, said in err) == (2, "", True)


def test_audit_of_all_mechanisms_says_which_do_not_apply(audit):
    code, out, _ = audit("--length", 30, "--count", 1, "--epsilon", 1, "--json")
    rows = {row["mechanism"]: row for row in json.loads(out)}
    assert code == 0
    assert set(rows) == set(MECHANISMS)
    assert rows["gk16"]["loss"] is None
    assert rows["gk16"]["reason"] in audit("--length", 30, "--count", 1, "--epsilon", 1)[1]
    assert rows["entry-dp"]["ratio"] > 1 > rows["mqm-exact"]["ratio"]


def test_audit_of_wasserstein_is_of_the_states_counted(tmp_path, run):
    matrix = [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]]
    path = tmp_path / "three.json"
    path.write_text(json.dumps({"chains": [{"transition_matrix": matrix}]}))
    arguments = ("--length", 20, "--epsilon", 1, "--mechanism", "wasserstein", "--json")
    (row,) = json.loads(run("audit", path, "--count", 2, *arguments)[1])
    assert row["scale"] == pf.wasserstein(pf.MarkovChain(matrix), 20, 1.0, states=[2]).scale
    assert row["loss"] <= 1
    (row,) = json.loads(run("audit", path, "--histogram", *arguments)[1])
    assert row["scale"] is None
    assert "the query is missing" in row["reason"]


def test_audit_of_a_scale(audit):
    code, out, _ = audit("--length", 20, "--histogram", "--scale", 3, "--json")
    (row,) = json.loads(out)
    assert code == 0
    assert (row["guarantee"], row["ratio"], row["query"]) == (None, None, "histogram")
    assert row["loss"] == pf.privacy_loss(THETA_1, 20, 3.0, HistogramQuery()).loss
    assert "-" in audit("--length", 20, "--histogram", "--scale", 3)[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scale", 1), "either --count STATE or --histogram"),
        (("--scale", 1, "--histogram", "--count", 1), "either --count STATE or --histogram"),
        (("--count", 1), "give --scale S, or --epsilon E"),
        (
            ("--count", 1, "--scale", 1, "--mechanism", "mqm-exact"),
            "--scale goes without --mechanism",
        ),
        (("--count", 1, "--scale", 1, "--epsilon", 1, "--epsilon", 2), "a single --epsilon"),
        (("--count", 5, "--scale", 1), "state 5 is requested"),
        (("--count", 1, "--scale", -1), "scale is -1.0"),
        (("--count", 1, "--scale", 1, "--epsilon", 0), "epsilon is 0.0"),
        (("--count", 1, "--epsilon", 1, "--mechanism", "magic"), "magic"),
    ],
)
def test_audit_refuses_bad_input(audit, arguments, message):
    code, out, err = audit("--length", 10, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_scale_of_zero_is_a_fact_and_the_other_rows_go_on(audit):
    """A count of all states is the same for every secret."""
    asked = ("--length", 20, "--count", 0, "--count", 1, "--epsilon", 1)
    code, out, err = audit(*asked, "--json")
    assert (code, err) == (0, "")
    rows = {row["mechanism"]: row for row in json.loads(out)}
    nothing = rows.pop("wasserstein")
    assert nothing["scale"] == nothing["loss"] == nothing["ratio"] == 0
    assert nothing["status"] == "ok"
    assert "reveals nothing" in nothing["reason"]
    assert all(row["loss"] < 1e-9 for row in rows.values() if row["scale"] is not None)
    assert "reveals nothing" in audit(*asked)[1]
    (row,) = json.loads(audit(*asked, "--mechanism", "wasserstein", "--json")[1])
    assert row == nothing


def test_a_scale_too_small_to_audit_costs_its_row_only(audit):
    asked = ("--length", 5, "--count", 1, "--epsilon", 200, "--json")
    code, out, err = audit(*asked)
    assert (code, err) == (0, "")
    rows = {row["mechanism"]: row for row in json.loads(out)}
    assert (rows["entry-dp"]["loss"], rows["entry-dp"]["status"]) == (None, "not audited")
    assert "at least 0.00667" in rows["entry-dp"]["reason"]
    assert rows["group-dp"]["loss"] > 0
    code, out, err = audit(*asked, "--mechanism", "entry-dp")  # asked for by name
    assert (code, out) == (2, "")
    assert "at least 0.00667" in err


# -- work ------------------------------------------------------------------------------------------


MANY = pf.MarkovChain(np.full((200, 200), 1 / 200), "any")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: pf.privacy_loss(MANY, 17_520, 1.0, ONE),
        lambda: pf.audit.smallest_scale(MANY, 17_520, 1.0, ONE),
        lambda: pf.privacy_loss(MANY, 10**4, 1.0, HistogramQuery()),
        lambda: pf.audit.smallest_scale(MANY, 2**62, 1.0, HistogramQuery()),
        lambda: pf.privacy_loss(
            pf.MarkovChain(MANY.transition_matrix), 7000, 1.0, HistogramQuery([[0], range(1, 200)])
        ),
    ],
)
def test_work_is_known_before_it_starts(ask):
    """Once hours without a word, or a size that no float holds."""
    with pytest.raises(ParameterError, match=r"multiplications|GiB|numbers"):
        ask()


def test_audit_refuses_before_it_computes_a_scale(tmp_path, run, monkeypatch):
    path = tmp_path / "many.json"
    path.write_text(
        json.dumps({"chains": [{"transition_matrix": MANY.transition_matrix.tolist()}]})
    )
    monkeypatch.setattr(
        "pufferflow.cli.audit.scales_of", lambda *_: pytest.fail("the scale was computed")
    )
    code, out, err = run("audit", path, "--length", 17_520, "--count", 1, "--epsilon", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "multiplications, above 3e+12; use a shorter length" in err


def test_audit_takes_on_no_more_than_it_was_allowed(tmp_path, run):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"chains": [{"transition_matrix": [[0.54, 0.46], [0.45, 0.55]]}]}))
    arguments = ("audit", path, "--histogram", "--epsilon", 1, "--mechanism", "group-dp")
    code, out, err = run(*arguments, "--length", 1000)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(
        r"1000 records would take about .*e\+11 operations\), above the 1.5e\+11 .*, "
        r"or allow more \(--most-work\)",
        err,
    )
    assert run(*arguments, "--length", 20)[0] == 0
    assert run(*arguments, "--length", 20, "--most-work", 1000)[0] == 2
    assert run(*arguments, "--length", 20, "--most-work", 1e9)[0] == 0


@pytest.mark.parametrize("query", [CountQuery({1}), HistogramQuery()])
@pytest.mark.parametrize("start", ["stationary", "any"])
def test_losses_at_several_scales_are_those_of_each(query, start):
    family = [
        pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], start),
        pf.MarkovChain([[0.6, 0.4], [0.1, 0.9]], start),
    ]
    scales = [5.0, 0.7, 40.0]
    assert privacy_losses(pf.ChainFamily(family), 9, scales, query) == [
        pf.privacy_loss(pf.ChainFamily(family), 9, scale, query) for scale in scales
    ]
    with pytest.raises(ParameterError, match="scales is empty"):
        privacy_losses(pf.ChainFamily(family), 9, [], query)
    with pytest.raises(ParameterError, match="scale"):
        privacy_losses(pf.ChainFamily(family), 9, [1.0, -1.0], query)
