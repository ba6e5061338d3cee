"""Power and activity as states: the files that are read, windows, gaps and steps, and bad input."""

import gzip

import numpy as np
import pandas as pd
import pytest

from pufferflow.data.household import BUNDLED, export_household
from pufferflow.errors import DataError, ParameterError
from reproduction.data import people
from reproduction.data.discretise import count_runs, discretise

HEADER = (
    "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;Sub_1;Sub_2;Sub_3"
)
WHOLE = {"window_start": None, "window_minutes": None}


def power(path, label="file", **settings):
    return discretise(path, {"kind": "power", **settings}, "electricity", label)


def activity(path, label="file", **settings):
    return discretise(path, {"kind": "activity", **settings}, "activity", label)


def table(*rows, header="participant,time,state\n"):
    return header + "".join(",".join(map(str, row)) + "\n" for row in rows)


def uci_text(*rows):
    """Rows are (minute of 2007-05-01, kilowatts as text)."""
    lines = [f"1/5/2007;{m // 60:02}:{m % 60:02}:00;{kw};0.1;234.840;1;0;0;0" for m, kw in rows]
    return "\n".join([HEADER, *lines]) + "\n"


def write(path, text):
    path.write_text(text)
    return path


@pytest.fixture
def gappy(tmp_path):
    """Seven readings, one of them marked missing, and a jump of three minutes."""
    rows = [(0, "0.199"), (1, "0.200"), (2, "?"), (3, "0.399"), (4, "0.600")]
    rows += [(7, "12.000"), (8, "0.000")]
    return write(tmp_path / "power.txt", uci_text(*rows))


def counts(sample):
    return sample.participants[0].transition_counts


def test_gaps_bridged_make_one_chain_over_all_minutes(gappy):
    sample = power(gappy, bins=5, **WHOLE)
    household = sample.participants[0]
    assert household.segment_lengths == (9,)
    # 199 | 200, 399 | 600 | 12000 and over
    assert household.state_counts.tolist() == [2, 2, 0, 1, 1]
    expected = np.zeros((5, 5), int)
    expected[0, 1] = expected[1, 3] = expected[4, 0] = 1
    assert np.array_equal(counts(sample), expected)
    assert sample.states == ("0-200 W", "200-400 W", "400-600 W", "600-800 W", ">=800 W")
    assert (sample.label, sample.groups, sample.step_seconds) == ("file", ("household",), 60)
    assert (
        sample.description == "power.txt: column 'Global_active_power', 9 minutes from 2007-05-01"
    )


def test_gaps_split_start_new_chains_and_windows_are_cut_by_time(gappy):
    bridged, split = (power(gappy, bins=5, gaps=gaps, **WHOLE) for gaps in ("bridge", "split"))
    assert split.participants[0].segment_lengths == (2, 2, 2)
    assert np.array_equal(counts(split), counts(bridged))
    part = power(gappy, bins=5, window_start="2007-05-01T00:01", window_minutes=4)
    assert part.participants[0].segment_lengths == (4,)
    assert counts(part).sum() == 1


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
    table = pd.DataFrame(
        {"participant": ["a", "a", "b", "b"], "ts": [0, 900, 0, 900], "kW": [0.1, 0.3, 0.1, 0.1]}
    )
    table.to_parquet(tmp_path / "meters.parquet")
    sample = power(tmp_path / "meters.parquet", bin_watts=0.2, bins=2)
    assert sample.description.startswith("meters.parquet: column 'kW', 4 rows")
    assert (sample.step_seconds, sample.states, sample.groups) == (
        900,
        ("< 0.2", ">= 0.2"),
        ("household",),
    )
    assert [p.name for p in sample.participants] == ["a", "b"]
    assert [p.transition_counts.tolist() for p in sample.participants] == [
        [[0, 1], [0, 0]],
        [[1, 0], [0, 0]],
    ]
    other = power(write(tmp_path / "power.csv", "unix_ts,POWER\n0,1\n60,250\n"), bins=2)
    assert counts(other).tolist() == [[0, 1], [0, 0]]
    rows = power(write(tmp_path / "rows.csv", "watts\n1\n250\n"), bins=2)  # a row is a step
    assert counts(rows).tolist() == [[0, 1], [0, 0]]


