"""Tables as other programs and other languages write them."""

import pandas as pd
import pytest

import pufferflow as pf
from pufferflow import cli

pytestmark = pytest.mark.usefixtures("scales_once")
TIMES = pd.date_range("2024-03-01", periods=40, freq="30min")
VALUES = ["a", "b", "b", "a", "b"] * 8


def sample(source, **reading):
    return pf.fit_records(source, reading=pf.Reading(timezone="UTC", **reading)).sample


@pytest.fixture
def plain():
    return sample(pd.DataFrame({"time": TIMES, "value": VALUES}))


@pytest.mark.parametrize("kind", ["texts", "typed", "csv", "german"])
def test_dates_and_times_of_day_may_stand_in_two_columns(kind, plain, tmp_path):
    frame = pd.DataFrame({"Date": TIMES.strftime("%Y-%m-%d"), "Time": TIMES.strftime("%H:%M"), "value": VALUES})
    source, reading = frame, {"time": "Date,Time"}
    if kind == "typed":
        source = frame.assign(Date=TIMES.normalize(), Time=TIMES.time)
    elif kind != "texts":
        source = tmp_path / "meter.csv"
        if kind == "german":
            frame = frame.set_axis(["Datum", "Uhrzeit", "Zustand"], axis=1)
            frame["Datum"] = TIMES.strftime("%d.%m.%Y")
            reading = {"time": "Datum, Uhrzeit", "time_format": "%d.%m.%Y %H:%M", "separator": ";"}
        frame.to_csv(source, index=False, sep=reading.get("separator", ","))
    read = sample(source, **reading)
    assert read.participants == plain.participants
    assert read.step_seconds == 1800


def test_two_columns_of_times_are_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"Date": TIMES.strftime("%Y-%m-%d"), "Time": TIMES.strftime("%H:%M"), "value": VALUES})
    frame.to_csv("meter.csv", index=False)
    assert cli.main(["fit", "meter.csv"]) == 2
    assert "name both (--time), as in 'Date,Time'" in capsys.readouterr().err
    assert cli.main(["fit", "meter.csv", "--time", "Date,Nothing"]) == 2
    assert "there is no column 'Date,Nothing' for the time" in capsys.readouterr().err
    frame.rename(columns={"Time": "Timestamp"}).to_csv("other.csv", index=False, sep=";")
    assert cli.main(["fit", "other.csv"]) == 2
    assert "separated by ';'; give it (--separator), and where numbers are written as 1,5 their sign (--decimal)" in (
        capsys.readouterr().err
    )
    assert cli.main(["fit", "other.csv", "--separator", ";"]) == 2
    assert "may each hold the time; name the right one (--time), or both" in capsys.readouterr().err


@pytest.mark.parametrize(
    "names",
    [
        ("Zeitstempel", "Haushalt", "Verbrauch (kWh)"),
        ("Horodatage", "Foyer", "Puissance"),
        ("Fecha", "Hogar", "Consumo"),
    ],
)
def test_common_names_in_other_languages(names):
    time, participant, value = names
    table = pd.DataFrame({time: TIMES, participant: "x", value: range(40), "Bemerkung": "", "Remarque": ""})
    columns = pf.fit_records(table, reading=pf.Reading(timezone="UTC")).facts["columns"]
    assert (columns["time"], columns["participant"], columns["value"]) == names


def test_the_index_that_pandas_writes_to_parquet_is_the_time(plain, tmp_path):
    pytest.importorskip("pyarrow")
    pd.Series(VALUES, index=TIMES, name="value").to_frame().to_parquet(tmp_path / "meter.parquet")
    assert sample(tmp_path / "meter.parquet").participants == plain.participants


def test_default_edges_are_round_and_said_to_be_read_from_the_data():
    low, high = 3.217, 1234.567
    frame = pd.DataFrame({"value": [low + (high - low) * ((7 * i) % 101) / 100 for i in range(500)]})
    fit = pf.fit_records(frame, reading=pf.Reading(rows_are_steps=True))
    edges = fit.model.records.states.edges
    assert edges == tuple(100.0 * j for j in range(1, 13))
    assert "read from the data; give states or edges" in fit.summary()
    given = pf.fit_records(frame, reading=pf.Reading(rows_are_steps=True), states=pf.States(edges=(500.0,)))
    assert "read from the data" not in given.summary()
