"""What docs/artifact.md tells an evaluator to expect is what a run says."""

import re
from itertools import takewhile
from pathlib import Path

import pandas as pd
import pytest

import pufferflow as pf
from reproduction.comparison import VERDICTS

pytestmark = pytest.mark.xdist_group("workflow")  # they share one complete run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/artifact.md").read_text(encoding="utf-8")
BY_OTHER_TESTS = {
    5: "tests/workflow/test_beyond.py and the comparison with docs/least_noise.md",
    6: "tests/docs/test_examples.py runs the commands",
    7: "tests/docs/test_examples.py runs the tutorial",
    8: "tests/workflow/test_workflow.py edits a grid",
    10: "a benchmark",
    11: "tests/workflow/test_comparison.py",
    12: "this suite",
}


def table(head):
    """Rows of the table of the page that begins with a column."""
    lines = PAGE[PAGE.index(f"| {head} |") :].splitlines()[2:]
    rows = takewhile(bool, lines)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.fixture(scope="module")
def comparison(finished):
    names = ("comparison", "comparison_related")
    return pd.concat(
        [pd.read_csv(finished.folder / f"results/tables/{name}.csv") for name in names]
    )


def verdicts(comparison, place):
    of_place = comparison[comparison["place"].str.match(place)]
    assert len(of_place) > 0, place
    return of_place


def check_worked_examples(finished, comparison):
    worked = verdicts(comparison, r"Section (2|3, flu|4\.4)|Theorem 4\.4, composition")
    worked = worked[worked["origin"] == "restored"]
    assert len(worked) > 10
    assert set(worked["verdict"]) == {"restored"}


def check_figure_4(finished, comparison):
    assert len(verdicts(comparison, "Figure 4, upper row")) > 0
    assert list((finished.folder / "results/figures").glob("figure4_upper_synthetic.*"))
    # of the whole run, whose chains have 100 records; those here are shorter
    for alpha in (0.1, 0.32, 0.33, 0.4):
        family = pf.BinaryInterval(alpha, 1 - alpha)
        assert pf.mqm_exact(family, 100, 1.0).scale < pf.mqm_approx(family, 100, 1.0).scale
        assert (pf.gk16(family, 100, 1.0).scale is not None) == (alpha >= 0.33)


def check_tables_1_and_3(finished, comparison):
    rows = verdicts(comparison, "Table [13]$")
    order = rows[rows["claim"].str.startswith("MQMExact < MQMApprox < GroupDP")]
    assert len(order) > 2
    assert set(order["verdict"]) == {"same conclusion"}
    ours = rows[rows["verdict"] == "reproduced"]
    # which does not depend on the data
    assert ours["claim"].str.contains("GroupDP: household").all()


def check_table_2(finished, comparison):
    assert (finished.folder / "results/tables/table2.md").is_file()


def check_noisy_max(finished, comparison):
    row = comparison[
        comparison["claim"].str.contains("the factor is 2", regex=False)
        & (comparison["verdict"] == "differs")
    ]
    assert len(row) == 1
    assert "1/2" in row["reason"].item()


CHECKS = {
    1: check_worked_examples,
    2: check_figure_4,
    3: check_tables_1_and_3,
    4: check_table_2,
    9: check_noisy_max,
}


def test_every_claim_has_a_check():
    numbers = [int(re.match(r"\d+", row[0])[0]) for row in table("claim")]
    assert numbers == sorted({*CHECKS, *BY_OTHER_TESTS})


@pytest.mark.parametrize("number", CHECKS)
def test_what_is_expected(number, finished, comparison):
    CHECKS[number](finished, comparison)


def test_verdicts_are_explained(comparison):
    """The page repeats what the code says of each verdict."""
    assert {row[0]: row[1] for row in table("verdict")} == VERDICTS
    assert set(comparison["verdict"]) <= set(VERDICTS)


def test_commands_exist():
    targets = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    named = re.findall(r"`make ([a-z-]+)`", PAGE)
    assert {"reproduce", "test", "bench"} <= set(named) <= set(targets)
