"""The ledger's file: what is accepted and refused, hostile files, kills, processes at once."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import itemgetter

import numpy as np
import pytest
from cases import counts, seeds
from forks import ended
from mutants import change, places

import pufferflow as pf
from pufferflow.accounting.account import UNBOUNDED, Charge, Level, Promise
from pufferflow.accounting.entries import Entry, Population, Terms, canonical
from pufferflow.accounting.ledger import Ledger, default_ledger, reserved, try_out
from pufferflow.errors import BudgetError, LedgerError, ParameterError

DAY, READING, INFORMED, PARTICIPANT = Level(48), Level(1), Level(1, "any"), Level(None)
F, WEEK, MONDAY, LONGEST = Fraction, 7 * 86400, 1704067200, 336
COSTS = {DAY: F(1, 50), READING: F(1, 3), INFORMED: F(1, 6)}
"""C at ε = 1, in proportion to ε: the ledger takes what it is given."""
THETA, POPULATION = pf.MixingFamily(2, 0.4).document(), Population(1800, "utc", "meter", ("kwh",))
STATES = {"theta": pf.BinaryInterval(0.3, 0.7).document()}
STATES["of"] = replace(POPULATION, states=["a", "b"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pufferflow.ledger"


def promise_of(level, epsilon=1.0, certificate=None):
    """What the calibration of these tests says."""
    return Promise(level, epsilon, COSTS.get(level, F(0)) * F(epsilon), certificate)


def terms(
    week=0, level=DAY, epsilon=1.0, share=1, *, span=None, limit=None, of=POPULATION, theta=THETA,
    promise=True, query="mean-by-hour", certificate=None, new_values=False,
):  # fmt: skip
    """Terms of a release of one week, with as little noise as its share allows."""
    cost = promise_of(level, epsilon).allowed(LONGEST, F(share))[0]
    span = span or (MONDAY + week * WEEK, MONDAY + (week + 1) * WEEK - 1800)
    entry = Entry(of, Charge(cost, cost * LONGEST, *span), level, epsilon, query, promise)
    allowed = promise_of(level, limit or epsilon, certificate) if promise else None
    return Terms(entry, None if level.whole else theta, allowed, new_values)


def pay(ledger, *args, **changes):
    """Make a release of nothing."""
    with reserved(ledger, terms(*args, **changes)) as paid:
        return paid


def no(said, *args, **changes):
    return terms(*args, **changes), said


def elsewhere(charge, of=POPULATION):
    return Terms(Entry(of, charge, None, None, "a table", promise=False))


yes = partial(no, None)
TIMELESS = replace(POPULATION, step_seconds=None, time_base="none")
FIT, BOTH = {"level": PARTICIPANT, "promise": False}, replace(POPULATION, values=("kwh", "gas"))
LATER = Charge(COSTS[DAY], F(2), MONDAY + WEEK, MONDAY + 2 * WEEK)
OVERLAP = (MONDAY + 52 * WEEK - 1800, MONDAY + 53 * WEEK)
NINES = (253_402_299_000, 253_402_300_798)  # the end of 9999
FREE, WHOLE, FINER = "UTC on are free", "`protect` participant leaves no room", "finer than the"
SPENT = "spent budget stays spent"
OTHER = {"participant": None, "step_seconds": 900, "time_base": "local", "cohort": "north"}
SCENARIOS = {
    "52 weeks at full epsilon, and none twice": [
        *(yes(week) for week in range(52)),
        no(f"readings from 2024-12-30 00:00:00 {FREE}", 17),
        no(f"readings from 2024-12-30 00:00:00 {FREE}", span=OVERLAP),
        yes(52),
    ],
    "until the end of dates": [yes(span=NINES), no(SPENT, span=NINES)],
    "a private fit is paid for in its range": [
        yes(**FIT, span=(MONDAY, MONDAY + 4 * WEEK - 1800)),
        no(f"from 2024-01-29 00:00:00 {FREE}"),
        yes(share=1 - F(1, 336) / COSTS[DAY]),
        yes(4),
    ],
    "hole 1: no other level gives budget back": [
        yes(level=PARTICIPANT, share=F("0.9993")),
        *(no(WHOLE, level=level) for level in (READING, INFORMED, DAY)),
        *(yes(0, level, 0.0001, F(1, 100), limit=1.0) for level in (READING, INFORMED)),
        no(WHOLE, level=PARTICIPANT, share=F("0.0007")),
    ],
    "a cheap release, then participants": [
        yes(0, READING, 0.01, F(1, 10)),  # .112 of one participant
        no(WHOLE, level=PARTICIPANT),
        yes(level=PARTICIPANT, limit=2.0),
        no("`protect` participant is 2, not 3", level=PARTICIPANT, limit=3.0),
    ],
    "hole 2: what is of something else": [
        no("a promise for windows needs an assumption", theta=None),
        yes(),
        *(no(f"have `{n}`", 1, of=replace(POPULATION, **{n: v})) for n, v in OTHER.items()),
        no("have another assumption (Θ)", 1, theta=pf.MixingFamily(1, 0.4).document()),
        no("no earlier release read the column 'gas'", 1, of=BOTH),
        no("a span of 10,000,000 steps", 30_000),
        yes(1, of=BOTH, new_values=True),
        yes(2, of=replace(POPULATION, values=("gas",))),
    ],
    "hole 9: a Θ on states says nothing of finer values": [
        yes(**FIT, epsilon=0.001, of=STATES["of"]),
        no("publish functions of them alone", theta=STATES["theta"]),
        yes(**STATES, share=F("0.9")),
        no(FINER, 2, **FIT, epsilon=0.01),
        no(FINER, 2, **FIT, epsilon=0.01, of=replace(POPULATION, states=[0.5])),
        (elsewhere(LATER), FINER),
        yes(2, **FIT, epsilon=0.01, of=STATES["of"]),
    ],
    "of a finer release before, only the whole cost is known": [
        yes(**FIT, epsilon=0.01),
        no(SPENT, 1, **STATES),
        yes(1, **STATES, share=F(1, 10)),
    ],
    "releases made elsewhere": [
        yes(share=F(1, 2)),
        (elsewhere(replace(LATER, cost=UNBOUNDED)), "its cost is unknown"),
        (elsewhere(replace(LATER, first=None)), f"from 2024-01-08 00:00:00 {FREE}"),
        (elsewhere(LATER, replace(POPULATION, values=("gas",))), "column 'gas'"),
        (elsewhere(LATER), None),
        no(FREE, 1, share=F(1, 100)),
    ],
    "a limit that old rows break": [
        yes(),
        (promise_of(DAY, 0.5), "releases need more than"),
        (promise_of(PARTICIPANT, 6.0), "releases need more than"),
    ],
}


@pytest.mark.parametrize("steps", SCENARIOS.values(), ids=SCENARIOS)
def test_what_is_accepted_and_what_is_refused(path, steps):
    """By all ways to ask; what is refused writes nothing, and what is spent never falls."""
    spent = 0
    for asked, said in steps:
        before = path.read_bytes() if path.exists() else None
        if said is None:
            tried = try_out(path, asked)
            with reserved(path, asked) as paid:
                assert paid == tried
            assert spent <= (spent := Ledger(path).book.spent) <= 1
            continue
        ways = [partial(try_out, path), lambda asked: reserved(path, asked).__enter__()]
        for ask in [Ledger(path).set_limit] if isinstance(asked, Promise) else ways:
            with pytest.raises(pf.PufferflowError, match=re.escape(said)):
                ask(asked)
        assert (path.read_bytes() if path.exists() else None) == before


VALUES = [
    *(None, True, False, "", "x", "\ud800", "1\n2", "\x1b[31m", [], {}, [1], {"a": 1}, -1, 0, 1, 2),
    *(0.5, -0.0, 1e-320, 1e308, 10**400, 2**62, 2**63, 1e-90, 1e91, "inf", "nan", "1/0", "-1/3"),
    *("0", "1/3", "9" * 5000, "1e999999999", "theta", "made", "none", "any", "utc", [[[1.0]]]),
    *(MONDAY + week * WEEK + late for week in (-1, 1, 2, 4) for late in (-1800, -1, 0)),
    *("null", "{", "[1]", '{"epsilon":NaN}', '{"epsilon":1,"epsilon":9}', "[" * 100_000),
]


def rows_of(path):
    """Time, kind and content of each row, the content as a document."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT time, kind, content FROM entries ORDER BY number")
        return [[time, kind, json.loads(content)] for time, kind, content in rows]


