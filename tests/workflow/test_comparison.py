"""The comparison with the paper: the shipped settings give the stored table, others no verdict."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain
from reproduction import comparison as verdicts
from reproduction import tidy
from reproduction.authors_code import authors_scales
from reproduction.claims import leading, paper_rows
from reproduction.comparison import comparison_table, reported_values

ROOT = Path(__file__).parents[2]
FIGURE_4 = "Figure 4, upper row"


@pytest.fixture(scope="module")
def made(finished):
    """The tables behind the comparison, of the finished run."""
    stages = {"values": "values", "gk16_limits": "limits", "growth": "growth"}
    found = {
        name: tidy.read(finished.made / f"examples/{stage}.csv", stage)
        for stage, name in stages.items()
    }
    found["synthetic"] = tidy.read(finished.made / "errors/synthetic.csv", "errors")
    found["authors"] = tidy.read(finished.made / "tables/authors_code.csv", "authors_code")
    for stage, kind in {"errors": "", "releases": "_releases"}.items():
        names = [f"errors/{name}_bundled{kind}.csv" for name in ("activity", "electricity")]
        found[stage] = tidy.read_all([finished.made / name for name in names], stage)
    return found


@pytest.fixture
def tables(made):
    """The same, to change at will."""
    return {name: table.copy() for name, table in made.items()}


def by_claim(tables):
    return {row.claim: row for row in paper_rows(tables)}


@pytest.fixture(scope="module")
def own(made):
    return by_claim(made)


@pytest.mark.parametrize("name", ["comparison", "comparison_related"])
def test_the_shipped_settings_give_the_stored_verdicts(finished, golden, name):
    """Claim by claim; an edit that changes one must say so here, and docs/artifact.md with it."""
    rows = list(csv.DictReader(io.StringIO(finished.text(f"tables/{name}.csv"))))
    line = "{place} | {claim} | {reported} | {ours} | {verdict}\n"
    golden(f"{name}.txt", "".join(line.format(**row) for row in rows))
    if name == "comparison_related":  # nothing that these sources report is left out
        systems = ("noisy_max", "base2_exponential", "alpha_beta", "classical")
        stated = pd.concat(map(reported_values, systems))["claim"]
        assert [row["claim"] for row in rows] == stated.to_list()


def test_an_added_epsilon_changes_no_row_of_the_paper(own, tables):
    """ε = 2 adds rows that read "not in the paper", and no row turns into "differs"."""
    for name in ("synthetic", "errors", "growth"):
        one = tables[name][tables[name]["epsilon"] == 1]
        columns = one.columns.intersection(["expected_error", "scale"])
        tables[name] = pd.concat([tables[name], one.assign(epsilon=2.0, **one[columns] / 2)])
    more = by_claim(tables)
    # about all ε of the run, wherever they are from
    whole = ("longer chains", "scales do not", "the error of GroupDP")
    assert all(claim.startswith(whole) for claim in own if claim not in more)
    assert all(more[claim] == own[claim] for claim in own if claim in more)
    new = [row for claim, row in more.items() if claim not in own]
    foreign = [row for row in new if row.verdict == verdicts.NOT_IN_PAPER]
    assert {row.reason for row in foreign} == {"the paper has another ε"}
    assert {row.place for row in foreign} >= {FIGURE_4, "Table 1", "Table 3"}
    assert verdicts.DIFFERS not in {row.verdict for row in new}


@pytest.mark.parametrize(
    ("place", "changed", "others", "reason"),
    [
        ("Table 3", ["errors"], {"bins": {51: 12}}, "12 bins, the paper has 51"),
        ("Table 1", ["errors", "releases"], {"group": {"men_18_54": "nurses"}}, "groups that the"),
        (FIGURE_4, ["synthetic"], {"length": {100: 50}}, "the figure has T = 100"),
        (FIGURE_4, ["synthetic"], {"alpha": {0.1: 0.2}}, "the figure has T = 100"),
    ],
)
def test_other_settings_are_not_judged(own, tables, place, changed, others, reason):
    for name in changed:
        tables[name] = tables[name].replace(others)
    rows = by_claim(tables)
    shown = [row for row in rows.values() if row.place == place]
    assert {row.verdict for row in shown} == {verdicts.NOT_IN_PAPER}
    assert all(row.reason.startswith(reason) for row in shown)
    others = [c for c, row in own.items() if not row.place.startswith((place, "Section 5"))]
    assert all(rows[claim] == own[claim] for claim in others)


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_other_data_are_never_reproduced_nor_judged_by_how_close_they_are(tables, factor):
    quilts = tables["errors"]["mechanism"].str.startswith("mqm")
    tables["errors"].loc[quilts, "expected_error"] *= factor
    for claim, row in by_claim(tables).items():
        if row.place in ("Table 1", "Table 3") and "L1 errors" in claim:
            of_no_data = "GroupDP: household" in claim
            assert row.verdict == (verdicts.REPRODUCED if of_no_data else verdicts.NOT_COMPARABLE)
            assert row.reason


BETTER = "longer chains give better utility: error of the mean under MQMExact"


@pytest.mark.parametrize(
    ("table", "mechanism", "where", "change", "claims"),
    [
        ("synthetic", "mqm-exact", "alpha == 0.25", 99.0, ["MQMExact < MQMApprox, ", "the error"]),
        ("synthetic", "gk16", "alpha > 0", 1e-9, ["MQMApprox is better", "MQMExact is better"]),
        ("synthetic", "gk16", "alpha > 0", 1e-9, ["the error of GK16 falls"]),
        ("errors", "mqm-exact", "bins > 0", 0.5, ["MQMExact < MQMApprox < GroupDP", "errors fall"]),
        ("growth", "mqm-exact", "length == 1000", 1e9, [BETTER]),
        # of GroupDP's errors, which no data change: off by 30 %
        ("errors", "group-dp", "bins == 51", 600.0, ["L1 errors of GroupDP: household"]),
    ],
)
def test_a_broken_claim_differs(tables, table, mechanism, where, change, claims):
    rows = tables[table].query(f"mechanism == @mechanism and {where} and status == 'ok'").index
    tables[table].loc[rows, "expected_error"] = change
    differing = [c for c, row in by_claim(tables).items() if row.verdict == verdicts.DIFFERS]
    assert all(any(c.startswith(start) for c in differing) for start in claims)


def test_the_chance_to_lead_after_noise():
    """Of two equal scales b, at a distance d, it is 1 − e^{−d/b}(2 + d/b)/4."""
    for d, b in ((0.1, 0.2), (0.1, 0.01), (0.0, 1.0)):
        exact = 1 - np.exp(-d / b) * (2 + d / b) / 4
        found = leading(pd.Series([0.5 + d, 0.5]), pd.Series([b, b]))
        assert found == pytest.approx(exact, abs=1e-7)
    three = pd.Series([0.0, 0.0, 0.0])
    assert leading(three, three + 3) == pytest.approx(1 / 3, abs=1e-7)


def test_rows_that_claim_too_much_are_refused(own):
    row = next(iter(own.values()))
    for other, message in (
        ({"verdict": verdicts.DIFFERS}, "without a reason"),
        ({"verdict": verdicts.NOT_COMPARABLE}, "without a reason"),
        ({"verdict": verdicts.REPRODUCED, "origin": "restored"}, "its value is restored"),
        ({"verdict": "good"}, "not a verdict"),
    ):
        with pytest.raises(ParameterError, match=message):
            comparison_table([row._replace(**{"reason": ""} | other)])


def test_no_verdict_on_a_chain_that_the_authors_programs_did_not_have():
    other = authors_scales({"household": MarkovChain([[0.9, 0.1], [0.2, 0.8]])})
    other = other.query("script == 'run_realData'")
    assert set(other["verdict"]) == {verdicts.NOT_IN_PAPER}
    assert (other["reason"] != "").all()


def test_the_page_explains_the_verdicts_and_its_commands_exist():
    page = (ROOT / "docs/artifact.md").read_text(encoding="utf-8")
    rows = page.partition("| verdict |")[2].partition("\n\n")[0].splitlines()[2:]
    explained = (row.split("|")[1:3] for row in rows)
    assert {name.strip(): text.strip() for name, text in explained} == verdicts.VERDICTS
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"`make ([a-z-]+)`", page))
    assert {"reproduce", "test", "bench"} <= named
    assert named <= set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
