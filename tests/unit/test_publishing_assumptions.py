"""What a release takes for granted: states, steps, what splits a record, where Θ comes from and if it has sense."""

import json

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow.models import write_model
from pufferflow.records.rows import MISSING_TEXTS, open_records

pytestmark = pytest.mark.usefixtures("scales_once")
RNG = np.random.default_rng(8)
SLOW = pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]])


def minutes(values, start="2021-06-01", every=1):
    times = pd.date_range(start, periods=len(values), freq=f"{every}min")
    return pd.DataFrame({"time": times.strftime("%Y-%m-%dT%H:%M:%S"), "value": list(values)})


def binary(names=("a", "b"), step=60, **options):
    return pf.PublicModel(
        pf.ChainFamily([SLOW]), pf.RecordFormat(pf.StateSpace.categories(list(names)), step, **options)
    )


def doubts(released):
    """What is warned of beside that no account is kept."""
    return [warning for warning in released.warnings if not warning.startswith("no account is kept")]


# -- states that look like a missing value --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=pytest.mark.long if kind != "frame" and name not in ("-", "na", "None") else ())
        for name in [text for text in MISSING_TEXTS if text] + ["NaN", "None", "N/A"]
        for kind in ("csv", "frame", "parquet")
    ],
)
def test_a_declared_state_is_never_taken_for_a_missing_value(tmp_path, name, kind):
    values = RNG.choice(["+", name], 300)
    source = table = minutes(values)
    if kind == "csv":
        source = tmp_path / "pm.csv"
        table.to_csv(source, index=False)
    elif kind == "parquet":
        source = tmp_path / "pm.parquet"
        table.to_parquet(source)
    model = binary(("+", name))
    released = pf.release_histogram(source, model, 1e3, ledger=None)
    assert (released.records, released.longest_segment) == (300, 300)
    assert released.counts == (int((values == "+").sum()), int((values == name).sum()))
    if kind == "csv":
        fit = pf.fit_records(source, states=pf.States(names=("+", name)))
        assert (fit.facts["records"], fit.facts["missing_values"]) == (300, 0)


def test_the_sign_of_the_issue(tmp_path, run):
    counts = []
    for ones in (1200, 1800):
        table = minutes(["+"] * ones + ["-"] * (3000 - ones))
        table.to_csv(tmp_path / f"pm{ones}.csv", index=False)
        write_model(tmp_path / "m2.json", SLOW)
        code, out, _ = run(
            *("release", tmp_path / f"pm{ones}.csv", "--chain", tmp_path / "m2.json", "--states=+,-", "--step", 60),
            *("--epsilon", 0.01, "--no-figure", "--json"),
        )
        assert code == 0
        counts.append({key: json.loads(out)[key] for key in ("records", "longest_segment", "segments")})
    assert counts[0] == counts[1] == {"records": 3000, "longest_segment": 3000, "segments": 1}


def test_a_declared_state_in_another_case_is_not_missing_either():
    table = minutes(["NA", "b", "na", "b"])
    with pytest.raises(pf.DataError, match="is none of the public states"):
        pf.release_histogram(table, binary(("NA", "b")), 1.0, ledger=None)
    other = pf.PublicModel(pf.ChainFamily([SLOW]), pf.RecordFormat(pf.StateSpace.categories(["NA"], other=True), 60))
    assert pf.release_histogram(table, other, 1.0, ledger=None).records == 4


def test_undeclared_missing_texts_stay_missing_and_are_said():
    table = minutes(["a", "b", "-", "a", "na", "b", "", "a"])
    assert pf.release_histogram(table, binary(), 1.0, ledger=None).records == 5
    other = pf.PublicModel(pf.ChainFamily([SLOW]), pf.RecordFormat(pf.StateSpace.categories(["a"], other=True), 60))
    assert pf.release_histogram(table, other, 1.0, ledger=None).records == 5
    fit = pf.fit_records(table)
    assert fit.facts["missing_values"] == 3
    assert fit.facts["missing_texts"] == {"-": 1, "na": 1}
    assert "'-' and 'na' were taken for missing" in fit.summary()
    assert "na, n/a, nan, null, none, ?, -" in pf.release_histogram(table, binary(), 1.0, ledger=None).statement


