"""Which column is what: rows of several participants are never taken for one record."""

import json

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.records.reading import GUESSES, Reading
from pufferflow.records.rows import open_records

pytestmark = pytest.mark.usefixtures("scales_once")
RNG = np.random.default_rng(3)


def meters(count=3, steps=40):
    """Half-hourly usage of several meters, sorted by time as a data base gives it."""
    times = pd.date_range("2013-01-01", periods=steps, freq="30min").repeat(count)
    return pd.DataFrame(
        {
            "tstp": times.strftime("%Y-%m-%d %H:%M:%S"),
            "meter_id": [f"MAC{i}" for i in range(count)] * steps,
            "usage": RNG.integers(0, 3, count * steps),
        }
    )


def strange(frame):
    return frame.set_axis(["when", "box", "amount"], axis=1)


UNUSED = "columns 'when', 'box' are not used; name the time and the participant (--time, --participant), or say --rows-"


def test_interleaved_rows_of_known_names_are_told_apart():
    fit = pf.fit_records(meters())
    assert fit.facts["participants"] == 3
    assert fit.facts["longest_segment"] == 40
    assert fit.facts["step_seconds"] == 1800


def test_interleaved_rows_of_unknown_names_are_refused(tmp_path, capsys):
    frame = strange(meters())
    path = tmp_path / "x.csv"
    frame.to_csv(path, index=False)
    chain = tmp_path / "chain.json"
    chain.write_text('{"chains": [{"transition_matrix": [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]}]}')
    released = ["--chain", str(chain), "--epsilon", "1", "--states", "0,1,2", "--no-figure", "--value", "amount"]
    for words, message in (
        (["fit", str(path), "--value", "amount"], UNUSED),
        (["release", str(path), *released], "2 columns are not used; name the time and the participant"),
        (["simulate", str(path), *released, "--seed", "1"], "2 columns are not used; name the time and"),
    ):
        assert cli.main(words) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["chain.json", "x.csv"]
    with pytest.raises(pf.DataError, match=r"columns 'when', 'box' are not used"):
        pf.fit_records(frame, reading=Reading(value="amount"))
    with pytest.raises(pf.DataError, match=r"column 'when' is not used; name the time \(time\)"):
        pf.fit_records(frame, reading=Reading(value="amount", participant="box"))
    assert cli.main(["fit", str(path), "--value", "amount", "--time", "when", "--participant", "box", "--json"]) == 0
    assert '"participants": 3' in capsys.readouterr().out
    assert cli.main(["fit", str(path), "--value", "amount", "--rows-are-steps", "--json"]) == 0
    assert '"longest_segment": 120' in capsys.readouterr().out
    assert cli.main(["release", str(path), *released, "--rows-are-steps"]) == 0


def test_times_that_repeat_ask_for_the_participants():
    frame = meters().rename(columns={"meter_id": "box"})
    with pytest.raises(pf.DataError, match=r"name the column that tells participants apart \(participant\)"):
        pf.fit_records(frame)


def test_a_column_of_readings_is_not_one_of_participants():
    frame = pd.DataFrame({"meter_id": np.arange(50) * 1.5, "power": RNG.integers(0, 2, 50)})
    frame.insert(0, "time", pd.date_range("2020", periods=50, freq="min"))
    with pytest.raises(pf.DataError, match="'meter_id' of the participants has 50 participants in 50 rows"):
        pf.fit_records(frame)


def test_a_rows_time_is_ignored_where_that_is_said():
    frame = pd.DataFrame({"time": [3, 1, 2, 5, 9, 4], "value": [*"aabbab"]})
    fit = pf.fit_records(frame, reading=Reading(rows_are_steps=True))
    assert fit.facts["unused_columns"] == ["time"]
    assert "not used    'time'" in fit.summary()
    made = pf.release_histogram(frame, fit.model, 1.0, ledger=None, reading=Reading(rows_are_steps=True))
    assert made.longest_segment == 6


@pytest.mark.parametrize("name", ["LCLid", "Household ID", "meter-id"])
@pytest.mark.parametrize("value", ["KWH/hh (per half hour) ", "Power (W)", "Energy[kWh]"])
def test_names_in_other_cases_and_with_units(name, value):
    frame = meters().set_axis(["DateTime", name, value], axis=1)
    assert pf.fit_records(frame).facts["columns"] == {
        "time": "DateTime",
        "participant": name,
        "group": None,
        "value": value,
    }


def test_two_columns_that_could_be_the_same_thing():
    frame = meters().assign(power=1)
    with pytest.raises(pf.DataError, match=r"'usage' and 'power' may each hold the value; name the right one \(value"):
        pf.fit_records(frame)
    assert pf.fit_records(frame.rename(columns={"usage": "value"})).facts["columns"]["value"] == "value"


def test_the_help_lists_the_names(capsys):
    for command in ("fit", "release", "simulate"):
        assert cli.main([command, "--help"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        for names in GUESSES.values():
            assert ", ".join(names) in said.replace("- ", "-")


def test_one_column_in_two_roles(tmp_path, capsys):
    with pytest.raises(pf.ParameterError, match="time and value both name the column 'x'; give each a column"):
        Reading(time="x", value="x")
    with pytest.raises(pf.ParameterError, match="rows_are_steps and time contradict"):
        Reading(time="x", rows_are_steps=True)
    path = tmp_path / "d.csv"
    path.write_text("time,value\n2020-01-01,1\n2020-01-02,2\n")
    assert cli.main(["fit", str(path), "--value", "time"]) == 2
    assert "column 'value' is not used; name the time and the participant" in capsys.readouterr().err
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (pd.MultiIndex.from_product([[*"ab"], [1, 2, 3]]), "the table has a MultiIndex, which is not read; make col"),
        (pd.period_range("2020", periods=6, freq="D"), "the table has a PeriodIndex"),
        (pd.Index([*"abcdef"]), "the table has an index that is not read"),
    ],
)
def test_an_index_is_never_dropped_silently(index, message):
    for table in (pd.DataFrame({"value": [0, 1] * 3}, index=index), pd.Series([0, 1] * 3, index=index)):
        with pytest.raises(pf.DataError, match=message):
            pf.fit_records(table)