def test_columns_can_be_named_and_groups_are_kept(tmp_path):
    text = "when,who,of,a,b\n0,x,g,1,250\n60,x,g,1,1\n0,y,h,1,1\n60,y,h,1,1\n"
    columns = {"time": "when", "participant": "who", "group": "of", "value": "b"}
    sample = power(write(tmp_path / "own.csv", text), bins=2, columns=columns)
    assert sample.groups == ("g", "h")
    assert counts(sample).tolist() == [[0, 0], [1, 0]]
    runs = count_runs(tmp_path / "own.csv", {"kind": "power", "columns": columns}, [100, 300])
    assert runs["g"].hourly.sum(axis=0).tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("columns", [None, {"time": "UNIX_TS", "value": "WHE"}])
def test_ampds2_is_recognised_and_used_whole(tmp_path, columns):
    rows = ["UNIX_TS,WHE,RSE", "1333263600,250,1", "1333263660,,1"]
    rows += ["1333263720,0,1", "1333263780,450,1"]
    path = write(tmp_path / "Electricity_P.csv", "\n".join(rows))
    sample = power(path, columns=columns)
    household = sample.participants[0]
    assert household.segment_lengths == (4,)
    assert household.state_counts[:3].tolist() == [1, 1, 1]
    assert counts(sample)[0, 2] == counts(sample).sum() == 1
    assert sample.description.startswith("Electricity_P.csv: column 'WHE', 4 rows from 2012-04-01")


BAD_POWER = {
    "unix_ts,MHE,RSE\n0,1,2\n60,2,3\n": "line 1: it is not clear which column holds the values",
    "unix_ts,WHE\n60,1\n120,-3\n": "a power of -3 is below 0; correct it or leave it blank",
    uci_text(): "no row of data below the header",
    uci_text((0, "1.0"), (2, "1.0")): "no two with values that are one step",
    uci_text((0, "1.0"), (1, "-1.0")): "a power of -1000 is below 0",
    uci_text((0, "1.0"), (1, "1.0")).replace("00:01:00", "00:01:30"): "line 3: the time is not",
    # broken off in the last line
    uci_text((0, "1.0"), (1, "1.0"))[:-33]: "line 3: the time is not",
}


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


def test_a_window_that_the_file_does_not_cover_is_refused(gappy):
    reach = "not within the data, which reach from 2007-05-01T00:00 to 2007-05-01T00:08"
    for start, length in (
        ("2007-05-01T00:00", 10),
        ("2007-04-30T23:59", 5),
        ("2007-05-02T00:00", None),
    ):
        with pytest.raises(DataError, match=reach):
            power(gappy, window_start=start, window_minutes=length)


def test_longer_steps_are_means_of_whole_windows(tmp_path):
    # minutes 2 to 11; 6 is absent and 9 has no value, so the windows 6-7 and 8-9 have no mean
    kilowatts = {2: 0.1, 3: 0.3, 4: 0.6, 5: 0.8, 7: 0.1, 8: 0.1, 9: None, 10: 1.0, 11: 3.0}
    rows = [
        (minute, "?" if value is None else f"{value:.3f}") for minute, value in kilowatts.items()
    ]
    path = write(tmp_path / "power.txt", uci_text(*rows))
    household = power(path, bins=5, bin_watts=500, step_minutes=2, gaps="split", **WHOLE)
    assert household.step_seconds == 120
    # means of 200, 700 and 2000 W
    assert household.participants[0].state_counts.tolist() == [1, 1, 0, 0, 1]
    assert counts(household)[0, 1] == counts(household).sum() == 1
    few = write(tmp_path / "few.txt", uci_text(*((m, "0.100") for m in range(5))))
    with pytest.raises(DataError, match=r"no two with values that are one step \(300 s\) apart"):
        power(few, step_minutes=5, **WHOLE)