@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_nulls_that_may_have_been_a_state_are_refused(tmp_path, kind):
    """What pandas read as missing before it came here may be the state "None"."""
    source = table = minutes(["a", None, "a", "b", "a"])
    if kind == "parquet":
        source = tmp_path / "t.parquet"
        table.to_parquet(source)
    with pytest.raises(pf.DataError, match="may be the state 'None'"):
        pf.release_histogram(source, binary(("a", "None")), 1.0, ledger=None)


def test_names_of_states_have_no_blanks_around_them():
    with pytest.raises(pf.ParameterError, match="blank"):
        pf.StateSpace.categories([" a", "b"])


# -- steps, and what splits a record ---------------------------------------------------------------------------


def test_a_coarser_step_is_refused(tmp_path, run):
    values = RNG.choice(["a", "b"], 400)
    coarse = minutes(values, every=15)
    with pytest.raises(pf.DataError, match=r"900 s apart, but the chain has steps of 60 s"):
        pf.release_histogram(coarse, binary(), 1.0, ledger=None)
    # as rows that have no value
    sparse = minutes(np.where(np.arange(3000) % 15 == 0, RNG.choice(["a", "b"], 3000), ""))
    with pytest.raises(pf.DataError, match=r"900 s apart, but the chain has steps of 60 s"):
        pf.release_histogram(sparse, binary(), 1.0, ledger=None)
    with pytest.raises(pf.DataError, match=r"2 steps apart"):
        pf.release_histogram(pd.DataFrame({"value": ["a", "", "b", "", "b"]}), binary(step=None), 1.0, ledger=None)


def test_the_attack_of_the_issue(tmp_path, run, monkeypatch):
    """Every 15th minute, pauses of more than 10 minutes split: noise of scale 2 where 338 is right."""
    values = pd.Series(np.cumsum(RNG.choice([-1, 0, 1], 6000)) % 3).astype("str")
    for name, start in (("first", "2021-01-01"), ("second", "2022-01-01")):
        minutes(values, start).to_csv(tmp_path / f"{name}.csv", index=False)
    pd.read_csv(tmp_path / "second.csv").iloc[::15].to_csv(tmp_path / "q.csv", index=False)
    monkeypatch.chdir(tmp_path)
    code, _, err = run("fit", "first.csv", "--split-after", 600)
    assert (code, "say why" in err) == (2, True)
    assert run("fit", "first.csv", "--split-after", 600, "--split-because", "the device was off")[0] == 0
    code, out, err = run("release", "q.csv", "--chain", "first.csv.chain.json", "--epsilon", 1, "--no-figure")
    assert (code, out) == (2, "")
    assert "900 s apart, but the chain has steps of 60 s" in err
    assert not (tmp_path / "q.csv.ledger").exists()


def test_a_pause_needs_a_reason_which_the_statement_names():
    with pytest.raises(pf.ParameterError, match="say why"):
        pf.RecordFormat(pf.StateSpace.categories(["a", "b"]), 60, 600)
    with pytest.raises(pf.ParameterError, match="say why"):
        pf.fit_records(minutes(RNG.choice(["a", "b"], 50)), split_after_seconds=600)
    with pytest.raises(pf.ParameterError, match="split_because"):
        pf.RecordFormat(pf.StateSpace.categories(["a", "b"]), 60, split_because="no pause is given")
    table = minutes(RNG.choice(["a", "b"], 100)).drop(index=range(40, 60))
    model = binary(split_after_seconds=600, split_because="the sensor was off the body")
    said = pf.release_histogram(table, model, 1.0, ledger=None).statement
    assert "a pause of more than 600 s begins a segment of its own" in said
    assert "'the sensor was off the body'" in said
    assert "600 s" not in pf.release_histogram(table, binary(), 1.0, ledger=None).statement


def test_records_in_pieces_of_one_step_are_refused():
    """Half of the minutes come in pairs so that the smallest wait is a step; most stand alone."""
    model = binary(split_after_seconds=300, split_because="none")
    at = np.sort(np.concatenate([np.arange(0, 3000, 15), [1]]))
    table = minutes(RNG.choice(["a", "b"], 3000)).iloc[at]
    with pytest.raises(pf.DataError, match=r"200 of 201|most segments|of one record"):
        pf.release_histogram(table, model, 1.0, ledger=None)
    assert pf.release_histogram(table, binary(), 1.0, ledger=None).longest_segment == 2986


