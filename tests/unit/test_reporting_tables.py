import csv
import io
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pufferflow.errors import DataError, ParameterError
from pufferflow.reporting import tables
from pufferflow.reporting.tables import Table, formats, rendering
from pufferflow.studies.activity.tables import table1
from pufferflow.studies.electricity.tables import table3
from pufferflow.studies.real_data.tables import chain_properties
from pufferflow.studies.synthetic import measure as synthetic
from pufferflow.studies.timings.measure import timings
from pufferflow.studies.timings.tables import ratios, table2

NAN = float("nan")


def error_row(group: str, task: str, mechanism: str, epsilon: float, expected: float | None) -> dict[str, Any]:
    return {
        "dataset": "activity",
        "label": "bundled",
        "group": group,
        "task": task,
        "mechanism": mechanism,
        "epsilon": epsilon,
        "status": "not applicable" if expected is None else "ok",
        "reason": "",
        "participants": 1,
        "expected_error": NAN if expected is None else expected,
        "mean_error": NAN if expected is None else 1.01 * expected,
        "standard_error": NAN if expected is None else 0.0123 * expected,
        "repetitions": 100,
    }


@pytest.fixture
def errors() -> pd.DataFrame:
    rows = []
    for epsilon in (0.2, 1.0):
        for group in ("men_18_54", "raw_group"):
            rows.append(error_row(group, "aggregate", "dp", epsilon, 0.123456789012345 / epsilon))
            for task in ("aggregate", "individual"):
                rows.append(error_row(group, task, "mqm-exact", epsilon, 0.02 / epsilon))
                rows.append(error_row(group, task, "gk16", epsilon, None))
    return pd.DataFrame(rows)


@pytest.fixture
def reported() -> pd.DataFrame:
    columns = ["key", "place", "claim", "dataset", "group", "task", "mechanism", "epsilon", "value", "note"]
    return pd.DataFrame(
        [
            ("a", "Table 1", "", "activity", "men_18_54", "aggregate", "mqm-exact", "1", "0.0074", ""),
            ("b", "Table 1", "", "activity", "men_18_54", "aggregate", "gk16", "1", "N/A", ""),
            ("c", "Table 1", "", "activity", "men_18_54", "individual", "dp", "1", "", ""),
            ("d", "Table 2", "", "activity", "men_18_54", "seconds", "mqm-exact", "1", "1.5186", ""),
            ("e", "Table 2", "", "activity", "men_18_54", "seconds", "gk16", "1", "N/A", ""),
            ("g", "Table 2", "", "activity", "men_18_54", "seconds", "mqm-approx", "1", "0.0064", ""),
            ("f", "Table 3", "", "activity", "men_18_54", "aggregate", "mqm-exact", "0.2", "0.0370", ""),
            ("flu/0/0", "Section 3", "", "worked", "", "", "", "", "0.2", ""),
        ],
        columns=columns,
    )


def cells(markdown: str) -> list[list[str]]:
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[:1] + lines[2:]]


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (0.0123456, 4, "0.01235"),
        (-1.5e-7, 2, "−1.5×10⁻⁷"),
        (9.9996, 4, "10.00"),
        (1051200.0, 3, "1.05×10⁶"),
        (0, 4, "0"),
        (float("inf"), 4, "∞"),
        (NAN, 4, "–"),
        (None, 4, "–"),
        ("X8", 4, "X8"),
        ("N/A", 4, "N/A"),
    ],
)
def test_significant(value: Any, digits: int, expected: str) -> None:
    assert formats.significant(value, digits) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0107, "0.0107"),
        (516.15551, "516.1555"),
        (0.00015, "0.00015"),
        (2e-6, "2.0×10⁻⁶"),
        (0, "0.0000"),
        (NAN, "N/A"),
    ],
)
def test_errors_have_four_decimals(value: float, expected: str) -> None:
    assert formats.decimals(value) == expected


@pytest.mark.parametrize(
    ("mean", "standard_error", "expected"),
    [
        (0.0085712, 0.00015, "0.00857 ± 0.00015"),
        (517.53, 7.6, "517.5 ± 7.6"),
        (51753.0, 760.0, "51753 ± 760"),
        (0.5, NAN, "0.5000"),
        (NAN, NAN, "N/A"),
    ],
)
def test_mean_and_standard_error(mean: float, standard_error: float, expected: str) -> None:
    assert formats.with_error(mean, standard_error) == expected


