"""The experiment on Noisy Max: its claims, its place in the comparison, its figures."""

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow.reporting.comparison import compare, reported_values, stated_numbers
from pufferflow.reporting.style import save_figure
from pufferflow.studies.noisy_max import figures as figures_noisy_max
from pufferflow.studies.noisy_max import measure as noisy_max
from pufferflow.studies.noisy_max import study
from pufferflow.studies.tidy import read_table, write_table
from pufferflow.studies.values import COLUMNS

SETTINGS = {"p1": 0.2, "p2": 0.4, "factors": [2, "8/5", 0.5], "grid": 6, "queries": 5, "timed_queries": [1]}


@pytest.fixture(scope="module")
def measured():
    return noisy_max.measure(SETTINGS, 1)


def test_claims(measured):
    _, claims = measured
    assert list(claims) == COLUMNS
    value = claims.set_index("key")["computed"]
    assert value.index.is_unique
    assert [value[f"noisy-max/law/C/{i}"] for i in range(3)] == ["559/1500", "971/3000", "911/3000"]
    assert [value[f"noisy-max/law/not C/{i}"] for i in range(3)] == ["941/2000", "2077/6000", "11/60"]
    assert value["noisy-max/largest-ratio"] == "911/550"
    assert value["noisy-max/check/2"] == "holds"
    assert value["noisy-max/check/8/5"] == "violated at index 2"
    assert value["noisy-max/check/1/2"] == "violated at index 0"
    assert value["noisy-max/supremum"] == "9/5"
    assert value["noisy-max/prior/2"] == "none"
    assert value["noisy-max/value/one-by-one"] == "holds for n = 1 to 5"
    assert value["noisy-max/value/all-by-one"] == "fails from n = 2"
    assert value["noisy-max/value/one-anywhere"] == "fails from n = 1"


def test_comparison_says_where_the_source_differs(measured):
    printed = reported_values()
    assert set(printed["key"][printed["key"].str.startswith("noisy-max/")]) <= set(measured[1]["key"])
    rows = compare(stated_numbers(measured[1])).set_index("claim")
    derived = rows[rows["source"] == "derived here"]
    assert len(derived) == 7
    assert set(derived["verdict"]) == {"no verdict"}
    (claimed,) = [row for claim, row in rows.iterrows() if "factor 2" in claim]
    assert claimed["verdict"] == "differs"
    assert "911/550" in claimed["reason"]
    assert set(rows["place"]) == {"Example 7.1 (Noisy Max)"}


def test_curves(measured):
    curves, _ = measured
    assert next(iter(curves)) == "panel"
    assert set(curves["panel"]) == {"laws", "example", "map", "supremum", "neighbours"}
    grid = curves[curves["panel"] == "map"]
    assert len(grid) == 36
    assert grid["largest_ratio"].max() == 1.8
    corner = grid[(grid["p1"] == 0) & (grid["p2"] == 0)]
    assert corner["exact"].item() == "66/41"
    pd.testing.assert_frame_equal(noisy_max.measure(SETTINGS, 2)[0], curves)


def test_another_prior():
    _, claims = noisy_max.measure(SETTINGS | {"p1": 1, "p2": 1, "grid": 2, "queries": 1}, 1)
    value = claims.set_index("key")["computed"]
    assert value["noisy-max/largest-ratio"] == "9/5"
    assert value["noisy-max/value/all-by-one"] == "holds for n = 1 to 1"


def test_times():
    times = noisy_max.measure_times(SETTINGS)
    assert list(times["method"]) == list(noisy_max.METHODS)
    assert set(times["answer"]) == {"holds"}
    assert (times["seconds"] > 0).all()
    drawn = figures_noisy_max.time_figure(times).axes[0]
    assert len(drawn.lines) == 3


def test_figure(measured, tmp_path, only_svg):
    write_table(measured[0], tmp_path / "curves.csv")
    curves = read_table(tmp_path / "curves.csv")
    figure = figures_noisy_max.figure(curves)
    laws, chart, neighbours = figure.axes[:3]
    assert len(laws.patches) == 6
    assert chart.get_xlabel() == "p1"
    np.testing.assert_allclose(neighbours.lines[0].get_ydata(), [2, 4, 8, 16, 32])
    assert [path.name for path in save_figure(figure, tmp_path / "figure")] == ["figure.svg"]
    with pytest.raises(pf.DataError, match="panel map"):
        figures_noisy_max.figure(curves[curves["panel"] != "map"])
    assert study.CAPTION.count(". ") <= 4
