"""The figures of the paper: what they show of the numbers, and that files do not change."""

import re

import numpy as np
import pytest

from pufferflow.drawing import style
from pufferflow.errors import DataError
from reproduction import tidy
from reproduction.examples import worked_values
from reproduction.histogram_figures import errors_beside_printed, histograms
from reproduction.paper_figures import growth, quilts, synthetic_errors, wasserstein
from reproduction.quilts import quilts as quilt_table

LIMITS = tidy.frame([{"quantity": "class", "alpha": 0.3}, {"quantity": "interior"}], "gk16_limits")


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Saves figures, as SVG alone."""
    monkeypatch.setattr(style, "METADATA", {"svg": style.METADATA["svg"]})
    return lambda figure, name: style.save_figure(figure, tmp_path / name)[0].read_text("utf-8")


def synthetic(epsilons, alphas, mechanisms=("gk16", "mqm-exact")):
    rows = [
        {"dataset": "synthetic", "label": "synthetic", "mechanism": name, "epsilon": epsilon}
        | {"alpha": alpha, "repetitions": 20, "mean_error": error, "expected_error": error}
        for name in mechanisms
        for epsilon in epsilons
        for alpha in alphas
        for error in [None if name == "gk16" and alpha < 0.3 else 0.1 / epsilon / alpha]
    ]
    return tidy.frame(rows, "errors")


def releases(noise, epsilon=1.0, groups=("men_18_54",), states=("active", "sitting")):
    rng = np.random.default_rng(1)
    rows = [
        {"dataset": "activity", "label": "bundled", "group": group, "task": "aggregate"}
        | {"mechanism": mechanism, "epsilon": epsilon, "release": release, "state": state}
        | {
            "exact_frequency": (k + 1) / 10,
            "released_frequency": (k + 1) / 10 + scale * rng.laplace(),
        }
        for group in groups
        for mechanism, scale in noise.items()
        for release in range(1, 6)
        for k, state in enumerate(states)
    ]
    return tidy.frame(rows, "releases")


def errors(epsilon=1.0, groups=("men_18_54", "older_women_55plus"), names=("gk16", "mqm-exact")):
    values = {"gk16": None, "mqm-exact": 0.01, "participant-dp": 2.0}
    rows = [
        {"dataset": "activity", "label": "bundled", "group": group, "task": task, "bins": 4}
        | {"mechanism": name, "epsilon": epsilon, "expected_error": values[name]}
        for group in groups
        for task in ("aggregate", "individual")
        for name in names
    ]
    return tidy.frame(rows, "errors")


def texts(figure):
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    titles = [axes.get_title(loc) for axes in figure.axes for loc in ("left", "center")]
    return "\n".join([*legend, *titles, " ".join(figure.get_supxlabel().split())])


def test_what_does_not_apply_leaves_a_gap_and_the_limit_is_marked():
    figure = synthetic_errors(synthetic([1.0], [0.2, 0.35, 0.4]), LIMITS)
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[0].lines]
    (gk16,) = {tuple(np.isnan(y)) for y in lines if np.isnan(y).any()}
    assert gk16 == (True, False, False)
    assert "GK16 applies right of α = 0.3000" in texts(figure)
    assert "no better than\na constant guess" in texts(figure)
    assert any((y == 0.5).all() for y in lines)
    left = texts(synthetic_errors(synthetic([1.0], [0.1, 0.2]), LIMITS))
    assert "GK16 (not applicable)" in left
    assert "right of" not in left


def test_values_beyond_the_axis_are_counted_and_drawn_at_its_edge():
    assert "beyond" not in texts(histograms(releases({"mqm-exact": 0.001})))
    table = releases({"group-dp": 50.0, "mqm-exact": 0.001})
    figure = histograms(table)
    bottom, top = figure.axes[0].get_ylim()
    outside = int((~table["released_frequency"].between(bottom, top)).sum())
    assert f"({outside} of 10 GroupDP)" in texts(figure)
    marks = [y for line in figure.axes[0].lines for y in np.asarray(line.get_ydata(), dtype=float)]
    assert len(marks) == len(table) + 2  # and the line at 0
    assert bottom <= min(marks) <= max(marks) <= top


def test_mass_moves_by_w_at_most():
    figure = wasserstein(worked_values())
    assert "moves by W = 2" in texts(figure)
    moves = [line.get_xdata() for line in figure.axes[0].lines]
    assert sorted(abs(end - start) for start, end in moves) == [0, 1, 1, 1, 1, 2, 2]


def test_files_are_the_same_on_every_run_and_their_text_is_text(saved):
    place = {"dataset": "synthetic", "label": "synthetic", "epsilon": 1.0, "alpha": 0.2}
    longer = tidy.frame(
        [place | {"mechanism": "mqm-exact", "length": t, "scale": 1.0} for t in (10, 100)], "growth"
    )
    for name, draw in {
        "synthetic": lambda: synthetic_errors(synthetic([0.2, 1.0], [0.2, 0.35]), LIMITS),
        "growth": lambda: growth(longer),
        "quilts": lambda: quilts(quilt_table()),
        "errors": lambda: errors_beside_printed(errors()),
    }.items():
        first, second = saved(draw(), f"{name}-a"), saved(draw(), f"{name}-b")
        assert first == second
        assert not re.search(r"CreationDate|Creator|dc:date|20\d\d-\d\d-\d\d", first)
    assert ">0.0074</text>" in first
    assert set(re.findall(r"font-family: ([^;\"]+)", first)) == {style.SVG_FONTS}


def test_an_empty_table_is_reported():
    for draw, table in ((histograms, releases({"gk16": 0.1})), (errors_beside_printed, errors())):
        with pytest.raises(DataError, match="no row"):
            draw(table.iloc[:0])
