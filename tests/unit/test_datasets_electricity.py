import gzip
import lzma
import zipfile

import numpy as np
import pandas as pd
import pytest

from pufferflow.datasets import ingest_electricity
from pufferflow.datasets.electricity import export_electricity
from pufferflow.errors import DataError, ParameterError

HEADER = "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;Sub_1;Sub_2;Sub_3"
WHOLE = {"window_start": None, "window_minutes": None}


def uci_text(*rows):
    """Rows are (minute of 2007-05-01, kilowatts as text)."""
    lines = [f"1/5/2007;{m // 60:02}:{m % 60:02}:00;{kw};0.1;234.840;1;0;0;0" for m, kw in rows]
    return "\n".join([HEADER, *lines]) + "\n"


def write(path, text):
    path.write_text(text)
    return path


def zip_one(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("power.txt", content)


@pytest.fixture
def gappy(tmp_path):
    """Seven readings, one of them marked missing, and a jump of three minutes."""
    rows = [(0, "0.199"), (1, "0.200"), (2, "?"), (3, "0.399"), (4, "0.600"), (7, "12.000"), (8, "0.000")]
    return write(tmp_path / "power.txt", uci_text(*rows))


def counts(sample):
    return sample.participants[0].transition_counts


def test_gaps_bridged_make_one_chain_over_all_minutes(gappy):
    sample = ingest_electricity("file", gappy, bins=5, **WHOLE)
    household = sample.participants[0]
    assert household.segment_lengths == (9,)
    assert household.state_counts.tolist() == [2, 2, 0, 1, 1]  # 199 | 200, 399 | 600 | 12000 and over
    expected = np.zeros((5, 5), int)
    expected[0, 1] = expected[1, 3] = expected[4, 0] = 1
    assert np.array_equal(counts(sample), expected)
    assert sample.states == ("0-200 W", "200-400 W", "400-600 W", "600-800 W", ">=800 W")
    assert (sample.label, sample.groups, sample.step_seconds) == ("file", ("household",), 60)
    assert sample.description == "power.txt: column 'Global_active_power', 9 minutes from 2007-05-01"


def test_gaps_split_start_new_chains(gappy):
    bridged = ingest_electricity("file", gappy, bins=5, **WHOLE)
    split = ingest_electricity("file", gappy, bins=5, gaps="split", **WHOLE)
    assert split.participants[0].segment_lengths == (2, 2, 2)
    assert np.array_equal(counts(split), counts(bridged))


def test_the_window_is_cut_by_time(gappy):
    sample = ingest_electricity("file", gappy, bins=5, window_start="2007-05-01T00:01", window_minutes=4)
    assert sample.participants[0].segment_lengths == (4,)
    assert counts(sample).sum() == 1


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("p.gz", lambda path, text: path.write_bytes(gzip.compress(text))),
        ("p.xz", lambda path, text: path.write_bytes(lzma.compress(text))),
        ("p.zip", zip_one),
    ],
)
def test_packed_files_are_read_alike(gappy, tmp_path, name, pack):
    pack(tmp_path / name, gappy.read_bytes())
    assert np.array_equal(
        counts(ingest_electricity("file", tmp_path / name, **WHOLE)), counts(ingest_electricity("file", gappy, **WHOLE))
    )


def test_a_file_that_export_writes_is_taken_and_named(tmp_path):
    export_electricity([tmp_path / "first.csv"], minutes=5000)
    bundled = ingest_electricity("bundled", window_minutes=5000).participants[0]
    for gaps in ("bridge", "split"):
        sample = ingest_electricity("file", tmp_path / "first.csv", gaps=gaps)  # whole, whatever the window
        assert sample.description == (
            "first.csv: column 'watts', 5,000 rows from 2007-05-01T00:00:00 to 2007-05-04T11:19:00"
        )
        assert (sample.label, sample.step_seconds, len(sample.states)) == ("file", 60, 51)
        assert sample.participants[0] == ingest_electricity("bundled", window_minutes=5000, gaps=gaps).participants[0]
    assert bundled.observations > 4000


