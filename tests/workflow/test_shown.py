"""Tables and figures of a complete run: the same from the same numbers, and what they show."""

import os
import runpy
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numba
import numpy as np
import pandas as pd
import pytest
from snakemake.iocontainers import Namedlist

from pufferflow.drawing import style
from pufferflow.errors import DataError
from reproduction import histogram_figures, paper_figures, tidy
from reproduction.paper_tables import seconds_table
from reproduction.related.figures import FIGURES
from reproduction.tables import Table

STUDIES = ["least_noise_synthetic", "composition_walks_2_file", "wider_guarantees_walks_2_file"]


def test_printed_tables_are_these(finished, golden):
    """Errors, chains, seconds (made up) and studies: their numbers, names, headers and notes."""
    names = [f"errors_{name}" for name in ("activity_bundled", "electricity_bundled")]
    names += ["errors_walks_2_file", "chains", *STUDIES, "other_data_bundled", "cohort"]
    names += ["top_states_bundled"]
    names += [f"{name}_values" for name in ("noisy_max", "base2_exponential", "alpha_beta")]
    names += ["classical_values", "examples"]
    printed = [finished.text(f"tables/{name}.md") for name in names]
    printed += [finished.text(f"tables/{name}.tex") for name in (names[0], STUDIES[0])]
    timings = tidy.read(finished.made / "timings/mechanisms.csv", "timings")
    assert (timings["least_seconds"] > 0).all()
    assert (timings["least_seconds"] <= timings["median_seconds"]).all()
    seconds = {"median": 0.001 * (1 + np.arange(len(timings))), "least": 0.0005, "most": 0.2}
    fixed = {f"{name}_seconds": value for name, value in seconds.items()}
    printed.append(seconds_table(timings.assign(**fixed, machine="x86_64")).markdown())
    golden("printed_tables.txt", "\n".join(printed))
    shown = pd.read_csv(finished.made / "tables/errors_activity_bundled.csv")  # all digits
    errors = tidy.read(finished.made / "errors/activity_bundled.csv", "errors")
    pd.testing.assert_series_equal(shown["expected_error"], errors["expected_error"])


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_related_systems_are_the_same_bytes_again(finished, tmp_path, only_svg, name):
    curves = tidy.read(finished.made / f"related/{name}.csv", "related")
    (path,) = style.save_figure(FIGURES[name](curves), tmp_path / name)
    assert path.read_text("utf-8") == finished.text(f"figures/{name}_synthetic.svg")


def test_what_does_not_apply_leaves_a_gap(finished):
    errors = tidy.read(finished.made / "errors/synthetic.csv", "errors")
    limits = tidy.read(finished.made / "examples/gk16_limits.csv", "gk16_limits")
    figure = paper_figures.synthetic_errors(errors, limits)
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[0].lines]
    (gaps,) = {tuple(np.isnan(y)) for y in lines if np.isnan(y).any()}
    assert gaps == (True,) * 23 + (False,) * 8  # α from .33 on


def test_an_empty_table_is_refused():
    draws = {histogram_figures.histograms: "releases", paper_figures.growth: "growth"}
    draws |= {histogram_figures.errors_beside_printed: "errors", paper_figures.quilts: "quilts"}
    draws |= dict.fromkeys(FIGURES.values(), "related")
    draws[lambda table: Table("x", "", "", table, table)] = "values"
    for draw, stage in draws.items():
        with pytest.raises(DataError, match="no row"):
            draw(tidy.frame([], stage))


def test_signs_are_shown_instead_of_obeyed(golden):
    """In LaTeX, Markdown and HTML, of a cell, the name of its column and a note."""

    def shown(text):
        cell = pd.DataFrame({text: [text]})
        table = Table("x", "What it shows.", "none", cell, cell, 0, text)
        assert table.latex().isascii()
        return " ".join(f"{table.latex()} {table.markdown()} {table.html()}".split())

    golden("signs.txt", shown)


def test_a_tidy_table_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "table.csv"
    for stage, schema in tidy.SCHEMAS.items():
        numbers = {name: 1 for name, kind in schema.items() if kind != tidy.TEXT}
        for rows in ([], [numbers or {"key": "021067"}]):
            table = tidy.frame(rows, stage)
            assert table.dtypes.map(str).to_dict() == schema
            tidy.write(table, path, stage)
            pd.testing.assert_frame_equal(tidy.read(path, stage), table)


# -- errors and releases ---------------------------------------------------------------------------

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
