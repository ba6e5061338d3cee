"""Two tables that differ in one record look alike in all that a release prints and writes, but for the noisy counts.

So does the time it takes, as far as the program's own work goes: it draws as often and calls as many functions. In the
long run the times themselves are compared.

What cannot look alike is refused before anything is drawn (a value that is no state), or is public (which records are
there: a table with one more or less looks like any other with the same ones). And the T that the noise is for is never
below the longest run of records that the step of the model connects.
"""

import contextlib
import gc
import io
import json
import os
import sys
import tempfile
import time
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
from pufferflow.models import write_model
from pufferflow.publishing import release as releasing
from pufferflow.records.rows import MISSING_TEXTS

ODD = ("-", "none", "NA", "n/a", "null", "?", "nan", "NaN", "+", "a b", "1", "2.50", "$x$", "=1+1", "other?", "Ä")
STRAY = ("no state", "1,5", "0x10", "1e", "--")
"""Neither numbers nor states, nor missing."""

WILD = ("1e300", "-inf", "inf", "0", "3.5", "1e-300", "-7", "12345678901234567890")


@st.composite
def cases(draw):
    """A table, its twin that differs in one record, in which way, and how both are released."""
    numeric = draw(st.booleans())
    if numeric:
        space = pf.StateSpace.numeric(sorted(draw(st.sets(st.integers(-5, 5), min_size=1, max_size=3))))
        words = [*WILD, *map(str, range(-6, 7))]
    else:
        names = draw(st.lists(st.sampled_from(ODD), min_size=2, max_size=4, unique_by=str.lower))
        space = pf.StateSpace.categories(names, other=draw(st.booleans()))
        words = names + [text for text in (ODD if space.other else ()) if text.lower() not in MISSING_TEXTS]
    people = draw(st.integers(1, 3))
    rows = []
    for person in range(people):
        waits = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 20]), min_size=1, max_size=12))
        for step in np.cumsum(waits).tolist():
            rows.append((f"p{person}", step, draw(st.sampled_from(words)) if draw(st.integers(0, 7)) else ""))
    if draw(st.booleans()):
        rows.sort(key=lambda row: (row[1], row[0]))
    known = [i for i, row in enumerate(rows) if row[2]]
    edit = draw(st.sampled_from(["value", "value", "value", "missing", "stray"]))
    if not known or (not numeric and space.other):  # every text has a state
        edit = "value"
    twin = list(rows)
    if known:
        at = draw(st.sampled_from(known))
        new = {"value": words, "missing": [text for text in ("", "na", "?") if not space.claims(text)], "stray": STRAY}
        twin[at] = (*rows[at][:2], draw(st.sampled_from(new[edit])))
    timed = draw(st.booleans())
    step = draw(st.sampled_from([60, 60, 60, 30])) if timed else None
    split = draw(st.sampled_from([None, None, 90, 600])) if timed else None
    form = pf.RecordFormat(space, step, split, split_because=None if split is None else "the device was off")
    matrix = np.array(draw(st.lists(st.integers(1, 9), min_size=space.count**2, max_size=space.count**2)), dtype=float)
    matrix = matrix.reshape(space.count, -1)
    chain = pf.MarkovChain(matrix / matrix.sum(axis=1, keepdims=True), draw(st.sampled_from(["stationary", "any"])))
    reading = draw(st.sampled_from([[], [], ["--participant", "who"], ["--participant", "time"]]))
    if not timed:
        reading = [*reading, "--rows-are-steps"]
    if draw(st.integers(0, 19)):  # the others choose among all mechanisms and keep an account, which takes longer
        reading = [*reading, "--mechanism", "group-dp", "--no-ledger"]
    missing = {text for text in MISSING_TEXTS if not space.claims(text)}
    masked = [(*row[:2], "" if row[2].lower() in missing else words[0]) for row in twin]
    return (rows, twin, masked), edit, pf.PublicModel(pf.ChainFamily([chain]), form), [*reading, "--value", "reading"]


def written(rows, path):
    table = pd.DataFrame(rows, columns=["who", "time", "reading"])
    table["time"] = pd.Timestamp("2022-01-01") + pd.to_timedelta(table["time"] * 60, unit="s")
    table["time"] = table["time"].dt.strftime("%Y-%m-%dT%H:%M:%S")
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)


def released(rows, suffix, model, words):
    """Exit code, what was printed, what was written but for times and their digests, and the T of the noise.

    Before a refusal nothing is drawn.
    """
    drawn = []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        written(rows, Path(f"data{suffix}"))
        write_model("model.json", model.family, model.records)
        draw = lambda counts, scale: drawn.append((len(counts), scale)) or [7] * len(counts)  # noqa: E731
        patch.setattr(releasing, "add_noise", draw)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(
                ["release", f"data{suffix}", "--chain", "model.json", "--epsilon", "1", "--no-figure", *words]
            )
        files = {}
        for path in sorted(Path().rglob("*")):
            if path.is_file() and path.name not in (f"data{suffix}", "model.json"):
                stat = os.stat(path)
                content = path.read_bytes()
                if path.suffix == ".ledger":
                    shown = pf.Ledger(path).to_dict()
                    content = json.dumps(
                        shown | {"releases": [r | {"time": ""} for r in shown["releases"]]}, default=str
                    ).encode()
                files[str(path)] = (oct(stat.st_mode), len(content), content)
        assert bool(drawn) == (code == 0)
        if code == 0:
            assert len({path.stat().st_mtime_ns for path in Path(f"data{suffix}.release").rglob("*")}) == 1
        histogram = [json.loads(f[2]) for name, f in files.items() if name.endswith("histogram.json")]
        length = histogram[0]["longest_segment"] if histogram else None
        return code, out.getvalue(), err.getvalue(), files, length, drawn