def rewrite(path, rows):
    """Put these rows in the ledger, with digests that fit; what SQLite refuses is left out."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM entries")
        previous, number = "", 0
        for time, kind, content in rows:
            text = content if isinstance(content, str) else canonical(content)
            row = [number + 1, time, kind, text]
            try:
                document = canonical({"after": previous, "entry": row})
                digest = hashlib.sha256(document.encode()).hexdigest()
                connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (*row, digest))
            except (sqlite3.Error, OverflowError, UnicodeEncodeError):
                continue
            previous, number = digest, number + 1
        connection.commit()


def forge(rows, rng):
    """The rows with some parts changed, numbers mostly; rows deleted, doubled or swapped."""
    document = {"rows": rows}
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        every = [(path, part) for path, part in places(document) if len(path) != 2]
        numbers = [path for path, part in every if str(part).replace("/", "").isdecimal()]
        if chosen := numbers if rng.random() < 0.5 else [path for path, _ in every]:
            change(document, chosen[rng.integers(len(chosen))], rng, VALUES)
    return document["rows"] if isinstance(document["rows"], list) else []


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A ledger of all kinds of rows."""
    path = tmp_path_factory.mktemp("ledger") / "whole"
    pay(path, level=PARTICIPANT, promise=False, epsilon=0.1, **STATES)
    pay(path, share=F(1, 2), certificate={"nodes": [*range(99)]}, **STATES)
    pay(path, share=F(1, 4), **STATES)
    pay(path, 3, READING, share=F(1, 20), limit=2.0, **STATES)
    pay(path, 5, level=PARTICIPANT, limit=300.0, **STATES)
    Ledger(path).set_limit(promise_of(DAY, 2.0))
    return path


