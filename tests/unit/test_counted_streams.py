"""``pufferflow count``: a line out for each line in, paid for once and before the first."""

import io
import json
import math
import stat
import sys

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._ledger_entries import digest_of
from pufferflow._protection import Level
from pufferflow.publishing import stream as streams
from pufferflow.publishing.sketch import Sketch
from pufferflow.publishing.stream_values import Counted

HOUR = ("--forgets", 5, 0.4, "--epsilon", 1)


@pytest.fixture
def count(run, monkeypatch, tmp_path):
    """Run the command on lines of standard input."""
    monkeypatch.chdir(tmp_path)

    def counted(content, *words):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        return run("count", "-", *words)

    return counted


@pytest.fixture
def silent(monkeypatch):
    """No noise at all."""
    monkeypatch.setattr(pf.RunningCount, "_drawn", lambda self, arity: [0] * (arity + 1))


def column(out):
    return [float(line.split(",")[1]) for line in out.splitlines()[1:]]


def test_a_line_out_for_each_line_in(count, silent):
    code, out, err = count("0\n1\n1\n0\n", *HOUR, "--length", 10, "--ledger", "s.ledger")
    assert code == 0
    assert out.splitlines()[0] == streams.HEADER
    assert column(out) == [0, 1, 2, 2]
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == ["1", "2", "3", "4"]
    assert "Does not protect" in err
    assert [(r.query, r.mechanism) for r in pf.Ledger("s.ledger").reservations()] == [
        ("running count of records that are 1 over up to 10 records", "leakage")
    ]
    assert pf.Ledger("s.ledger").spent <= 1


def test_it_is_paid_for_before_the_first_line_and_a_restart_pays_again(count, tmp_path):
    words = (*HOUR, "--length", 10, "--ledger", "s.ledger")
    assert count("", *words)[0] == 0
    code, out, err = count("1\n", *words)
    assert (code, out) == (2, "")
    assert "the limit of s.ledger is 1" in err
    code, out, err = count("1\n", *HOUR, "--length", 10, "--ledger", "new.ledger", "--limit", 0.5)
    assert (code, out) == (2, "")
    assert not (tmp_path / "new.ledger").exists()


def test_lines_come_one_by_one(silent):
    asked = []

    def values():
        for value in (1, 0, 1):
            asked.append(value)
            yield value

    made = streams.prepare_stream(request(3))
    lines = made.lines(values())
    assert (next(lines), asked) == (streams.HEADER, [])
    for number in (1, 2, 3):
        next(lines)
        assert len(asked) == number
    assert list(lines) == []


def request(length, **options):
    return streams.StreamRequest(
        pf.PublicModel(pf.ForgettingFamily(5, 0.4)), length, 1.0, Counted(), Level(), **options
    )


def test_no_value_counts_as_0_in_a_stream_whatever_it_is(count, silent):
    bad = ("x", "", "2", "nan", "1,5", "\0", "9" * 200_000, '"', "-", "Ä")
    printed = [count(f"1\n{text}\n1\n", *HOUR, "--length", 3, "--no-ledger") for text in ("0", *bad)]
    assert len(set(printed)) == 1
    assert printed[0][0] == 0
    assert column(printed[0][1]) == [1, 1, 2]


