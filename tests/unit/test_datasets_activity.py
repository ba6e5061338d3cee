import bz2
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from plain_counting import reduce_record

from pufferflow.datasets import ingest_activity
from pufferflow.datasets.nhanes import GROUPS, STATES, read_nhanes
from pufferflow.errors import DataError, ParameterError

HEADER = "participant,time,state\n"


def write(tmp_path, text):
    path = tmp_path / "activity.csv"
    path.write_text(text)
    return path


def table(*rows, header=HEADER):
    return header + "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize("longest_gap", [0, 1, 2.5, 3, 100])
def test_reducing_a_record_agrees_with_a_plain_loop(longest_gap):
    rng = np.random.default_rng(7)
    steps = np.cumsum(rng.integers(1, 6, 200))
    states = rng.integers(0, 3, 200)
    lengths, transitions, first = [], np.zeros((3, 3), int), steps[0]
    for before, after, s, t in zip(steps, steps[1:], states, states[1:], strict=False):
        if after - before == 1:
            transitions[s, t] += 1
        elif after - before - 1 > longest_gap:
            lengths.append(before - first + 1)
            first = after
    lengths.append(steps[-1] - first + 1)
    record = reduce_record("a", "all", steps, states, 3, longest_gap)
    assert record.segment_lengths == tuple(lengths)
    assert np.array_equal(record.transition_counts, transitions)
    assert record.observations == 200


def test_a_gap_above_the_limit_starts_a_chain_and_a_gap_at_the_limit_is_bridged(tmp_path):
    minutes = [0, 1, 2, 13, 14, 26, 27]  # 10 minutes missing, then 11
    path = write(tmp_path, table(*[("a", 60 * m, "sit" if m % 2 else "walk") for m in minutes]))
    person = ingest_activity("file", path).participants[0]
    assert person.segment_lengths == (15, 2)
    assert person.transition_counts.sum() == 4
    assert ingest_activity("file", path, gap_minutes=9).participants[0].segment_lengths == (3, 2, 2)


def test_the_gap_limit_is_in_minutes_whatever_the_step(tmp_path):
    path = write(tmp_path, table(*[("a", 12 * step, "s") for step in (0, 1, 52, 53, 105, 106)]))  # 50, then 51 missing
    assert ingest_activity("file", path).participants[0].segment_lengths == (54, 2)


def test_many_interleaved_rows_stay_in_order(tmp_path):
    rng = np.random.default_rng(3)
    rows = [(f"p{person}", 60 * minute, rng.integers(3)) for minute in range(100) for person in range(7)]
    interleaved = ingest_activity("file", write(tmp_path, table(*rows)), states=["0", "1", "2"])
    rows.sort(key=lambda row: row[0])
    assert ingest_activity("file", write(tmp_path, table(*rows)), states=["0", "1", "2"]) == interleaved


def test_iso_and_unix_times_give_the_same_sample(tmp_path):
    seconds = [1494745200 + 12 * i for i in (0, 1, 2, 5, 6)]
    iso = [str(np.datetime64(s, "s")) for s in seconds]
    names = "xyxxy"
    unix = ingest_activity("file", write(tmp_path, table(*[("a", t, s) for t, s in zip(seconds, names, strict=True)])))
    for times in (iso, [t.replace("T", " ") + "+00:00" for t in iso]):
        rows = [("a", t, s) for t, s in zip(times, names, strict=True)]
        assert ingest_activity("file", write(tmp_path, table(*rows))) == unix
    assert unix.step_seconds == 12
    assert unix.states == ("x", "y")
    assert unix.groups == ("all",)


def test_participants_may_be_interleaved_and_grouped(tmp_path):
    rows = [("b", 0, "s", "g2"), ("a", 0, "w", "g1"), ("b", 60, "w", "g2"), ("a", 60, "w", "g1"), ("c", 5, "s", "g2")]
    sample = ingest_activity("file", write(tmp_path, table(*rows, header="participant,time,state,group\n")))
    assert [p.name for p in sample.participants] == ["b", "a", "c"]
    assert sample.groups == ("g2", "g1")
    assert sample.states == ("s", "w")
    assert sample.participants[0].transition_counts.tolist() == [[0, 1], [0, 0]]
    assert sample.participants[2].segment_lengths == (1,)
    assert sample.label == "file"


def test_states_and_step_can_be_given(tmp_path):
    path = write(tmp_path, table(("a", 0, "w"), ("a", 120, "s"), ("a", 240, "s"), ("a", 300, "w")))
    sample = ingest_activity("file", path, states=["s", "w", "run"], step_seconds=60)
    assert sample.states == ("s", "w", "run")
    assert sample.step_seconds == 60
    assert sample.participants[0].transition_counts.sum() == 1
    assert sample.participants[0].segment_lengths == (6,)


