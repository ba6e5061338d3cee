"""The pages of a run: what they may hold, what their first screen says, how wide they are."""

import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from matplotlib.figure import Figure

from pufferflow.drawing import style
from reproduction import page, tidy
from reproduction.comparison import VERDICTS, Row
from reproduction.report import WITHOUT_DATA, lead_sentences, summary_rows
from reproduction.tables import Table

GROUP = "<script>alert('R&D')</script>"


def error_rows(*datasets, label="bundled"):
    rows = [
        {"dataset": dataset, "label": label, "group": group, "task": "aggregate", "alpha": 0.35}
        | {
            "mechanism": mechanism,
            "epsilon": epsilon,
            "status": "ok" if error else "not applicable",
        }
        | {"expected_error": error and error / epsilon}
        for dataset in datasets
        for epsilon in (0.2, 1.0)
        for group, least in ((GROUP, 0.01), ("men_18_54", 0.02))
        for mechanism, error in {"gk16": None, "mqm-approx": 2 * least, "mqm-exact": least}.items()
    ]
    return tidy.frame(rows, "errors")


def seconds(*datasets):
    place = [{"dataset": name, "group": "all"} for name in datasets]
    taken = {"mqm-approx": 0.001, "mqm-exact": 0.004}
    rows = [
        at | {"mechanism": name, "median_seconds": t} for at in place for name, t in taken.items()
    ]
    return tidy.frame(rows, "timings")


FIELDS = ("Song", f"{GROUP} at ε = 1 " * 9, "Table 1", "printed", "<1>", "2")
COMPARISON = pd.DataFrame(
    [Row(*FIELDS, verdict, "why & how", "± <1>", GROUP) for verdict in VERDICTS]
)


@pytest.fixture
def written(tmp_path, only_svg):
    """The text of a page with every kind of block, whose data have names like HTML."""
    figure = Figure(figsize=(style.TEXT_WIDTH, 2))
    figure.subplots().set_title(GROUP, **style.VERBATIM)
    svg, caption = style.save_figure(figure, tmp_path / "drawn")[0], tmp_path / "drawn.rst"
    caption.write_text(f"Errors of {GROUP}.\n")
    wide = pd.DataFrame({f"{GROUP} {i}": [GROUP] * 20 for i in range(12)})
    table = Table("wide", f"Of {GROUP}.", GROUP, wide, wide, 0, GROUP)
    blocks = [page.text(GROUP), page.figure(svg, caption), page.link("provenance.json", GROUP)]
    blocks += [page.table(table), page.table(table, folded=True)]
    blocks += [page.rows(COMPARISON), page.rows(COMPARISON, folded=False)]
    content = {"lead": lead_sentences(error_rows("mine"), error_rows("synthetic"))}
    content |= {"title": GROUP, "links": {}}
    outcomes = page.OUTCOMES
    content["summary"] = [page.Summary(GROUP, "all", GROUP, GROUP, outcome) for outcome in outcomes]
    for name in ("first", "again"):
        page.write_page(tmp_path / name, sections=[page.Section(GROUP, "all", blocks)], **content)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()
    return (tmp_path / "first").read_text("utf-8")


def test_names_are_escaped_and_a_page_loads_nothing(written):
    tags, attributes = [], []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, pairs: (tags.append(tag), attributes.extend(pairs))
    parser.feed(written)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(tags)
    assert not [
        name for name, _ in attributes if name.startswith("on") or name in ("src", "srcset", "data")
    ]
    targets = {value for name, value in attributes if name.endswith("href")}
    assert {target for target in targets if not target.startswith("#")} == {"provenance.json"}
    ids = [value for name, value in attributes if name == "id"]
    assert {target[1:] for target in targets if target.startswith("#")} <= set(ids)
    assert len(ids) == len(set(ids))
    assert not re.search(r"url\((?!#)|@import|<!DOCTYPE svg", written)
    assert written.count("&lt;script&gt;alert(") > 250  # as text, wherever it was given


def test_a_verdict_has_a_sign_besides_its_colour(written):
    assert len(set(page.OUTCOMES.values())) == 4
    css = re.search("<style>(.*?)</style>", written, re.DOTALL)[1]
    for verdict in [*VERDICTS, *page.OUTCOMES]:
        kind, words = re.fullmatch(
            r'<span class="verdict (\w+)">(.*)</span>', page.badge(verdict)
        ).groups()
        assert words == f"{page.OUTCOMES[page.outcome_of([verdict])]} {verdict}"
        assert f".{kind} {{ color:" in css
        assert page.badge(verdict) in written
    worst = {"differs": "differs", "not comparable": "other data", "not in the paper": "agrees"}
    assert [page.outcome_of(["reproduced", verdict]) for verdict in worst] == list(worst.values())


def test_the_first_screen_tells_what_came_out_with_and_without_the_papers_data():
    synthetic = error_rows("synthetic", label="synthetic").assign(status="ok")
    for datasets in (("activity", "electricity"), ("mine",)):
        found, gk16, without = lead_sentences(error_rows(*datasets), synthetic)
        for name in datasets:
            errors = "0.010 to 0.020 (MQMExact), 0.020 to 0.040 (MQMApprox)"
            assert f"{errors} on {name} (bundled real data)" in found
        assert re.search(rf"none of {4 * len(datasets)} settings.* from α = 0.35 on", gk16)
        assert without == WITHOUT_DATA
        rows = summary_rows(COMPARISON, error_rows(*datasets), seconds(*datasets))
        assert [len(rows), rows[2].outcome] == [6, "differs"]
        here = {row.name: row.here for row in rows}
        assert here["Table 2"].startswith("4.0")
        for table, name in {"Table 1": "activity", "Table 3": "electricity"}.items():
            assert here[table].startswith(
                "0.010 to 0.020 (MQMExact)" if name in datasets else "not computed"
            )
        assert {row.outcome for row in rows} <= set(page.OUTCOMES)
    worked = pd.concat([COMPARISON] * 2).assign(data="worked example")
    for table, shown in (
        (worked, "4 rows agree, 2 differ"),
        (worked[: len(VERDICTS)], "2 rows agree, 1 differs"),
    ):
        assert summary_rows(table, error_rows("mine"), seconds("mine"))[5].here == shown
    nowhere = lead_sentences(error_rows("mine"), synthetic.assign(status="not applicable"))[1]
    assert nowhere.endswith("synthetic classes nowhere.")
