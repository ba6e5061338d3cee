"""Tables of all kinds: what is read, and what is refused with one sentence."""

import gzip
import io
import zipfile

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow.publishing.fitting import fit_records
from pufferflow.records.reading import Reading
from pufferflow.records.rows import open_records
from pufferflow.records.states import States

pytestmark = pytest.mark.usefixtures("scales_once")
RNG = np.random.default_rng(5)
HEADER = "time,value\n"


def minutes(count, start="2021-03-01T00:00"):
    return np.datetime_as_string(np.datetime64(start, "m") + np.arange(count)).tolist()


def walk(count):
    """A sticky walk over three states that visits all of them."""
    return [("sit", "stand", "walk")[i] for i in np.repeat(RNG.permutation(np.arange(count) % 3), 3)[:count]]


VALUES = walk(60)
ROWS = "".join(f"{t},{v}\n" for t, v in zip(minutes(60), VALUES, strict=True))


@pytest.fixture
def write(tmp_path):
    def write_(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_


def counts(fit):
    (participant,) = fit.sample.participants
    return participant.state_counts.tolist(), participant.transition_counts.tolist(), participant.segment_lengths


def test_the_same_records_in_every_dress(write, tmp_path):
    plain = fit_records(write(HEADER + ROWS))
    assert plain.sample.states == ("sit", "stand", "walk")
    assert plain.facts["step_seconds"] == 60
    frame = pd.DataFrame({"time": pd.to_datetime(minutes(60)), "value": VALUES})
    frame.to_parquet(tmp_path / "data.parquet")
    frame.assign(value=frame["value"].astype("category")).to_parquet(tmp_path / "category.parquet")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x.csv", HEADER + ROWS)
    unix = pd.to_datetime(minutes(60)).astype("datetime64[s]").astype(int)
    dresses = [
        write("\ufeff" + HEADER + ROWS),
        write((HEADER + ROWS).replace("\n", "\r\n")),
        write(HEADER + ROWS + "\n\n"),
        write(HEADER + ROWS.rstrip("\n")),
        write(gzip.compress((HEADER + ROWS).encode())),
        write(packed.getvalue()),
        write(HEADER + "".join(f"{t},{v}\n" for t, v in zip(unix, VALUES, strict=True))),
        write(HEADER + "".join(f"{t}+01:00,{v}\n" for t, v in zip(minutes(60), VALUES, strict=True))),
        write("a, time ,value\n" + "".join(f"0,{row}\n" for row in ROWS.splitlines())),
        tmp_path / "data.parquet",
        tmp_path / "category.parquet",
        frame,
        pd.Series(VALUES, index=pd.to_datetime(minutes(60))),
        pd.Series(VALUES, index=pd.to_datetime(minutes(60)).tz_localize("Asia/Tokyo")),
    ]
    for dress in dresses:
        assert counts(fit_records(dress)) == counts(plain)
    other = write((HEADER + ROWS).replace(",", ";"))
    assert counts(fit_records(other, reading=Reading(separator=";"))) == counts(plain)
    dated = write(HEADER + "".join(f"01/03/2021 {t[11:]},{v}\n" for t, v in zip(minutes(60), VALUES, strict=True)))
    assert counts(fit_records(dated, reading=Reading(time_format="%d/%m/%Y %H:%M"))) == counts(plain)
    rows_only = fit_records(pd.Series(VALUES))
    assert counts(rows_only) == counts(plain)
    assert rows_only.model.records.step_seconds is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (HEADER, "a header and no data"),
        (ROWS, "this seems to be data, not a header"),
        ("1.5\n2.5\n3.5\n", "this seems to be data, not a header"),
        ((HEADER + ROWS).replace(",", ";"), "separated by ';'; give it (separator)"),
        ((HEADER + ROWS).replace(",", "\t"), "separated by $'\\t'; give it (separator)"),
        ((HEADER + ROWS).encode("utf-16"), "not UTF-8 text"),
        (HEADER.encode() + b"2021-03-01T00:00,caf\xe9\n", "not UTF-8 text"),
        (
            "time,a,b\n" + "2021-03-01T00:00,1,2\n",
            "it is not clear which column holds the values; the columns are 'time', 'a', 'b'; name it (value)",
        ),
        (HEADER + "2021-03-01T00:00,1,2\n2021-03-01T00:01,1,2\n", "line 2: more fields than the header"),
        (HEADER + ROWS + "2021-03-01T02:00,sit,9,9\n", "line 62, saw 4; mend that line"),
        (HEADER + ROWS + "yesterday,sit\n", "line 62: the time 'yesterday' is neither a time"),
        (HEADER + ROWS + ",sit\n", "line 62: the time '' is neither a time"),
        (HEADER + ROWS + "2021-03-01T02:00:00.5,sit\n", "line 62: the time '2021-03-01T02:00:00.5' is neither"),
        (HEADER + ROWS + "2021-03-01T00:59,sit\n", "line 62: the time '2021-03-01T00:59' is that of the row before"),
        (HEADER + ROWS + "2021-03-01T00:05,sit\n", "line 62: the time '2021-03-01T00:05' comes before the row before"),
        (HEADER + ROWS + "2021-03-01T01:10:30,sit\n", "line 62: the time is not a whole number of steps of 60 s"),
        (HEADER + ROWS + "2021-03-01T02:00Z,sit\n", "has a UTC offset, but the first time has no UTC offset"),
        (HEADER + ROWS + "1614556800,sit\n", "is in unix seconds, but the first time has no UTC offset"),
        (HEADER + "1614556800000,sit\n1614556860000,sit\n", "line 2: the time '1614556800000' is neither"),
        (HEADER + "2021-03-01T00:00,sit\n", "one record only for each participant"),
        (HEADER + "2021-03-01T00:00,\n2021-03-01T00:01,NA\n", "all 2 values are missing"),
        (HEADER + "2021-03-01T00:00,sit\n2021-03-01T00:01,sit\n", "all values are in one state"),
        (
            "time,value\n" + "".join(f"{t},{i}x\n" for i, t in enumerate(minutes(300))),
            "line 2: the value '0x' is neither",
        ),
        ("participant,time,value\n,2021-03-01T00:00,sit\n", "line 2: the participant '' is missing"),
        ("participant,group,time,value\na,g,2021-03-01T00:00,sit\na,h,2021-03-01T00:01,sit\n", "line 3: the group 'h'"),
        (b"\x1f\x8b\x08\x00broken", "truncated or corrupt archive"),
        (b"PK\x03\x04broken", "truncated or corrupt archive"),
        (b"PAR1broken", "a damaged Parquet file"),
    ],
)
def test_refused_with_file_line_and_value(write, content, message):
    path = write(content)
    with pytest.raises(pf.DataError) as refused:
        fit_records(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_missing_file(tmp_path):
    with pytest.raises(pf.DataError, match="No such file"):
        fit_records(tmp_path / "none.csv")
    with pytest.raises(pf.DataError, match="Is a directory"):
        fit_records(tmp_path)


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        (Reading(value="watts"), "there is no column 'watts' for the value; the columns are 'time', 'value'"),
        (Reading(time="when"), "there is no column 'when' for the time"),
    ],
)
def test_columns_that_are_not_there(write, reading, message):
    with pytest.raises(pf.DataError, match=message):
        fit_records(write(HEADER + ROWS), reading=reading)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Reading(timezone="Mars/Olympus"),
        lambda: Reading(separator=",,"),
        lambda: States(bins=1),
        lambda: States(width=0),
        lambda: States(bins=3, width=1.0),
        lambda: States(edges=(2.0, 1.0)),
        lambda: States(names=("a", "a")),
        lambda: States(bins=3, other=True),
        lambda: States(top=0),
    ],
)
def test_options_out_of_range(make):
    with pytest.raises(pf.ParameterError):
        make()