def test_files_of_spreadsheets_are_read(tmp_path):
    text = table(("a", 0, 1), ("a", 60, 2), ("a", 120, 1))
    plain = ingest_activity("file", write(tmp_path, text), states=[1, 2])
    path = tmp_path / "activity.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    assert ingest_activity("file", path) == plain
    path.write_text(text.replace("\n", "\n\n"))  # lines that are blank hold no record
    assert ingest_activity("file", path) == plain
    assert plain.states == ("1", "2")


def test_what_fit_takes_is_taken(tmp_path):
    rows = {"user": ["a", "a", "b", "b"], "ts": [0, 900, 0, 900], "activity": ["sit", "walk", "sit", "sit"]}
    pd.DataFrame(rows).to_parquet(tmp_path / "watches.parquet")
    sample = ingest_activity("file", tmp_path / "watches.parquet")
    assert sample.description == "watches.parquet: column 'activity', 4 rows of 2 participants"
    assert (sample.step_seconds, sample.states, sample.groups) == (900, ("sit", "walk"), ("all",))
    assert [p.transition_counts.tolist() for p in sample.participants] == [[[0, 1], [0, 0]], [[1, 0], [0, 0]]]
    assert sample == replace(
        ingest_activity("file", write(tmp_path, table(*zip(*rows.values(), strict=True)))),
        description=sample.description,
    )
    with bz2.open(tmp_path / "packed.csv.bz2", "wt") as packed:
        packed.write("state\nsit\nwalk\nsit\n")  # a row is a step
    assert ingest_activity("file", tmp_path / "packed.csv.bz2").participants[0].state_counts.tolist() == [2, 1]


def test_a_text_that_fit_takes_for_missing_is_a_state_where_it_is_named(tmp_path):
    path = write(tmp_path, table(("a", 0, "none"), ("a", 60, "s"), ("a", 120, "none")))
    assert ingest_activity("file", path, states=["s", "none"]).participants[0].state_counts.tolist() == [1, 2]
    with pytest.raises(DataError, match=r"line 2: the state 'none' is missing; .* or name it among the states"):
        ingest_activity("file", path)


def test_a_local_clock_may_jump(tmp_path):
    times = ["2021-03-28T01:58", "2021-03-28T01:59", "2021-03-28T03:00", "2021-03-28T03:01"]
    sample = ingest_activity("file", write(tmp_path, table(*(("a", time, "s") for time in times))))
    assert sample.participants[0].segment_lengths == (2, 2)


