"""Power and activity as states: the files that are read, windows, gaps and steps, and bad input."""

import ast
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pufferflow.data.household import BUNDLED, export_household
from pufferflow.errors import DataError, ParameterError
from reproduction.data import people
from reproduction.data.discretise import count_runs, discretise

HEADER = "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;1;2;3"
WHOLE = {"window_start": None, "window_minutes": None}


def power(path, label="file", **settings):
    return discretise(path, {"kind": "power", **settings}, "electricity", label)


def activity(path, label="file", **settings):
    return discretise(path, {"kind": "activity", **settings}, "activity", label)


def table(text):
    """Rows "a 0 s" of participant, time and state."""
    return "\n".join(["participant,time,state", *text.replace(" ", ",").split(";"), ""])


def uci_text(*rows):
    """Rows are (minute of 2007-05-01, kilowatts as text)."""
    lines = [f"1/5/2007;{m // 60:02}:{m % 60:02}:00;{kw};0.1;234.840;1;0;0;0" for m, kw in rows]
    return "\n".join([HEADER, *lines]) + "\n"


def write(path, text):
    path.write_text(text)
    return path


# seven readings, one of them marked missing, and a jump of three minutes
GAPPY = {0: ".199", 1: ".200", 2: "?", 3: ".399", 4: ".600", 7: "12.0", 8: ".000"}
GAPPY = uci_text(*GAPPY.items())
# minutes 2 to 11; 6 is absent and 9 has no value, so the windows 6-7 and 8-9 have no mean
STEPS = {2: ".1", 3: ".3", 4: ".6", 5: ".8", 7: ".1", 8: ".1", 9: "?", 10: "1.", 11: "3."}
STEPS = uci_text(*STEPS.items())
AMPDS2 = "UNIX_TS,WHE,RSE\n1333263600,250,1\n1333263660,,1\n1333263720,0,1\n1333263780,450,1\n"
# 10 minutes missing, then 11; of 12 s 50 are missing, then 51
MINUTES = table("a 0 s;a 60 w;a 120 s;a 780 w;a 840 s;a 1560 s;a 1620 w")
SHORT = table("a 0 s;a 12 s;a 624 s;a 636 s;a 1260 s;a 1272 s")
GIVEN = table("a 0 w;a 60 s;a 120 s;a 300 w")
BINS = {"bins": 5} | WHOLE
WINDOW = {"bins": 5, "window_start": "2007-05-01T00:01", "window_minutes": 4}
TWO = {"bins": 5, "bin_watts": 500, "step_minutes": 2, "gaps": "split"} | WHOLE
OWN = {"columns": {"time": "UNIX_TS", "value": "WHE"}}


@pytest.mark.parametrize(
    ("read", "text", "settings", "lengths", "states", "steps"),
    [
        # 199 | 200, 399 | 600 | 12000 and over
        (power, GAPPY, BINS, (9,), [2, 2, 0, 1, 1], ["01", "13", "40"]),
        (power, GAPPY, BINS | {"gaps": "split"}, (2, 2, 2), [2, 2, 0, 1, 1], ["01", "13", "40"]),
        (power, GAPPY, WINDOW, (4,), [0, 2, 0, 1, 0], ["13"]),
        # means of 200, 700 and 2000 W
        (power, STEPS, TWO, (2, 1), [1, 1, 0, 0, 1], ["01"]),
        (power, AMPDS2, {}, (4,), [1, 1, 1], ["02"]),
        (power, AMPDS2, OWN, (4,), [1, 1, 1], ["02"]),
        (power, "unix_ts,POWER\n0,1\n60,250\n", {"bins": 2}, (2,), [1, 1], ["01"]),
        (power, "watts\n1\n250\n", {"bins": 2}, (2,), [1, 1], ["01"]),  # a row is a step
        (activity, MINUTES, {}, (15, 2), [4, 3], ["01", "01", "10", "10"]),
        (activity, MINUTES, {"gap_minutes": 9}, (3, 2, 2), [4, 3], ["01", "01", "10", "10"]),
        (activity, SHORT, {}, (54, 2), [6], ["00", "00", "00"]),
        (activity, GIVEN, {"states": ["s", "w", "run"]}, (6,), [2, 2, 0], ["00", "10"]),
    ],
)
def test_a_file_becomes_these_counts(tmp_path, read, text, settings, lengths, states, steps):
    """Lengths of the chains, readings in each state, and steps from state to state."""
    person = read(write(tmp_path / "own.csv", text), **settings).participants[0]
    assert person.segment_lengths == lengths
    assert person.state_counts[: len(states)].tolist() == states
    moved = zip(*np.nonzero(person.transition_counts), strict=True)
    found = [f"{i}{j}" for i, j in moved for _ in range(person.transition_counts[i, j])]
    assert found == steps


