"""``--protect``, ``--window`` and ``--knows``, what statements say of them, and what each level costs."""

import json

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf

pytestmark = pytest.mark.usefixtures("scales_once", "only_svg")
MODEL = {"chains": [{"transition_matrix": [[0.7, 0.3], [0.4, 0.6]], "initial_distribution": "stationary"}]}
CHAIN = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(MODEL))
    return path


def test_scales_and_plans_hide_what_is_asked(model, run):
    asked = ("--window", 5, "--knows", "any-records")
    code, out, _ = run("scale", model, "--length", 50, "--epsilon", 1, "--mechanism", "leakage", "--json", *asked)
    [found] = json.loads(out)
    assert code == 0
    assert (found["window"], found["knows"]) == (5, "any records")
    assert found["scale"] == pytest.approx(pf.leakage(CHAIN, 50, 1.0, window=5, knows="any records").scale)
    plain = ("plan", "--chain", model, "--length", 5000, "--accuracy", 0.05, "--mechanism", "leakage", "--json")
    narrow, wide = (json.loads(run(*plain, *more)[1])[0]["epsilon"] for more in ((), asked))
    assert wide > narrow


@pytest.mark.parametrize("window", ["0", "1.5", "-3", "an hour", "1h", "3 m", "9" * 30])
def test_windows_that_are_none_are_refused_in_one_sentence(window, model, run):
    code, _, err = run("scale", model, "--length", 50, "--epsilon", 1, f"--window={window}")
    assert code == 2
    assert "window" in err
    assert len(err.splitlines()) == 1


def test_statements_say_what_is_hidden_and_from_whom(tmp_path):
    data = pd.Series(np.random.default_rng(1).integers(0, 2, 600))
    form = pf.RecordFormat(pf.StateSpace.categories(["0", "1"]), 60)
    data.index = pd.date_range("2024-01-01", periods=600, freq="min")
    narrow = pf.release_histogram(data, CHAIN, 1.0, ledger=None, form=form)
    assert "knows none of them, changes the odds between any two states at any one step (60 s)" in narrow.statement
    assert "that who knows other steps of a participant learns no more" in narrow.statement
    asked = {"window": 60, "knows": "any records"}
    wide = pf.release_histogram(data, CHAIN, 1.0, ledger=None, form=form, **asked)
    assert "may know any of the others, changes the odds between any two courses of any 60 steps in a row (3600 s)" in (
        wide.statement
    )
    assert "learns no more" not in wide.statement
    assert wide.to_dict() | asked == wide.to_dict()
    assert wide.scale > narrow.scale
    assert pf.rehearse_release(data, CHAIN, 1.0, ledger=None, form=form, **asked)["window"] == 60
    with pytest.raises(pf.ParameterError, match="mqm-exact"):
        pf.release_histogram(data, CHAIN, 1.0, ledger=None, form=form, mechanism="mqm-exact", **asked)


def test_a_time_is_a_window_where_the_step_is_known(tmp_path, model, run):
    data = tmp_path / "data.csv"
    times = pd.date_range("2024-01-01", periods=300, freq="min")
    values = np.random.default_rng(1).integers(0, 2, 300)
    pd.DataFrame({"time": times, "value": values}).to_csv(data, index=False)
    terms = ("--chain", model, "--epsilon", 1, "--states", "0,1", "--step", 60, "--no-ledger", "--dry-run", "--json")
    code, out, err = run("release", data, *terms, "--window", "90s", "--knows", "any-records")
    assert code == 0, err
    assert (json.loads(out)["window"], json.loads(out)["knows"]) == (2, "any records")