def test_shortest_keeps_whole_numbers() -> None:
    assert [formats.shortest(v) for v in (0.2, 100.0, 13.0219235, 1.5e-7, "12.0")] == [
        "0.2",
        "100",
        "13.0219",
        "1.5×10⁻⁷",
        "12",
    ]


def test_table1_has_a_block_an_epsilon(errors: pd.DataFrame) -> None:
    rows = cells(tables.render(table1(errors))["md"])
    assert rows[0] == [
        "ε",
        "mechanism",
        "value",
        "men 18–54, aggregate",
        "men 18–54, individual",
        "raw_group, aggregate",
        "raw_group, individual",
    ]
    assert [row[0] for row in rows[1:]] == ["0.2", "", "", "", "", "1", "", "", "", ""]
    assert [row[1] for row in rows[1:6]] == ["DP", "", "GK16", "MQMExact", ""]
    assert rows[1][3:] == ["0.6173", "–", "0.6173", "–"]
    assert rows[2][3] == "0.6235 ± 0.0076"
    assert rows[3][3:] == ["N/A"] * 4


def test_table1_of_one_epsilon_with_published_values(errors: pd.DataFrame, reported: pd.DataFrame) -> None:
    table = table1(errors[errors["epsilon"] == 1], reported)
    rows = cells(tables.render(table)["md"])
    assert rows[0][:2] == ["mechanism", "value"]
    published = {row[0]: row[2:] for row in table.display.astype(str).to_numpy().tolist() if row[1] == "published"}
    assert published == {"GK16": ["N/A", "–", "–", "–"], "MQMExact": ["0.0074", "–", "–", "–"]}
    assert "at ε = 1" in table.caption
    assert "men 18–54 for cyclists" in table.note
    assert "raw_group for" not in table.note
    assert "cyclists" not in table1(errors[errors["epsilon"] == 0.2], reported).note


def test_csv_keeps_all_digits_and_the_label(errors: pd.DataFrame, reported: pd.DataFrame) -> None:
    text = tables.render(table1(errors, reported))["csv"]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(errors)
    assert rows[0]["label"] == "bundled"
    assert [float(row["expected_error"]) for row in rows if row["expected_error"]] == errors[
        "expected_error"
    ].dropna().to_list()
    assert {row["published"] for row in rows} == {"", "0.0074", "N/A"}


def test_table3(errors: pd.DataFrame, reported: pd.DataFrame) -> None:
    one = errors[(errors["group"] == "men_18_54") & (errors["task"] == "aggregate")]
    rows = cells(tables.render(table3(one, reported))["md"])
    assert rows[0] == ["mechanism", "value", "ε = 0.2", "ε = 1"]
    assert ["", "published", "0.0370", "–"] in rows
    with pytest.raises(ParameterError, match="several"):
        table3(errors)


def test_table2_compares_only_where_both_have_seconds(reported: pd.DataFrame) -> None:
    columns = ["dataset", "label", "group", "mechanism", "epsilon", "status", "families", "applicable"]
    columns += ["median_seconds", "least_seconds", "most_seconds", "repeats", "machine"]
    synthetic = ("synthetic", "synthetic", "mean over 31 alpha")
    measured = pd.DataFrame(
        [
            (*synthetic, "gk16", 1.0, "ok", 31, 8, 0.01, 0.009, 0.011, 3, "x86_64"),
            (*synthetic, "mqm-exact", 1.0, "ok", 31, 31, 0.01, 0.009, 0.011, 3, "x86_64"),
            ("activity", "bundled", "men_18_54", "gk16", 1.0, "not applicable", 1, 0, 0.1, 0.1, 0.1, 3, "x86_64"),
            ("activity", "bundled", "men_18_54", "mqm-approx", 1.0, "ok", 1, 1, 0.0032, 0.003, 0.004, 3, "x86_64"),
            ("activity", "bundled", "men_18_54", "mqm-exact", 1.0, "ok", 1, 1, 0.015186, 0.01, 0.02, 3, "x86_64"),
        ],
        columns=columns,
    )
    table = table2(measured, reported)
    assert cells(tables.render(table)["md"])[1:] == [
        ["synthetic, mean over 31 α", "GK16", "0.0100", "0.00900 – 0.0110", "–", "–"],
        ["", "MQMExact", "0.0100", "0.00900 – 0.0110", "–", "–"],
        ["activity, men 18–54", "GK16", "N/A", "N/A", "N/A", "–"],
        ["", "MQMApprox", "0.00320", "0.00300 – 0.00400", "0.0064", "2.0"],
        ["", "MQMExact", "0.0152", "0.0100 – 0.0200", "1.5186", "100"],
    ]
    assert "GK16: mean over the 8 it applies to." in table.note
    assert cells(tables.render(ratios(measured, reported))["md"])[1:] == [
        ["synthetic, mean over 31 α", "–", "–", "–", "–"],
        # 1.5186 / 0.0064 and 0.015186 / 0.0032
        ["activity, men 18–54", "237", "2.4", "4.7", "0.7"],
    ]
    assert "different machine" in table.column_names()[-1]
    assert table.data_label == "synthetic data; bundled real data (activity)"
    assert "published" not in table2(measured).column_names()


