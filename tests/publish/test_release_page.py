"""What is published: page, statement, CSV and JSON say what they must, and no more; its folder."""

import errno
import html
import json
import os
import re
import shutil
import signal
import subprocess
from dataclasses import replace
from fractions import Fraction
from functools import partial
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from forks import ended

from pufferflow.accounting.account import Level
from pufferflow.accounting.ledger import Paid
from pufferflow.errors import DataError
from pufferflow.publish import files, texts
from pufferflow.publish.files import draft
from pufferflow.publish.noise import Noise, shortfall
from pufferflow.publish.request import ReleaseOptions
from pufferflow.publish.result import NoisyTable, Readings, Release
from pufferflow.publish.statement import sections_of
from pufferflow.publish.statistics import LABELS, Column, Histogram, Mean, MostFrequent, Statistic
from pufferflow.records.states import StateSpace

CSV = "statistic,cell,low,high,value,estimate,error,band_low,band_high,unit,impact,epsilon"
HOSTILE = (
    "<script>alert(1)</script>", "=1+1", "@SUM(A1)", "|a|b|", "a\u202eb\u2066c", "**x** [y](z)",
    '" onload="x', "$\\frac$", "http://evil.example", "\\*x\\*", "a\nb\tc", "שלום", "x" * 200,
    "</svg>", "`", "a\x00\x1b[31m", "&amp;",
)  # fmt: skip


def noisy(kind: Statistic, cells, columns, sizes, counts, scale=100.0, word="kWh") -> NoisyTable:
    """A table with the given counts as its noisy ones."""
    sizes, counts = np.asarray(sizes), np.asarray(counts).reshape(len(cells), len(columns))
    ranges = np.broadcast_to(kind.ranges(sizes, np.minimum(sizes, 9), len(columns)), counts.shape)
    noise = Noise(scale)
    return NoisyTable(kind, tuple(cells), tuple(columns), sizes, counts, ranges, noise, None, word)


def means(cells=None, by="hour", size=7000, scale=5e4, word="kWh") -> NoisyTable:
    """Means between 0 and 3, of cells of one size."""
    kind, cells = Mean(by=by, bounds=(0, 3)), cells or LABELS[by]
    drawn = np.random.default_rng(1).integers(100, 900, len(cells)) * size
    return noisy(kind, cells, kind.columns(None, None), [size] * len(cells), drawn, scale, word)


def shares(states, by="all", size=10**5, scale=100.0) -> NoisyTable:
    """A histogram of named states, or of bins between numbers."""
    named = isinstance(states[0], str)
    space = StateSpace.categories(states) if named else StateSpace.numeric(states)
    kind, cells = Histogram(by=by), LABELS[by]
    columns = kind.columns(space, None)
    part = np.random.default_rng(1).dirichlet(np.ones(len(columns)), len(cells))
    return noisy(kind, cells, columns, [size] * len(cells), (part * size).astype(int), scale)


TIMES = 1800, "local", None, "2024-01-01T00:00:00", "2024-01-07T23:30:00"
OVERLAP = "any process whose values 1 hour apart overlap by at least 0.4"
WEEK = Release(
    tables=[means()],
    level=Level(48),
    epsilon=1.0,
    readings=Readings(168_000, 500, (), *TIMES),
    how=ReleaseOptions(),
    assumed=(f"The readings of one participant follow {OVERLAP}.",),
    documents={"theta.json": {"m": 1}, "certificate.json": {"proof": 1}},
    paid=Paid(1, Fraction(1), 1.0),
    date="2024-02-01",
)
"""A weekly profile by hour."""


def made(*tables: NoisyTable, **other) -> Release:
    """The same with other tables, or with other attributes of it or of its parts."""
    for name in ("readings", "paid", "how"):
        part = getattr(WEEK, name)
        own = {k: other.pop(k) for k in [*other] if hasattr(part, k)}
        other.setdefault(name, replace(part, **own))
    return replace(WEEK, tables=tables or WEEK.tables, **other)


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
        error = sign * table.half_width[[0, 2], 0]
        np.testing.assert_allclose(frame["value"] + error, frame[end])


