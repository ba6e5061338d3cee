"""How tables of any content are printed: numbers, escaping, columns, long tables."""

import pandas as pd
import pytest

from reproduction import tables, tidy
from reproduction.tables import Table

NAN = float("nan")


def one_column(*cells, name="name", **options):
    table = pd.DataFrame({name: cells})
    return Table("x", "What it shows.", "none", table, table, **{"headers": 0} | options)


def test_numbers():
    for printed, expected in {
        tables.significant: {9.9996: "10.00", 123456.7: "123457", -float("inf"): "−∞", -2: "−2.000", pd.NA: "–"},
        tables.shortest: {0.2: "0.2", 100.0: "100", 13.0219235: "13.0219", 1.5e-7: "1.50000×10⁻⁷", "": "–"},
        tables.decimals: {0.0107: "0.0107", 2e-6: "2.0×10⁻⁶", 0.0: "0.0000", NAN: "N/A", 0.0005: "0.0005"},
        tables.yes_no: {True: "yes", False: "no", None: "–"},
        tables.count: {1051200.0: "1,051,200", 0: "0", pd.NA: "–"},
    }.items():
        assert {value: printed(value) for value in expected} == expected
    assert [tables.with_error(0.5, 0.0), tables.with_error(None, None)] == ["0.5000", "N/A"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50 % of a_b & c#$", r"50 \% of a\_b \& c\#\$"),
        ("1.5×10⁻⁷ ± σ", r"1.5$\times$10$^{-}$$^{7}$ $\pm$ $\sigma$"),
        ("{X1} ~ ^ \\", r"\{X1\} \textasciitilde{} \textasciicircum{} $\backslash$"),
        ("18–54, BMI ≥ 25, D∞(p‖q), ∅", r"18--54, BMI $\geq$ 25, D$\infty$(p$\|$q), $\emptyset$"),
        ("P(N=1 | X=0) < θ̃ − ½", r"P(N=1 $\mid$ X=0) $<$ $\theta$$^\sim$ $-$ $\frac12$"),
    ],
)
def test_latex_is_escaped_in_cells_names_of_columns_and_captions(text, expected):
    tex = one_column(text, name=text, note=text).latex()
    assert tex.count(expected) == 3
    assert tex.isascii()


def test_markdown_and_html_show_signs_instead_of_obeying_them():
    table = one_column("a|b *c* `d` [e](f) <g>", name="h|i", note="<j> & *k*")
    for text in (r"a\|b \*c\* \`d\` \[e\](f) \<g>", r"h\|i", r"\<j> & \*k\*"):
        assert text in table.markdown()
    assert "[e](f) &lt;g&gt;" in table.html()


def test_rows_fill_the_columns_and_repeated_names_are_printed_once():
    levels = pd.MultiIndex.from_tuples([("ε", ""), ("mechanism", ""), ("men", "a"), ("men", "b")])
    cells = [["1", "X", "c", "c"], ["1", "Y", "c", "c"], ["2", "Y", "d", "a long text that is broken"]]
    display = pd.DataFrame(cells, columns=levels)
    table = Table("x", "", "none", display, display, headers=2)
    assert table.shown.iloc[:, :2].to_numpy().tolist() == [["1", "X"], ["", "Y"], ["2", "Y"]]
    assert "men, a" in table.markdown()
    tex = table.latex()
    assert r"\multicolumn{2}{c}{men}" in tex
    assert r"{lll>{\raggedright\arraybackslash}p{3cm}}" in tex
    body = tex[tex.index(r"\midrule") : tex.index(r"\bottomrule")]
    assert [line.count("&") for line in body.splitlines() if line.endswith(r"\\")] == [3, 3, 3]


def test_a_long_table_runs_over_pages():
    long, short = (one_column(*"a" * rows).latex() for rows in (tables.PAGE_ROWS + 1, tables.PAGE_ROWS))
    assert long.count(r"\begin{longtable}") == long.count(r"\end{longtable}") == 1
    assert r"\begin{table}" in short
    assert long.startswith(r"% needs \usepackage{array,booktabs,longtable}")


@pytest.mark.parametrize("stage", tidy.SCHEMAS)
def test_a_tidy_table_is_read_as_it_was_written(stage, tmp_path):
    numbers = {name: 1 for name, kind in tidy.SCHEMAS[stage].items() if kind != tidy.TEXT}
    for rows in ([], [numbers or {"key": "021067"}]):
        table = tidy.frame(rows, stage)
        assert table.dtypes.map(str).to_dict() == tidy.SCHEMAS[stage]
        tidy.write(table, tmp_path / "table.csv", stage)
        pd.testing.assert_frame_equal(tidy.read(tmp_path / "table.csv", stage), table)
