import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pufferflow.errors import DataError, ParameterError
from pufferflow.reporting import style
from pufferflow.studies.activity.figures import group_histograms
from pufferflow.studies.electricity.figures import power_histogram
from pufferflow.studies.synthetic import measure as synthetic
from pufferflow.studies.synthetic.figures import synthetic_error


def synthetic_errors(epsilons: list[float], alphas: list[float]) -> pd.DataFrame:
    scales = synthetic.scales(epsilons, alphas, 20, ["gk16", "mqm-approx", "mqm-exact"], {})
    return synthetic.errors(scales, repetitions=20, seed=1)


def releases(noise: dict[str, float], epsilon: float = 1.0, groups: tuple[str, ...] = ("men_18_54",)) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    exact = {"active": 0.05, "standing_still": 0.35, "sedentary": 0.6}
    return pd.DataFrame(
        [
            {
                "dataset": "activity",
                "label": "bundled",
                "group": group,
                "task": "aggregate",
                "mechanism": mechanism,
                "epsilon": epsilon,
                "release": release,
                "state": state,
                "exact_frequency": frequency,
                "released_frequency": frequency + scale * rng.laplace(),
            }
            for group in groups
            for mechanism, scale in noise.items()
            for release in range(1, 6)
            for state, frequency in exact.items()
        ]
    )


@pytest.fixture(scope="module")
def limits() -> pd.DataFrame:
    return synthetic.gk16_limits(20)


def texts(figure: Figure) -> str:
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    titles = [axes.get_title(loc) for axes in figure.axes for loc in ("left", "center")]
    return "\n".join([*legend, *titles, " ".join(figure.get_supxlabel().split())])


@pytest.mark.parametrize("epsilons", [[1.0], [0.2, 1.0, 5.0], [0.1, 0.2, 1.0, 5.0], [0.1, 0.2, 0.5, 1.0, 5.0]])
def test_one_panel_an_epsilon(epsilons: list[float], limits: pd.DataFrame) -> None:
    figure = synthetic_error(synthetic_errors(epsilons, [0.2, 0.35, 0.4]), limits)
    assert [axes.get_title() for axes in figure.axes] == [f"ε = {e:g}" for e in epsilons]


def test_not_applicable_leaves_a_gap_and_the_class_limit_is_marked(limits: pd.DataFrame) -> None:
    errors = synthetic_errors([1.0], [0.2, 0.35, 0.4])
    figure = synthetic_error(errors, limits)
    gk16 = figure.axes[0].lines[0]
    assert np.isnan(np.asarray(gk16.get_ydata())[0])
    assert np.isfinite(np.asarray(gk16.get_ydata())[1:]).all()
    marked = limits["alpha"].iloc[0]
    assert any(np.allclose(line.get_xdata(), marked) for line in figure.axes[0].lines)
    assert f"GK16 applies right of α = {marked:.4f}" in texts(figure)


def test_mechanism_that_never_applies_says_so(limits: pd.DataFrame) -> None:
    figure = synthetic_error(synthetic_errors([1.0], [0.1, 0.2]), limits)
    assert "GK16 (not applicable)" in texts(figure)
    assert "right of" not in texts(figure)


def test_data_label_is_on_every_figure(limits: pd.DataFrame) -> None:
    assert "Synthetic data." in texts(synthetic_error(synthetic_errors([1.0], [0.2]), limits))
    table = releases({"mqm-exact": 0.01})
    for draw in (group_histograms, power_histogram):
        assert "Bundled real data: 71 people." in texts(draw(table, epsilon=1.0, description="71 people"))


def test_values_beyond_the_axis_are_counted() -> None:
    calm = group_histograms(releases({"mqm-exact": 0.001}), epsilon=1.0)
    assert "beyond" not in texts(calm)
    table = releases({"group-dp": 50.0, "mqm-exact": 0.001})
    figure = group_histograms(table, epsilon=1.0)
    bottom, top = figure.axes[0].get_ylim()
    outside = int((~table["released_frequency"].between(bottom, top)).sum())
    assert f"({outside} of 15 GroupDP)" in texts(figure)
    drawn = [y for line in figure.axes[0].lines[1:] for y in np.asarray(line.get_ydata())]
    assert len(drawn) == len(table)
    assert bottom <= min(drawn) <= max(drawn) <= top


