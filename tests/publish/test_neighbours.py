"""Two tables that differ in one reading look alike in all that a release prints and writes, but for noise.

So does the time it takes, as far as the program's own work goes: it draws as often and calls as many
functions. What cannot look alike is refused before anything is drawn (a value that is no state), or is
public (which readings are there: a table with one more or less looks like any other with the same ones).
"""

import contextlib
import gc
import io
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow import cli
from pufferflow.publish import release as releasing
from pufferflow.records.states import MISSING_TEXTS

ODD = ["-", "none", "NA", "n/a", "null", "?", "nan", "NaN", "+", "a b", "1", "2.50", "$x$", "=1+1", "other?", "Ä"]
STRAY = ("no state", "1,5", "0x10", "1e", "--")
"""Neither numbers nor states, nor missing."""
WILD = ("1e300", "-inf", "inf", "0", "3.5", "1e-300", "-7", "12345678901234567890")


@st.composite
def cases(draw):
    """A table, its twin that differs in one reading, in which way, and how both are released."""
    numeric = draw(st.booleans())
    if numeric:
        edges = sorted(draw(st.sets(st.integers(-5, 5), min_size=1, max_size=3)))
        words = [*WILD, *map(str, range(-6, 7))]
        said = ["--edges", ",".join(map(str, edges))]
    else:
        names = draw(st.lists(st.sampled_from(ODD), min_size=2, max_size=4, unique_by=str.lower))
        words = names
        said = ["--states", ",".join(names)]
    claimed = {name.lower() for name in ([] if numeric else names)}
    rows = []
    for person in range(draw(st.integers(1, 3))):
        waits = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 20]), min_size=2, max_size=12))
        for step in np.cumsum(waits).tolist():
            word = draw(st.sampled_from(words)) if draw(st.integers(0, 7)) else ""
            rows.append((f"p{person}", step, word))
    if draw(st.booleans()):
        rows.sort(key=lambda row: (row[1], row[0]))
    known = [i for i, row in enumerate(rows) if row[2]]
    edit = draw(st.sampled_from(["value", "value", "value", "missing", "stray"])) if known else "value"
    twin = list(rows)
    if known:
        at = draw(st.sampled_from(known))
        missing = [text for text in ("", "na", "?") if text not in claimed]
        new = {"value": words, "missing": missing, "stray": STRAY}
        twin[at] = (*rows[at][:2], draw(st.sampled_from(new[edit])))
    level = draw(st.sampled_from(["reading", "3", "participant"]))
    mixing = [] if level == "participant" else ["--mixing", "3", "0.5"]
    options = ["--protect", level, *mixing, *said, "--participant", "who", "--value", "reading"]
    if draw(st.booleans()):
        options.append("--rows-are-steps")
    else:
        options += ["--step", "1min", "--timezone", "UTC"]
    if numeric:
        names = ["mean", "exceedances", "durations"]
        options += [word for name in names for word in ("--statistic", name)]
        options += ["--statistic", "histogram", "--bounds", "-3", "3", "--threshold", "1"]
    gone = {text for text in MISSING_TEXTS if text not in claimed}
    masked = [(*row[:2], "" if row[2].lower() in gone else words[0]) for row in twin]
    return (rows, twin, masked), edit, options


def written(rows, path):
    table = pd.DataFrame(rows, columns=["who", "time", "reading"])
    table["time"] = pd.Timestamp("2022-01-01") + pd.to_timedelta(table["time"] * 60, unit="s")
    table["time"] = table["time"].dt.strftime("%Y-%m-%dT%H:%M:%S")
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)


def released(rows, suffix, options):
    """Exit code, what was printed, and what was written but for times of entries and their digests."""
    drawn = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        written(rows, Path(f"data{suffix}"))
        sevens = lambda counts, scale: drawn.append((len(counts), scale)) or [7] * len(counts)  # noqa: E731
        patch.setattr(releasing, "add_noise", sevens)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            given = ["release", f"data{suffix}", "--epsilon", "1", "--accept-noise", *options]
            code = cli.main(given)
        files = {}
        for path in sorted(Path().rglob("*")):
            if path.is_file() and path.name != f"data{suffix}":
                stat, content = os.stat(path), path.read_bytes()
                if path.suffix == ".ledger":
                    rows_ = [row.content for row in pf.Ledger(path).book.rows]
                    content = json.dumps(rows_, default=str).encode()
                files[str(path)] = (oct(stat.st_mode), len(content), content)
        assert bool(drawn) == (code == 0)
        made = Path(f"data{suffix}.release")
        if code == 0:
            assert len({path.stat().st_mtime_ns for path in made.rglob("*")}) == 1
        return code, out.getvalue(), err.getvalue(), files, drawn


@examples(8, 550)
@given(cases(), st.sampled_from([".csv", ".csv", ".parquet"]))
def test_one_reading_changes_nothing_but_counts(case, suffix):
    (rows, twin, masked), edit, options = case
    other = released(twin, suffix, options)
    if edit == "stray":
        code, out, err, files, _ = other
        assert (code, out, files) == (2, "", {})
        assert err.count("pufferflow: error:") == 1
        return
    one = released(rows if edit == "value" else masked, suffix, options)
    assert one == other
    code, _, err, files, _ = one
    assert "Traceback" not in err
    if code != 0:
        assert (code, files) == (2, {})
        assert err.count("pufferflow: error:") == 1


# -- how long it takes -----------------------------------------------------------------------------

CHANGES = ("1e300", "inf", "-7", "1000000", "3.25")


def words_for(change, path):
    values = [str(number) for number in np.random.default_rng(2).integers(0, 9, 600)]
    values[317] = values[317] if change is None else change
    written([("p", step, value) for step, value in enumerate(values)], path)
    return [
        *("release", str(path), "--mixing", "5", "0.4", "--epsilon", "1", "--edges", "2:8:2"),
        *("--value", "reading", "--participant", "who", "--no-ledger", "--accept-noise"),
        *("--statistic", "mean-by-hour", "--statistic", "histogram", "--bounds", "0", "9"),
        *("--timezone", "UTC"),
    ]


def calls(words, output, monkeypatch):
    """How often each function of the package was called."""
    made, seen = Counter(), os.path.dirname(pf.__file__)

    def count(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(seen):
            made[frame.f_code.co_filename[len(seen) :], frame.f_code.co_name] += 1

    monkeypatch.setattr(releasing, "add_noise", lambda counts, scale: [7] * len(counts))
    output.parent.mkdir()
    before = sys.getprofile()
    gc.collect()
    gc.disable()  # what other tests left behind is not to be closed, and counted, meanwhile
    sys.setprofile(count)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert cli.main([*words, "--output", str(output)]) == 0
    finally:
        sys.setprofile(before)
        gc.enable()
    return made


def test_one_reading_changes_no_call(tmp_path, monkeypatch):
    """What is kept from one release to the next is there before the first is looked at."""
    plain = words_for(None, tmp_path / "data.csv")
    calls(plain, tmp_path / "warm" / "release", monkeypatch)
    usual = calls(plain, tmp_path / "usual" / "release", monkeypatch)
    assert sum(usual.values()) > 300
    for name, change in enumerate(CHANGES):
        words = words_for(change, tmp_path / "data.csv")
        assert calls(words, tmp_path / str(name) / "release", monkeypatch) == usual, change
