"""Errors and releases of a complete run; test_shown.py and test_comparison.py hold its numbers."""

import os
import runpy
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numba
import numpy as np
from snakemake.iocontainers import Namedlist

from reproduction import tidy

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"


def errors_of(folder, scales, sample=None, **params):
    """Run the script of a rule on a table of scales: its errors, and of a sample its releases."""
    tidy.write(scales, folder / "scales.csv", "scales")
    stages = ["errors", "releases"] if sample else ["errors"]
    made = {stage: folder / f"{stage}.csv" for stage in stages}
    params = {"repetitions": 500, "releases": 20, "seed": 20170514} | params
    snakemake = SimpleNamespace(
        input=Namedlist(fromdict={"sample": sample, "scales": [folder / "scales.csv"]}),
        output=Namedlist(fromdict=made),
        params=Namedlist(fromdict=params),
        threads=numba.config.NUMBA_NUM_THREADS,
        log=[folder / "log"],
    )
    script = SCRIPTS / ("measure_errors.py" if sample else "measure_errors_synthetic.py")
    with mock.patch.dict(os.environ):
        runpy.run_path(str(script), init_globals={"snakemake": snakemake})
    return [tidy.read(path, stage) for stage, path in made.items()]


def scales_in(project, folder):
    paths = sorted(project.made.glob(f"scales/{folder}/*.csv"))
    return tidy.read_all(paths, "scales")


def rows(table):
    """The rows at ε = 1, in no order; texts of numbers have all digits."""
    return set(table[table["epsilon"] == 1].astype(str).itertuples(index=False, name=None))


def test_one_more_epsilon_changes_no_digit_of_the_others(finished, tmp_path):
    """Without the others the rows of one ε are the same."""
    (alone,) = errors_of(tmp_path, scales_in(finished, "synthetic").query("epsilon == 1"))
    whole = tidy.read(finished.made / "errors/synthetic.csv", "errors")
    assert rows(alone) == rows(whole) != set()
    scales = scales_in(finished, "electricity_bundled").query("epsilon == 1")
    errors, releases = errors_of(
        tmp_path, scales, finished.made / "samples/electricity_bundled.json"
    )
    whole = finished.made / "errors/electricity_bundled"
    assert rows(errors) == rows(tidy.read(f"{whole}.csv", "errors"))
    assert rows(releases) == rows(tidy.read(f"{whole}_releases.csv", "releases"))


def test_simulated_means_agree_with_expected_errors(finished, tmp_path):
    (more,) = errors_of(tmp_path, scales_in(finished, "synthetic"), repetitions=2000, seed=7)
    others = [f"errors/{name}_bundled.csv" for name in ("activity", "electricity")]
    for rows in (more, tidy.read_all([finished.made / name for name in others], "errors")):
        z = (rows["mean_error"] - rows["expected_error"]) / rows["standard_error"]
        assert np.abs(z).max() < 4.5


def test_one_participant_without_a_scale_makes_the_row_not_applicable(finished, tmp_path):
    scales = tidy.read(finished.made / "scales/walks_2_file/mqm-exact.csv", "scales")
    lost = scales["participant"] == "007"
    scales.loc[lost, "scale"] = np.nan
    scales.loc[lost, ["status", "reason"]] = ["not applicable", "because"]
    errors, releases = errors_of(tmp_path, scales, finished.made / "samples/walks_2_file.json")
    row = errors[(errors["group"] == "young") & (errors["task"] == "individual")].iloc[0]
    assert (row["status"], row["reason"]) == ("not applicable", "because")
    assert np.isnan(row["expected_error"])
    assert set(releases["group"]) == {"young", "old"}


def test_quilts_are_those_the_library_finds(finished):
    table = tidy.read(finished.made / "examples/quilts.csv", "quilts")
    letters = {"node": "i", "nearby": "n", "quilt": "q", "remote": "r"}
    chains = table[table["line"] != ""].groupby("line", sort=False)["role"]
    roles = ["".join(map(letters.get, of_line)) for _, of_line in chains]
    assert roles == ["rqninqr", "rqninnn", "nnninqr", "nnninnn", "rrqnnnninnnnqrrr"]
    network = table[table["line"] == ""].set_index("variable")
    # parents, children and other parents of children: nothing else is next to B2
    assert set(network.index[network["role"] == "quilt"]) == {"A2", "B1", "C2", "B3", "A3", "C1"}
