"""The experiment on Noisy Max: its claims, its place in the comparison, its figures."""

from fractions import Fraction

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

pytestmark = pytest.mark.xdist_group("noisy max experiment")  # what its tests share is made once

SETTINGS = (
    {"p1": 0.2, "p2": 0.4, "factors": [2, "8/5"], "preserved": ["8/5", "5/3", "7/4"], "grid": 11, "queries": 5}
    | {"searched_queries": 5}
    | {"timed_queries": [1, 2], "solver_queries": [1]}
)


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
    assert value["noisy-max/search/5"] == "holds"
    assert value["noisy-max/start"] == "holds"
    assert value["noisy-max/start/value"] == "16/125"
    assert value["noisy-max/neighbours/011-021"] == "2"
    assert [value[f"noisy-max/edge/{edge}"] for edge in ("011", "120", "202")] == [
        "2/3·1/3·1/3",
        "1/3·2/3·1/6",
        "1/6·1/6·1/6",
    ]
    assert value["noisy-max/supremum"] == "9/5"
    assert value["noisy-max/prior/2"] == "none"
    assert value["noisy-max/preserving/8/5/prior"] == "none"
    assert value["noisy-max/preserving/5/3/region"] == "9*p1^2*p2 - 13*p1^2 - 18*p1*p2 + 22*p1 + 9*p2 - 7 <= 0"
    assert value["noisy-max/value/one-by-one"] == "holds for n = 1 to 5"
    assert value["noisy-max/value/all-by-one"] == "fails from n = 2"
    assert value["noisy-max/value/one-anywhere"] == "fails from n = 1"


def test_comparison_says_where_the_source_differs(measured):
    printed = reported_values()
    assert set(printed["key"][printed["key"].str.startswith("noisy-max/")]) <= set(measured[1]["key"])
    rows = compare(stated_numbers(measured[1])).set_index("claim")
    derived = rows[rows["source"] == "derived here"]
    assert {"no verdict"} == set(derived["verdict"]) == set(rows["verdict"][rows["kind"] == "diagnosis"])
    verdicts = {claim: row["verdict"] for claim, row in rows.iterrows() if row["verdict"] != "no verdict"}
    assert verdicts.pop("Noisy Max, p1 = 0.2, p2 = 0.4, ε = ln 2, that is the factor 2") == "differs"
    small = "the noisy value is released, one count changes by one: ln 2-differential privacy"
    assert verdicts.pop(small) == "differs"
    edges = [claim for claim in verdicts if "edge from" in claim]
    assert [verdicts.pop(claim) for claim in edges] == ["typo in the source"] * 3
    assert list(verdicts.values()) == ["reproduced"] * 2
    for _, row in rows.iterrows():
        assert row["reason"] or row["verdict"] == "reproduced"
        assert (row["source"] == "author's code") == row["place"].startswith("fmlab-iis/dp-pomdp, ")


def test_diagnoses(measured):
    """What the public programs ask is answered alike whatever they ask it about."""
    value = measured[1].set_index("key")["computed"]
    assert value["noisy-max/diagnosis/half"] == "0, 1, 2"
    assert value["noisy-max/diagnosis/zeroed"] == "none (1/2, 1/1000)"


def test_curves(measured):
    curves, _ = measured
    assert next(iter(curves)) == "panel"
    assert set(curves["panel"]) == {"laws", "example", "region", "supremum", "neighbours"}
    region = curves[curves["panel"] == "region"]
    assert list(region["exact"].unique()) == ["5/3", "7/4"]  # no prior preserves 8/5
    first = region[(region["p1"] == 0) & (region["exact"] == "5/3")]
    assert (first["lowest_p2"].item(), first["highest_p2"].item()) == (0, 7 / 9)
    for row in region.itertuples():
        # on the boundary the largest ratio is the factor, inside it is below
        for p2, ratio in ((row.highest_p2, row.factor), (row.highest_p2 / 2, None)):
            laws = noisy_max._laws(Fraction(row.p1), Fraction(p2))
            largest = max(max(p / q, q / p) for p, q in zip(*laws.values(), strict=True))
            assert largest <= row.factor + 1e-12
            assert ratio is None or p2 == 1 or float(largest) == pytest.approx(ratio, rel=1e-12)
    pd.testing.assert_frame_equal(noisy_max.measure(SETTINGS | {"searched_queries": 1}, 2)[0], curves)


@pytest.mark.parametrize(("preserved", "regions"), [(["8/5"], 0), ([2], 1)])
def test_factors_that_no_prior_or_every_prior_preserves(preserved, regions):
    curves, claims = noisy_max.measure(SETTINGS | {"preserved": preserved, "queries": 1, "searched_queries": 1}, 1)
    value = claims.set_index("key")["computed"][f"noisy-max/preserving/{preserved[0]}/prior"]
    assert (value == "none") == (regions == 0)
    chart = figures_noisy_max.figure(curves).axes[1]
    assert len(chart.collections) == 1 + regions  # all priors, and those of each region


def test_another_prior():
    _, claims = noisy_max.measure(SETTINGS | {"p1": 1, "p2": 1, "grid": 2, "queries": 1, "searched_queries": 1}, 1)
    value = claims.set_index("key")["computed"]
    assert value["noisy-max/largest-ratio"] == "9/5"
    assert value["noisy-max/value/all-by-one"] == "holds for n = 1 to 1"


def test_times():
    times = noisy_max.measure_times(SETTINGS)
    assert list(times["method"]) == [*noisy_max.METHODS, "product-form", "search"]
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
    with pytest.raises(pf.DataError, match="panel supremum"):
        figures_noisy_max.figure(curves[curves["panel"] != "supremum"])
    assert study.CAPTION.count(". ") <= 4
