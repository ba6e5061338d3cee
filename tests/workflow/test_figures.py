"""The figures of the paper: what they show of the numbers, and that files do not change."""

import re

import numpy as np
import pandas as pd
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


@pytest.mark.parametrize("epsilons", [[1.0], [0.2, 1.0, 5.0], [0.1, 0.2, 1.0, 5.0]])
def test_one_panel_an_epsilon(epsilons):
    figure = synthetic_errors(synthetic(epsilons, [0.2, 0.35, 0.4]), LIMITS)
    assert [axes.get_title() for axes in figure.axes] == [f"ε = {e:g}" for e in epsilons]


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


def test_legends_say_what_is_hidden_and_what_does_not_hold():
    names = ("wasserstein-grid", "group-dp", "mechanism-of-2030")
    shown = texts(synthetic_errors(synthetic([1.0], [0.2, 0.4], names), LIMITS))
    assert "\n(no guarantee for the class)" in shown
    assert "mechanism-of-2030" in shown
    shown = texts(histograms(releases({"participant-dp": 0.1, "group-dp": 0.1}), "71 people"))
    assert {"DP: whole participant", "GroupDP: whole chain"} <= set(shown.splitlines())
    assert "Bundled real data: 71 people." in shown


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


def test_groups_share_their_axes_and_distances_tell_mechanisms_apart():
    groups = ("men_18_54", "older_women_55plus", "overweight_women_18_54", "others")
    noise = {"participant-dp": 0.2, "mqm-approx": 0.002, "mqm-exact": 0.0005}
    table = pd.concat([releases(noise, groups=groups), releases(noise, epsilon=5.0, groups=groups)])
    figure = histograms(table)
    above, below = figure.axes[:4], figure.axes[4:]
    titles = ["men 18–54", "women 55+", "women 18–54, BMI ≥ 25", "others"]
    assert [axes.get_title() for axes in above] == titles
    assert len({axes.get_ylim() for axes in above}) == len({axes.get_ylim() for axes in below}) == 1
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in below[0].lines]
    drawn = np.concatenate([y for y in drawn if len(y) == 10])
    shown = table[(table["group"] == "men_18_54") & (table["epsilon"] == 1)]
    distances = shown["released_frequency"] - shown["exact_frequency"]
    assert sorted(drawn) == pytest.approx(sorted(distances))
    heights = [below[0].transData.transform((0.0, y))[1] for y in (0.0, 0.0005, 0.002, 0.2)]
    assert np.diff(heights).min() > 0.05 * below[0].bbox.height


def test_many_bins_have_a_panel_a_mechanism_at_one_epsilon():
    watts = [f"{low}-{low + 200} W" for low in range(0, 4000, 200)]
    noise = {"group-dp": 5.0, "mqm-exact": 0.001}
    table = pd.concat([releases(noise, epsilon, ("one", "two"), watts) for epsilon in (0.2, 1.0)])
    figure = histograms(table.assign(exact_frequency=table["exact_frequency"] % 0.5))
    titles = [axes.get_title("left").partition(":")[0] for axes in figure.axes]
    assert titles == [f"{group}, {name}" for group in ("one", "two") for name in ("GroupDP", "MQMExact")]
    assert figure.axes[-1].get_xlabel() == "power (W), lower edge of a bin"
    assert [text.get_text() for text in figure.axes[-1].get_xticklabels()][:2] == ["0", "2000"]
    assert any(text.get_text().startswith("−") for text in figure.axes[0].get_yticklabels())
    assert texts(figure).count("ε = 1;") == 1


def test_printed_errors_stand_beside_ours_unconnected():
    figure = errors_beside_printed(errors())
    titles = [axes.get_title("left").split("\n") for axes in figure.axes]
    assert titles[0] == ["cyclists (paper)", "men 18–54 (here)", "aggregate"]
    assert [title[-1] for title in titles] == ["aggregate"] * 2 + ["individual"] * 2
    axes = figure.axes[0]
    written = [text.get_text() for text in axes.texts]
    assert written == ["printed", "N/A", "0.0074", "here", "N/A", "0.0100"]
    marks = [line for line in axes.lines if line.get_marker() not in ("None", None)]
    assert {float(np.asarray(line.get_xdata())[0]) for line in marks} == {0.0074, 0.01}
    assert {len(line.get_xdata()) for line in marks} == {1}
    (guess,) = (line.get_xdata()[0] for line in axes.lines if line not in marks)
    assert guess == 1.5
    assert len({axes.get_xlim() for axes in figure.axes}) == 1


def test_errors_of_which_none_is_printed_are_drawn_at_one_epsilon():
    names = ("gk16", "participant-dp")
    table = pd.concat([errors(epsilon, ("young",), names) for epsilon in (2.0, 3.0)])
    figure = errors_beside_printed(table)
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["aggregate\nε = 2", "individual\nε = 2"]
    assert [text.get_text() for text in figure.axes[0].texts][1:3] == ["–", "–"]
    assert "DP: whole participant." in texts(figure)
    nowhere = errors_beside_printed(errors(2.0, ("young",), ("gk16",)))
    assert [text.get_text() for text in nowhere.axes[0].texts] == ["printed", "–", "here", "N/A"]


def test_mass_moves_by_w_at_most():
    figure = wasserstein(worked_values())
    assert "moves by W = 2" in texts(figure)
    moves = [line.get_xdata() for line in figure.axes[0].lines]
    assert sorted(abs(end - start) for start, end in moves) == [0, 1, 1, 1, 1, 2, 2]


def test_files_are_the_same_on_every_run_and_their_text_is_text(saved):
    place = {"dataset": "synthetic", "label": "synthetic", "epsilon": 1.0, "alpha": 0.2}
    longer = tidy.frame([place | {"mechanism": "mqm-exact", "length": t, "scale": 1.0} for t in (10, 100)], "growth")
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
