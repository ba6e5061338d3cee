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
from pufferflow.reporting.comparison import PAPERS, VERDICTS
from pufferflow.reporting.page import MARKS, SHORT
from pufferflow.reporting.section import Section
from pufferflow.studies.synthetic import measure as synthetic
from pufferflow.studies.synthetic.figures import synthetic_error

pytestmark = pytest.mark.xdist_group("reporting report")  # what its tests share is made once

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


SONG, LIU = PAPERS["pufferfish"], PAPERS["noisy_max"]


def comparison(verdicts: list[str], papers: list[str] | None = None) -> tables.Table:
    return tables.comparison(
        pd.DataFrame(
            {
                "paper": papers or [SONG] * len(verdicts),
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


@pytest.fixture(scope="module")
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
        "asked": "What was asked?",
        "comparison": comparison(
            [VERDICTS[3], VERDICTS[0], VERDICTS[0], VERDICTS[1], VERDICTS[5]], [SONG, SONG, SONG, SONG, LIU]
        ),
        "sections": [
            Section(
                "Figure 4",
                "figure4",
                "figure",
                svg,
                "synthetic data",
                caption='Errors, "expected" & simulated',
                settings={"length": 20},
                lead=True,
            ),
            Section("Figure 4 again", "figure4-again", "figure", svg, "synthetic data", caption="The same"),
            Section("Worked", "worked", "table", tables.stated_values(worked)),
            Section("Limits", "limits", "note", "Not <published>.\n\ndoi:10.1145/3035918.3064025, https://example.org"),
            Section("Its numbers", "figure4-table", "table", tables.stated_values(worked), under="figure4-again"),
            Section("Table 2", "times", "note", "Seconds stand apart.", link="benchmarks/table2.html"),
        ],
        "provenance": {"python": "3.11", "packages": {"numpy": "2"}, "none": None},
        "settings": {"epsilons": [0.2, 1], "datasets": [{"name": "activity"}, {"name": "electricity"}]},
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, arguments: dict[str, Any]) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return report.write_report(path, **arguments).read_text(encoding="utf-8")


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
    assert {value for value in references if not str(value).startswith("#")} == {"benchmarks/table2.html"}
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert "<!DOCTYPE svg" not in page


def test_ids_are_unique_and_references_resolve(page: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    targets = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)
    assert {a or b for a, b in targets} <= set(ids)


BADGE = r'<span class="verdict v(\d)"><span aria-hidden="true">(.) </span>([^<]+)</span>'


def test_verdicts_are_counted_source_by_source_and_never_over_all(page: str) -> None:
    matrix = page[page.index('<table class="matrix">') : page.index("</table>")]
    heads = re.findall(r'<th scope="col"><a href="#([^"]+)">([^<]+)</a>', matrix)
    assert [name for _, name in heads] == [SONG, LIU]
    rows = re.split(r'<tr><th scope="row">', matrix)[1:]
    counts = [re.findall(r">(\d+|–)</(?:a|span)></td>|>(–)</span>", row) for row in rows]
    read = [[a or b for a, b in row] for row in counts]
    assert read == [["2", "–"], ["1", "–"], ["–", "–"], ["1", "–"], ["–", "–"], ["–", "1"], ["–", "–"], ["–", "–"]]
    header = page[page.index("<header") : page.index("</header>")]
    first_screen = re.sub("<[^>]+>", " ", re.sub("<svg.*?</svg>", "", header, flags=re.DOTALL))
    assert not re.search(r"\b5\b", first_screen)
    assert "claims and numbers" not in page


def test_verdicts_are_words_with_a_sign_and_a_colour_each(page: str) -> None:
    badges = re.findall(BADGE, page)
    assert {(VERDICTS[int(i)], MARKS[VERDICTS[int(i)]]) for i, _, _ in badges} == {
        (text, mark) for _, mark, text in badges
    }
    assert {text for _, _, text in badges} == set(VERDICTS)
    assert len(set(MARKS.values())) == len(VERDICTS)
    assert all(f".v{i} {{" in page for i in range(len(VERDICTS)))


def test_claims_are_folded_by_source_with_their_numbers_below(page: str) -> None:
    sources = re.findall(r'<details class="source" id="([^"]+)">', page)
    assert len(sources) == 2
    song = page[page.index(f'id="{sources[0]}"') : page.index(f'id="{sources[1]}"')]
    assert re.findall(r'<span class="count"><b>(\d)</b> ' + BADGE, song) == [
        ("2", "0", "✓", "reproduced"),
        ("1", "1", "≈", "agrees with the restored value"),
        ("1", "3", "○", "not comparable"),
    ]
    rows = re.findall(
        r'<details class="row" id="[^"]+">\s*<summary>'
        + BADGE
        + r' <span class="claim">([^<]+) <span class="place">Table 1<',
        song,
    )
    assert [(text, claim) for _, _, text, claim in rows] == [
        ("reproduced", "claim 1 at ε\u00a0=\u00a01"),
        ("reproduced", "claim 2 at ε\u00a0=\u00a01"),
        ("agrees with the restored value", "claim 3 at ε\u00a0=\u00a01"),
        ("not comparable", "claim 0 at ε\u00a0=\u00a01"),
    ]
    told = re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", song)[:9]
    assert told == [
        ("place", "Table 1"),
        ("where the value comes from", "printed"),
        ("reported", "0.0074"),
        ("ours", "0.0075"),
        ("standard error", "0.00010"),
        ("difference", "0.00010"),
        ("tolerance", "factor 2"),
        ("reason", "other people"),
        ("data", "activity, bundled real data"),
    ]
    assert not re.search(r"<details[^>]* open", song)


def test_first_screen_comes_first_and_navigation_lists_what_follows(page: str) -> None:
    header, rest = page.split("</header>")
    assert re.findall(r'<h2 id="([^"]+)">', header) == ["figure4", "verdicts"]
    assert "What was asked?" in header
    contents = re.findall(r'<li><a href="#([^"]+)">', rest)
    assert contents == ["comparison", "figure4-again", "worked", "limits", "times", "settings", "provenance"]
    assert re.findall(r'<h2 id="([^"]+)">', rest) == contents


def test_long_tables_and_those_of_another_section_are_folded(tmp_path: Path, arguments: dict[str, Any]) -> None:
    def stated(rows: int) -> tables.Table:
        numbers = [str(i) for i in range(rows)]
        return tables.stated_values(pd.DataFrame({"example": "e", "quantity": "q", "key": numbers, "computed": 1.0}))

    sections = [
        Section("Short", "short", "table", stated(SHORT)),
        Section("Long", "long", "table", stated(SHORT + 1)),
        Section("Below", "below", "table", stated(1), under="short"),
    ]
    page = report.write_report(tmp_path / "r.html", **arguments | {"sections": sections}).read_text(encoding="utf-8")
    parts = {title: page.index(f">{title}</h2>") for title in ("Short", "Long")}
    short = page[parts["Short"] : parts["Long"]]
    assert short.index("<table>") < short.index('<details class="fold" id="below">')
    long = page[parts["Long"] :]
    assert long.index('<details class="fold">') < long.index("<table>")
    assert f"{SHORT + 1} rows" in long


def test_seconds_have_a_page_of_their_own_in_the_same_style(tmp_path: Path, svg: str, page: str) -> None:
    sections = [Section("Seconds", "seconds", "figure", svg, "synthetic data", caption="How long it takes")]
    written = report.write_times(
        tmp_path / "t.html", title="Table 2", about="They <change>.", sections=sections, report="../report.html"
    ).read_text(encoding="utf-8")
    parsed = Page(written)
    assert '<a href="../report.html">' in written
    assert "They &lt;change&gt;." in written
    assert [svg.get("aria-label") for svg in parsed.all("svg")] == ["How long it takes"]
    assert written[written.index("<style>") : written.index("</style>")] in page


def test_page_is_accessible(page: str) -> None:
    parsed = Page(page)
    assert all(attributes.get("scope") for attributes in parsed.all("th"))
    described = [svg.get("aria-label") for svg in parsed.all("svg")]
    assert described == ['Errors, "expected" & simulated', "The same"]
    assert all(svg.get("role") == "img" for svg in parsed.all("svg"))
    assert len(parsed.all("caption")) == len(parsed.all("table")) == 3
    assert parsed.all("html")[0]["lang"] == "en"


def test_repeated_row_names_are_one_cell(page: str) -> None:
    assert '<th scope="rowgroup" rowspan="2">a</th>' in page
    assert '<th scope="row">b</th>' in page


def test_text_is_escaped(page: str) -> None:
    assert "&lt;b&gt;x &amp; y&lt;/b&gt;" in page
    assert "Not &lt;published&gt;." in page


def test_labels_settings_and_provenance_are_there(page: str) -> None:
    assert "Data: synthetic data." in page
    assert "<dt>data</dt><dd>activity, bundled real data</dd>" in page
    assert "Settings of this figure" in page
    assert "<dt>epsilons</dt><dd>0.2, 1</dd>" in re.sub(r"\s*(</?d[dt]>)\s*", r"\1", page)
    assert re.search(r"<dt>numpy</dt>\s*<dd>2\s*</dd>", page)


def test_wrong_arguments_are_refused(tmp_path: Path, svg: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="verdict 'maybe' is none of"):
        report.write_report(tmp_path / "x.html", **arguments | {"comparison": comparison(["maybe"])})
    for anchor in ("comparison", "settings", "from-song-wang-and-chaudhuri-2017"):
        sections = [Section("Twice", anchor, "note", "text")]
        with pytest.raises(ParameterError, match=f"anchor '{anchor}' is used twice"):
            report.write_report(tmp_path / "x.html", **arguments | {"sections": sections})
    folded = [Section("Below", "below", "note", "text", under="nothing")]
    with pytest.raises(ParameterError, match="there is no section 'nothing' below which to fold it"):
        report.write_report(tmp_path / "x.html", **arguments | {"sections": folded})
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
PROBES: list[tuple[str, int]] = []
"""What is done on the page, and how wide that is, for all tests in one start of the browser."""

PROBE = """
<script>
const seen = {}, tick = () => new Promise((done) => setTimeout(done, 50));
window.addEventListener("error", (event) => (seen.error = event.message));
(async () => {
  await tick();
  try {
    %s
  } catch (error) {
    seen.error = String(error);
  }
  parent.postMessage([%d, seen], "*");
})();
</script>
"""
FRAME = '<iframe src="%d.html" style="width: %dpx; height: 900px; border: 0"></iframe>'
FRAMES = """
<!DOCTYPE html>
<title></title>
<script>
const found = [];
addEventListener("message", (event) => {
  found[event.data[0]] = event.data[1];
  if (Object.keys(found).length === %d) document.title = "PROBE" + JSON.stringify(found) + "END";
});
</script>
%s
"""


def probe(steps: str, width: int = 1400) -> int:
    """Number of what ``steps`` put into ``seen`` when they run on the page: the value of the fixture of that name."""
    PROBES.append((steps, width))
    return len(PROBES) - 1


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """What all probes saw of a page, each in a frame of its own, in headless Chromium."""
    folder = tmp_path_factory.mktemp("frames")
    sections = [*arguments["sections"], Section("Numbers", "numbers", "table", tables.stated_values(NUMBERS))]
    written = report.write_report(folder / "page.html", **arguments | {"sections": sections})
    page = written.read_text(encoding="utf-8")
    for number, (steps, _) in enumerate(PROBES):
        text = page.replace("</body>", PROBE % (steps, number) + "</body>")
        (folder / f"{number}.html").write_text(text, encoding="utf-8")
    frames = "\n".join(FRAME % (number, width) for number, (_, width) in enumerate(PROBES))
    path = folder / "frames.html"
    path.write_text(FRAMES % (len(PROBES), frames), encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--window-size=1500,1000", "--dump-dom", path.as_uri()]
    found = None
    for budget in (4_000, 20_000, 100_000):  # a busy machine may use up a short one before the steps end
        done = subprocess.run(
            [*command, f"--virtual-time-budget={budget}"], capture_output=True, text=True, timeout=600, check=True
        )
        if found := re.search("<title>PROBE(.*?)END</title>", done.stdout):
            break
    assert found, done.stderr
    seen: list[dict[str, Any]] = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return seen


@pytest.fixture
def seen(probed: list[dict[str, Any]], request: pytest.FixtureRequest) -> dict[str, Any]:
    assert "error" not in probed[request.param]
    return probed[request.param]


@in_browser
@pytest.mark.parametrize(
    "seen",
    [
        probe("""
    const table = document.querySelector("section[aria-labelledby=worked] table");
    const read = () => [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const buttons = table.querySelectorAll("thead button");
    seen.start = table.tBodies[0].innerHTML;
    buttons[1].click(); seen.up = read(); seen.sort = buttons[1].parentElement.getAttribute("aria-sort");
    buttons[1].click(); seen.down = read();
    buttons[1].click(); seen.end = table.tBodies[0].innerHTML;
    """),
    ],
    indirect=True,
)
def test_tables_sort_up_down_and_back(seen: dict[str, Any]) -> None:
    assert [row[:2] for row in seen["up"]] == [["a", "<b>x & y</b>"], ["a", "y"], ["b", "z"]]
    assert seen["down"] == seen["up"][::-1]
    assert seen["sort"] == "ascending"
    assert seen["start"] == seen["end"]


NUMBERS = pd.DataFrame(
    {
        "example": "e",
        "quantity": list("abcdef"),
        "key": list("123456"),
        "computed": [2.0, 1.5e-7, 1051200.0, -3.0, None, float("inf")],
    }
)


@in_browser
@pytest.mark.parametrize(
    "seen",
    [
        probe("""
    const table = document.querySelector("section[aria-labelledby=numbers] table");
    table.querySelectorAll("thead button")[2].click();
    seen.order = [...table.tBodies[0].rows].map((row) => row.cells[1].textContent).join("");
    """),
    ],
    indirect=True,
)
def test_numbers_sort_as_numbers(seen: dict[str, Any]) -> None:
    assert seen["order"] == "dbacfe"


@in_browser
@pytest.mark.parametrize(
    "seen",
    [
        probe("""
    const figure = document.querySelector("figure"), dialog = document.querySelector("dialog");
    const before = figure.querySelector("svg").getBoundingClientRect().width;
    figure.querySelector("button").focus();
    document.activeElement.click();
    seen.open = dialog.open; seen.inside = dialog.querySelectorAll("svg").length;
    seen.larger = dialog.querySelector("svg").getBoundingClientRect().width > before;
    const closed = new Promise((done) => dialog.addEventListener("close", done));
    dialog.close(); await closed;
    seen.back = figure.firstElementChild.firstElementChild.tagName;
    seen.focus = document.activeElement.textContent;
    """),
    ],
    indirect=True,
)
def test_figures_enlarge_and_return(seen: dict[str, Any]) -> None:
    assert seen == {"open": True, "inside": 1, "larger": True, "back": "svg", "focus": "Enlarge"}


@in_browser
@pytest.mark.parametrize(
    "seen",
    [
        probe("""
    const button = document.querySelector(".tools button");
    const ground = () => getComputedStyle(document.body).backgroundColor;
    seen.colours = [];
    for (const _ of [0, 1, 2]) { button.click(); seen.colours.push([button.textContent, ground()]); }
    """),
    ],
    indirect=True,
)
def test_light_and_dark(seen: dict[str, Any]) -> None:
    light, dark, system = seen["colours"]
    assert light == ["Colours: light", "rgb(255, 255, 255)"]
    assert dark == ["Colours: dark", "rgb(22, 25, 29)"]
    assert system[0] == "Colours: system"


@in_browser
@pytest.mark.parametrize(
    "seen",
    [
        probe("""
    const folds = () => [...document.querySelectorAll("main details")];
    const row = document.querySelector("details.row");
    seen.closed = folds().filter((fold) => fold.open).length;
    const moved = new Promise((done) => addEventListener("hashchange", done));
    location.hash = row.id; await moved;
    seen.row = [row.open, row.parentElement.open];
    dispatchEvent(new Event("beforeprint"));
    seen.print = folds().every((fold) => fold.open !== (fold.className === "settings"));
    dispatchEvent(new Event("afterprint"));
    seen.after = folds().filter((fold) => fold.open).length;
    const all = [...document.querySelectorAll(".tools button")].find((button) => button.textContent === "Open all");
    all.click(); seen.all = [folds().every((fold) => fold.open), all.textContent];
    all.click(); seen.none = folds().some((fold) => fold.open);
    """),
    ],
    indirect=True,
)
def test_folds_open_for_an_address_for_paper_and_all_at_once(seen: dict[str, Any]) -> None:
    assert seen == {
        "closed": 0,
        "row": [True, True],
        "print": True,
        "after": 2,
        "all": [True, "Fold all"],
        "none": False,
    }


LUMINANCE = """
    const light = (colour) => {
      const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
      const linear = parts.map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
      return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const ground = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (!colour.endsWith(", 0)")) return colour;
      }
    };
    const contrast = (element) => {
      const [a, b] = [light(getComputedStyle(element).color), light(ground(element))].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    };
"""


CONTRASTS = """
    document.documentElement.dataset.theme = "%s";
    await tick();
    seen.contrasts = [...document.querySelectorAll(".matrix .verdict")].map(contrast);
"""


@in_browser
@pytest.mark.parametrize(
    "seen", [probe(LUMINANCE + CONTRASTS % theme) for theme in ("light", "dark")], indirect=True, ids=["light", "dark"]
)
def test_every_verdict_can_be_read_in_light_and_dark(seen: dict[str, Any]) -> None:
    assert len(seen["contrasts"]) == len(VERDICTS)
    assert min(seen["contrasts"]) >= 4.5


@in_browser
@pytest.mark.parametrize(
    "seen",
    [
        probe(
            """
    const drawing = document.querySelector("figure svg"), text = drawing.querySelector("text");
    seen.scale = drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width;
    seen.points = parseFloat(getComputedStyle(text).fontSize) * seen.scale;
    """,
            width=500,
        ),
    ],
    indirect=True,
)
def test_figures_on_a_phone_scroll_instead_of_shrinking(seen: dict[str, Any]) -> None:
    assert seen["points"] >= 9


LAYOUT = """
    seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    seen.open = document.querySelector("nav details").open;
    const beside = document.querySelector("main").getBoundingClientRect().left;
    seen.column = beside > document.querySelector("nav").getBoundingClientRect().right - 1;
    """


@in_browser
@pytest.mark.parametrize(
    ("seen", "open_"), [(probe(LAYOUT), True), (probe(LAYOUT, width=500), False)], indirect=["seen"]
)
def test_nothing_overflows_and_contents_fold_on_a_phone(seen: dict[str, Any], open_: bool) -> None:
    assert seen == {"overflow": 0, "open": open_, "column": open_}
