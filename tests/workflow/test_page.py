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
    content = {"title": GROUP, "links": {}, "lead": [GROUP]}
    content["summary"] = [page.Summary(GROUP, "all", GROUP, GROUP, each) for each in page.OUTCOMES]
    for name in ("first", "again"):
        page.write_page(tmp_path / name, sections=[page.Section(GROUP, "all", blocks)], **content)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()
    return (tmp_path / "first").read_text("utf-8")


def check_closed(text):
    """A page loads and runs nothing, its ids are its own, and its links lead to it or are few."""
    tags, attributes = [], []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, pairs: (tags.append(tag), attributes.extend(pairs))
    parser.feed(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(tags)
    names = [name for name, _ in attributes]
    assert not [n for n in names if n.startswith("on") or n in ("src", "srcset", "data")]
    targets = {value for name, value in attributes if name.endswith("href")}
    ids = [value for name, value in attributes if name == "id"]
    assert {target[1:] for target in targets if target.startswith("#")} <= set(ids)
    assert len(ids) == len(set(ids))
    assert not re.search(r"url\((?!#)|@import|<!DOCTYPE svg", text)
    return {target for target in targets if not target.startswith("#")}


def test_names_are_escaped_and_a_page_loads_nothing(written):
    assert check_closed(written) == {"provenance.json"}
    assert written.count("&lt;script&gt;alert(") > 250  # as text, wherever it was given


def test_a_verdict_has_a_sign_besides_its_colour(written):
    assert len(set(page.OUTCOMES.values())) == 4
    for verdict in [*VERDICTS, *page.OUTCOMES]:
        assert f">{page.OUTCOMES[page.outcome_of([verdict])]} {verdict}</span>" in written
    worst = {"differs": "differs", "not comparable": "other data", "not in the paper": "agrees"}
    assert [page.outcome_of(["reproduced", verdict]) for verdict in worst] == list(worst.values())


def test_the_first_screen_tells_what_came_out(finished, golden):
    """Of the run with the paper's data sets; seconds are another machine's."""
    head = finished.text("report.html").partition("<main>")[0].partition("<header>")[2]
    cells = re.sub(r"\s+", " ", head).replace("</td>", " | ")
    lines = re.sub("<[^>]+>", "", re.sub("<tr>|<p>|<nav>", "\n", cells)).split("\n")
    golden("first_screen.txt", "\n".join(line for line in lines if "another machine" not in line))


def test_the_first_screen_without_the_papers_data(finished):
    errors = tidy.read(finished.made / "errors/walks_2_file.csv", "errors")
    synthetic = tidy.read(finished.made / "errors/synthetic.csv", "errors")
    timings = tidy.read(finished.made / "timings/mechanisms.csv", "timings")
    found, gk16, without = lead_sentences(errors, synthetic.assign(status="not applicable"))
    assert " on walks_2 (a file of the user) at ε = 1" in found
    assert re.fullmatch("GK16 applies to none of 0 settings.* synthetic classes nowhere.", gk16)
    assert without == WITHOUT_DATA
    here = {row.name: row.here for row in summary_rows(COMPARISON, errors, timings)}
    assert {here[name] for name in ("Table 1", "Table 3")} == {"not computed"}
    worked = pd.concat([COMPARISON] * 2).assign(data="worked example")
    for table, shown in ((worked, "4 rows agree, 2 differ"), (worked[:7], "2 rows agree, 1 diff")):
        assert summary_rows(table, errors, timings)[5].here.startswith(shown)


def test_pages_of_a_run_have_their_parts_in_order_and_load_nothing(finished):
    anchors = re.findall(r'<section id="([\w-]+)"', finished.text("report.html"))
    assert anchors[:2] == ["differences", "figure4-upper"]
    assert anchors[-1] == "provenance"
    assert len(anchors) == len(set(anchors)) > 7
    pages = {f"{name}.html" for name in ("report", "related", "beyond")}
    for name in pages:
        links = check_closed(finished.text(name))
        assert links - {"provenance.json"} == pages - {name}
