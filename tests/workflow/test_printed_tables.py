"""The printed tables of the paper, and how tables and their numbers are printed."""

import csv
from pathlib import Path

import pandas as pd
import pytest
from script_runs import run_script

from pufferflow.errors import DataError
from reproduction import tables, tidy
from reproduction.paper_tables import error_table, seconds_table
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


@pytest.fixture
def seconds():
    rows = [
        ("synthetic", "synthetic", "mean over 31 alpha", "gk16", "ok", 8, 0.01),
        ("synthetic", "synthetic", "mean over 31 alpha", "mqm-exact", "ok", 31, 0.01),
        ("activity", "bundled", "men_18_54", "gk16", "not applicable", 0, 0.1),
        ("activity", "bundled", "men_18_54", "mqm-approx", "ok", 31, 0.0032),
        ("activity", "bundled", "men_18_54", "mqm-exact", "ok", 31, 0.015186),
    ]
    columns = ["dataset", "label", "group", "mechanism", "status", "applicable", "median_seconds"]
    same = {"least_seconds": 0.001, "most_seconds": 0.2, "families": 31, "repeats": 3}
    same |= {"epsilon": 1.0, "machine": "x86_64"}
    return tidy.frame([dict(zip(columns, row, strict=True)) | same for row in rows], "timings")


def test_printed_tables_are_these(errors, seconds):
    """Published numbers below ours, groups with both names, ratios of seconds, names once."""
    levels = pd.MultiIndex.from_tuples([("ε", ""), ("mechanism", ""), ("men", "a"), ("men", "b")])
    some = [["1", "X", "c", "c"], ["1", "Y", "c", "c"]]
    some += [["2", "Y", "d", "a long text that is broken"]]
    two = pd.DataFrame(some, columns=levels)
    made = [error_table(errors[errors["epsilon"] == 1], "errors_activity_bundled")]
    made += [seconds_table(seconds), Table("x", "Two levels.", "none", errors, two, headers=2)]
    printed = "\n".join(text for table in made for text in (table.markdown(), table.latex()))
    assert printed == Path(__file__).with_name("golden").joinpath("printed_tables.txt").read_text(
        "utf-8"
    )


def test_empty_table_is_refused(errors):
    with pytest.raises(DataError, match="table x has no row"):
        Table("x", "", "", errors.iloc[:0], errors.iloc[:0])


# -- tables of any content -------------------------------------------------------------------------


def one_column(*cells, name="name", **options):
    table = pd.DataFrame({name: cells})
    return Table("x", "What it shows.", "none", table, table, **{"headers": 0} | options)


def test_numbers():
    for printed, expected in {
        tables.significant: {
            0.0123456: "0.01235",
            9.9996: "10.00",
            123456.7: "123457",
            -float("inf"): "−∞",
            pd.NA: "–",
        },
        tables.shortest: {
            0.2: "0.2",
            13.0219235: "13.0219",
            1.5e-7: "1.50000×10⁻⁷",
            "12.0": "12",
            "": "–",
        },
        tables.decimals: {
            0.0107: "0.0107",
            2e-6: "2.0×10⁻⁶",
            0.00015: "0.00015",
            0.0: "0.0000",
            NAN: "N/A",
        },
        tables.yes_no: {True: "yes", False: "no", None: "–"},
        tables.count: {1051200.0: "1,051,200", 0: "0", pd.NA: "–"},
    }.items():
        assert {value: printed(value) for value in expected} == expected
    pairs = {
        (0.0085712, 0.00015): "0.00857 ± 0.00015",
        (51753.0, 760.0): "51753 ± 760",
        (0.5, NAN): "0.5000",
    }
    assert {pair: tables.with_error(*pair) for pair in pairs} == pairs


def test_signs_are_shown_instead_of_obeyed():
    for text, expected in {
        "50 % of a_b & c#$": r"50 \% of a\_b \& c\#\$",
        "1.5×10⁻⁷ ± σ": r"1.5$\times$10$^{-}$$^{7}$ $\pm$ $\sigma$",
        "{X1} ~ ^ \\": r"\{X1\} \textasciitilde{} \textasciicircum{} $\backslash$",
        "18–54, BMI ≥ 25, D∞(p‖q), ∅": r"18--54, BMI $\geq$ 25, D$\infty$(p$\|$q), $\emptyset$",
        "P(N=1 | X=0) < θ̃ − ½": r"P(N=1 $\mid$ X=0) $<$ $\theta$$^\sim$ $-$ $\frac12$",
    }.items():
        tex = one_column(text, name=text, note=text).latex()
        assert tex.count(expected) == 3
        assert tex.isascii()
    table = one_column("a|b *c* `d` [e](f) <g>", name="h|i", note="<j> & *k*")
    for text in (r"a\|b \*c\* \`d\` \[e\](f) \<g>", r"h\|i", r"\<j> & \*k\*"):
        assert text in table.markdown()
    assert "[e](f) &lt;g&gt;" in table.html()


def test_a_tidy_table_is_read_as_it_was_written(tmp_path):
    for stage, schema in tidy.SCHEMAS.items():
        numbers = {name: 1 for name, kind in schema.items() if kind != tidy.TEXT}
        for rows in ([], [numbers or {"key": "021067"}]):
            table = tidy.frame(rows, stage)
            assert table.dtypes.map(str).to_dict() == schema
            tidy.write(table, tmp_path / "table.csv", stage)
            pd.testing.assert_frame_equal(tidy.read(tmp_path / "table.csv", stage), table)