def test_synthetic_seconds_are_means_over_the_classes_a_mechanism_applies_to() -> None:
    alphas = {"start": 0.2, "stop": 0.4, "step": 0.1}
    table = timings([], [], alphas, 20, 1.0, ["gk16", "mqm-approx"], {}, 2).set_index("mechanism")
    assert set(table["group"]) == {"mean over 3 alpha"}
    assert table["families"].to_list() == [3, 3]
    assert table["applicable"].to_dict() == {"gk16": 1, "mqm-approx": 3}
    assert table["repeats"].to_list() == [2, 2]
    assert (table["least_seconds"] > 0).all()
    assert (table["least_seconds"] <= table["median_seconds"]).all()
    nowhere = timings([], [], alphas | {"stop": 0.3}, 20, 1.0, ["gk16"], {}, 1)
    assert nowhere["status"].to_list() == ["not applicable"]


def test_worked_examples(reported: pd.DataFrame) -> None:
    worked = pd.DataFrame(
        {
            "example": ["flu clique", "flu clique"],
            "quantity": ["P(N=0 | X=0)", "worst node of θ1"],
            "key": ["flu/0/0", "node"],
            "computed": ["0.19999999999999998", "X8"],
        }
    )
    table = tables.stated_values(worked, reported)
    rendered = tables.render(table)
    assert cells(rendered["md"])[1:] == [
        ["flu clique", "P(N=0 \\| X=0)", "0.2", "0.2"],
        ["", "worst node of θ1", "X8", "–"],
    ]
    assert "0.19999999999999998" in rendered["csv"]
    assert r"P(N=0 $\mid$ X=0)" in rendered["tex"]
    assert r"worst node of $\theta$1" in rendered["tex"]
    assert tables.stated_values(worked).column_names() == ["example", "quantity", "computed"]


def test_chain_properties_of_a_reducible_chain() -> None:
    chains = pd.DataFrame(
        [
            {
                "dataset": "activity",
                "label": "file",
                "group": "men_18_54",
                "participants": 26,
                "observations": 136622,
                "segments": 484,
                "longest_segment": 1252,
                "states": 4,
                "transitions": 136138,
                "smallest_stationary_probability": None,
                "irreducible": False,
                "period": None,
                "reversible": False,
                "eigengap_general": NAN,
            }
        ]
    )
    row = cells(tables.render(chain_properties(all=chains))["md"])[1]
    assert row == ["activity, men 18–54", "26", "136,622", "484", "1,252", "4", "–", "no", "–", "no", "–"]