def test_a_gap_above_the_limit_starts_a_chain_and_a_gap_at_the_limit_is_bridged(tmp_path):
    minutes = [0, 1, 2, 13, 14, 26, 27]  # 10 minutes missing, then 11
    path = write(
        tmp_path / "activity.csv",
        table(*[("a", 60 * m, "sit" if m % 2 else "walk") for m in minutes]),
    )
    person = activity(path).participants[0]
    assert person.segment_lengths == (15, 2)
    assert person.transition_counts.sum() == 4
    assert activity(path, gap_minutes=9).participants[0].segment_lengths == (3, 2, 2)
    # in minutes, whatever the step: 50 of 12 s are missing, then 51
    path = write(
        tmp_path / "activity.csv",
        table(*[("a", 12 * step, "s") for step in (0, 1, 52, 53, 105, 106)]),
    )
    assert activity(path).participants[0].segment_lengths == (54, 2)


def test_states_can_be_given(tmp_path):
    path = write(
        tmp_path / "activity.csv",
        table(("a", 0, "w"), ("a", 60, "s"), ("a", 120, "s"), ("a", 300, "w")),
    )
    sample = activity(path, states=["s", "w", "run"])
    assert (sample.states, sample.step_seconds) == (("s", "w", "run"), 60)
    assert (counts(sample).sum(), sample.participants[0].segment_lengths) == (2, (6,))
    with pytest.raises(
        DataError, match=r"line 2: the value is none of the public states; name it among"
    ):
        activity(path, states=["s", "run"])


BAD_ACTIVITY = {
    table(): "a header and no data",
    "participant,time\na,0\n": "line 1: it is not clear which column holds the values; name it",
    table(("a", 0, "s"), ("b", 0, "s")): "2 participants in 2 rows",
    table(("a", 0, "s"), ("a", 60, "")): r"line 3: the state is missing",
    table(
        ("a", 0, "s"), ("a", 60, "s"), ("b", 0, "s"), ("b", 30, "s")
    ): "'a' has no two rows that are 30 s apart",
    "participant,time,state,group\na,0,s,g\na,60,s,h\n": "line 3: the group is missing or differs",
}


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [(power, *case) for case in BAD_POWER.items()]
    + [(activity, *case) for case in BAD_ACTIVITY.items()],
)
def test_bad_files_are_refused_in_one_sentence_with_file_and_line(tmp_path, read, text, message):
    path = write(tmp_path / "bad.csv", text)
    with pytest.raises(DataError, match=message) as caught:
        read(path, **WHOLE)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


NHANES_HEADER = "seqn,day_index,weekday_1sun_7sat,paxcal,age,sex,bmi,wear_minutes,counts\n"


def nhanes(seqn, age, sex, bmi, *, days=3, paxcal=1, wear="0-1439", counts="50 500 1000 3000"):
    minutes = " ".join([counts] * 360)
    return "".join(
        f"{seqn},{d},1,{paxcal},{age},{sex},{bmi},{wear},{minutes}\n" for d in range(days)
    )


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            nhanes(1, 30, "M", 20).replace("0-1439", "0-1440", 1),
            "line 2: wear_minutes has '0-1440'",
        ),
        (nhanes(1, 30, "M", 20, counts="1 2 3 -4"), "line 2: counts are not 1440"),
        (nhanes(1, "old", "M", 20), "line 2: age 'old' is not a number"),
        (nhanes(1, 30, "X", 20), "line 2: sex 'X' is neither M nor F"),
        (
            nhanes(1, 30, "M", 20) + nhanes(1, 30, "M", 20),
            "line 5: day_index '0' does not come after",
        ),
        (nhanes(1, 70, "M", 20), "holds no participant"),
    ],
)
def test_bad_nhanes_files_are_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        activity(write(tmp_path / "activity.csv", NHANES_HEADER + text))
    renamed = write(tmp_path / "activity.csv", (NHANES_HEADER + text).replace("age", "years"))
    with pytest.raises(DataError, match="line 1: there is no column 'age'; correct the header"):
        activity(renamed)