def test_states_groups_and_descriptions(tmp_path):
    sample = power(write(tmp_path / "power.txt", GAPPY), **BINS)
    assert sample.states == ("0-200 W", "200-400 W", "400-600 W", "600-800 W", ">=800 W")
    assert (sample.label, sample.groups, sample.step_seconds) == ("file", ("household",), 60)
    about = "power.txt: column 'Global_active_power', 9 minutes from 2007-05-01"
    assert sample.description == about
    about = power(write(tmp_path / "Electricity_P.csv", AMPDS2)).description
    assert about.startswith("Electricity_P.csv: column 'WHE', 4 rows from 2012-04-01")
    assert power(write(tmp_path / "power.txt", STEPS), **TWO).step_seconds == 120
    assert activity(write(tmp_path / "a.csv", GIVEN), states=["s", "w", "x"]).step_seconds == 60


def test_a_file_that_export_writes_is_taken_and_named(tmp_path):
    export_household([tmp_path / "first.csv"], minutes=5000)
    for gaps in ("bridge", "split"):
        sample = power(tmp_path / "first.csv", gaps=gaps)  # whole, whatever the window
        assert sample.description == (
            "first.csv: column 'watts', 5,000 rows from 2007-05-01T00:00:00 to 2007-05-04T11:19:00"
        )
        assert (sample.label, sample.step_seconds, len(sample.states)) == ("file", 60, 51)
        bundled = power(BUNDLED, "bundled", window_minutes=5000, gaps=gaps).participants[0]
        for field, value in vars(bundled).items():
            assert np.array_equal(getattr(sample.participants[0], field), value)


def test_what_fit_takes_is_taken(tmp_path):
    meters = {"participant": list("aabb"), "ts": [0, 900, 0, 900], "kW": [0.1, 0.3, 0.1, 0.1]}
    pd.DataFrame(meters).to_parquet(tmp_path / "meters.parquet")
    sample = power(tmp_path / "meters.parquet", bin_watts=0.2, bins=2)
    assert sample.description.startswith("meters.parquet: column 'kW', 4 rows")
    assert (sample.step_seconds, sample.groups) == (900, ("household",))
    assert sample.states == ("< 0.2", ">= 0.2")
    moved = {person.name: person.transition_counts.tolist() for person in sample.participants}
    assert moved == {"a": [[0, 1], [0, 0]], "b": [[1, 0], [0, 0]]}


def test_columns_can_be_named_and_groups_are_kept(tmp_path):
    text = "when,who,of,a,b\n0,x,g,1,250\n60,x,g,1,1\n0,y,h,1,1\n60,y,h,1,1\n"
    columns = {"time": "when", "participant": "who", "group": "of", "value": "b"}
    sample = power(write(tmp_path / "own.csv", text), bins=2, columns=columns)
    assert sample.groups == ("g", "h")
    assert sample.participants[0].transition_counts.tolist() == [[0, 0], [1, 0]]
    runs = count_runs(tmp_path / "own.csv", {"kind": "power", "columns": columns}, [100, 300])
    assert runs["g"].hourly.sum(axis=0).tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: No such file or directory; check the path"):
        power(tmp_path / "none.txt")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(uci_text((0, "1.0"), (1, "1.0")).encode())[:-9])
    with pytest.raises(DataError, match="truncated or corrupt archive"):
        power(tmp_path / "cut.gz")
    (tmp_path / "latin.csv").write_bytes(b"unix_ts,WHE\n60,1\n120,\xb5\n")
    for label in ("bundled", "downloaded"):
        with pytest.raises(DataError, match="is not a file of minute watts"):
            power(tmp_path / "latin.csv", label)


def test_settings_that_do_not_fit_the_file_are_refused(tmp_path):
    path = write(tmp_path / "power.txt", GAPPY)
    reach = "not within the data, which reach from 2007-05-01T00:00 to 2007-05-01T00:08"
    windows = {"2007-05-01T00:00": 10, "2007-04-30T23:59": 5, "2007-05-02T00:00": None}
    for start, length in windows.items():
        with pytest.raises(DataError, match=reach):
            power(path, window_start=start, window_minutes=length)
    few = write(tmp_path / "few.txt", uci_text(*((m, "0.100") for m in range(5))))
    with pytest.raises(DataError, match=r"no two with values that are one step \(300 s\) apart"):
        power(few, step_minutes=5, **WHOLE)
    with pytest.raises(DataError, match="line 2: the value is none of the public states; name it"):
        activity(write(tmp_path / "activity.csv", GIVEN), states=["s", "run"])


