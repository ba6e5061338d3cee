import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pufferflow.errors import ParameterError
from pufferflow.reporting import report, style, tables
from pufferflow.reporting.comparison import VERDICTS
from pufferflow.reporting.report import Section
from pufferflow.studies.synthetic import measure as synthetic
from pufferflow.studies.synthetic.figures import synthetic_error

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Elements of a page; raises on a tag that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def comparison(verdicts: list[str]) -> tables.Table:
    return tables.comparison(
        pd.DataFrame(
            {
                "paper": "Song, Wang and Chaudhuri 2017",
                "kind": "number",
                "source": "printed",
                "reason": "other people",
                "claim": [f"claim {i} at ε = 1" for i in range(len(verdicts))],
                "place": "Table 1",
                "reported": "0.0074",
                "ours": "0.0075",
                "standard_error": 0.0001,
                "difference": 0.0001,
                "tolerance": "factor 2",
                "verdict": verdicts,
                "data": "activity, bundled",
            }
        )
    )


@pytest.fixture(scope="module")
def svg(tmp_path_factory: pytest.TempPathFactory) -> str:
    errors = synthetic.errors(synthetic.scales([1.0], [0.2, 0.4], 20, ["gk16", "mqm-exact"], {}), 5, 1)
    figure = synthetic_error(errors, synthetic.gk16_limits(20))
    return style.save_figure(figure, tmp_path_factory.mktemp("figure") / "figure")[0].read_text(encoding="utf-8")


@pytest.fixture
def arguments(svg: str) -> dict[str, Any]:
    worked = pd.DataFrame(
        {
            "example": ["a", "a", "b"],
            "quantity": ["<b>x & y</b>", "y", "z"],
            "key": ["1", "2", "3"],
            "computed": [1.0, 2.5, "X8"],
        }
    )
    return {
        "title": "A reproduction",
        "comparison": comparison([VERDICTS[0], VERDICTS[0], VERDICTS[1], VERDICTS[3]]),
        "sections": [
            Section(
                "Figure 4", "figure4", "figure", svg, 'Errors, "expected" & simulated', "synthetic data", {"length": 20}
            ),
            Section("Figure 4 again", "figure4-again", "figure", svg, "The same", "synthetic data"),
            Section("Worked", "worked", "table", tables.stated_values(worked)),
            Section("Limits", "limits", "note", "Not <published>.\n\ndoi:10.1145/3035918.3064025, https://example.org"),
        ],
        "provenance": {"python": "3.11", "packages": {"numpy": "2"}, "none": None},
        "settings": {"epsilons": [0.2, 1], "datasets": [{"name": "activity"}, {"name": "electricity"}]},
    }


@pytest.fixture
def page(tmp_path: Path, arguments: dict[str, Any]) -> str:
    return report.write_report(tmp_path / "report.html", **arguments).read_text(encoding="utf-8")


def test_same_bytes_on_every_run(tmp_path: Path, page: str, arguments: dict[str, Any]) -> None:
    assert report.write_report(tmp_path / "again.html", **arguments).read_bytes() == page.encode()


def test_page_is_whole_and_loads_nothing(page: str) -> None:
    parsed = Page(page)
    assert "src" not in {name for script in parsed.all("script") for name in script}
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in parsed.elements}
    references = [
        value
        for _, attributes in parsed.elements
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "data", "srcset")
    ]
    assert references
    assert all(str(value).startswith("#") for value in references)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert "<!DOCTYPE svg" not in page


def test_ids_are_unique_and_references_resolve(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    targets = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)
    assert {a or b for a, b in targets} <= set(ids)


def test_verdicts_are_counted_and_in_words(page: str) -> None:
    badges = re.findall(r'<li class="verdict v\d"><b>(\d+)</b>([^<]+)</li>', page)
    assert badges[:4] == [("2", VERDICTS[0]), ("1", VERDICTS[1]), ("0", VERDICTS[2]), ("1", VERDICTS[3])]
    assert "4 claims and numbers" in page
    marked = re.findall(r'<td class="verdict v(\d)">([^<]+)</td>', page)
    assert [(VERDICTS[int(i)], text) for i, text in marked] == [(t, t) for _, t in marked]
    assert len(marked) == 4