def test_groups_share_the_scale_and_have_their_names() -> None:
    groups = ("men_18_54", "older_women_55plus", "overweight_women_18_54", "others")
    figure = group_histograms(releases({"dp": 0.1}, groups=groups), epsilon=1.0)
    assert [axes.get_title() for axes in figure.axes] == ["men 18–54", "women 55+", "women 18–54, BMI ≥ 25", "others"]
    assert len({axes.get_ylim() for axes in figure.axes}) == 1


def test_log_histogram_tells_what_it_cannot_draw() -> None:
    table = releases({"group-dp": 50.0, "mqm-exact": 0.001})
    figure = power_histogram(table, epsilon=1.0)
    loud, calm = (axes.get_title("left") for axes in figure.axes)
    bottom = figure.axes[0].get_ylim()[0]
    lost = (table.loc[table["mechanism"] == "group-dp", "released_frequency"] <= bottom).mean()
    assert f"{100 * lost:.0f} % of the released values lie below the axis" in loud
    assert "below the axis" not in calm


def test_log_histogram_is_of_one_group_and_bears_empty_bins() -> None:
    table = releases({"mqm-exact": 0.001})
    empty = table["exact_frequency"].mask(table["state"] == "active", 0.0)
    axes = power_histogram(table.assign(exact_frequency=empty), epsilon=1.0).axes[0]
    assert [bar.get_height() > 0 for bar in axes.patches] == [False, True, True]
    with pytest.raises(ParameterError, match="select one"):
        power_histogram(releases({"dp": 1.0}, groups=("a", "b")), epsilon=1.0)


@pytest.mark.parametrize("draw", [group_histograms, power_histogram])
def test_missing_rows_are_reported(draw: Callable[..., Figure]) -> None:
    table = releases({"dp": 0.1})
    with pytest.raises(ParameterError, match="epsilon = 2 is not in the table; it has 1"):
        draw(table, epsilon=2.0)
    with pytest.raises(DataError, match="no row"):
        draw(table.iloc[:0], epsilon=1.0)


def test_files_are_the_same_on_every_run(tmp_path: Path, limits: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(style.RC, "savefig.dpi", 30)
    errors = synthetic_errors([0.2, 1.0], [0.2, 0.35])
    runs = [style.save_figure(synthetic_error(errors, limits), tmp_path / f"run.{i}") for i in (1, 2)]
    assert [path.name for path in runs[0]] == ["run.1.svg", "run.1.pdf", "run.1.png"]
    for one, two in zip(*runs, strict=True):
        content = one.read_bytes()
        assert content == two.read_bytes()
        assert not re.search(rb"CreationDate|Creator|Producer|dc:date|Software|20\d\d-\d\d-\d\d", content)


def test_user_settings_neither_matter_nor_change(tmp_path: Path, only_svg: None) -> None:
    table = releases({"dp": 0.1})
    first = style.save_figure(group_histograms(table, epsilon=1.0), tmp_path / "first")[0].read_bytes()
    with mpl.rc_context({"font.size": 20, "svg.fonttype": "none", "axes.grid": False}):
        before = {name: mpl.rcParams[name] for name in style.RC}
        second = style.save_figure(group_histograms(table, epsilon=1.0), tmp_path / "second")[0].read_bytes()
        assert {name: mpl.rcParams[name] for name in style.RC} == before
    assert first == second


def test_import_starts_no_window_system() -> None:
    code = "import sys, pufferflow.studies.synthetic.figures; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_mechanisms_differ_in_marker_and_in_dashes() -> None:
    looks = list(style.MECHANISMS.values())
    for attribute in ("color", "marker", "dashes", "label"):
        assert len({getattr(look, attribute) for look in looks}) == len(looks)


def test_unknown_mechanism_has_its_own_fixed_style() -> None:
    look = style.mechanism_style("mechanism-of-2030")
    assert look == style.mechanism_style("mechanism-of-2030")
    assert look.label == "mechanism-of-2030"
    known = style.MECHANISMS.values()
    assert look.marker not in {k.marker for k in known}
    assert look.color not in {k.color for k in known}
    assert style.in_order(["new", "mqm-exact", "dp", "new"]) == ["dp", "mqm-exact", "new"]
    assert "mechanism-of-2030" in texts(group_histograms(releases({"mechanism-of-2030": 0.1}), epsilon=1.0))


def test_names_are_replaced_as_whole_words() -> None:
    text = "mqm-exact < group-dp < dp: men_18_54, my-dp"
    assert style.display_names(text) == "MQMExact < GroupDP < DP: men 18–54, my-dp"
    assert style.data_label("anything else") == "anything else"
    assert style.state_label(">=10000 W") == "≥ 10000 W"