@pytest.mark.parametrize("named", ["option", "chain file"])
def test_a_participant_in_every_row_is_refused(named):
    table = minutes(RNG.choice(["a", "b"], 200)).assign(number=range(200))
    for column, step in (("time", None), ("number", 60), ("number", None)):
        reading = {"participant": column, "value": "value"} | ({"rows_are_steps": True} if step is None else {})
        if named == "option":
            model, given = binary(step=step), pf.Reading(**reading)
        else:
            model, given = binary(step=step, reading=reading), None
        with pytest.raises(pf.DataError, match=r"200 participants in 200 rows|hold times"):
            pf.release_histogram(table, model, 1.0, ledger=None, reading=given)


def test_days_are_no_participants():
    table = minutes(RNG.choice(["a", "b"], 5000))
    table.insert(0, "day", table["time"].str[:10])
    with pytest.raises(pf.DataError, match="'day' of the participants holds times"):
        pf.release_histogram(table, binary(), 1.0, ledger=None, reading=pf.Reading(participant="day"))
    table["hour"] = table["time"].str[8:13]
    cut = pf.release_histogram(table, binary(), 1.0, ledger=None, reading=pf.Reading(participant="hour"))
    assert "no two participants have records at the same time" in " ".join(cut.warnings)
    assert cut.warnings[0] in cut.statement
    table["half"] = np.arange(5000) % 2
    apart = pf.release_histogram(
        table.iloc[1:], binary(step=120), 1.0, ledger=None, reading=pf.Reading(participant="half")
    )
    assert doubts(apart) == []


def test_one_record_alone_is_refused():
    with pytest.raises(pf.DataError, match="single record"):
        pf.release_histogram(minutes(["a"]), binary(), 1.0, ledger=None)


def test_a_release_prints_which_column_is_what(tmp_path, run):
    minutes(RNG.choice(["a", "b"], 100)).to_csv(tmp_path / "d.csv", index=False)
    write_model(tmp_path / "m.json", SLOW, binary().records)
    asked = ("release", tmp_path / "d.csv", "--chain", tmp_path / "m.json", "--epsilon", 1, "--no-figure")
    line = "columns     time 'time', value 'value'; 0 not used"
    assert line in run(*asked, "--dry-run")[1]
    assert line in run(*asked)[1]


# -- the same data in other clothes -----------------------------------------------------------------------------


def walk(count, start="2021-06-01"):
    """Minutes that stay in their state for a while."""
    return minutes(np.where(np.cumsum(RNG.random(count) < 0.1) % 2, "a", "b"), start)


FIRST = walk(2000)


def unix(frame):
    return frame.assign(time=pd.to_datetime(frame["time"]).astype("datetime64[s]").astype("int64"))


@pytest.fixture(scope="module")
def fit():
    return pf.fit_records(FIRST)


@pytest.mark.parametrize(
    "dressed",
    [
        FIRST,
        FIRST.drop(index=7),
        FIRST.assign(value=FIRST["value"].where(np.arange(2000) != 5, "")),
        unix(FIRST),
        FIRST.assign(time=FIRST["time"] + "+02:00"),
        FIRST.iloc[:1000],
        FIRST.iloc[1990:],
        minutes(RNG.choice(["a", "b"], 2000), "2021-05-31T12:00"),
    ],
)
def test_a_chain_fitted_to_the_same_time_is_refused(dressed, fit):
    with pytest.raises(pf.DataError, match="fitted to records of the same time"):
        pf.release_histogram(dressed, fit, 1.0, ledger=None)
    others = pf.release_histogram(dressed, fit, 1.0, ledger=None, fitted_to_others=True)
    assert any("of other participants" in warning for warning in others.warnings)
    assert others.warnings[0] in others.statement