# -- clocks -------------------------------------------------------------------------------------------------


def local_day(zone, day, step_minutes):
    """What a local clock shows on a day on which it is changed, in true order."""
    true = pd.date_range(day, periods=10 * 60 // step_minutes, freq=f"{step_minutes}min", tz=zone)
    return true, [t.strftime("%Y-%m-%dT%H:%M") for t in true]


def table_of(times):
    return pd.DataFrame({"time": times, "value": [str(i % 2) for i in range(len(times))]})


def seconds_of(frame, zone):
    return np.concatenate([c.seconds for c in open_records(frame, Reading(timezone=zone))]).tolist()


@pytest.mark.parametrize(
    ("zone", "autumn", "spring", "step"),
    [
        pytest.param(*days, step, marks=() if step == 30 or days[0] == "Europe/Paris" else pytest.mark.long)
        for days in (
            ("Europe/Paris", "2021-10-31", "2021-03-28"),
            ("Europe/London", "2021-10-31", "2021-03-28"),
            ("America/New_York", "2021-11-07", "2021-03-14"),
            ("Australia/Sydney", "2021-04-04", "2021-10-03"),
        )
        for step in (1, 30, 60)
    ],
)
def test_daylight_saving_is_named_and_a_zone_mends_it(zone, autumn, spring, step):
    for day, message in (
        (autumn, "daylight saving ends; give its zone"),
        (spring, "when daylight saving begins; give"),
    ):
        true, shown = local_day(zone, day, step)
        frame = table_of(shown)
        with pytest.raises(pf.DataError, match=message):
            fit_records(frame)
        fit = fit_records(frame, reading=Reading(timezone=zone))
        assert fit.sample.participants[0].segment_lengths == (len(true),)
        assert seconds_of(frame, zone) == true.as_unit("s").asi8.tolist()


def test_two_participants_live_through_the_repeated_hour_interleaved():
    true, shown = local_day("Europe/Paris", "2021-10-31", 30)
    frame = pd.DataFrame({"participant": ["a", "b"] * len(shown), "time": np.repeat(shown, 2), "value": 1})
    assert seconds_of(frame, "Europe/Paris") == np.repeat(true.as_unit("s").asi8, 2).tolist()


def test_a_time_that_no_clock_showed_is_refused():
    frame = table_of(["2021-03-28T01:30", "2021-03-28T02:30", "2021-03-28T03:30"])
    with pytest.raises(pf.DataError, match="does not exist on the clocks of Europe/Paris"):
        seconds_of(frame, "Europe/Paris")


def test_an_hour_that_is_missing_at_noon_is_an_ordinary_gap():
    times = [*minutes(60, "2021-03-28T10:00"), *minutes(60, "2021-03-28T12:00")]
    fit = fit_records(pd.DataFrame({"time": times, "value": walk(120)}))
    assert fit.sample.participants[0].segment_lengths == (180,)
    assert fit.facts["missing_steps"] == 60


def test_utc_is_a_clock_that_never_jumps():
    _, shown = local_day("Europe/Paris", "2021-03-28", 30)
    fit = fit_records(table_of(shown), reading=Reading(timezone="UTC"))
    assert fit.facts["missing_steps"] == 2


# -- states and chains ----------------------------------------------------------------------------------------


def test_bins_and_widths():
    values = np.abs(np.cumsum(np.random.default_rng(1).normal(size=3000))) * 10
    frame = pd.DataFrame({"time": minutes(3000), "watts": values})
    fit = fit_records(frame, states=States(width=50.0))
    edges = fit.model.records.states.edges
    assert all(edge % 50 == 0 for edge in edges)
    expected = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    assert counts(fit)[0] == expected.tolist()
    assert fit_records(frame, states=States(bins=7)).sample.states[0].startswith("< ")
    assert len(fit_records(frame).sample.states) <= 20
    assert fit_records(frame, states=States(edges=(10.0, 100.0))).sample.states == ("< 10", "10 to 100", ">= 100")


def test_empty_bins_are_joined_to_the_one_below():
    values = [1, 1, 95, 96, 1, 97, 1, 1, 99, 2] * 3
    fit = fit_records(pd.DataFrame({"time": minutes(30), "value": values}), states=States(width=10.0))
    assert fit.model.records.states.edges == (90.0,)
    assert counts(fit)[0] == [18, 12]
    assert fit.model.family.chains[0].states == 2


def test_few_numbers_are_categories_and_other_takes_the_rest():
    frame = pd.DataFrame({"time": minutes(60), "value": [0, 1, 2] * 20})
    assert fit_records(frame).sample.states == ("0", "1", "2")
    assert fit_records(frame, states=States(other=True)).sample.states == ("0", "1", "2", "other")
    top = fit_records(pd.DataFrame({"time": minutes(60), "value": [*"aabc"] * 15}), states=States(top=1))
    assert top.sample.states == ("a", "other")
    assert counts(top)[0] == [30, 30]


def test_smoothing_only_where_maximum_likelihood_is_not_ergodic():
    frame = pd.DataFrame({"time": minutes(6), "value": [*"aabbab"]})
    assert fit_records(frame).model.family.chains[0].transition_matrix.tolist() == [[1 / 3, 2 / 3], [1 / 2, 1 / 2]]
    periodic = fit_records(pd.DataFrame({"time": minutes(6), "value": [*"ababab"]}))
    assert periodic.model.family.chains[0].transition_matrix.tolist() == [[0.5 / 4, 3.5 / 4], [2.5 / 3, 0.5 / 3]]
    with pytest.raises(pf.DataError, match="is never left"):
        fit_records(pd.DataFrame({"time": minutes(3), "value": [*"aab"]}), smoothing=0.0)


def test_one_chain_a_group_and_intervals():
    frame = pd.DataFrame(
        {
            "participant": ["p"] * 40 + ["q"] * 40,
            "group": ["g"] * 40 + ["h"] * 40,
            "time": minutes(40) * 2,
            "value": [*"aabb" * 10, *"abba" * 10],
        }
    )
    fit = fit_records(frame)
    assert (len(fit.model.family.chains), fit.facts["groups"]) == (2, ["g", "h"])
    with pytest.raises(pf.ParameterError, match="one group"):
        fit_records(frame, coverage=0.9)
    intervals = fit_records(frame.drop(columns="group"), coverage=0.9).model.family
    assert isinstance(intervals, pf.IntervalFamily)
    assert "NOT PRIVATE" in fit.summary()


def test_pauses_split_only_where_asked():
    times = [*minutes(30), *minutes(30, "2021-03-02T00:00")]
    frame = pd.DataFrame({"time": times, "value": walk(60)})
    assert counts(fit_records(frame))[2] == (1470,)
    assert counts(fit_records(frame, split_after_seconds=600, split_because="off"))[2] == (30, 30)


@pytest.mark.parametrize("packed", [False, True])
def test_the_bar_follows_the_bytes_of_the_file(write, monkeypatch, packed):
    seen = []

    class Bar:
        def __init__(self, items=(), desc=None, total=None, **_):
            self.items, self.total, self.desc, self.n = items, total, desc, 0

        def __iter__(self):
            return iter(self.items)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            seen.append((self.desc, self.n, self.total))

        def update(self, n):
            self.n += n

    monkeypatch.setattr("tqdm.tqdm", Bar)
    content = (HEADER + ROWS).encode()
    fit_records(write(gzip.compress(content) if packed else content))
    assert [desc for desc, _, _ in seen if desc] == ["looking", "counting"]
    assert all(n >= total for desc, n, total in seen if desc)