def test_indistinguishable_against_a_search_for_a_constant_of_each_column():
    rng, seen = np.random.default_rng(5), {True: 0, False: 0}
    for _ in range(300):
        cells, columns = rng.integers(1, 4, 2).tolist()
        sizes = np.where(rng.random(cells) < 0.2, 0, 100)
        sizes[0] = 100
        counts, scale = rng.integers(20, 50, (cells, columns)), float(rng.choice([1, 2, 4]))
        kept = shares(MOVES).columns[:columns]
        table = noisy(Histogram(by="group"), "abc"[:cells], kept, sizes, counts, scale)
        bands = table.to_frame()[["band_low", "band_high"]].to_numpy().T
        low, high = bands.reshape(2, -1, columns)
        if len(low) == 1:  # one cell: its columns are compared
            low, high = low.T, high.T
        fits = all(((low[:, j] <= a) & (a <= high[:, j])).all() for j, a in enumerate(low.max(0)))
        assert table.indistinguishable == (len(low) > 1 and fits)
        seen[table.indistinguishable] += 1
    assert min(seen.values()) > 50


def test_names_of_states_are_in_their_order_and_without_numbers():
    kind, columns = MostFrequent(by="group", top=2), [Column(name) for name in HOSTILE]
    places = np.full((3, len(HOSTILE)), -1)
    places[0, [1, 5]], places[1, :2], places[2, [0, 4]] = (1, 0), (0, 1), (0, 1)
    table = noisy(kind, "abc", columns, [10**4, 0, 10**4], places, 49.0, None)
    release = made(table, groups=("a", "b", "c"))
    frame, shown = csv(release), [texts.visible(HOSTILE[j]) for j in (5, 1, 0, 4)]
    assert frame["cell"].tolist() == ["a / 1", "a / 2", "c / 1", "c / 2"]
    assert frame["value"].tolist() == [f"'{name}" if name[0] in "=@" else name for name in shown]
    assert set(frame["band_low"]) == set(frame["band_high"]) == {""}
    assert set(frame["error"].astype(float)) == {shortfall(49.0, 2, 17, 2) / 10**4}
    assert len(release.band) == 0
    assert not table.indistinguishable
    tags, text = parsed(release)
    assert tags <= parsed(WEEK)[0] - {"svg", "rect"}
    assert re.search("(?s)" + ".*".join(re.escape(f"{name}±") for name in shown), text)
    assert "no state is listed before, or instead of, one whose share is larger" in text
    assert "Independent discrete Laplace noise of scale 49 was added to each count" in text
    one = replace(table, statistic=MostFrequent(by="group"))
    assert "Independent exponential noise of scale 49 was added" in made(one).statement
    json.loads(release.files()["publish/release.json"])


SAID = (
    ({}, "What is protected", "2.72 (ε = 1). That is any 48 readings in a row, one every 30 m"),
    ({"step_seconds": 60}, "What was published", "A reading is taken every minute."),
    ({}, "Under which assumption", f"follow {OVERLAP}."),
    ({"limit": 2.0}, "What adds up", "Together they keep ε = 2, the limit in force on this date"),
    ({"first": None, "last": None}, "What adds up", "adds up for ever"),
    ({"level": Level(None)}, "What adds up", "add up for ever, whatever their period"),
    ({"documents": {}}, "How", "It is not published, nor is the fitted chain"),
    ({"spent": Fraction(601, 1000)}, "What adds up", "61\u00a0% is used"),
    ({"alone": True}, "What adds up", "covers itself alone"),
    ({"paid": None}, "What adds up", "No account is kept"),
)


@pytest.mark.parametrize(("options", "title", "words"), SAID)
def test_the_statement_says(options, title, words):
    assert words in " ".join(dict(sections_of(made(**options)))[title])


