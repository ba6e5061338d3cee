"""The printed tables of the paper, and how tables and their numbers are printed."""

import csv
import re

import pandas as pd
import pytest
from script_runs import run_script

from pufferflow.errors import DataError
from reproduction import tables, tidy
from reproduction.paper_tables import chain_table, error_table, seconds_table
from reproduction.related.printed import values_table
from reproduction.tables import Table

NAN = float("nan")


def error_row(group, task, mechanism, epsilon, expected, dataset="activity"):
    row = {"dataset": dataset, "label": "bundled", "group": group, "task": task}
    row |= {"mechanism": mechanism, "epsilon": epsilon, "bins": 4, "repetitions": 100}
    if expected is None:
        return row | {"status": "not applicable"}
    means = {"mean_error": 1.01 * expected, "standard_error": 0.0123 * expected}
    return row | means | {"status": "ok", "expected_error": expected}


@pytest.fixture
def errors():
    rows = []
    for epsilon in (0.2, 1.0):
        for group in ("men_18_54", "raw_group"):
            whole = 0.123456789012345 / epsilon
            rows.append(error_row(group, "aggregate", "participant-dp", epsilon, whole))
            for task in ("aggregate", "individual"):
                rows.append(error_row(group, task, "mqm-exact", epsilon, 0.02 / epsilon))
                rows.append(error_row(group, task, "gk16", epsilon, None))
    return tidy.frame(rows, "errors")


