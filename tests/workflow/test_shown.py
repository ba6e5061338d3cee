"""Tables and figures of a complete run: the same from the same numbers, and what they show."""

import numpy as np
import pandas as pd
import pytest

from pufferflow.drawing import style
from pufferflow.errors import DataError
from reproduction import histogram_figures, paper_figures, tables, tidy
from reproduction.paper_tables import seconds_table
from reproduction.related.figures import FIGURES
from reproduction.tables import Table

NAN = float("nan")
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


def test_what_does_not_apply_leaves_a_gap_and_the_limit_is_marked(finished):
    errors = tidy.read(finished.made / "errors/synthetic.csv", "errors")
    limits = tidy.read(finished.made / "examples/gk16_limits.csv", "gk16_limits")
    figure = paper_figures.synthetic_errors(errors, limits)
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[0].lines]
    (gaps,) = {tuple(np.isnan(y)) for y in lines if np.isnan(y).any()}
    assert gaps == (True,) * 23 + (False,) * 8  # α from .33 on
    left = paper_figures.synthetic_errors(errors[errors["alpha"] < 0.3], limits)
    whole, part = (
        "; ".join(text.get_text() for text in drawn.legends[0].get_texts())
        for drawn in (figure, left)
    )
    assert "right of α = 0.32" in whole
    assert "no better than\na constant guess" in whole
    assert "GK16 (not applicable)" in part
    assert "right of" not in part


def test_an_empty_table_is_refused():
    draws = {histogram_figures.histograms: "releases", paper_figures.growth: "growth"}
    draws |= {histogram_figures.errors_beside_printed: "errors", paper_figures.quilts: "quilts"}
    draws |= dict.fromkeys(FIGURES.values(), "related")
    draws[lambda table: Table("x", "", "", table, table)] = "values"
    for draw, stage in draws.items():
        with pytest.raises(DataError, match="no row"):
            draw(tidy.frame([], stage))


# -- tables of any content -------------------------------------------------------------------------


def test_numbers():
    """Others are in the stored tables."""
    given = (9.9996, 123456.7, 1.5e-7, -np.inf, pd.NA, "", "x")
    shown = ["10.00", "123457", "1.500×10⁻⁷", "−∞", "–", "–", "x"]
    assert list(map(tables.significant, given)) == shown
    assert [tables.decimals(x) for x in (0.0, 2e-6, NAN)] == ["0.0000", "2.0×10⁻⁶", "N/A"]
    assert tables.with_error(51753.0, 760.0) == "51753 ± 760"


def test_signs_are_shown_instead_of_obeyed():
    def one_column(cell, name, note):
        table = pd.DataFrame({name: [cell]})
        return Table("x", "What it shows.", "none", table, table, 0, note)

    for text, expected in {
        "50 % of a_b & c#$": r"50 \% of a\_b \& c\#\$",
        "1.5×10⁻⁷ ± σ": r"1.5$\times$10$^{-}$$^{7}$ $\pm$ $\sigma$",
        "{X1} ~ ^ \\": r"\{X1\} \textasciitilde{} \textasciicircum{} $\backslash$",
        "18–54, BMI ≥ 25, D∞(p‖q), ∅": r"18--54, BMI $\geq$ 25, D$\infty$(p$\|$q), $\emptyset$",
        "P(N=1 | X=0) < θ̃ − ½": r"P(N=1 $\mid$ X=0) $<$ $\theta$$^\sim$ $-$ $\frac12$",
    }.items():
        tex = one_column(text, text, text).latex()
        assert tex.count(expected) == 3
        assert tex.isascii()
    table = one_column("a|b *c* `d` [e](f) <g>", "h|i", "<j> & *k*")
    for text in (r"a\|b \*c\* \`d\` \[e\](f) \<g>", r"h\|i", r"\<j> & \*k\*"):
        assert text in table.markdown()
    assert "[e](f) &lt;g&gt;" in table.html()


def test_a_tidy_table_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "table.csv"
    for stage, schema in tidy.SCHEMAS.items():
        numbers = {name: 1 for name, kind in schema.items() if kind != tidy.TEXT}
        for rows in ([], [numbers or {"key": "021067"}]):
            table = tidy.frame(rows, stage)
            assert table.dtypes.map(str).to_dict() == schema
            tidy.write(table, path, stage)
            pd.testing.assert_frame_equal(tidy.read(path, stage), table)