def test_what_may_not_be_overlooked_comes_first():
    release = made(means(scale=4e6), warnings=("Epsilon is large.",), seed=7)
    warnings = (
        "NOT PRIVATE: a simulation with seed 7; anybody can repeat its noise.",
        "No difference between the cells is distinguishable from noise.",
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


FIELDS = yaml.safe_load(Path(__file__).with_name("registry.yaml").read_text("utf-8"))
KINDS = {"text": str, "number": float}


def fits(value, wanted):
    """Whether a part of a record has these fields, and values of their kinds."""
    if isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(fits(value[k], wanted[k]) for k in wanted)
    if wanted == "texts":
        return isinstance(value, list) and value and all(fits(one, "text") for one in value)
    known = isinstance(wanted, list)
    return value in wanted if known else value and isinstance(value, KINDS[wanted])


def test_a_record_has_the_fields_of_the_registry_and_names_the_class():
    for tables in ([means()], [shares(MOVES)], [means(HOSTILE, "group", word="<b>")]):
        for level, delta in ((Level(48), 0.0), (Level(None), 0.0), (Level(None), 1e-6)):
            release = made(*tables, registry=HOSTILE[4], level=level)
            release = replace(release, delta=delta)
            text = release.files()["publish/registry.yaml"]
            found = yaml.safe_load(text)  # as the registry reads it
            assert (found.pop("status"), found.pop("tier")) == ("Draft", 3)
            assert re.fullmatch("[a-z0-9-]+", found.pop("url_slug"))
            record = found.pop("deployment")
            loss, variant = record["privacy_loss"]["privacy_parameters"], record["dp_variant"]
            assert loss.pop("delta", 0.0) == delta
            assert ("Approximate DP" in variant.values()) == (delta > 0)
            assert fits(record, FIELDS), record
            assert not found
            assert texts.markdown(OVERLAP) in record["dp_variant"]["data_domain"]
            assert record["privacy_loss"]["privacy_parameters"] == {"epsilon": release.epsilon}
            assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", text)
    assert "publish/registry.yaml" not in made().files()


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
MEASURE = Path(__file__).with_name("measure.js").read_text("utf-8")


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


CONTENT = WEEK.files()
PUBLISHED = {name.removeprefix("publish/") for name in CONTENT}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(content=CONTENT, output="out"):
    with draft(output, dict.fromkeys(content, "0")) as write:
        assert not Path(output).exists() or os.listdir(output) == []
        write(content)


@pytest.mark.parametrize("umask", [0o000, 0o077])
@pytest.mark.parametrize(("seed", "folder", "file"), [(None, 0o755, 0o644), (3, 0o700, 0o600)])
def test_modes_and_times(place, umask, seed, folder, file):
    before, content, out = os.umask(umask), made(seed=seed).files(), place / "out"
    try:
        out.mkdir()  # an empty folder is free
        save(content)
    finally:
        os.umask(before)
    wanted = {out / name: file for name in content}
    assert {path: path.read_text() for path in wanted} == {out / n: t for n, t in content.items()}
    wanted |= {path.parent: folder for path in wanted} | {out: 0o700}
    assert {path: path.stat().st_mode & 0o777 for path in (out, *out.rglob("*"))} == wanted
    (moment,) = {path.stat().st_mtime_ns for path in wanted}
    assert moment % 10**9 == 0


@pytest.mark.parametrize("output", ["x" * 300, "/proc/x", "taken/x", "taken", "link", "full"])
def test_an_output_that_cannot_be(place, output):
    Path("taken").touch()
    Path("link").symlink_to("nowhere")
    Path("full/mine").mkdir(parents=True)
    before = sorted(place.rglob("*"))
    with pytest.raises((DataError, OSError), match=rf"too long|{output.partition('/')[0]}"):
        save(output=output)
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("at", range(2 * len(PUBLISHED)))
def test_a_full_disk_leaves_nothing(place, monkeypatch, at):
    real, room = files.write_atomic, iter(range(at))

    def full(path, text):
        if next(room, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, text)

    monkeypatch.setattr(files, "write_atomic", full)
    with pytest.raises(OSError, match="No space left") as caught:
        save()
    assert caught.value.filename == "out"  # not the temporary folder
    assert os.listdir(place) == []


def test_of_several_that_want_one_name_one_gets_it_and_none_is_lost(place):
    assert sorted(ended(*[save] * 4)) == [0, 1, 1, 1]
    shutil.rmtree("out")
    with draft("out", CONTENT) as write:
        Path("out/mine").write_text("mine")
        with pytest.raises(DataError, match="the release is whole in out-") as caught:
            write(CONTENT)
    assert set(os.listdir(f"{str(caught.value).rpartition(' ')[2]}/publish")) == PUBLISHED
    assert os.listdir("out") == ["mine"]


def save_and_die(moment):
    """Save, and be killed before the given call that writes."""
    calls = []

    def counted(real, *words, **options):
        calls.append(real)
        if len(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*words, **options)

    files.write_atomic, os.utime = (partial(counted, f) for f in (files.write_atomic, os.utime))
    for name in ("mkdir", "rename", "chmod", "rmdir"):
        real = getattr(Path, name)
        setattr(Path, name, lambda *words, real=real, **own: counted(real, *words, **own))
    save()


def test_killed_at_any_moment_there_is_nothing_or_all_and_what_is_left_is_private(place):
    moment, out = 0, place / "out"
    while ended(partial(save_and_die, moment := moment + 1)) == [-signal.SIGKILL]:
        if out.exists() and os.listdir(out):
            assert {name: (out / name).read_text() for name in CONTENT} == CONTENT
            out.rename(place / f"made-{moment}")
        save()
        out.rename(place / f"again-{moment}")
        left = [path for path in place.iterdir() if path.name.startswith((".", "tmp"))]
        assert {path.stat().st_mode & 0o777 for path in left} <= {0o700}
    assert moment > 20
