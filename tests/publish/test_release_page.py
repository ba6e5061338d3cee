"""What is published: page, statement, CSV and JSON say what they must, and no more."""

import html
import json
import re
import shutil
import subprocess
from fractions import Fraction
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from made_releases import WEEK, made, means, noisy, shares

from pufferflow._protection import Level
from pufferflow.publish import texts
from pufferflow.publish.statement import sections_of
from pufferflow.publish.statistics import Durations, Exceedances, Histogram, Mean

CSV = "statistic,cell,low,high,value,error,band_low,band_high,unit,impact,epsilon"
HOSTILE = (
    "<script>alert(1)</script>", "=1+1", "@SUM(A1)", "|a|b|", "a\u202eb\u2066c", "**x** [y](z)",
    '" onload="x', "$\\frac$", "http://evil.example", "\\*x\\*", "a\nb\tc", "שלום", "x" * 200,
    "</svg>", "`", "a\x00\x1b[31m", "&amp;",
)  # fmt: skip
MOVES = ["sitting", "standing", "walking", "running"]
SHAPES = {
    "1 cell": made(means(by="all", size=168_000)),
    "24 cells": WEEK,
    "51 bins": made(shares([200 * i for i in range(1, 51)])),
    "168 cells": made(means([f"{d} {h:02d}:00" for d in "ABCDEFG" for h in range(24)], "group")),
    "4 states by hour": made(shares(MOVES, "hour")),
    "24 x 51": made(shares([200 * i for i in range(1, 51)], "hour", scale=9.0)),
    "transitions": made(shares([f"{a} → {b}" for a in MOVES for b in MOVES])),
    "weekdays, pure noise": made(means(by="weekday", scale=4e6), means(by="month")),
    "hostile": made(means(HOSTILE, "group"), groups=HOSTILE, unit="<b>", cohort="[x](y)"),
}


def test_rows_are_the_noisy_numbers_with_the_simultaneous_band():
    kind = Mean(by="group", bounds=(-1, 3))
    table = noisy(kind, "abc", kind.columns(None, None), [10, 0, 20], [[5000], [0], [9000]], 40.0)
    release = made(table, groups=("a", "b", "c"))
    frame = pd.read_csv(StringIO(release.to_csv()))
    assert ",".join(frame) == ",".join(release.to_frame()) == CSV
    assert frame["cell"].tolist() == ["a", "c"]  # b has no reading
    np.testing.assert_allclose(frame["value"], [-1 + 4 * 5 / 10, -1 + 4 * 9 / 20])
    np.testing.assert_allclose(frame["error"], table.error.half_width[[0, 2], 0])
    for sign, end in ((-1, "band_low"), (1, "band_high")):
        np.testing.assert_allclose(frame["value"] + sign * frame["error"], frame[end])
    assert (set(frame["unit"]), set(frame["epsilon"])) == ({"kWh"}, {1.0})
    assert release.band.equals(release.to_frame()[["statistic", "cell", "band_low", "band_high"]])
    rows = json.loads(release.files()["publish/release.json"])["rows"]
    assert [row["value"] for row in rows] == release.to_frame()["value"].tolist()


def test_cells_bins_and_units():
    frame = made(shares([1.0, 2.0], "weekday")).to_frame()
    assert frame["cell"].iloc[0].startswith("Monday / ")
    np.testing.assert_array_equal(frame[["low", "high"]][:3], [[np.nan, 1], [1, 2], [2, np.nan]])
    assert set(frame["unit"]) == {"share"}
    long, over = Durations(threshold=1.0), Exceedances(threshold=1.0)
    columns = long.columns(None, 1800)
    runs = made(noisy(long, ("all",), columns, [1000], [3] * len(columns), 9.0))
    assert set(runs.to_frame()["unit"]) == {"runs"}
    count = made(noisy(over, ("all",), over.columns(None, None), [50], [9], 1.0))
    assert "readings on its value (95 %), noise impact MEDIUM" in count.lines()[0]


def test_nothing_to_tell_against_a_search_for_a_constant_of_each_column():
    rng, seen = np.random.default_rng(5), {True: 0, False: 0}
    for _ in range(300):
        cells, columns = rng.integers(1, 4, 2).tolist()
        sizes = np.where(rng.random(cells) < 0.2, 0, 100)
        sizes[0] = 100
        counts, scale = rng.integers(20, 50, (cells, columns)), float(rng.choice([1, 2, 4]))
        kept = shares(MOVES).columns[:columns]
        table = noisy(Histogram(by="group"), "abc"[:cells], kept, sizes, counts, scale)
        frame = table.to_frame(None)
        low, high = (frame[name].to_numpy().reshape(-1, columns) for name in frame.columns[6:8])
        if len(low) == 1:  # one cell: its columns are compared
            low, high = low.T, high.T
        fit = (any(((a <= c) & (c <= b)).all() for c in a) for a, b in zip(low.T, high.T, strict=True))
        assert table.nothing_to_tell == (len(low) > 1 and all(fit))
        seen[table.nothing_to_tell] += 1
    assert min(seen.values()) > 50