def test_comparison_comes_first_and_navigation_lists_all(page: str) -> None:
    contents = re.findall(r'<li><a href="#([^"]+)">', page)
    assert contents == ["comparison", "figure4", "figure4-again", "worked", "limits", "settings", "provenance"]
    assert re.findall(r'<h2 id="([^"]+)">', page) == contents


def test_page_is_accessible(page: str) -> None:
    parsed = Page(page)
    assert all(attributes.get("scope") for attributes in parsed.all("th"))
    described = [svg.get("aria-label") for svg in parsed.all("svg")]
    assert described == ['Errors, "expected" & simulated', "The same"]
    assert all(svg.get("role") == "img" for svg in parsed.all("svg"))
    assert len(parsed.all("caption")) == len(parsed.all("table")) == 2
    assert parsed.all("html")[0]["lang"] == "en"


def test_repeated_row_names_are_one_cell(page: str) -> None:
    assert '<th scope="rowgroup" rowspan="2">a</th>' in page
    assert '<th scope="row">b</th>' in page


def test_text_is_escaped(page: str) -> None:
    assert "&lt;b&gt;x &amp; y&lt;/b&gt;" in page
    assert "Not &lt;published&gt;." in page


def test_labels_settings_and_provenance_are_there(page: str) -> None:
    assert "Data: synthetic data." in page
    assert "Data: activity, bundled real data." in page
    assert "Settings of this figure" in page
    assert "<dt>epsilons</dt><dd>0.2, 1</dd>" in re.sub(r"\s*(</?d[dt]>)\s*", r"\1", page)
    assert re.search(r"<dt>numpy</dt>\s*<dd>2\s*</dd>", page)


def test_wrong_arguments_are_refused(tmp_path: Path, svg: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="verdict 'maybe' is none of"):
        report.write_report(tmp_path / "x.html", **arguments | {"comparison": comparison(["maybe"])})
    for anchor in ("comparison", "settings"):
        sections = [Section("Twice", anchor, "note", "text")]
        with pytest.raises(ParameterError, match=f"anchor '{anchor}' is used twice"):
            report.write_report(tmp_path / "x.html", **arguments | {"sections": sections})
    assert not (tmp_path / "x.html").exists()
    with pytest.raises(ParameterError, match="must be a letter"):
        Section("A", "no spaces", "note", "text")
    with pytest.raises(ParameterError, match="content of a table cannot be a str"):
        Section("A", "a", "table", "text")
    with pytest.raises(ParameterError, match="kind 'film' is none of"):
        Section("A", "a", "film", "text")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="needs a caption"):
        Section("A", "a", "figure", svg)


# -- in a browser --------------------------------------------------------------------------------------

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

PROBE = """
<script>
const seen = {}, tick = () => new Promise((done) => setTimeout(done, 50));
window.addEventListener("error", (event) => (seen.error = event.message));
(async () => {
  await tick();
  %s
  document.title = "PROBE" + JSON.stringify(seen) + "END";
})();
</script>
"""