def promised_by(rows):
    """Whether all promises hold, by a second way of reading the rows and of adding up."""
    kinds = "theta", "release", "promise"
    theta, paid, promises = ([c for _, kind, c in rows if kind == name] for name in kinds)
    fixed = itemgetter("participant", "step_seconds", "time_base", "cohort")
    kept = [len(theta) < 2, len({json.dumps(fixed(row["population"])) for row in paid}) < 2]

    def number(text):
        return 10**400 if text == "inf" else F(text)

    def cost_at(time, row):
        first, last = row["charge"]["first"], row["charge"]["last"]
        if (first is not None and time < first) or (last is not None and last < time):
            return 0
        finer = theta and theta[0]["states"] not in (None, row["population"]["states"])
        return 10**400 if finer else number(row["charge"]["cost"])

    def key(level):
        return level["window"], level["window"] and level["side_information"]

    times = {row["charge"]["first"] for row in paid} - {None} | {-(10**15)}
    highest = max(sum(cost_at(time, row) for row in paid) for time in times)
    everything = sum(number(row["charge"]["whole"]) for row in paid)
    levels = {key(row["level"]): row for row in promises}  # the last ones
    for (window, _), row in levels.items():
        by_time = window is not None and theta and highest <= F(row["cost"])
        kept.append(by_time or everything <= F(row["epsilon"]))
    kept += [key(row["level"]) in levels for row in paid if row["promise"]]
    kept += [number(row["charge"][name]) >= 0 for row in paid for name in ("cost", "whole")]
    return all(kept)


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_accepted_rows_keep_their_promises(whole, path, seed):
    rng, usable = np.random.default_rng(seed), 0
    for _ in range(40):
        rewrite(path, forge(rows_of(shutil.copyfile(whole, path)), rng))
        before, said = path.read_bytes(), ""
        try:
            Ledger(path).to_dict()
            usable += 1
            assert promised_by(rows_of(path))
        except LedgerError as error:
            said = str(error)
        assert not {"\n", "\x1b"} & {*said}
        assert path.read_bytes() == before
        with suppress(LedgerError, BudgetError):
            pay(path, 6, share=F(1, 9), **STATES)
            assert promised_by(rows_of(path))
    assert 0 < usable < 40


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_changed_bytes_are_refused_or_change_nothing(whole, path, seed):
    rng, said = random.Random(f"bytes {seed}"), Ledger(whole).to_dict()
    for _ in range(60):
        content = bytearray(whole.read_bytes())
        for _ in range(rng.choice((1, 1, 3, 30))):
            at = rng.randrange(120) if rng.random() < 0.3 else rng.randrange(len(content))
            content[at] = rng.randrange(256)
        path.write_bytes(content[: rng.choice((None,) * 9 + (rng.randrange(len(content)),))])
        with suppress(LedgerError):
            assert Ledger(path).to_dict() == said


