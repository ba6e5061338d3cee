"""Power and activity as states: the files that are read, windows, gaps and steps, and bad input."""

import ast
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pufferflow.data.household import BUNDLED, export_household
from pufferflow.errors import DataError, ParameterError
from reproduction.data import people
from reproduction.data.discretise import count_runs, discretise


def power(path, label="file", **settings):
    return discretise(path, {"kind": "power", **settings}, "electricity", label)


def activity(path, **settings):
    return discretise(path, {"kind": "activity", **settings}, "activity", "file")


def write(path, text):
    path.write_text(text)
    return path


def counted(counts):
    return {"-".join(map(str, at)): int(count) for at, count in np.ndenumerate(counts) if count}


def described(sample):
    """All of a sample, in a line."""
    states = f"{len(sample.states)} states from {sample.states[0]} to {sample.states[-1]}"
    people = [
        f"{person.name} of {person.group}: chains of {list(person.segment_lengths)}, "
        f"readings {counted(person.state_counts)}, steps {counted(person.transition_counts)}"
        for person in sample.participants
    ]
    return "; ".join([sample.description, f"{sample.step_seconds} s", states, *people])


def test_files_become_counts_or_one_sentence(tmp_path, golden):
    """A line of the stored table: kind, settings and text of a file, and what becomes of it."""
    table, path, found = Path(__file__).with_name("golden") / "files.txt", tmp_path / "own.csv", ""
    for line in table.read_text(encoding="utf-8").splitlines():
        given = line.partition(" → ")[0]
        kind, settings, text = given.split(" | ")
        write(path, ast.literal_eval(text))
        try:
            read = {"power": power, "activity": activity}[kind]
            found += f"{given} → {described(read(path, **json.loads(settings)))}\n"
        except DataError as error:
            found += f"{given} → {error}\n".replace(str(path), "own.csv")
    golden("files.txt", found)


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


def test_runs_of_named_columns(tmp_path):
    path = write(tmp_path / "own.csv", "when,of,a,b\n0,g,1,250\n60,g,1,1\n0,h,1,1\n60,h,1,1\n")
    columns = {"time": "when", "group": "of", "participant": "of", "value": "b"}
    runs = count_runs(path, {"kind": "power", "columns": columns}, [100, 300])
    assert runs["g"].hourly.sum(axis=0).tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: No such file or directory; check the path"):
        power(tmp_path / "none.txt")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"unix_ts,WHE\n60,1\n120,2\n")[:-9])
    with pytest.raises(DataError, match="truncated or corrupt archive"):
        power(tmp_path / "cut.gz")
    (tmp_path / "latin.csv").write_bytes(b"unix_ts,WHE\n60,1\n120,\xb5\n")
    for label in ("bundled", "downloaded"):
        with pytest.raises(DataError, match="is not a file of minute watts"):
            power(tmp_path / "latin.csv", label)


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
    bad.append(one.replace("0-1439", "0-1440", 1))
    for text in bad:
        with pytest.raises(DataError, match=f"line {5 if text == one * 2 else 2}: no person's day"):
            activity(write(path, NHANES_HEADER + text))
    with pytest.raises(DataError, match="holds no participant"):
        activity(write(path, NHANES_HEADER + nhanes(1, 70, "M", 20)))
    with pytest.raises(DataError, match="line 1: there is no column 'age'; correct the header"):
        activity(write(path, (NHANES_HEADER + one).replace("age", "years")))