def test_what_fit_takes_is_taken(tmp_path):
    table = pd.DataFrame({"user": ["a", "a", "b", "b"], "ts": [0, 900, 0, 900], "kW": [0.1, 0.3, 0.1, 0.1]})
    table.to_parquet(tmp_path / "meters.parquet")
    sample = ingest_electricity("file", tmp_path / "meters.parquet", bin_watts=0.2, bins=2)
    assert sample.description.startswith("meters.parquet: column 'kW', 4 rows")
    assert (sample.step_seconds, sample.states, sample.groups) == (900, ("< 0.2", ">= 0.2"), ("household",))
    assert [p.name for p in sample.participants] == ["a", "b"]
    assert [p.transition_counts.tolist() for p in sample.participants] == [[[0, 1], [0, 0]], [[1, 0], [0, 0]]]
    power = ingest_electricity("file", write(tmp_path / "power.csv", "unix_ts,POWER\n0,1\n60,250\n"), bins=2)
    assert counts(power).tolist() == [[0, 1], [0, 0]]
    rows = ingest_electricity("file", write(tmp_path / "rows.csv", "watts\n1\n250\n"), bins=2)  # a row is a step
    assert counts(rows).tolist() == [[0, 1], [0, 0]]


def test_ampds2_is_recognised_and_used_whole(tmp_path):
    rows = ["UNIX_TS,WHE,RSE", "1333263600,250,1", "1333263660,,1", "1333263720,0,1", "1333263780,450,1"]
    path = write(tmp_path / "Electricity_P.csv", "\n".join(rows))
    sample = ingest_electricity("file", path)
    household = sample.participants[0]
    assert household.segment_lengths == (4,)
    assert household.state_counts[:3].tolist() == [1, 1, 1]
    assert counts(sample)[0, 2] == counts(sample).sum() == 1
    assert sample.settings["window_start"] is sample.settings["window_minutes"] is None
    assert sample.description == "Electricity_P.csv: column 'WHE', 4 minutes from 2012-04-01"


BAD_AMPDS2 = {
    "unix_ts,MHE,RSE\n0,1,2\n60,2,3\n": r"line 1: it is not clear which column holds the values",
    "unix_ts,WHE,WHE\n60,1,2\n": r"line 1: two columns 'WHE' among",
    "unix_ts_utc,WHE\n60,1\n": r"line 1: it is not clear which column holds the values",
    "unix_ts,WHE\n": "a header line and no data",
    "unix_ts,WHE\n60,1\n120,-3\n": r"line 3: WHE '-3' is not a power in watts >= 0",
    "unix_ts,WHE\n60,1\n120,nan\n": r"line 3: WHE 'nan' is not a power",
    "unix_ts,WHE\n60,1\n120,inf\n": r"line 3: WHE 'inf' is not a power",
    "unix_ts,WHE\n60,1\n120,12 W\n": r"line 3: WHE '12 W' is not a power",
    "unix_ts,WHE\n60,1\nnoon,2\n": r"line 3: unix_ts 'noon' is not a time",
    "unix_ts,WHE\n60,1\n120,2\n120,2\n": r"line 4: unix_ts '120' does not come after",
    "unix_ts,WHE\n120,1\n60,2\n": r"line 3: unix_ts '60' does not come after",
    "unix_ts,WHE\n60,1\n121,2\n": r"line 3: unix_ts '121' is not a multiple of 60 s",
    "unix_ts,WHE\n60,1\n150,2\n": r"line 3: unix_ts '150' is not a multiple of 60 s",
    "unix_ts,WHE\n60,1\n": "no two in successive minutes",
    "unix_ts,WHE\n60,\n120,\n": "no power was recorded",
    "unix_ts,WHE\n60,1\n120,2,9\n": "line 3",
    "unix_ts,WHE\n60,1,9\n120,2,9\n": "line 2: more fields than the 2",
    "time;watts\n1;2\n": "no column 'Date'",
    "time,watts\n60,1\n120,x\n": r"line 3: the value 'x' is no number",
    "time,watts\n60,1\n120,inf\n": r"line 3: the value 'inf' is no number",
    "time,watts\n60,1\n120,1\n120,1\n": r"line 4: the time '120' is that of the row before",
    "time,watts\n60,1\n120,\n180,1\n": r"3 row\(s\), and no two with values that are one step \(60 s\) apart",
    "time,watts\n60,1\n": "one record only",
    "": "the file is empty",
    "\n \n": "the file is empty",
}
BAD_UCI = {
    uci_text((0, "1.0")): "1 observation",
    uci_text((0, "1.0"), (2, "1.0")): "no two in successive minutes",
    uci_text((0, "1.0"), (1, "-1.0")): r"line 3: Global_active_power '-1.0' is not a power in kilowatts",
    uci_text((0, "1.0"), (1, "nan")): r"line 3: Global_active_power 'nan' is not a power",
    uci_text((5, "1.0"), (4, "1.0")): r"line 3: time '2007-05-01 00:04:00' does not come after",
    uci_text((5, "1.0"), (5, "1.0")): r"line 3: time '2007-05-01 00:05:00' does not come after",
    uci_text((0, "1.0"), (1, "1.0")).replace("00:01:00", "00:01:30"): r"line 3: Time '00:01:30' is not a time of whole",
    uci_text((0, "1.0"), (1, "1.0")).replace("1/5/2007", "2007-05-01"): r"line 2: Date '2007-05-01' is not a date",
    uci_text((0, "1.0"), (1, "1.0"))[:-33]: r"line 3: Time '' is not a time",  # broken off in the last line
    uci_text((0, "1.0")).replace("Global_active_power", "Power"): "no column 'Global_active_power'",
}