def probe(folder: Path, page: str, steps: str, *flags: str, width: int = 1400) -> dict[str, Any]:
    """Open the page in headless Chromium, run ``steps`` on it and return what they put into ``seen``."""
    path = folder / "probe.html"
    path.write_text(page.replace("</body>", PROBE % steps + "</body>"), encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += [f"--window-size={width},900", *flags, "--dump-dom", path.as_uri()]
    found = None
    for budget in (4_000, 20_000, 100_000):  # a busy machine may use up a short one before the steps end
        done = subprocess.run(
            [*command, f"--virtual-time-budget={budget}"], capture_output=True, text=True, timeout=600, check=True
        )
        if found := re.search("<title>PROBE(.*?)END</title>", done.stdout):
            break
    assert found, done.stderr
    seen: dict[str, Any] = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert "error" not in seen
    return seen


@in_browser
def test_tables_sort_up_down_and_back(tmp_path: Path, page: str) -> None:
    steps = """
    const table = document.querySelector("section[aria-labelledby=worked] table");
    const read = () => [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const buttons = table.querySelectorAll("thead button");
    seen.start = table.tBodies[0].innerHTML;
    buttons[1].click(); seen.up = read(); seen.sort = buttons[1].parentElement.getAttribute("aria-sort");
    buttons[1].click(); seen.down = read();
    buttons[1].click(); seen.end = table.tBodies[0].innerHTML;
    """
    seen = probe(tmp_path, page, steps)
    assert [row[:2] for row in seen["up"]] == [["a", "<b>x & y</b>"], ["a", "y"], ["b", "z"]]
    assert seen["down"] == seen["up"][::-1]
    assert seen["sort"] == "ascending"
    assert seen["start"] == seen["end"]


@in_browser
def test_numbers_sort_as_numbers(tmp_path: Path, arguments: dict[str, Any]) -> None:
    values = [2.0, 1.5e-7, 1051200.0, -3.0, None, float("inf")]
    stated = pd.DataFrame({"example": "e", "quantity": list("abcdef"), "key": list("123456"), "computed": values})
    table = tables.stated_values(stated)
    section = Section("Numbers", "numbers", "table", table)
    page = report.write_report(tmp_path / "n.html", **arguments | {"sections": [section]}).read_text(encoding="utf-8")
    steps = """
    const table = document.querySelector("section[aria-labelledby=numbers] table");
    table.querySelectorAll("thead button")[2].click();
    seen.order = [...table.tBodies[0].rows].map((row) => row.cells[1].textContent).join("");
    """
    assert probe(tmp_path, page, steps)["order"] == "dbacfe"


@in_browser
def test_figures_enlarge_and_return(tmp_path: Path, page: str) -> None:
    steps = """
    const figure = document.querySelector("figure"), dialog = document.querySelector("dialog");
    const before = figure.querySelector("svg").getBoundingClientRect().width;
    figure.querySelector("button").focus();
    document.activeElement.click();
    seen.open = dialog.open; seen.inside = dialog.querySelectorAll("svg").length;
    seen.larger = dialog.querySelector("svg").getBoundingClientRect().width > before;
    const closed = new Promise((done) => dialog.addEventListener("close", done));
    dialog.close(); await closed;
    seen.back = figure.firstElementChild.tagName;
    seen.focus = document.activeElement.textContent;
    """
    seen = probe(tmp_path, page, steps)
    assert seen == {"open": True, "inside": 1, "larger": True, "back": "svg", "focus": "Enlarge"}


@in_browser
def test_light_and_dark(tmp_path: Path, page: str) -> None:
    steps = """
    const button = document.querySelector(".tools button");
    const ground = () => getComputedStyle(document.body).backgroundColor;
    seen.colours = [];
    for (const _ of [0, 1, 2]) { button.click(); seen.colours.push([button.textContent, ground()]); }
    """
    light, dark, system = probe(tmp_path, page, steps)["colours"]
    assert light == ["Colours: light", "rgb(255, 255, 255)"]
    assert dark == ["Colours: dark", "rgb(22, 25, 29)"]
    assert system[0] == "Colours: system"


@in_browser
@pytest.mark.parametrize(("width", "open_"), [(1400, True), (500, False)])
def test_nothing_overflows_and_contents_fold_on_a_phone(tmp_path: Path, page: str, width: int, open_: bool) -> None:
    steps = """
    seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    seen.open = document.querySelector("nav details").open;
    const beside = document.querySelector("main").getBoundingClientRect().left;
    seen.column = beside > document.querySelector("nav").getBoundingClientRect().right - 1;
    """
    assert probe(tmp_path, page, steps, width=width) == {"overflow": 0, "open": open_, "column": open_}
