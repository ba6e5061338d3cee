import re
import subprocess
import sys
import zlib
from functools import partial
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
from pufferflow.studies.histogram_study.figures import KINDS
from pufferflow.studies.histogram_study.figures import figure as histogram_study
from pufferflow.studies.histograms.printed import beside_printed
from pufferflow.studies.least_noise.figures import BOUNDS
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
    for figure in (
        group_histograms(table, epsilon=1.0, description="71 people"),
        power_histogram(table, description="71 people"),
    ):
        assert "Bundled real data: 71 people." in texts(figure)


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
    above = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in above] == ["men 18–54", "women 55+", "women 18–54, BMI ≥ 25", "others"]
    assert len({axes.get_ylim() for axes in above}) == 1
    assert len(figure.axes) == 8
    assert len({axes.get_ylim() for axes in figure.axes if axes not in above}) == 1


def test_distances_tell_mechanisms_apart_that_lie_over_each_other() -> None:
    """Every distance is drawn at its value; those of less noise lie in a part of the axis of their own."""
    table = releases({"dp": 0.2, "mqm-approx": 0.002, "mqm-exact": 0.0005})
    distances = group_histograms(table, epsilon=1.0).axes[-1]
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in distances.lines[1:]])
    assert drawn == pytest.approx((table["released_frequency"] - table["exact_frequency"]).to_numpy())
    bottom, top = distances.get_ylim()
    assert bottom < drawn.min() < drawn.max() < top
    heights = [float(distances.transData.transform((0.0, y))[1]) for y in (0.0, 0.0005, 0.002, 0.2)]
    assert np.diff(heights).min() > 0.05 * distances.bbox.height


def test_power_histogram_draws_every_epsilon_and_negative_values() -> None:
    noise = {"group-dp": 5.0, "mqm-exact": 0.001}
    table = pd.concat([releases(noise, epsilon) for epsilon in (0.2, 1.0, 5.0)])
    figure = power_histogram(table)
    panels = np.reshape(np.array(figure.axes, dtype=object), (2, 3))
    assert [[axes.get_title("left").partition(":")[0] for axes in row] for row in panels] == [
        [f"{label}, ε = {epsilon}" for epsilon in ("0.2", "1", "5")] for label in ("GroupDP", "MQMExact")
    ]
    for row in panels:
        assert len({axes.get_ylim() for axes in row}) == 1
    shown = panels[0, 0].get_ylim()
    loud = table.loc[table["mechanism"] == "group-dp", "released_frequency"]
    assert shown[0] < loud.min() < 0 < loud.max() < shown[1]
    first = np.asarray(panels[0, 0].lines[0].get_ydata(), dtype=float)
    expected = table[(table["mechanism"] == "group-dp") & (table["epsilon"] == 0.2) & (table["release"] == 1)]
    assert first == pytest.approx(expected["released_frequency"].to_numpy())
    labels = [text.get_text() for text in panels[0, 0].get_yticklabels()]
    assert "0" in labels
    assert any(label.startswith("−") for label in labels)


def test_bins_of_power_have_one_label_for_the_axis() -> None:
    table = releases({"mqm-exact": 0.001})
    watts = dict(zip(table["state"].unique(), ("0-200 W", "200-400 W", ">=400 W"), strict=True))
    axes = power_histogram(table.assign(state=table["state"].map(watts))).axes[0]
    assert axes.get_xlabel() == "power (W), lower edge of a bin"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "200", "400"]


def test_power_histogram_is_of_one_group_and_bears_empty_bins() -> None:
    table = releases({"mqm-exact": 0.001})
    empty = table["exact_frequency"].mask(table["state"] == "active", 0.0)
    axes = power_histogram(table.assign(exact_frequency=empty)).axes[0]
    heights, *_ = axes.patches[0].get_data()
    assert [height > 0 for height in heights] == [False, True, True]
    with pytest.raises(ParameterError, match="select one"):
        power_histogram(releases({"dp": 1.0}, groups=("a", "b")))


def test_missing_rows_are_reported() -> None:
    table = releases({"dp": 0.1})
    with pytest.raises(ParameterError, match="epsilon = 2 is not in the table; it has 1"):
        group_histograms(table, epsilon=2.0)
    for draw in (partial(group_histograms, epsilon=1.0), power_histogram):
        with pytest.raises(DataError, match="no row"):
            draw(table.iloc[:0])


# -- the paper's errors beside ours --------------------------------------------------------------------


def errors(epsilon: float = 1.0, groups: tuple[str, ...] = ("men_18_54", "older_women_55plus")) -> pd.DataFrame:
    rows = []
    for group in groups:
        for task in ("aggregate", "individual"):
            for mechanism, error in (("gk16", None), ("mqm-approx", 0.02), ("mqm-exact", 0.01)):
                row = {"dataset": "activity", "label": "bundled", "group": group, "task": task, "epsilon": epsilon}
                rows.append(row | {"mechanism": mechanism, "expected_error": error})
    return pd.DataFrame(rows)