def test_foreign_files_and_paths_are_refused_and_left_alone(path, whole):
    own = whole.read_bytes()  # bytes 60 to 63 are the version, the last 4 of 72 PUFF
    foreign = [own[:63] + b"\4" + own[64:], own[:71] + b"G" + own[72:], b"time,value\n1,2\n", b""]
    for content in foreign:
        path.write_bytes(content)
        for open_it in (Ledger, Ledger.create, pay):
            with pytest.raises(LedgerError, match="no ledger of this program is there"):
                open_it(path)
        assert path.read_bytes() == content
    os.mkfifo(path.with_name("pipe"))
    for name in ("none", "pipe", ".", "none/x"):
        with pytest.raises(LedgerError):
            (Ledger.create if name == "none/x" else Ledger)(path.parent / name)
    os.symlink(path, path.with_name("other.csv"))
    assert default_ledger(path.with_name("other.csv")) == path


@pytest.mark.parametrize("change", ["content = replace(content, '1/50', '1/99')", "number = 0"])
def test_tampering_is_noticed(path, change):
    pay(path)
    ledger = Ledger(path)
    entries, noted = ledger.verify()
    pay(path, 1)
    assert (entries, ledger.verify(noted)[0]) == (4, 6)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM entries WHERE number > 3")
        with pytest.raises(LedgerError, match="no row has the digest that was noted"):
            ledger.verify(noted)
        connection.execute(f"UPDATE entries SET {change} WHERE number = 2")
        for use in (ledger.verify, lambda: pay(path, 3)):
            with pytest.raises(LedgerError, match="was changed after it was written"):
                use()
        connection.execute("CREATE VIEW more AS SELECT 1")
    with pytest.raises(LedgerError, match="not as this program makes it"):
        ledger.verify()


def reserve(path, name, seconds=600.0):
    """Make a release of a fifth of the limit, or be killed after so long."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    pay(path, share=F(1, 5), query=name)


@pytest.mark.parametrize("processes", counts(16, 50))
def test_processes_at_once_never_overspend_and_lose_no_row(path, processes):
    """The first of them make the file; five of a fifth each fit, whoever comes first."""
    codes = ended(*(partial(reserve, path, f"q{i}") for i in range(processes)))
    shown = Ledger(path).to_dict()["releases"]
    made = {one["query"] for one in shown if one["made"]}
    assert made == {f"q{i}" for i, code in enumerate(codes) if code == 0}
    assert (len(made), len(shown), Ledger(path).verify()[0]) == (5, 5, 12)
    assert (path.stat().st_mode & 0o777, os.listdir(path.parent)) == (0o600, [path.name])


def test_a_thread_that_opens_the_ledger_leaves_the_lock_of_another_one(path):
    pay(path)
    begin = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 0).execute('BEGIN IMMEDIATE')"
    with Ledger(path)._open(writing=True):
        Ledger.create(path)
        done = subprocess.run([sys.executable, "-c", begin, path], capture_output=True, text=True)
    assert "database is locked" in done.stderr


def test_the_end_of_a_charge_is_on_the_disk(path, monkeypatch):
    """Else power loss brings back SQLite's journal, which undoes it."""
    pay(path)
    opened, connect = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *a, **k: opened.append(connect(*a, **k)) or opened[-1]
    )
    with Ledger(path)._open(writing=True):
        assert opened[-1].execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


def test_kills_leave_a_readable_ledger(path):
    began = time.monotonic()
    codes = ended(partial(reserve, path, "whole"))
    took = time.monotonic() - began
    Ledger(path).set_limit(promise_of(DAY, 100.0))
    for i in range(20):
        codes += ended(partial(reserve, path, f"q{i}", took * (i + 1) / 20))
        Ledger(path).verify()
    assert codes[0] == 0
    assert -signal.SIGALRM in codes
    assert Ledger(path).to_dict()["releases"][0]["made"]
    pay(path, 1)


def test_what_is_paid_for_stays_paid_for(path):
    said = "the ledger counts it as spent all the same"
    with pytest.raises(OSError, match=said), reserved(path, terms()):
        raise OSError(28, "no space left on device", "out")
    assert [one["made"] for one in Ledger(path).to_dict()["releases"]] == [False]
    with pytest.raises(BudgetError):
        pay(path)
    said = "ledger show lists the entries, which are spent"
    with pytest.raises(LedgerError, match=said), reserved(path, terms(1)):
        path.unlink()


@pytest.mark.parametrize("wrong", [{"query": "a\nb"}, {"query": 3}, {"of": TIMELESS}])
def test_what_no_entry_may_hold(wrong):
    with pytest.raises(ParameterError, match=r"query is|the ledger has none"):
        terms(**wrong)