def test_a_chain_of_another_time_is_not(fit):
    later = walk(500, "2021-07-01")
    released = pf.release_histogram(later, fit, 1.0, ledger=None)
    assert doubts(released) == []
    assert "fitted to 2000 records from 2021-06-01T00:00:00 to 2021-06-02T09:19:00" in released.statement
    by_hand = pf.release_histogram(later, binary(), 1.0, ledger=None)
    assert "does not say which records the chain comes from" in by_hand.statement


def test_without_times_nobody_can_tell():
    steps = FIRST[["value"]]
    released = pf.release_histogram(steps, pf.fit_records(steps), 1.0, ledger=None)
    assert any("rows have no times" in warning for warning in released.warnings)


def test_times_of_a_fit_must_be_times(tmp_path):
    document = {
        "chains": [{"transition_matrix": SLOW.transition_matrix.tolist()}],
        "records": binary().records.to_dict(),
    }
    for first in ("tomorrow", "NaT", "2021-13-01T00:00:00", "2021-01-01"):
        document["records"]["fitted"] = {"first": first, "last": "2021-06-01T00:00:00", "records": 3}
        path = tmp_path / "m.json"
        path.write_text(json.dumps(document))
        with pytest.raises(pf.ModelError, match="first"):
            pf.read_public_model(path)


# -- Θ without sense -----------------------------------------------------------------------------------------------


def warned(chain, names, epsilon=1.0, count=60):
    model = pf.PublicModel(
        chain if isinstance(chain, pf.ChainFamily) else pf.ChainFamily([chain]),
        pf.RecordFormat(pf.StateSpace.categories(names), 60),
    )
    return pf.release_histogram(minutes(["a", "b"] * (count // 2)), model, epsilon, ledger=None)


@pytest.mark.parametrize(
    ("chain", "names", "epsilon", "said"),
    [
        (pf.MarkovChain([[0, 0, 1], [0.5, 0.4, 0.1], [0.1, 0, 0.9]]), "abc", 1.0, "'b' cannot occur"),
        (pf.MarkovChain([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.1, 0.2, 0.7]], [1, 0, 0]), "abc", 1.0, "'c' cannot occur"),
        (pf.ChainFamily([SLOW, pf.MarkovChain([[1, 0], [0.5, 0.5]])]), "ab", 1.0, "'b' cannot occur"),
        (pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), "ab", 1.0, "as good as independent"),
        (pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]]), "ab", 0.01, "as good as independent"),
        (SLOW, "ab", 10.0, "epsilon = 10"),
        (SLOW, "ab", 1e5, "epsilon = 100000"),
    ],
)
def test_a_model_without_sense_is_named(chain, names, epsilon, said):
    released = warned(chain, list(names), epsilon)
    assert any(said in warning for warning in released.warnings)
    assert all(warning in released.statement for warning in released.warnings)
    assert released.to_dict()["warnings"] == list(released.warnings)


def test_a_model_with_sense_is_not():
    assert doubts(warned(SLOW, ["a", "b"])) == []
    assert doubts(warned(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], "any"), ["a", "b"], 9.9)) == []


def test_warnings_on_the_terminal(tmp_path, run):
    minutes(RNG.choice(["a", "b"], 100)).to_csv(tmp_path / "d.csv", index=False)
    write_model(tmp_path / "m.json", pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), binary().records)
    asked = ("release", tmp_path / "d.csv", "--chain", tmp_path / "m.json", "--epsilon", 12, "--no-figure")
    for words in (("--dry-run",), ("--json",)):
        code, out, err = run(*asked, *words)
        assert code == 0
        assert err.count("pufferflow: warning: ") == 2
        assert "as good as independent" in err
        assert "warning" not in out or json.loads(out)["warnings"]


def test_columns_of_the_table_do_not_decide(tmp_path):
    """Typed and text tables of the same records find the same states."""
    values = RNG.choice(["nan", "x"], 50)
    table = minutes(values)
    table.to_csv(tmp_path / "t.csv", index=False)
    space = pf.StateSpace.categories(["nan", "x"])
    for source in (table, tmp_path / "t.csv"):
        records = open_records(source, pf.Reading())
        states = np.concatenate([records.encode(chunk, space) for chunk in records])
        assert states.tolist() == (values == "x").astype(int).tolist()