def test_printed_errors_stand_beside_ours() -> None:
    figure = beside_printed(errors(), columns=2, epsilon=1.0)
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == [
        f"{group}, {task}" for task in ("aggregate", "individual") for group in ("men 18–54", "women 55+")
    ]
    axes = figure.axes[0]
    written = [text.get_text() for text in axes.texts]
    assert written == ["N/A", "N/A", "0.0107", "0.0200", "0.0074", "0.0100", "printed", "here"]
    marks = {float(np.asarray(line.get_xdata())[0]) for line in axes.lines if line.get_marker() not in ("None", None)}
    assert marks == {0.0107, 0.02, 0.0074, 0.01}
    assert len({axes.get_xlim() for axes in figure.axes}) == 1


def test_errors_of_which_none_is_printed_are_drawn_alone() -> None:
    table = pd.concat([errors(2.0, ("young",)), errors(3.0, ("young",))])
    figure = beside_printed(table, columns=2, epsilon=3.0)
    assert [axes.get_title("left") for axes in figure.axes] == ["aggregate, ε = 3", "individual, ε = 3"]
    assert [text.get_text() for text in figure.axes[0].texts][2:4] == ["–", "0.0200"]


def test_a_panel_where_no_mechanism_applies_says_so() -> None:
    table = errors(2.0, ("young",))
    figure = beside_printed(table[table["mechanism"] == "gk16"], columns=2, epsilon=2.0)
    assert [text.get_text() for text in figure.axes[0].texts] == ["–", "N/A", "printed", "here"]


def test_text_of_a_drawing_is_text_with_fonts_to_fall_back_on(tmp_path: Path, only_svg: None) -> None:
    svg = style.save_figure(beside_printed(errors(), columns=2, epsilon=1.0), tmp_path / "f")[0].read_text("utf-8")
    assert ">0.0107</text>" in svg
    families = set(re.findall(r"font-family: ([^;\"]+)", svg))
    assert families == {style.SVG_FONTS}
    assert style.SVG_FONTS.endswith("sans-serif")


def test_files_are_the_same_on_every_run(tmp_path: Path, limits: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(style.RC, "savefig.dpi", 30)
    errors = synthetic_errors([0.2, 1.0], [0.2, 0.35])
    runs = [style.save_figure(synthetic_error(errors, limits), tmp_path / f"run.{i}") for i in (1, 2)]
    assert [path.name for path in runs[0]] == ["run.1.svg", "run.1.pdf", "run.1.png"]
    for one, two in zip(*runs, strict=True):
        content = one.read_bytes()
        assert content == two.read_bytes()
        assert not re.search(rb"CreationDate|Creator|Producer|dc:date|Software|20\d\d-\d\d-\d\d", content)
    packed = re.findall(rb"FlateDecode[^>]*>>\s*stream\n(.*?)\nendstream", runs[0][1].read_bytes(), re.DOTALL)
    fonts = [stream for stream in map(zlib.decompress, packed) if b"glyf" in stream]
    assert fonts  # with shapes, and no rules of setting text
    assert not any(re.search(b"GDEF|GPOS|GSUB|MATH|kern", stream[:400]) for stream in fonts)


def test_user_settings_neither_matter_nor_change(tmp_path: Path, only_svg: None) -> None:
    table = releases({"dp": 0.1})
    first = style.save_figure(group_histograms(table, epsilon=1.0), tmp_path / "first")[0].read_bytes()
    with mpl.rc_context({"font.size": 20, "svg.fonttype": "path", "axes.grid": False}):
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


def test_a_mechanism_looks_the_same_in_all_figures_and_what_is_none_otherwise() -> None:
    for bound, mechanism in (("quilts", "mqm-exact"), ("leakage", "leakage")):
        assert (BOUNDS[bound].color, BOUNDS[bound].dashes) == (
            style.MECHANISMS[mechanism].color,
            style.MECHANISMS[mechanism].dashes,
        )
    looks = style.MECHANISMS.values()
    others = {BOUNDS["theorem_4_4"].color, *(color for color, _ in KINDS.values())}
    assert not others & {look.color for look in looks}
    assert not {marker for _, marker in KINDS.values()} & {look.marker for look in looks}


def test_chains_at_0_are_counted_instead_of_drawn_over_each_other() -> None:
    losses = {"dense": [1.0, 1.0, 1.002], "sticky": [1.0, 1.0, 1.0]}
    rows = [("random chains", kind, 1.0, loss, 8, 1.0) for kind, own in losses.items() for loss in own]
    rows.append(("two regimes", "", 1.0, 2.0, 16, 2.1))
    columns = ["panel", "kind", "epsilon", "loss_over_tail", "length", "limit"]
    drawn = histogram_study(pd.DataFrame(rows, columns=columns))
    assert [text.get_text() for text in drawn.axes[0].texts] == ["2", "3"]
    heights = sorted(float(y) for line in drawn.axes[0].lines for y in np.asarray(line.get_ydata(), dtype=float))
    assert heights == pytest.approx([0, 0, 0.2])
    assert "of 3 of a kind" in " ".join(drawn.get_supxlabel().split())


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
