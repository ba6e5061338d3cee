"""The study of Noisy Max: its values, its rows of the comparison, its figure."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow import hmm
from pufferflow.drawing.style import save_figure
from reproduction import tidy
from reproduction.comparison import comparison_table, reported_values, stated_rows
from reproduction.related import noisy_max, noisy_max_figures, tables

pytestmark = pytest.mark.xdist_group("noisy max experiment")  # what its tests share is made once

SETTINGS = {
    "p1": 0.2,
    "p2": 0.4,
    "factors": [2, "8/5"],
    "preserved": ["8/5", "5/3", "7/4"],
    "grid": 11,
    "queries": 5,
} | {"searched_queries": 5}


@pytest.fixture(scope="module")
def measured():
    return tables(noisy_max.measure(SETTINGS))


def test_values(measured):
    _, values = measured
    assert list(values) == list(tidy.SCHEMAS["values"])
    value = values.set_index("key")["computed"]
    assert value.index.is_unique
    assert [value[f"noisy-max/law/C/{i}"] for i in range(3)] == ["559/1500", "971/3000", "911/3000"]
    assert [value[f"noisy-max/law/not C/{i}"] for i in range(3)] == ["941/2000", "2077/6000", "11/60"]
    assert value["noisy-max/largest-ratio"] == "911/550"
    assert value["noisy-max/check/2, p1 = 1/5, p2 = 2/5"] == "holds"
    assert value["noisy-max/check/8/5, p1 = 1/5, p2 = 2/5"] == "violated at index 2"
    assert value["noisy-max/search/5"] == "holds"
    assert value["noisy-max/start"] == "holds"
    assert value["noisy-max/start/value"] == "16/125"
    assert value["noisy-max/neighbours/011-021"] == "2"
    assert value["noisy-max/edges"] == "2/3·1/3·1/3, 1/3·2/3·1/6, 1/6·1/6·1/6"
    assert value["noisy-max/supremum"] == "9/5"
    assert value["noisy-max/prior/2"] == "none"
    assert value["noisy-max/preserving/8/5/prior"] == "none"
    assert value["noisy-max/preserving/5/3/region"] == "9*p1^2*p2 - 13*p1^2 - 18*p1*p2 + 22*p1 + 9*p2 - 7 <= 0"
    assert value["noisy-max/value/one-by-one"] == "holds for n = 1 to 5"
    assert value["noisy-max/value/all-by-one"] == "fails from n = 2"
    assert value["noisy-max/value/one-anywhere"] == "fails from n = 1"


def test_comparison_says_where_the_source_differs(measured):
    assert set(reported_values("noisy_max")["key"]) <= set(measured[1]["key"])
    table = comparison_table(stated_rows(measured[1], "noisy_max")).data
    rows = table.set_index("claim")
    differing = [claim for claim, row in rows.iterrows() if row["verdict"] == "differs"]
    words = ("factor is 2", "edges", "in general")
    assert [sum(word in claim for claim in differing) for word in words] == [1, 1, 1]
    assert len(differing) == 3
    assert set(rows["verdict"].drop(differing)) == {"reproduced"}
    for _, row in rows.iterrows():
        assert row["reason"] or row["verdict"] == "reproduced"
        assert (row["origin"] == "author's code") == row["place"].startswith("fmlab-iis/dp-pomdp, ")


def test_public_programs(measured):
    """Below 1 every index violates, and with the factor that is meant none does."""
    value = measured[1].set_index("key")["computed"]
    assert value["noisy-max/diagnosis/half"] == "0, 1, 2"
    assert value["noisy-max/script/index, p1 = 1/5, p2 = 2/5"] == "1/2: sat, also at index 0; 2: unsat"
    assert value["noisy-max/script/value"] == "unsat"
    model = noisy_max.neighbour_model(3)
    assert [hmm.check(model, factor).holds for factor in (2, "1/2", "1/1000")] == [True, False, False]


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
            laws = noisy_max.index_distributions(Fraction(row.p1), Fraction(p2))
            largest = max(max(p / q, q / p) for p, q in zip(*laws.values(), strict=True))
            assert largest <= row.factor + 1e-12
            assert ratio is None or p2 == 1 or float(largest) == pytest.approx(ratio, rel=1e-12)
    pd.testing.assert_frame_equal(tables(noisy_max.measure(SETTINGS | {"searched_queries": 1}))[0], curves)


@pytest.mark.parametrize(("preserved", "regions"), [(["8/5"], 0), ([2], 1)])
def test_factors_that_no_prior_or_every_prior_preserves(preserved, regions):
    curves, claims = tables(noisy_max.measure(SETTINGS | {"preserved": preserved, "queries": 1, "searched_queries": 1}))
    value = claims.set_index("key")["computed"][f"noisy-max/preserving/{preserved[0]}/prior"]
    assert (value == "none") == (regions == 0)
    chart = noisy_max_figures.figure(curves).axes[1]
    assert len(chart.collections) == 1 + regions  # all priors, and those of each region


def test_another_prior():
    settings = SETTINGS | {"p1": 1, "p2": 1, "grid": 2, "queries": 1, "searched_queries": 1}
    values = tables(noisy_max.measure(settings))[1]
    value = values.set_index("key")["computed"]
    assert value["noisy-max/largest-ratio"] == "9/5"
    assert value["noisy-max/value/all-by-one"] == "holds for n = 1 to 1"
    # the source states nothing of it
    claims = [row.claim for row in stated_rows(values, "noisy_max")]
    assert not any(words in claim for words in ("p1 = 0.2", "z3", "n = 5") for claim in claims)


def test_figure(measured, tmp_path, only_svg):
    tidy.write(measured[0], tmp_path / "curves.csv", "related")
    curves = tidy.read(tmp_path / "curves.csv", "related")
    figure = noisy_max_figures.figure(curves)
    laws, chart, neighbours = figure.axes[:3]
    assert len(laws.patches) == 6
    assert chart.get_xlabel() == "p1"
    np.testing.assert_allclose(neighbours.lines[0].get_ydata(), [2, 4, 8, 16, 32])
    assert [path.name for path in save_figure(figure, tmp_path / "figure")] == ["figure.svg"]
    with pytest.raises(pf.DataError, match="no row"):
        noisy_max_figures.figure(curves.iloc[:0])