def cells(table):
    lines = [line for line in table.markdown().splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", x)[1:-1]] for x in lines[:1] + lines[2:]]


def test_a_block_an_epsilon_and_a_column_a_histogram(errors):
    table = error_table(errors[errors["group"] == "raw_group"], "errors")
    rows = cells(table)
    assert rows[0] == ["ε", "mechanism", "value", "raw_group, aggregate", "raw_group, individual"]
    assert [row[0] for row in rows[1:]] == ["0.2", "", "", "", "", "1", "", "", "", ""]
    assert [row[1] for row in rows[1:6]] == ["DP", "", "GK16", "MQMExact", ""]
    assert rows[1][3:] == ["0.6173", "–"]
    assert rows[2][3:] == ["0.6235 ± 0.0076", "–"]
    assert rows[3][2:] == ["expected", "N/A", "N/A"]
    # nothing is published of such people
    assert "Published" not in table.note
    assert "published" not in {row[2] for row in rows}


def test_published_errors_stand_below_ours_and_groups_have_both_names(errors):
    table = error_table(errors[errors["epsilon"] == 1], "errors_activity_bundled")
    rows = cells(table)
    men = "cyclists (paper) · men 18–54 (here)"
    assert rows[0] == [
        *("mechanism", "value", f"{men}, aggregate", f"{men}, individual"),
        *("raw_group, aggregate", "raw_group, individual"),
    ]
    published = [row[2:] for row in rows if row[1] == "published"]
    assert published == [
        ["0.2918", "–", "–", "–"],
        ["N/A", "N/A", "–", "–"],
        ["0.0074", "0.4077", "–", "–"],
    ]
    assert "at ε = 1" in table.caption
    assert table.name == "errors_activity_bundled"


def test_of_one_histogram_every_epsilon_is_a_column():
    rows = [
        error_row("household", "individual", "mqm-exact", epsilon, 0.02 / epsilon, "electricity")
        for epsilon in (0.2, 1.0, 2.0)
    ]
    rows = cells(error_table(tidy.frame(rows, "errors"), "errors"))
    assert rows[0] == ["mechanism", "value", "ε = 0.2", "ε = 1", "ε = 2"]
    assert rows[1] == ["MQMExact", "expected", "0.1000", "0.0200", "0.0100"]
    # the paper has no ε = 2
    assert rows[3] == ["", "published", "0.1298", "0.0188", "–"]


def test_csv_keeps_all_digits_and_files_are_the_same_on_every_run(errors, tmp_path):
    given = tmp_path / "errors.csv"
    tidy.write(errors, given, "errors")
    written = []
    for run in ("a", "b"):
        made = {form: tmp_path / f"{run}.{form}" for form in ("csv", "md", "tex")}
        run_script("print_tables", {"errors": given}, made, table="errors_activity_bundled")
        written.append([path.read_text("utf-8") for path in made.values()])
    assert written[0] == written[1]
    rows = list(csv.DictReader(written[0][0].splitlines()))
    assert {row["label"] for row in rows} == {"bundled"}
    shown = [float(row["expected_error"]) for row in rows if row["expected_error"]]
    assert shown == errors["expected_error"].dropna().to_list()
    assert {row["published"] for row in rows} == {"", "0.2918", "0.0074", "0.4077", "N/A"}


def test_seconds_are_compared_where_both_have_them():
    columns = ["dataset", "label", "group", "mechanism", "status", "applicable", "median_seconds"]
    rows = [
        ("synthetic", "synthetic", "mean over 31 alpha", "gk16", "ok", 8, 0.01),
        ("synthetic", "synthetic", "mean over 31 alpha", "mqm-exact", "ok", 31, 0.01),
        ("activity", "bundled", "men_18_54", "gk16", "not applicable", 0, 0.1),
        ("activity", "bundled", "men_18_54", "mqm-approx", "ok", 31, 0.0032),
        ("activity", "bundled", "men_18_54", "mqm-exact", "ok", 31, 0.015186),
    ]
    measured = [
        dict(zip(columns, row, strict=True))
        | {"least_seconds": 0.001, "most_seconds": 0.2, "families": 31, "repeats": 3}
        | {"epsilon": 1.0, "machine": "x86_64"}
        for row in rows
    ]
    table = seconds_table(tidy.frame(measured, "timings"))
    limits = "0.00100 – 0.200"
    assert cells(table)[1:] == [
        ["synthetic, mean over 31 α", "GK16", "0.0100", limits, "–", "–", "–"],
        ["", "MQMExact", "0.0100", limits, "–", "–", "–"],
        ["activity, cyclists (paper) · men 18–54 (here)", "GK16", "N/A", "N/A", "–", "N/A", "–"],
        ["", "MQMApprox", "0.00320", limits, "1.0", "0.0064", "1.0"],
        # 0.015186 / 0.0032 and 1.5186 / 0.0064
        ["", "MQMExact", "0.0152", limits, "4.7", "1.5186", "237"],
    ]
    assert "GK16: mean over the 8 it applies to." in table.note
    assert table.label == "synthetic data; bundled real data (activity)"


def test_examples_beside_what_the_paper_states():
    rows = [
        ("flu clique", "P(N=1 | X=0)", "flu/0/1", "0.22499999999999998"),
        ("flu clique", "worst node of θ1", "running/θ1/published/node", "X8"),
        ("flu clique", "something of ours", "none", 12.0),
    ]
    values = [dict(zip(tidy.SCHEMAS["values"], row, strict=True)) for row in rows]
    table = values_table(tidy.frame(values, "values"), "pufferfish")
    assert cells(table)[1:] == [
        ["flu clique", "P(N=1 \\| X=0)", "0.225", "0.225"],
        ["", "worst node of θ1", "X8", "X8"],
        ["", "something of ours", "12", "–"],
    ]
    assert r"worst node of $\theta$1" in table.latex()


def test_properties_of_a_reducible_chain():
    row = {"dataset": "activity", "label": "file", "group": "men_18_54", "participants": 26}
    row |= {"observations": 136622, "segments": 484, "longest_segment": 1252, "states": 4}
    row |= {"irreducible": False, "reversible": False}
    shown = cells(chain_table(tidy.frame([row], "chains")))[1]
    assert shown[:3] == ["activity, men 18–54", "26", "136,622"]
    assert shown[3:] == ["484", "1,252", "4", "–", "no", "–", "no", "–"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (tables.significant(0.0123456), "0.01235"),
        (tables.significant(-1.5e-7, 2), "−1.5×10⁻⁷"),
        (tables.significant(9.9996), "10.00"),
        (tables.significant(1051200.0, 3), "1.05×10⁶"),
        (tables.significant(float("inf")), "∞"),
        (tables.significant(NAN), "–"),
        (tables.significant("X8"), "X8"),
        (tables.shortest(13.0219235), "13.0219"),
        (tables.shortest("12.0"), "12"),
        (tables.decimals(516.15551), "516.1555"),
        (tables.decimals(0.00015), "0.00015"),
        (tables.decimals(NAN), "N/A"),
        (tables.with_error(0.0085712, 0.00015), "0.00857 ± 0.00015"),
        (tables.with_error(51753.0, 760.0), "51753 ± 760"),
        (tables.with_error(0.5, NAN), "0.5000"),
    ],
)
def test_numbers_are_printed(shown, expected):
    assert shown == expected


def test_latex(errors):
    tex = error_table(errors, "errors").latex()
    assert tex.isascii()
    assert r"raw\_group" in tex
    body = tex[tex.index(r"\midrule") : tex.index(r"\bottomrule")]
    assert {line.count("&") for line in body.splitlines() if line.endswith(r"\\")} == {6}
    rows = tables.PAGE_ROWS + 1
    long = pd.DataFrame({"name": ["50 % of a_b & c#$ ~ ^ {X1} ± ∅"] * rows})
    tex = Table("long", "Many.", "none", long, long, headers=0).latex()
    assert tex.count(r"\begin{longtable}") == tex.count(r"\end{longtable}") == 1
    assert r"50 \% of a\_b \& c\#\$ \textasciitilde" in tex
    assert r"\{X1\} $\pm$ $\emptyset$" in tex


def test_empty_table_is_refused(errors):
    with pytest.raises(DataError, match="table x has no row"):
        Table("x", "", "", errors.iloc[:0], errors.iloc[:0])
