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
from made_releases import OVERLAP, WEEK, made, means, noisy, shares

from pufferflow._protection import Level
from pufferflow.publish import texts
from pufferflow.publish.statement import sections_of
from pufferflow.publish.statistics import Histogram, Mean

CSV = "statistic,cell,low,high,value,error,band_low,band_high,unit,impact,epsilon"
HOSTILE = (
    "<script>alert(1)</script>", "=1+1", "@SUM(A1)", "|a|b|", "a\u202eb\u2066c", "**x** [y](z)",
    '" onload="x', "$\\frac$", "http://evil.example", "\\*x\\*", "a\nb\tc", "שלום", "x" * 200,
    "</svg>", "`", "a\x00\x1b[31m", "&amp;",
)  # fmt: skip
MOVES = ["sitting", "standing", "walking", "running"]
BINS = [200 * i for i in range(1, 51)]
SHAPES = {
    "1 cell": made(means(by="all", size=168_000)),
    "24 cells": WEEK,
    "51 bins": made(shares(BINS)),
    "168 cells": made(means([f"{d} {h:02d}:00" for d in "ABCDEFG" for h in range(24)], "group")),
    "4 states by hour": made(shares(MOVES, "hour")),
    "24 x 51": made(shares(BINS, "hour", scale=9.0)),
    "transitions": made(shares([f"{a} → {b}" for a in MOVES for b in MOVES])),
    "weekdays, pure noise": made(means(by="weekday", scale=4e6), means(by="month")),
    "hostile": made(means(HOSTILE, "group", word="<b>"), groups=HOSTILE, cohort="[x](y)"),
}


def page(release, folder="publish"):
    return release.files()[f"{folder}/index.html"]


def csv(release):
    return pd.read_csv(StringIO(release.files()["publish/values.csv"]), keep_default_na=False)


def test_the_band_is_that_of_all_values_and_cells_without_readings_have_none():
    kind = Mean(by="group", bounds=(-1, 3))
    table = noisy(kind, "abc", kind.columns(None, None), [10, 0, 20], [[5000], [0], [9000]], 40.0)
    frame = csv(made(table, groups=("a", "b", "c")))
    assert ",".join(frame) == CSV
    assert frame["cell"].tolist() == ["a", "c"]
    np.testing.assert_allclose(frame["value"], [-1 + 4 * 5 / 10, -1 + 4 * 9 / 20])
    for sign, end in ((-1, "band_low"), (1, "band_high")):
        error = sign * table.error.half_width[[0, 2], 0]
        np.testing.assert_allclose(frame["value"] + error, frame[end])


def test_nothing_to_tell_against_a_search_for_a_constant_of_each_column():
    rng, seen = np.random.default_rng(5), {True: 0, False: 0}
    for _ in range(300):
        cells, columns = rng.integers(1, 4, 2).tolist()
        sizes = np.where(rng.random(cells) < 0.2, 0, 100)
        sizes[0] = 100
        counts, scale = rng.integers(20, 50, (cells, columns)), float(rng.choice([1, 2, 4]))
        kept = shares(MOVES).columns[:columns]
        table = noisy(Histogram(by="group"), "abc"[:cells], kept, sizes, counts, scale)
        frame = table.to_frame()
        low, high = (frame[name].to_numpy().reshape(-1, columns) for name in frame.columns[6:8])
        if len(low) == 1:  # one cell: its columns are compared
            low, high = low.T, high.T
        fits = all(((low[:, j] <= a) & (a <= high[:, j])).all() for j, a in enumerate(low.max(0)))
        assert table.nothing_to_tell == (len(low) > 1 and fits)
        seen[table.nothing_to_tell] += 1
    assert min(seen.values()) > 50


SAID = (
    ({}, "What is protected", "2.72 (ε = 1). That is any 48 readings in a row, one every 30 m"),
    ({}, "Under which assumption", f"follow {OVERLAP}."),
    ({"limit": 2.0}, "What adds up", "Together they keep ε = 2, the limit in force on this date"),
    ({"first": None, "last": None}, "What adds up", "adds up for ever"),
    ({"level": Level(None)}, "What adds up", "add up for ever, whatever their period"),
    ({"documents": {}}, "How", "It is not published, nor is the fitted chain"),
    ({"spent": Fraction(601, 1000)}, "What adds up", "61\u00a0% is used"),
    ({"alone": True}, "What adds up", "speaks of itself alone"),
    ({"paid": None}, "What adds up", "No account is kept"),
)


@pytest.mark.parametrize(("options", "title", "words"), SAID)
def test_the_statement_says(options, title, words):
    assert words in " ".join(dict(sections_of(made(**options)))[title])


def test_what_may_not_be_overlooked_comes_first():
    release = made(means(scale=4e6), warnings=("Epsilon is large.",), seed=7)
    warnings = (
        "NOT PRIVATE: a simulation with seed 7; anybody can repeat its noise.",
        "No difference between the cells can be told from noise.",
        "24 values with an error of half the public range or more.",
        "Epsilon is large.",
    )
    assert release.statement.startswith("".join(f"**{said}**\n\n" for said in warnings) + "# ")
    assert re.search("(?s)" + ".*".join(warnings) + ".*What was", page(release, "simulation"))
    assert repr(release).startswith("NOT PRIVATE")
    assert set(release.to_frame()["epsilon"]) == {"NOT PRIVATE (1)"}


def parsed(release):
    """Tags with their attributes, and the text of a page."""
    tags, words, parser = set(), [], HTMLParser()
    parser.handle_starttag = lambda tag, own: tags.update({tag, *((tag, a) for a, _ in own)})
    parser.handle_data = words.append
    parser.feed(page(release))
    return tags, "".join(words)


def test_hostile_words_are_text_everywhere():
    release = SHAPES["hostile"]
    tags, text = parsed(release)
    assert tags == parsed(WEEK)[0]
    shown = [texts.visible(name) for name in HOSTILE]
    assert all(name in text for name in shown)
    cells = csv(release)["cell"].tolist()
    assert cells == [f"'{n}" if n[0] in "=@" else n for n in shown]
    everything = "".join(release.files().values())
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", everything)


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
    shown = page(SHAPES[shape])
    assert not re.search(r"<script|<link|<img|<iframe|url\(|@import| src=| href=| style=", shown)
    assert "default-src 'none'" in shown


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
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


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_in_a_browser(tmp_path, scheme):
    """Wide and narrow, light and dark: nothing is cut, no words touch or are small."""
    pages = [html.escape(page(release)) for release in SHAPES.values()]
    frames = [f'<iframe width={w} srcdoc="{text}"></iframe>' for text in pages for w in (1400, 390)]
    file = tmp_path / "measure.html"
    file.write_text(f"<meta charset='utf-8'><body>{''.join(frames)}<script>{MEASURE}</script>")
    setting = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    command = [BROWSER, "--headless", "--no-sandbox", f"--user-data-dir={tmp_path / 'user'}"]
    command += [setting, "--dump-dom", file.as_uri()]
    out = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search("BEGIN(.*)END", out, re.S)
    for place, seen in enumerate(json.loads(html.unescape(found[1]))):
        name = [*SHAPES][place // 2]
        drawn = 0 if name == "24 x 51" else len(SHAPES[name].tables)
        assert seen[:3] == [0, [], drawn], name
        ink, paper = (sum(map(int, re.findall(r"\d+", color)[:3])) for color in seen[3:])
        assert (paper < 150, ink > 600) == (scheme == "dark",) * 2, name
        assert abs(ink - paper) > 500