def longest_run(rows, model, words):
    """Longest run of records of one series in which each follows the one before by the step of the model."""
    together = {}
    for who, step, value in rows:
        together.setdefault(who if "who" in words else "", []).append((step, value))
    longest = 0
    for series in together.values():
        at = [
            (k if model.records.step_seconds is None else step * 60) for k, (step, value) in enumerate(series) if value
        ]
        run = 0
        for before, here in zip([None, *at], at, strict=False):
            run = run + 1 if before is not None and here - before == (model.records.step_seconds or 1) else 1
            longest = max(longest, run)
    return longest


@examples(8, 550)
@given(cases(), st.sampled_from([".csv", ".csv", ".parquet"]))
def test_one_record_changes_nothing_but_counts(case, suffix):
    (rows, twin, masked), edit, model, words = case
    other = released(twin, suffix, model, words)
    if edit == "stray":
        code, out, err, files, _, _ = other
        assert (code, out, files) == (2, "", {})
        assert err.count("pufferflow: error:") == 1
        return
    one = released(rows if edit == "value" else masked, suffix, model, words)
    assert one == other
    code, _, err, files, length, _ = one
    assert code in (0, 2)
    assert "Traceback" not in err
    if code == 2:
        assert not files
        assert err.count("pufferflow: error:") == 1
    else:
        assert length >= max(2, longest_run(masked, model, words))


# -- how long it takes -----------------------------------------------------------------------------------

CHANGES = {"outlier": "1e300", "infinite": "inf", "other sign": "-7", "new state": "1000000", "many digits": "3.25"}
ROWS = 600


def numbers(change=None):
    """A record of numbers, one of which may be another."""
    values = [str(number) for number in np.random.default_rng(2).integers(0, 9, ROWS)]
    values[317] = values[317] if change is None else change
    return [("p", step, value) for step, value in enumerate(values)]


def prepared(change, path):
    written(numbers(change), path)
    return [
        *("release", str(path), "--forgets", "5", "0.4", "--epsilon", "1", "--edges", "2:8:2", "--step", "60"),
        *("--value", "reading", "--participant", "who", "--no-ledger", "--no-figure", "--statistic", "mean-by-hour"),
        *("--statistic", "histogram", "--bounds", "0", "9", "--mechanism", "leakage"),
    ]


def run_once(words, output):
    output.parent.mkdir()  # of its own: others in the same one are looked at
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert cli.main([*words, "--output", str(output)]) == 0


def calls(words, output, monkeypatch):
    """How often each function of the package was called."""
    made, seen = Counter(), os.path.dirname(pf.__file__)

    def count(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(seen):
            made[frame.f_code.co_filename[len(seen) :], frame.f_code.co_name] += 1

    monkeypatch.setattr(releasing, "add_noise", lambda counts, scale: [7] * len(counts))
    before = sys.getprofile()
    gc.collect()
    gc.disable()  # what other tests left behind is not to be closed, and counted, meanwhile
    sys.setprofile(count)
    try:
        run_once(words, output)
    finally:
        sys.setprofile(before)
        gc.enable()
    return made


def test_one_record_changes_no_call(tmp_path, monkeypatch):
    """What is kept from one release to the next is there before the first is looked at."""
    plain = prepared(None, tmp_path / "data.csv")
    run_once(plain, tmp_path / "warm" / "release")
    usual = calls(plain, tmp_path / "usual" / "release", monkeypatch)
    assert sum(usual.values()) > 500
    for name, change in CHANGES.items():
        words = prepared(change, tmp_path / "data.csv")
        assert calls(words, tmp_path / name / "release", monkeypatch) == usual, name


@pytest.mark.long
def test_one_record_changes_no_second(tmp_path):
    """Medians of 15 runs each, in turn, of processor time."""
    taken = {name: [] for name in ("", *CHANGES)}
    run_once(prepared(None, tmp_path / "data.csv"), tmp_path / "warm" / "release")
    for number in range(15):
        for name, times in taken.items():
            words = prepared(CHANGES.get(name), tmp_path / "data.csv")
            begin = time.process_time()
            run_once(words, tmp_path / f"{name}{number}" / "release")
            times.append(time.process_time() - begin)
    medians = {name: float(np.median(times)) for name, times in taken.items()}
    assert max(medians.values()) - min(medians.values()) < 0.5, medians