CHAIN = {"matrix": [[0.8123456, 0.1876544]]}
HIDDEN = {"theta_is_public": False, "theta_document": CHAIN, "certificate": CHAIN}
WHOLE = {"level": Level(None), "outright": True, "theta_text": "", "certificate": None}
UNTIMED = {"step_seconds": None, "first": None, "last": None, "clock": "none"}
SAID = (
    ({}, "What was published", "500 participants, 2024-01-01 to 2024-01-07 (local time)"),
    ({}, "What was published", "by hour (values clipped to 0 to 3, in steps of 0.003): ±0.133 kWh"),
    (
        {},
        "What is protected",
        "most 2.72 (ε = 1). That is any 48 readings in a row, one every 30 m",
    ),
    ({}, "What is protected", "who knows none of the other readings"),
    ({}, "Under which assumption", f"follow {WEEK.theta_text}."),
    ({}, "How", "are published with this"),
    (UNTIMED, "What is protected", "Any 48 readings in a row of one participant"),
    (UNTIMED, "What adds up", "adds up for ever"),
    ({"level": Level(1)}, "What is protected", "Any one reading of one participant"),
    ({"level": Level(48, "any")}, "What is protected", "who knows any of the other readings"),
    ({"last": "2024-01-07T06:00:00Z"}, "What was published", "00:00 to 2024-01-07 06:00 (local"),
    (WHOLE, "What is protected", "All readings of one participant"),
    (WHOLE, "Under which assumption", "No assumption about time is made. Participants are indep"),
    (WHOLE, "What is not protected", "That a participant took part"),
    (WHOLE, "How", "group privacy"),
    (HIDDEN, "How", "It is not published, nor is the fitted chain"),
    ({"spent": Fraction(601, 1000)}, "What adds up", "61\u00a0% is used"),
    ({"limit": 2.0}, "What adds up", "ε = 2, the limit in force on this date (2024-02-01)"),
    ({"alone": True}, "What adds up", "speaks of itself alone"),
    ({"seed": 3}, "What adds up", "No account is kept"),
    ({"cohort": "north"}, "What adds up", "cohort north shares no participant"),
)


@pytest.mark.parametrize(("options", "title", "words"), SAID)
def test_the_statement_says(options, title, words):
    assert words in " ".join(dict(sections_of(made(**options)))[title])


def test_what_the_statement_and_the_folder_leave_out():
    assert "they may learn" not in made(level=Level(48, "any")).statement
    assert "participant follow" not in made(**WHOLE).statement
    assert {"publish/theta.json", "publish/certificate.json"} < set(WEEK.files())
    for secret in (made(**HIDDEN), made(**WHOLE)):
        assert len(secret.files()) == 4
        assert not re.search("8123|1876", "".join(secret.files().values()))


def test_a_simulation_says_so_first_everywhere():
    release = made(seed=7)
    assert release.statement.startswith("**NOT PRIVATE")
    assert set(release.to_frame()["epsilon"]) == {"NOT PRIVATE (1)"}
    assert all(name.startswith("simulation/") for name in release.files())
    assert "publish" not in " ".join(release.lines("ledger", "out"))
    assert "NOT PRIVATE" in repr(release)


def test_warnings_come_first():
    release = made(means(scale=4e6), warnings=("Epsilon is large.",))
    assert release.statement.startswith(
        "**No difference between the cells can be told from noise.**\n\n"
        "**24 values with an error of half the public range or more.**\n\n"
        "**Epsilon is large.**\n\n# "
    )
    assert release.nothing_to_tell
    assert re.search("(?s)No difference.*What was", release.files()["publish/index.html"])


def test_lines_for_a_terminal():
    assert WEEK.lines("l.ledger", "week01") == [
        "mean-by-hour: ±0.133 kWh on all 24 values (95 %), noise impact MEDIUM",
        "protects any 1 day of one participant: odds change by at most 2.72 x (epsilon 1)",
        "ledger    l.ledger: 2024-01-01 to 2024-01-07 now fully used; later readings are untouched",
        "safe to publish: week01/publish/",
    ]
    for tables in range(1, 7):
        for other in ({}, {"seed": 3}, {"ledger": False}, {"alone": True}, {"first": None}):
            said = "\n".join(made(*[means()] * tables, **other).lines("a", "b"))
            assert said.count("\n") < 6