def test_bad_files_are_refused_in_one_sentence_with_file_and_line(tmp_path, golden):
    """A line of the stored table: the kind, the text of a file, and what is said of it."""
    table, path = Path(__file__).with_name("golden") / "bad_files.txt", tmp_path / "bad.csv"
    found = ""
    for line in table.read_text(encoding="utf-8").splitlines():
        given = line.partition(" → ")[0]
        kind, text = given.split(": ", 1)
        write(path, ast.literal_eval(text))
        with pytest.raises(DataError) as caught:
            {"power": power, "activity": activity}[kind](path, **WHOLE)
        found += f"{given} → {caught.value}\n".replace(str(path), "bad.csv")
    golden("bad_files.txt", found)


NHANES_HEADER = "seqn,day_index,weekday_1sun_7sat,paxcal,age,sex,bmi,wear_minutes,counts\n"


def nhanes(seqn, age, sex, bmi, *, days=3, paxcal=1, wear="0-1439", counts="50 500 1000 3000"):
    rest = f"1,{paxcal},{age},{sex},{bmi},{wear},{' '.join([counts] * 360)}\n"
    return "".join(f"{seqn},{day},{rest}" for day in range(days))


def test_nhanes_groups_filters_and_states(tmp_path):
    text = NHANES_HEADER
    text += nhanes(1, 55, "F", 20) + nhanes(2, 54, "F", 25) + nhanes(3, 18, "M", "")
    text += nhanes(4, 54, "F", 24.9) + nhanes(5, 54, "F", "")
    text += nhanes(6, 55, "M", 30) + nhanes(7, 17, "M", 30)
    text += nhanes(8, 30, "M", 20, paxcal=2) + nhanes(9, 30, "M", 20, days=2)
    text += nhanes(10, 30, "M", 20, counts="0 0 0 32767")
    text += nhanes(12, 30, "M", 20).replace("12,2,1,1,", "12,2,1,2,")  # not calibrated on one day
    text += nhanes(11, 30, "M", 20, wear="0-599;610-1428")  # gaps of 10 and, over night, 11 minutes
    sample = activity(write(tmp_path / "activity.csv", text))
    assert sample.groups == people.GROUPS
    assert [[p.name for p in sample.group(g)] for g in people.GROUPS] == [["3", "11"], ["1"], ["2"]]
    assert sample.states == people.NHANES_STATES
    person = sample.participants[0]
    assert person.segment_lengths == (3 * 1440,)  # days follow each other
    names = ("sedentary", "standing_still", "standing_moving", "active")
    cycle = [people.NHANES_STATES.index(name) for name in names]
    counts = person.transition_counts[cycle, cycle[1:] + cycle[:1]]
    assert counts.tolist() == [1080, 1080, 1080, 1079]
    assert person.transition_counts.sum() == 3 * 1440 - 1
    assert sample.participants[1].segment_lengths == (1429, 1429, 1429)
    assert sample.participants[1].transition_counts.sum() == 3 * (599 + 818)
    five = activity(tmp_path / "activity.csv", step_minutes=5)
    assert five.participants[0].segment_lengths == (3 * 288,)
    with pytest.raises(ParameterError, match="has its own"):
        activity(tmp_path / "activity.csv", states=["a", "b"])


def test_bad_nhanes_files_are_refused(tmp_path):
    path, one = tmp_path / "activity.csv", nhanes(1, 30, "M", 20)
    bad = [one.replace("0-1439", "0:1439"), nhanes(1, 30, "M", 20, counts="1 2 3 -4"), one * 2]
    bad += [nhanes(1, "old", "M", 20), nhanes(1, 30, "X", 20), nhanes(1, 30, "M", "tall")]
    for text in bad:
        with pytest.raises(DataError, match=f"line {5 if text == one * 2 else 2}: no person's day"):
            activity(write(path, NHANES_HEADER + text))
    with pytest.raises(DataError, match="holds no participant"):
        activity(write(path, NHANES_HEADER + nhanes(1, 70, "M", 20)))
    with pytest.raises(DataError, match="line 1: there is no column 'age'; correct the header"):
        activity(write(path, (NHANES_HEADER + one).replace("age", "years")))