def test_comparison_uses_display_names_and_words() -> None:
    columns = ["claim", "place", "reported", "ours", "standard_error", "difference", "tolerance", "verdict", "data"]
    frame = pd.DataFrame(
        [
            ("mqm-exact < dp: men_18_54", "Table 1", "falls", "falls", NAN, NAN, "", "reproduced", "synthetic"),
            ("σ", "Section 4", "13.0219", "13.0219", NAN, -2.8e-17, "± 5e-05", "reproduced", "activity, bundled"),
        ],
        columns=columns,
    ).assign(paper="Song, Wang and Chaudhuri 2017", kind="number", source="printed", reason="")
    header, *body = cells(tables.render(tables.comparison(frame))["md"])
    rows = [{}, *(dict(zip(header, row, strict=True)) for row in body)]
    assert rows[1]["claim"] == "MQMExact < DP: men 18–54"
    assert [rows[1][name] for name in ("standard error", "difference", "tolerance")] == ["–", "–", "–"]
    assert rows[2]["difference"] == "0"
    assert rows[2]["data"] == "activity, bundled real data"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50 % of a_b & c#$", r"50 \% of a\_b \& c\#\$"),
        ("1.5×10⁻⁷ ± σ", r"1.5$\times$10$^{-7}$ $\pm$ $\sigma$"),
        ("{X1} ~ ^ \\", r"\{X1\} \textasciitilde{} \textasciicircum{} \textbackslash{}"),
        ("18–54, BMI ≥ 25, D∞(p‖q), ∅", r"18--54, BMI $\geq$ 25, D$\infty$(p$\|$q), $\emptyset$"),
    ],
)
def test_latex_is_escaped(text: str, expected: str) -> None:
    assert rendering.escape_latex(text) == expected


def test_latex_rows_fill_the_columns(errors: pd.DataFrame) -> None:
    tex = tables.render(table1(errors))["tex"]
    assert tex.isascii()
    assert r"raw\_group" in tex
    assert r"\multicolumn{2}{c}{men 18--54}" in tex
    assert r"\cmidrule(lr){4-5}\cmidrule(lr){6-7}" in tex
    body = tex[tex.index(r"\midrule") : tex.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert {row.count("&") for row in rows} == {6}
    spec = re.search(r"\\begin\{tabular\}\{(\w+)\}", tex)
    assert spec is not None
    assert spec[1] == "rllrrrr"


def test_long_latex_table_runs_over_pages_and_breaks_long_texts() -> None:
    rows = rendering.PAGE_ROWS + 1
    worked = pd.DataFrame({"example": "e", "quantity": "q" * 50, "key": "k", "computed": [1.0] * rows})
    tex = tables.render(tables.stated_values(worked))["tex"]
    assert tex.count(r"\begin{longtable}") == tex.count(r"\end{longtable}") == 1
    assert r"\begin{tabular}" not in tex
    assert r"l>{\raggedright\arraybackslash}p{3cm}r" in tex
    assert tex.count("example & quantity & computed") == 2


def test_files_are_the_same_on_every_run(tmp_path: Path, errors: pd.DataFrame) -> None:
    runs = [tables.save_table(table1(errors), tmp_path / f"table1.{i}") for i in (1, 2)]
    assert [path.name for path in runs[0]] == ["table1.1.csv", "table1.1.md", "table1.1.tex", "table1.1.json"]
    for one, two in zip(*runs, strict=True):
        assert one.read_bytes() == two.read_bytes()
        assert "bundled" in one.read_text()


def test_empty_table_is_refused(errors: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="table x has no row"):
        Table("x", "", "", errors.iloc[:0], errors.iloc[:0])


def test_real_errors_of_an_experiment_make_table3() -> None:
    scales = synthetic.scales([0.2, 1.0], [0.2], 20, ["gk16", "mqm-exact"], {})
    errors = synthetic.errors(scales, repetitions=20, seed=1).assign(group="class", task="mean")
    rows = cells(tables.render(table3(errors))["md"])
    assert rows[1] == ["GK16", "expected", "N/A", "N/A"]
    assert rows[2][2] == f"{errors['expected_error'].dropna().iloc[0]:.4f}"


def test_a_printed_table_is_read_back(errors: pd.DataFrame, reported: pd.DataFrame) -> None:
    electricity = errors.query("group == 'raw_group' and task == 'aggregate' and mechanism != 'dp'")
    for table in (table1(errors, reported), table3(electricity)):
        again = Table.from_json(table.to_json())
        for name in ("name", "caption", "data_label", "headers", "note", "legend"):
            assert getattr(again, name) == getattr(table, name)
        assert again.rows() == table.rows()
        assert again.column_levels() == table.column_levels()
        assert again.numeric() == table.numeric()