@pytest.mark.parametrize(("text", "message"), [*BAD_AMPDS2.items(), *BAD_UCI.items()])
def test_bad_files_are_refused_in_one_sentence_with_file_and_line(tmp_path, text, message):
    path = write(tmp_path / "bad.csv", text)
    with pytest.raises(DataError, match=message) as caught:
        ingest_electricity("file", path, **WHOLE)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: No such file or directory; check the path"):
        ingest_electricity("file", tmp_path / "none.txt")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(uci_text((0, "1.0"), (1, "1.0")).encode())[:-9])
    with pytest.raises(DataError, match="truncated or corrupt archive"):
        ingest_electricity("file", cut)
    two = tmp_path / "two.zip"
    zip_one(two, "1")
    with zipfile.ZipFile(two, "a") as archive:
        archive.writestr("other.txt", "2")
    with pytest.raises(DataError, match="a zip of 2 files; unpack it"):
        ingest_electricity("file", two)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"unix_ts,WHE\n60,1\n120,\xb5\n")
    with pytest.raises(DataError, match="not UTF-8"):
        ingest_electricity("file", latin)


@pytest.mark.parametrize("window", [("2007-05-01T00:00", 10), ("2007-04-30T23:59", 5), ("2007-05-02T00:00", None)])
def test_a_window_that_the_file_does_not_cover_is_refused(gappy, window):
    with pytest.raises(DataError, match="covers 2007-05-01T00:00 to 2007-05-01T00:08, not the window"):
        ingest_electricity("file", gappy, window_start=window[0], window_minutes=window[1])


@pytest.mark.parametrize(
    "options",
    [
        {"bins": 1},
        {"bins": 2.5},
        {"bin_watts": 0},
        {"bin_watts": -200},
        {"bin_watts": float("nan")},
        {"bin_watts": "200"},
        {"gaps": "ignore"},
        {"source": "web"},
        {"source": "file"},
        {"path": "somewhere"},
        {"window_minutes": 0},
        {"window_minutes": "all"},
        {"window_start": "May 2007"},
    ],
)
def test_settings_out_of_range_are_refused(options):
    with pytest.raises(ParameterError, match="|".join(options)):
        ingest_electricity(**{"source": "bundled", **options})


def test_longer_steps_are_means_of_whole_windows(tmp_path):
    # minutes 2 to 11; 6 is absent and 9 has no value, so the windows 6-7 and 8-9 have no mean
    kilowatts = {2: 0.1, 3: 0.3, 4: 0.6, 5: 0.8, 7: 0.1, 8: 0.1, 9: None, 10: 1.0, 11: 3.0}
    rows = [(minute, "?" if value is None else f"{value:.3f}") for minute, value in kilowatts.items()]
    path = write(tmp_path / "power.txt", uci_text(*rows))
    household = ingest_electricity("file", path, bins=5, bin_watts=500, step_minutes=2, gaps="split", **WHOLE)
    assert household.step_seconds == 120
    assert household.settings["step_minutes"] == 2
    # means of 200, 700 and 2000 W
    assert household.participants[0].state_counts.tolist() == [1, 1, 0, 0, 1]
    assert counts(household)[0, 1] == counts(household).sum() == 1
    minutes = ingest_electricity("file", path, bins=5, bin_watts=500, **WHOLE)
    assert "step_minutes" not in minutes.settings
    with pytest.raises(ParameterError, match="step_minutes"):
        ingest_electricity("bundled", step_minutes=0)
    own = write(tmp_path / "own.csv", "time,watts\n2007-05-01T00:00,1\n2007-05-01T00:01,2\n2007-05-01T00:02,2\n")
    assert ingest_electricity("file", own).step_seconds == 60
    with pytest.raises(ParameterError, match=r"step_minutes is 2, and .*own.csv has a step of its own; resample"):
        ingest_electricity("file", own, step_minutes=2)
    with pytest.raises(DataError, match="successive steps of 5 minutes"):
        ingest_electricity(
            "file", write(tmp_path / "few.txt", uci_text(*((m, "0.100") for m in range(5)))), step_minutes=5, **WHOLE
        )