def minutes(counts, names=("a",), gap=0):
    """Records a minute apart of several participants, each in two halves with a pause of ``gap`` minutes between."""
    rows = []
    for name, count in zip(names, counts, strict=True):
        values = np.random.default_rng(count).integers(0, 2, count)
        at = np.arange(count) + gap * (np.arange(count) >= count // 2)
        rows += [
            (name, pd.Timestamp("2024-01-01") + pd.Timedelta(minutes=int(t)), v)
            for t, v in zip(at, values, strict=True)
        ]
    return pd.DataFrame(rows, columns=["participant", "time", "value"])


FORM = pf.RecordFormat(pf.StateSpace.categories(["0", "1"]), 60)


@pytest.mark.parametrize(
    ("level", "window"), [("record", 1), ("1h", 60), ("90s", 2), (7, 7), ("7", 7), ("0.5h", 30), ("participant", 300)]
)
def test_levels_in_python(level, window):
    facts = pf.rehearse_release(minutes([300]), CHAIN, 1.0, ledger=None, form=FORM, protect=level)
    assert facts["window"] == window
    assert facts["whole_participant"] == (level == "participant")


@pytest.mark.parametrize("level", ["", "person", "1 hour", 0, 1.5, -3, "0", True, [60], "1e3"])
def test_levels_that_are_none_are_refused(level):
    with pytest.raises(pf.ParameterError, match="protect is"):
        pf.rehearse_release(minutes([300]), CHAIN, 1.0, ledger=None, form=FORM, protect=level)


def test_one_way_to_say_it():
    with pytest.raises(pf.ParameterError, match="protect and window say the same thing"):
        pf.rehearse_release(minutes([300]), CHAIN, 1.0, ledger=None, form=FORM, protect="1h", window=60)
    with pytest.raises(pf.ParameterError, match="no time step is known"):
        pf.plan_release(CHAIN, 0.1, length=300, protect="1h")


def test_a_participant_is_hidden_with_all_segments(tmp_path):
    data = minutes([100, 60], ["a", "b"], gap=30)
    form = pf.RecordFormat(FORM.states, 60, 600, split_because="the device was off")
    ledger = tmp_path / "ledger"
    made = pf.release_histogram(data, CHAIN, 1.0, ledger=ledger, form=form, protect="participant")
    assert (made.longest_segment, made.longest_record, made.segments) == (50, 100, 4)
    assert (made.mechanism, made.calibration.chosen.window) == ("group-dp", 100)
    assert made.scale >= 100
    pf.verify_certificate(made.calibration.certificate)
    assert "the whole record (up to 100 steps)" in made.statement
    assert "anything about a participant's whole record" not in made.statement
    assert not any("follow" in belief for belief in made.promise.beliefs)
    [entry] = pf.Ledger(ledger).to_dict()["releases"]
    assert (entry["window"], entry["length"], entry["knows"]) == (100, 100, "any records")
    assert pf.Ledger(ledger).spent == pytest.approx(1.0, rel=1e-3)  # the noise has 11 bits
    with pytest.raises(pf.ParameterError, match="leakage does not hide a whole participant"):
        pf.release_histogram(
            data, CHAIN, 1.0, ledger=None, form=form, protect="participant", mechanism="leakage", output=None
        )


def test_group_dp_says_what_it_hides():
    """It hid whole records all along, and its statement denied it."""
    one = pf.release_histogram(minutes([100]), CHAIN, 1.0, ledger=None, form=FORM, mechanism="group-dp")
    assert "between any two courses of the whole record (up to 100 steps)" in one.statement
    form = pf.RecordFormat(FORM.states, 60, 600, split_because="the device was off")
    split = pf.release_histogram(minutes([100], gap=30), CHAIN, 1.0, ledger=None, form=form, mechanism="group-dp")
    assert "courses of any whole segment (up to 50 steps in a row)" in split.statement
    assert "Not guaranteed: anything about several segments of one participant together" in split.statement


def test_what_each_level_costs_is_what_it_costs(model, tmp_path, run):
    """The table says before what a release at that level then has, and more protection never costs less."""
    data = minutes([3000])
    facts = pf.rehearse_release(data, CHAIN, 1.0, ledger=None, form=FORM, protect=100)
    costs = facts["levels"]
    names = [(cost["protect"], cost["knows"]) for cost in costs]
    levels = ("record", "1h", "100 steps", "1d")
    assert names == [(n, k) for n in levels for k in ("nothing", "any records")] + [("participant", "any records")]
    for cost in costs:
        level = 100 if cost["protect"] == "100 steps" else cost["protect"]
        there = pf.rehearse_release(data, CHAIN, 1.0, ledger=None, form=FORM, protect=level, knows=cost["knows"])
        assert (there["noise_scale"], there["mechanism"]) == (cost["noise_scale"], cost["mechanism"])
        assert there["error_95"] == cost["error_95"] > cost["expected_error"] > 0
    for knows in ("nothing", "any records"):
        scales = [cost["scale"] for cost in costs if cost["knows"] == knows or cost["protect"] == "participant"]
        assert scales == sorted(scales)
    path = tmp_path / "data.csv"
    data.to_csv(path, index=False)
    terms = ("--chain", model, "--epsilon", 1, "--states", "0,1", "--step", 60, "--no-ledger", "--dry-run")
    code, out, _ = run("release", path, *terms, "--protect", "participant")
    assert code == 0
    assert "hides       everything of one participant" in out
    [line] = [line for line in out.splitlines() if line.startswith("1h           any")]
    assert line.split()[3] == f"{pf.leakage(CHAIN, 3000, 1.0, window=60, knows='any records').scale:.6g}"
    said = ("plan", "--chain", model, "--length", 3000, "--accuracy", 0.05, "--step", 60)
    out = run(*said)[1]
    assert "epsilon that each level needs" in out
    assert [line.split()[0] for line in out.splitlines()[-7:]] == (
        ["record", "record", "1h", "1h", "1d", "1d", "participant"]
    )
    assert "what each level costs at epsilon 2" in run(*said, "--epsilon", 2)[1]
    out = run("scale", model, "--length", 300, "--epsilon", 1, "--protect", "participant", "--json")[1]
    [found] = json.loads(out)
    assert (found["mechanism"], found["scale"], found["window"]) == ("group-dp", 300, 300)


def test_the_statement_is_three_lists_and_the_formal_text_wrapped():
    made = pf.release_histogram(minutes([300]), CHAIN, 1.0, ledger=None, form=FORM, protect="1h")
    promise = made.promise
    for text, heading in ((promise.text(), ""), (promise.markdown(), "## ")):
        lines = text.splitlines()
        assert max(map(len, lines)) <= 100
        places = [lines.index(heading + title) for title, _ in promise.lists]
        assert places == sorted(places)
        plain = " ".join(text.replace("\\", "").split())
        for point in (*promise.protects, *promise.not_protected, *promise.beliefs, *promise.formal):
            assert point in plain
    assert made.statement == promise.formal_text == made.to_dict()["statement"]
    assert made.to_dict()["does_not_protect"] == list(promise.not_protected)