BAD = {
    "": "the file is empty",
    HEADER: "a header and no data",
    "participant,time\na,0\n": "line 1: it is not clear which column holds the values; the columns are",
    table(("a", 0, "s")): "one record only",
    table(("a", 0, "s"), ("b", 0, "s")): "one record only",
    table(("a", 0, "s"), ("a", 60, "")): r"line 3: the state '' is missing",
    table(("a", 0, "s"), ("", 60, "s")): r"line 3: the participant '' is missing",
    table(("a", 60, "s"), ("a", 0, "s")): r"line 3: the time '0' comes before the row before it",
    table(("a", 60, "s"), ("b", 0, "s"), ("a", 60, "s")): r"line 4: the time '60' is that of the row before again",
    table(
        ("a", 0, "s"), ("a", 60, "s"), ("a", 150, "s"), ("a", 210, "s")
    ): r"line 4: the time is not a whole number of steps of 60 s after the row before, but 90 s",
    table(("a", 0, "s"), ("a", "soon", "s")): r"line 3: the time 'soon' is neither a time",
    table(("a", 0, "s"), ("a", "nan", "s")): r"line 3: the time 'nan' is neither a time",
    table(("a", 0, "s"), ("a", 0.5, "s")): r"line 3: the time '0.5' is neither a .* nor whole unix seconds",
    table(("a", 1494745200000, "s"), ("a", 1494745260000, "s")): r"line 2: the time '1494745200000' is neither",
    table(("a", "2020-01-01", "s"), ("a", "2020-13-01", "s")): r"line 3: the time '2020-13-01' is neither a time",
    table(("a", "soon", "s"), ("a", 60, "s")): r"line 2: the time 'soon' is neither a time",
    table(
        ("a", 0, "s"), ("a", 60, "s"), ("b", 0, "s"), ("b", 30, "s")
    ): "'a' has no two rows that are 30 s apart, the step of",
    table(("a", 0, "s"), ("a", 60, "s,t")): "line 3",
    HEADER + "a,0,s\n,60,\na,60,s\n": r"line 3: the participant '' is missing",
    table(
        ("a", 0, "s", "g"), ("a", 60, "s", "h"), header="participant,time,state,group\n"
    ): r"line 3: the group 'h' is missing or differs from the participant's first one",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_bad_tables_are_refused_in_one_sentence_with_file_and_line(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=message) as caught:
        ingest_activity("file", path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_state_outside_the_given_ones_and_a_step_without_transition_are_refused(tmp_path):
    path = write(tmp_path, table(("a", 0, "s"), ("a", 60, "run")))
    with pytest.raises(DataError, match=r"line 3: the value 'run' is none of the public states; name it among"):
        ingest_activity("file", path, states=["s", "w"])
    with pytest.raises(DataError, match=r"no two with values that are one step \(30 s\) apart"):
        ingest_activity("file", path, step_seconds=30)


@pytest.mark.parametrize(
    "options",
    [
        {"source": "download"},
        {"source": "file"},
        {"path": "somewhere"},
        {"gap_minutes": -1},
        {"gap_minutes": float("nan")},
        {"gap_minutes": "ten"},
        {"states": ["a", "a"]},
        {"states": "abc"},
        {"states": ["a", "b"]},  # the bundled sample has its own
        {"step_seconds": 0},
    ],
)
def test_settings_out_of_range_are_refused(options):
    with pytest.raises(ParameterError, match="|".join(options)):
        ingest_activity(**{"source": "bundled", **options})


def test_the_bundled_sample_cannot_be_cut_at_another_gap():
    with pytest.raises(DataError, match="was cut at gaps of 10 minutes and gap_minutes is 5"):
        ingest_activity("bundled", gap_minutes=5)


NHANES_HEADER = "seqn,day_index,weekday_1sun_7sat,paxcal,age,sex,bmi,wear_minutes,counts\n"


def nhanes(seqn, age, sex, bmi, *, days=3, paxcal=1, wear="0-1439", counts="50 500 1000 3000"):
    minutes = " ".join([counts] * 360)
    return "".join(f"{seqn},{d},1,{paxcal},{age},{sex},{bmi},{wear},{minutes}\n" for d in range(days))


def test_nhanes_groups_filters_and_states(tmp_path):
    text = NHANES_HEADER
    text += nhanes(1, 55, "F", 20) + nhanes(2, 54, "F", 25) + nhanes(3, 18, "M", "")
    text += nhanes(4, 54, "F", 24.9) + nhanes(5, 54, "F", "") + nhanes(6, 55, "M", 30) + nhanes(7, 17, "M", 30)
    text += nhanes(8, 30, "M", 20, paxcal=2) + nhanes(9, 30, "M", 20, days=2)
    text += nhanes(10, 30, "M", 20, counts="0 0 0 32767")
    text += nhanes(12, 30, "M", 20).replace("12,2,1,1,", "12,2,1,2,")  # not calibrated on one day
    text += nhanes(11, 30, "M", 20, wear="0-599;610-1428")  # gaps of 10 and, over night, 11 minutes
    sample = ingest_activity("file", write(tmp_path, text))
    assert sample.groups == GROUPS
    assert [[p.name for p in sample.group(g)] for g in GROUPS] == [["3", "11"], ["1"], ["2"]]
    assert sample.states == STATES
    person = sample.participants[0]
    assert person.segment_lengths == (3 * 1440,)  # days follow each other
    cycle = [STATES.index(s) for s in ("sedentary", "standing_still", "standing_moving", "active")]
    assert person.transition_counts[cycle, cycle[1:] + cycle[:1]].tolist() == [1080, 1080, 1080, 1079]
    assert person.transition_counts.sum() == 3 * 1440 - 1
    assert sample.participants[1].segment_lengths == (1429, 1429, 1429)
    assert sample.participants[1].transition_counts.sum() == 3 * (599 + 818)
    assert read_nhanes(text.encode(), "here", 600, 5)[0].segment_lengths == (3 * 288,)
    with pytest.raises(ParameterError, match="step_minutes is 7; it must divide the 1440 minutes of a day"):
        read_nhanes(text.encode(), "here", 600, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nhanes(1, 30, "M", 20).replace("0-1439", "0-1440", 1), "line 2: wear_minutes has '0-1440'"),
        (nhanes(1, 30, "M", 20).replace("0-1439", "night", 1), "line 2: wear_minutes has 'night'"),
        (nhanes(1, 30, "M", 20, counts="1 2 3"), "line 2: 1080 counts, not 1440"),
        (nhanes(1, 30, "M", 20, counts="1 2 3 -4"), "line 2: 1440 counts, not 1440 numbers >= 0"),
        (nhanes(1, 30, "M", 20, counts="1 2 3 x"), "line 2: counts cannot be read"),
        (nhanes(1, "old", "M", 20), "line 2: age 'old' is not a number"),
        (nhanes(1, 30, "X", 20), "line 2: sex 'X' is neither M nor F"),
        (nhanes(1, 30, "M", 20) + nhanes(1, 30, "M", 20), "line 5: day_index '0' does not come after"),
        (nhanes(1, 70, "M", 20), "holds no participant"),
    ],
)
def test_bad_nhanes_files_are_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        ingest_activity("file", write(tmp_path, NHANES_HEADER + text))