def test_a_file_is_refused_at_its_first_bad_line_before_anything_is_drawn(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    drawn = []
    monkeypatch.setattr(streams, "RunningCount", lambda *words, **options: drawn.append(words))
    for content, said in (
        ("0\nsecret\n", "t.csv, line 2: the value is neither 0 nor 1"),
        ("", "there are no records"),
    ):
        (tmp_path / "t.csv").write_text(content)
        code, out, err = run("count", "t.csv", *HOUR)
        assert (code, out) == (2, "")
        assert said in err
        assert "secret" not in err
        assert drawn == []
        assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_file_with_columns_and_decimal_commas(run, monkeypatch, tmp_path, silent):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("zeit;kw\na;2,5\nb;3,0\nc;\nd;inf\n")
    words = ("--value", "kw", "--separator", ";", "--decimal", ",", "--threshold", 3)
    code, out, _ = run("count", "t.csv", *HOUR, *words, "--step", 3600, "--start", "2024-01-01", "--protect", "1d")
    assert code == 0
    assert column(out) == [0, 1, 1, 2]
    assert out.splitlines()[2].startswith("2024-01-01T01:00:00,")
    assert pf.Ledger("t.csv.ledger").reservations()[0].window == 24
    code, _, err = run("count", "t.csv", *HOUR, "--value", "watts", "--separator", ";", "--threshold", 3)
    assert code == 2
    assert "no column 'watts'" in err


def test_a_certificate_and_a_figure(run, count, tmp_path):
    words = (*HOUR, "--length", 3000, "--ledger", "s.ledger", "--certificate", "c.json", "--figure", "f.svg")
    code, out, _ = count("1\n" * 2500, *words)
    assert code == 0
    proof = json.loads((tmp_path / "c.json").read_text())
    assert stat.S_IMODE((tmp_path / "c.json").stat().st_mode) == 0o600
    assert pf.Ledger("s.ledger").reservations()[0].certificate == digest_of(proof)
    assert run("verify", "c.json")[0] == 0
    assert {path.name for path in tmp_path.iterdir()} == {"s.ledger", "c.json", "f.svg", "f.pdf", "f.png"}
    text = (tmp_path / "f.svg").read_text()
    for words in ("Running count", "records that are 1, so far", "Up to 3,000 records, ε = 1 for any record"):
        assert words in text
    lines = out.splitlines()
    for seen, kept in ((2500, [*range(1, 2501, 3)]), (2499, [*range(1, 2500, 3), 2499]), (0, [])):
        sketch = Sketch(3000)
        for line in lines[: seen + 1]:
            sketch.add(line)
        drawn = sketch.table()
        assert drawn["time"].tolist() == kept
        assert drawn["noisy_count"].tolist() == [float(lines[at].split(",")[1]) for at in kept]


def test_a_figure_of_a_stream_that_nobody_reads_to_its_end(count, tmp_path, monkeypatch, only_svg):
    class Pipe(io.StringIO):
        def write(self, text):
            if text.startswith("3,"):
                raise KeyboardInterrupt
            return super().write(text)

    monkeypatch.setattr(sys, "stdout", Pipe())
    assert count("1\n" * 9, *HOUR, "--length", 9, "--no-ledger", "--figure", "f")[0] == 130
    assert (tmp_path / "f.svg").exists()


def test_no_figure_and_no_certificate_before_it_is_paid_for(count, tmp_path):
    words = (*HOUR, "--length", 9, "--ledger", "s.ledger", "--certificate", "c.json", "--figure", "f")
    assert count("kW\n1\n", *words, "--value", "watts")[0] == 2
    assert count("", *words, "--limit", 0.1)[0] == 2
    assert count("", *words, "--dry-run")[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_states_by_name(count, silent):
    words = ("--states", "sit,walk,run", "--count", "walk", "--count", "run", "--length", 9, "--no-ledger")
    code, out, err = count("sit\nwalk\nfly\nrun\n", *HOUR, *words)
    assert (code, column(out)) == (0, [0, 1, 1, 2])
    assert "records in walk or run" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give --length"),
        (("--length", 5), "give --ledger FILE, or --no-ledger"),
        (("--length", 0, "--no-ledger"), "length is 0"),
        (("--length", 5, "--no-ledger", "--count", "a"), "give all states"),
        (("--length", 5, "--no-ledger", "--states", "a,b"), "say what to count"),
        (("--length", 5, "--no-ledger", "--states", "a,b", "--count", "c"), "'c' is none of the states"),
        (("--length", 5, "--no-ledger", "--threshold", "nan"), "threshold"),
        (("--length", 5, "--no-ledger", "--start", "2024"), "no time step is known"),
        (("--length", 5, "--no-ledger", "--start", "noon", "--step", 60), "start is 'noon'"),
        (("--length", 5, "--no-ledger", "--separator", "ab"), "separator is 'ab'"),
        (("--length", 5, "--no-ledger", "--protect", "1h"), "no time step is known"),
    ],
)
def test_what_cannot_be_counted(count, words, said):
    code, out, err = count("1\n", *HOUR, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


def test_a_chain_wants_its_states(count, tmp_path):
    (tmp_path / "m.json").write_text('{"chains": [{"transition_matrix": [[0.5,0.25,0.25],[0.5,0.5,0],[0,0.5,0.5]]}]}')
    words = ("--chain", "m.json", "--epsilon", 1, "--length", 5, "--no-ledger")
    code, _, err = count("1\n", *words)
    assert code == 2
    assert "the chain has 3 states and the stream 2 states" in err
    assert count("a\n", *words, "--states", "a,b,c", "--count", "a")[0] == 0


def test_a_dry_run_reads_draws_and_pays_nothing(count, tmp_path):
    code, out, err = count("1\n", *HOUR, "--length", 5, "--ledger", "s.ledger", "--dry-run")
    assert (code, out) == (0, "")
    assert "a dry run" in err
    assert list(tmp_path.iterdir()) == []


def test_half_widths_hold_and_are_not_much_too_wide():
    rng, times, length = np.random.default_rng(3), 500, 12
    errors = []
    for _ in range(times):
        counter = pf.RunningCount(length, 0.3, rng=rng)
        errors.append([abs(counter.add(1) - t) for t in range(1, length + 1)])
    widths = np.array([counter.half_width(t) for t in range(1, length + 1)])
    covered = (np.array(errors) <= widths).mean(axis=0)
    assert covered.min() > 0.95
    normal = 1.96 * np.array([counter.standard_error(t) for t in range(1, length + 1)])
    assert (widths < 2.2 * normal).all()
    assert widths[-1] < 1.7 * normal[-1]


@pytest.mark.parametrize("length", [1000, 10**6])
def test_the_error_is_within_the_logarithm_of_that_of_a_single_count(length):
    """Root mean square over time, beside one count under the same ε."""
    made = streams.prepare_stream(request(length))
    single = math.sqrt(2) * made.scale
    times = np.random.default_rng(0).integers(1, length + 1, 5000).tolist()
    errors = np.array([made._counter.standard_error(t) for t in times])
    assert math.sqrt(np.mean(errors**2)) < math.log2(length) * single
    assert all(made.half_width(t) < 2.2 * 1.96 * error for t, error in zip(times[:200], errors[:200], strict=True))