def test_a_table_without_columns():
    with pytest.raises(pf.DataError, match="the table: there are no columns"):
        pf.fit_records(pd.DataFrame())


def test_a_named_index_is_a_column():
    frame = meters().set_index("meter_id")
    assert open_records(frame, Reading()).columns["participant"] == "meter_id"
    with pytest.raises(pf.DataError, match="'box' is not used"):
        pf.fit_records(strange(meters()).set_index("box")[["amount"]], reading=Reading(value="amount"))
    filtered = pd.Series([0, 1] * 3, index=[1, 2, 5, 6, 7, 8])
    assert pf.fit_records(filtered).facts["longest_segment"] == 6


def test_what_pandas_makes_of_an_index_in_parquet(tmp_path):
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"time": pd.date_range("2020", periods=60, freq="min"), "value": [0, 1, 1] * 20})
    frame.loc[frame.index % 7 != 3, ["value"]].to_parquet(path)  # keeps numbers of rows as __index_level_0__
    assert pf.fit_records(path).facts["unused_columns"] == []
    frame.set_index("time").to_parquet(path)
    assert pf.fit_records(path).facts["step_seconds"] == 60
    frame.set_index("time").rename_axis(None).to_parquet(path)
    assert pf.fit_records(path).facts["step_seconds"] == 60  # times without a name
    assert pf.fit_records(path, reading=Reading(time="__index_level_0__")).facts["step_seconds"] == 60


def test_a_release_reads_as_the_chain_was_fitted(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--separator", ";", "--decimal", ",", "--time-format", "%d.%m.%Y %H:%M", "--time", "when"]
    options += ["--participant", "box", "--value", "amount"]
    for name, start in (("a.csv", "2020-01-01"), ("b.csv", "2021-01-01")):
        frame = strange(meters()).assign(other=1, amount=lambda f: f["amount"] + 0.5)
        frame["when"] = pd.date_range(start, periods=40, freq="30min").repeat(3).strftime("%d.%m.%Y %H:%M")
        frame.to_csv(name, index=False, sep=";", decimal=",")
    assert cli.main(["fit", "a.csv", *options]) == 0
    stored = pf.read_public_model("a.csv.chain.json").records
    assert stored.states.names == ("0.5", "1.5", "2.5")
    assert stored.reading == {
        "time": "when",
        "participant": "box",
        "value": "amount",
        "separator": ";",
        "decimal": ",",
        "time_format": "%d.%m.%Y %H:%M",
    }
    asked = ["release", "b.csv", "--chain", "a.csv.chain.json", "--epsilon", "1", "--no-figure", "--json"]
    capsys.readouterr()
    assert cli.main([*asked, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["participants"] == 3
    assert cli.main([*asked, "--separator", ","]) == 2  # what is given goes first
    assert cli.main([*asked, "--value", "other"]) == 2
    capsys.readouterr()
    assert cli.main(asked) == 0
    released = json.loads(capsys.readouterr().out)
    assert released["longest_segment"] == 40
    assert cli.main(["simulate", *asked[1:], "--seed", "1"]) == 0
    made = pf.release_histogram("b.csv", "a.csv.chain.json", 1.0, ledger=None)
    assert made.participants == 3
    with pytest.raises(pf.DataError):
        pf.release_histogram("b.csv", "a.csv.chain.json", 1.0, ledger=None, reading=Reading())


def test_a_measurement_is_no_participant(tmp_path):
    """A cumulative counter named after the device would cut the record into short ones, with far less noise."""
    steps = pd.date_range("2021-01-01", periods=600, freq="min")
    table = pd.DataFrame({"time": steps, "Power (W)": [1.0, 900.0] * 300, "Meter (kWh)": np.arange(600) // 4})
    found = open_records(table, Reading())
    assert (found.columns["participant"], found.columns["value"], found.unused) == (None, "Power (W)", ["Meter (kWh)"])
    named = open_records(table.rename(columns={"Meter (kWh)": "meter"}), Reading())
    assert named.columns["participant"] is None


def test_what_is_not_used_is_said():
    chain = pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]])
    model = pf.PublicModel(pf.ChainFamily([chain]), pf.RecordFormat(pf.StateSpace.numeric([5]), 60))
    steps = pd.date_range("2021-01-01", periods=8, freq="min")
    table = pd.DataFrame({"time": steps, "device": list("abababab"), "value": range(8)})
    facts = pf.rehearse_release(table, model, 1.0, ledger=None)
    assert (facts["unused_columns"], facts["columns"]["value"], facts["participants"]) == (1, "value", 1)
    assert "1 column(s) of the table were not used" in pf.release_histogram(table, model, 1.0, ledger=None).statement
    both = table.loc[table.index.repeat(2)].assign(device=list("ab" * 8))
    apart = pf.release_histogram(both, model, 1.0, ledger=None, reading=Reading(participant="device"))
    assert (apart.participants, apart.unused_columns) == (2, 0)