def parsed(release):
    """Return the tags with their attributes and the text of a page."""
    tags, words, parser = set(), [], HTMLParser()
    parser.handle_starttag = lambda tag, own: tags.update({tag, *((tag, a) for a, _ in own)})
    parser.handle_data = words.append
    parser.feed(release.files()["publish/index.html"])
    return tags, "".join(words)


def test_hostile_words_are_text_everywhere():
    release = SHAPES["hostile"]
    tags, text = parsed(release)
    assert tags == parsed(WEEK)[0]
    shown = [texts.visible(name) for name in HOSTILE]
    assert all(name in text for name in shown)
    frame = pd.read_csv(StringIO(release.to_csv()), keep_default_na=False)
    assert frame["cell"].tolist() == [f"'{n}" if n[0] in "=@" else n for n in shown]
    everything = "".join(release.files().values())
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", everything)
    assert [row["cell"] for row in release.to_dict()["rows"]] == list(HOSTILE)


@pytest.mark.parametrize("word", [*HOSTILE, "\ud800"], ids=ascii)
def test_markdown_takes_no_word_for_markup(word):
    def bare(word):  # what is left where all that is escaped is gone
        said = made(cohort=word, warnings=(word,)).statement
        assert "://" not in said
        return re.sub(r"\\[!-/:-@[-`{-~]", "", said)

    for mark in "`[]<>|$~&@!^{}_*\n":
        assert bare(word).count(mark) == bare("x").count(mark)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_address_no_script_and_no_file_name(shape):
    for name, text in SHAPES[shape].files().items():
        bare = text.replace("http://evil", "").replace("http:\\//evil", "")
        assert not re.search(r"https?:|\.ledger|/work|/tmp|\.csv\b|internal/", bare), name
    page = SHAPES[shape].files()["publish/index.html"]
    assert not re.search(r"<script|<link|<img|<iframe|url\(|@import| src=| href=| style=", page)
    assert "default-src 'none'" in page


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
MEASURE = """
function look(frame) {
  const page = frame.contentDocument, wide = page.documentElement.clientWidth, wrong = [];
  const box = e => e.getBoundingClientRect(), style = page.defaultView.getComputedStyle;
  for (const e of page.body.querySelectorAll('*'))
    if (box(e).width && (box(e).right > wide + 1 || box(e).left < -1)) wrong.push(e.outerHTML);
  for (const svg of page.querySelectorAll('svg')) {
    const words = [...svg.querySelectorAll('text')];
    words.forEach((e, i) => {
      const a = box(e);
      if (a.bottom > box(svg).bottom || parseFloat(style(e).fontSize) < 12) wrong.push(e.outerHTML);
      for (const other of words.slice(0, i)) {
        const b = box(other), across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3) wrong.push(e.outerHTML + other.outerHTML);
      }
    });
  }
  return [page.documentElement.scrollWidth - wide, wrong, page.querySelectorAll('svg').length,
          style(page.body).color, style(page.body).backgroundColor];
}
onload = () => document.body.textContent = 'BEGIN' +
  JSON.stringify([...document.querySelectorAll('iframe')].map(look)) + 'END';
"""


def browse(page, *words):
    user = f"--user-data-dir={page.parent / 'user'}"
    command = [BROWSER, "--headless", "--no-sandbox", user, *words, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@needs_browser
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_in_a_browser(tmp_path, scheme):
    """Wide and narrow, light and dark: nothing is cut, no words touch or are small."""
    pages = [html.escape(release.files()["publish/index.html"]) for release in SHAPES.values()]
    frames = [f'<iframe width={w} srcdoc="{page}"></iframe>' for page in pages for w in (1400, 390)]
    page = tmp_path / "measure.html"
    page.write_text(f"<meta charset='utf-8'><body>{''.join(frames)}<script>{MEASURE}</script>")
    setting = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    found = re.search("BEGIN(.*)END", browse(page, setting, "--dump-dom"), re.S)
    for place, seen in enumerate(json.loads(html.unescape(found[1]))):
        name = [*SHAPES][place // 2]
        drawn = 0 if name == "24 x 51" else len(SHAPES[name].tables)
        assert seen[:3] == [0, [], drawn], name
        ink, paper = (sum(map(int, re.findall(r"\d+", color)[:3])) for color in seen[3:])
        assert (paper < 150, ink > 600) == (scheme == "dark",) * 2, name
        assert abs(ink - paper) > 500


@needs_browser
def test_printed(tmp_path):
    page, printed = tmp_path / "index.html", tmp_path / "a.pdf"
    page.write_text(WEEK.files()["publish/index.html"])
    browse(page, f"--print-to-pdf={printed}", "--no-pdf-header-footer")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 4
