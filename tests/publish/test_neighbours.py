"""Two tables that differ in one reading look alike in all that is seen, but for noise.

So does the time, as far as the program's own work goes: it calls every function as often. Which
readings are there is public, and what is no state is refused before anything is drawn.
"""

import contextlib
import cProfile
import gc
import io
import json
import os
import tempfile
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
from pufferflow.publish.noise import Noise
from pufferflow.records.states import MISSING_TEXTS

ODD = [*"-?+1Ä", "none", "NA", "n/a", "null", "nan", "NaN", "a b", "2.50", "$x$", "=1+1", "other?"]
OF_STATES = ("histogram", "histogram-by-hour", "transitions", "transitions-by-group")
OF_STATES += ("most-frequent", "most-frequent-by-hour")
NUMERIC = (*OF_STATES, "mean-by-hour", "mean", "sum", "exceedances-by-group", "durations")
STRAY = ("no state", "1,5", "0x10", "1e", "--")
WILD = ("1e300", "-inf", "inf", "0", "3.5", "1e-300", "-7", "12345678901234567890")


@st.composite
def cases(draw):
    """A table, one that differs in one reading, in which way, and how both are released."""
    numeric = draw(st.booleans())
    if numeric:
        names, words = [], [*WILD, *map(str, range(-6, 7))]
        edges = sorted(draw(st.sets(st.integers(-5, 5), min_size=1, max_size=3)))
        options = f"--edges={','.join(map(str, edges))} --bounds -3 3 --threshold 1".split()
    else:
        names = draw(st.lists(st.sampled_from(ODD), min_size=2, max_size=4, unique_by=str.lower))
        words, options = names, ["--states", ",".join(names)]
    options += [f"--statistic={name}" for name in (NUMERIC if numeric else OF_STATES)]
    rows = []
    for person in range(draw(st.integers(1, 3))):
        waits = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 20]), min_size=2, max_size=12))
        for step in np.cumsum(waits).tolist():
            rows.append((f"p{person}", step, draw(st.sampled_from([*words, ""]))))
    gone = {text for text in MISSING_TEXTS if text not in {name.lower() for name in names}}
    nearby, edit = [*rows], draw(st.sampled_from(["value", "value", "value", "missing", "stray"]))
    if known := [i for i, row in enumerate(rows) if row[2]]:
        new = {"value": words, "missing": sorted(gone & {"", "na", "?"}), "stray": STRAY}[edit]
        at = draw(st.sampled_from(known))
        nearby[at] = (*rows[at][:2], draw(st.sampled_from(new)))
    if edit == "missing":  # any values of the readings that are left
        rows = [(*row[:2], "" if row[2].lower() in gone else words[0]) for row in nearby]
    level = draw(st.sampled_from(["reading", "3", "participant"]))
    options += ["--protect", level, *["--mixing", "3", "0.5"] * (level != "participant")]
    timed = ["--step", "1min", "--timezone", "UTC"]
    options += draw(st.sampled_from([timed, ["--rows-are-steps"]]))
    return rows, nearby, edit if known else "value", options


def written(rows, path):
    times = [f"{np.datetime64('2022-01-01T00:00:00') + 60 * step}" for _, step, _ in rows]
    table = pd.DataFrame(rows, columns=["who", "time", "reading"])
    table = table.assign(time=times, kind=table["who"].replace("p2", "p0"))
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)


def run(words):
    """Exit code and what is printed of a release whose noisy numbers are all 7; what was drawn."""
    drawn, out, err = [], io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as mp:
        mp.setattr(Noise, "add", lambda of, n, rng: drawn.append((n.shape, of)) or n * 0 + 7)
        mp.setattr(releasing, "most_frequent", lambda n, k, s, _: drawn.append(s) or n[:, :k] * 0)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            words = ["release", *words, "--value", "reading", "--participant", "who"]
            code = cli.main([*words, "--group", "kind", "--epsilon", "1", "--accept-noise"])
    return code, out.getvalue(), err.getvalue(), drawn


def released(rows, suffix, options):
    """What is seen of a release, and all files but for times of entries and their digests."""
    files, table = {}, Path(f"data{suffix}")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        written(rows, table)
        seen = run([str(table), *options])
        for path in {*Path().rglob("*.*")} - {table, Path(f"{table}.release")}:
            content = path.read_bytes()
            if path.suffix == ".ledger":
                rows = [row.content for row in pf.Ledger(path).book.rows]
                content = json.dumps(rows, default=str)
            files[path] = path.stat().st_mode, content
        times = {path.stat().st_mtime_ns for path in Path(f"{table}.release").rglob("*")}
    assert bool(seen[3]) == (seen[0] == 0) == (len(times) == 1)
    return *seen, files


@examples(10, 550)
@given(cases(), st.sampled_from([".csv", ".csv", ".parquet"]))
def test_one_reading_changes_nothing_but_counts(case, suffix):
    rows, nearby, edit, options = case
    code, out, err, _, files = other = released(nearby, suffix, options)
    if edit != "stray":
        assert released(rows, suffix, options) == other
    assert "Traceback" not in err
    if edit == "stray" or code != 0:
        assert (code, out, files, err.count("pufferflow: error:")) == (2, "", {}, 1)


def calls(change, folder):
    """How often each function of the package is called where one of 600 readings is another."""
    values = [str(number) for number in np.random.default_rng(2).integers(0, 9, 600)]
    values[317] = change
    folder.mkdir()
    written([("p", step, value) for step, value in enumerate(values)], folder / "data.csv")
    words = "--mixing 5 0.4 --edges 2:8:2 --bounds 0 9 --timezone UTC --no-ledger "
    words += "--statistic most-frequent "
    words += f"--statistic mean-by-hour --statistic histogram --output {folder}/release"
    profile = cProfile.Profile()
    gc.collect()
    gc.disable()  # what other tests left behind is not to be closed, and counted, meanwhile
    try:
        assert profile.runcall(run, [f"{folder}/data.csv", *words.split()])[0] == 0
    finally:
        gc.enable()
    made = {row.code: row.callcount for row in profile.getstats() if not isinstance(row.code, str)}
    here = os.path.dirname(pf.__file__)
    return {code: count for code, count in made.items() if code.co_filename.startswith(here)}


def test_one_reading_changes_no_call(tmp_path):
    """What is kept from one release to the next is there before the first is looked at."""
    changes = ("5", "4", "1e300", "inf", "-7", "1000000", "3.25")
    _, usual, *others = (calls(change, tmp_path / change) for change in changes)
    assert sum(usual.values()) > 300
    assert all(other == usual for other in others)
