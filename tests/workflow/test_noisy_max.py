"""The study of Noisy Max: its values, its rows of the comparison, its figure."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pufferflow import hmm
from pufferflow.drawing.style import save_figure
from pufferflow.errors import DataError
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


def test_comparison_says_where_the_source_differs(measured):
    assert set(reported_values("noisy_max")["key"]) <= set(measured[1]["key"])
    assert list(measured[1]) == list(tidy.SCHEMAS["values"])
    assert measured[1]["key"].is_unique
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
    assert (
        value["noisy-max/script/index, p1 = 1/5, p2 = 2/5"] == "1/2: sat, also at index 0; 2: unsat"
    )
    assert value["noisy-max/script/value"] == "unsat"
    model = noisy_max.neighbour_model(3)
    assert [hmm.check(model, factor).holds for factor in (2, "1/2", "1/1000")] == [
        True,
        False,
        False,
    ]


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
    pd.testing.assert_frame_equal(
        tables(noisy_max.measure(SETTINGS | {"searched_queries": 1}))[0], curves
    )


def test_figure(measured, tmp_path, only_svg):
    tidy.write(measured[0], tmp_path / "curves.csv", "related")
    curves = tidy.read(tmp_path / "curves.csv", "related")
    figure = noisy_max_figures.figure(curves)
    laws, chart, neighbours = figure.axes[:3]
    assert len(laws.patches) == 6
    assert chart.get_xlabel() == "p1"
    np.testing.assert_allclose(neighbours.lines[0].get_ydata(), [2, 4, 8, 16, 32])
    assert [path.name for path in save_figure(figure, tmp_path / "figure")] == ["figure.svg"]
    with pytest.raises(DataError, match="no row"):
        noisy_max_figures.figure(curves.iloc[:0])
