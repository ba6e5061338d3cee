"""The ledger's file: what is accepted and refused, hostile files, kills, processes at once."""

import base64
import json
import math
import multiprocessing
import os
import random
import shutil
import sqlite3
import time
import zlib
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction

import pytest
from cases import counts, seeds
from forged_ledgers import mutate, rewrite, rows_of
from tests.helpers.ledger_worker import (
    COSTS,
    DAY,
    INFORMED,
    LONGEST,
    MONDAY,
    OF_STATES,
    PARTICIPANT,
    POPULATION,
    READING,
    THETA,
    WEEK,
    pay,
    promise_of,
    terms,
    work,
)

import pufferflow as pf
from pufferflow.accounting.account import UNBOUNDED, Charge, Promise, holds, spent
from pufferflow.accounting.ledger import Ledger, default_ledger, rehearsed, reserved

FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["tests.helpers.ledger_server"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pufferflow.ledger"


def calibrate(theta, level, epsilon):
    assert theta in (THETA, OF_STATES)
    return promise_of(level, epsilon).cost, {"of": epsilon}


def refused(path, *args, error=pf.BudgetError, **changes):
    """The refusal of a release, also when it is only tried, and that nothing was written."""
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(error) as dry:
        rehearsed(path, *terms(*args, **changes))
    with pytest.raises(error) as found:
        pay(path, *args, **changes)
    assert (path.read_bytes() if path.exists() else None) == before
    assert str(found.value) == str(dry.value)
    return found.value


# -- a year of publications ------------------------------------------------------------------------


def test_52_weeks_at_full_epsilon_and_none_twice(path):
    paid = pay(path)
    assert (paid.number, paid.spent, paid.used, paid.name) == (3, 1, 1, path.name)
    for week in range(1, 52):
        assert rehearsed(path, *terms(week)).spent == pay(path, week).spent == 1
    again = refused(path, 17)
    assert "2024-12-30 00:00:00 UTC on are free" in str(again)
    assert (again.free, again.share) == (MONDAY + 52 * WEEK, 0)
    instant = (MONDAY + 52 * WEEK - 1800, MONDAY + 53 * WEEK)
    assert refused(path, span=instant).free == again.free
    pay(path, 52)
    assert Ledger(path).spent == 1
    assert "more than 10,000,000 steps" in str(refused(path, 30_000, error=pf.LedgerError))
    other, latest = path.with_name("other"), (253_402_299_000, 253_402_300_798)  # in 9999
    pay(other, span=latest)
    assert refused(other, span=latest).free is None


def test_rolling_weeks_and_several_kinds(path):
    for week in range(8):
        pay(path, week, weeks=4, share=Fraction(1, 4))
    half = refused(path, 8, weeks=4, share=Fraction(1, 2))
    assert (half.free, half.share) == (MONDAY + 9 * WEEK, 0.25)
    assert refused(path, 7, weeks=4, share=Fraction(1, 2)).share == 0
    for week in range(20, 24):
        pay(path, week, share=Fraction("0.9"))
    pay(path, 20, weeks=4, share=Fraction("0.1"), query="histogram")
    assert Ledger(path).spent == 1
    assert refused(path, 22, share=Fraction("0.001")).free == MONDAY + 24 * WEEK


def test_a_private_fit_before_releases(path):
    fit = terms(level=PARTICIPANT, promise=False, query="private fit", weeks=4)
    with reserved(path, *fit) as paid:
        assert paid.spent == 0
    # its cost is paid for in its range, so the first release leaves as much
    share = 1 - Fraction(1, LONGEST) / COSTS[DAY]
    assert Fraction(refused(path).share).limit_denominator(1000) <= share
    pay(path, share=share)
    pay(path, 4)
    kinds = [row.kind for row in Ledger(path).entries()[:5]]
    assert kinds == ["release", "made", "theta", "promise", "release"]


def test_without_times_everything_adds_up(path):
    timeless = replace(POPULATION, step_seconds=None, time_base="none")
    pay(path, of=timeless, span=(None, None), share=Fraction(3, 4))
    over = refused(path, of=timeless, span=(None, None), share=Fraction(1, 2))
    assert "without times everything adds up; with times new readings are free" in str(over)
    assert (over.free, over.share) == (None, 0.25)
    refused(path, of=timeless, error=pf.LedgerError)  # a range of times where there are none
    refused(path, span=(None, None), error=pf.LedgerError)


# -- the holes of the issue ------------------------------------------------------------------------


def test_no_other_level_gives_budget_back(path):
    """Hole 1: participants spent .9993, then a cheap release of single readings: spent .0161."""
    pay(path, level=PARTICIPANT, share=Fraction("0.9993"))
    before = Ledger(path).spent
    for level in (READING, INFORMED, DAY):
        assert "for whole participants leaves no room" in str(refused(path, level=level))
    for level in (READING, INFORMED):
        pay(path, level=level, epsilon=0.0001, share=Fraction(1, 100), limit=1.0)
        assert Ledger(path).spent > before
    assert refused(path, level=PARTICIPANT, share=Fraction("0.9993")).share < 0.0007
    assert Ledger(path).to_dict()["spent_percent"] == 100


def test_a_cheap_release_first(path):
    pay(path, level=READING, epsilon=0.01, share=Fraction(1, 10))
    cost = COSTS[READING] * Fraction(0.01) / 10 * LONGEST  # .112 of one participant
    assert refused(path, level=PARTICIPANT).share == math.floor(1000 * (1 - cost)) / 1000
    pay(path, level=PARTICIPANT, limit=2.0)
    assert refused(path, level=PARTICIPANT, limit=3.0, error=pf.LedgerError)


def test_what_is_of_something_else_is_refused(path):
    """Hole 2: fits by house and by day were added as if of the same person."""
    pay(path)
    for change in (
        *({"participant": other} for other in ("day", None)),
        *({"step_seconds": 900}, {"time_base": "local"}, {"cohort": "north"}),
    ):
        [name] = change
        error = refused(path, 1, of=replace(POPULATION, **change), error=pf.LedgerError)
        assert f"its releases have {name}" in str(error)
    other = pf.MixingFamily(1, 0.4).document()
    error = refused(path, 1, theta=other, error=pf.LedgerError)
    assert "its releases assume something else (Θ)" in str(error)
    with pytest.raises(pf.ParameterError, match="of windows Θ too"):
        pay(path, 1, theta=None)
    both = replace(POPULATION, values=("kwh", "gas"))
    assert "column 'gas'" in str(refused(path, 1, of=both, error=pf.LedgerError))
    pay(path, 1, of=both, new_values=True)
    pay(path, 2, of=replace(POPULATION, values=("gas",)))
    assert Ledger(path).book.population.values == ("kwh", "gas")


def test_what_is_finer_than_the_states_of_theta(path):
    """Hole 9: a Θ on states says nothing of the values within them; only D is known then."""
    states = replace(POPULATION, states=[1.5])
    pay(path, level=PARTICIPANT, epsilon=0.001, promise=False, of=states)
    with pytest.raises(pf.ParameterError, match="publish functions of them alone"):
        pay(path, theta=OF_STATES)
    pay(path, theta=OF_STATES, of=states, share=Fraction("0.9"))
    for finer in (POPULATION, replace(POPULATION, states=[0.5])):
        error = refused(path, 2, PARTICIPANT, 0.01, of=finer, promise=False)
        assert "finer than the states of Θ" in str(error)
    pay(path, 2, PARTICIPANT, 0.01, of=states, promise=False)
    # where the finer release was first, only what everything of a participant costs can be promised
    other = path.with_name("other")
    pay(other, level=PARTICIPANT, epsilon=0.01, promise=False)
    error = refused(other, 1, of=states, theta=OF_STATES)
    assert "already costs more; give a larger --limit, or --alone" in str(error)
    pay(other, 1, of=states, theta=OF_STATES, share=Fraction(1, 10))
    assert Ledger(other).spent == Fraction(0.01) + Fraction(LONGEST, 500)
    # nor is anything said of a release made elsewhere, unless its states are given
    charge = Charge(Fraction(1, 10**6), Fraction(1, 3), 0, 0)
    with pytest.raises(pf.BudgetError):
        Ledger(path).add("x", charge, POPULATION)
    Ledger(path).add("x", charge, states)


# -- limits, and releases made elsewhere -----------------------------------------------------------


def test_limits_that_old_rows_break_leave_the_file_as_it_is(path):
    pay(path)
    book, before = Ledger(path), path.read_bytes()
    for level, epsilon in ((DAY, 0.5), (PARTICIPANT, 6.0)):
        with pytest.raises(pf.BudgetError, match="releases that are there need"):
            book.set_limit(level, epsilon, calibrate)
    assert path.read_bytes() == before
    book.set_limit(DAY, 2.0, calibrate)
    error = refused(path, limit=3.0, error=pf.LedgerError)
    assert "its limit for 48 readings is 2, not 3" in str(error)
    pay(path)
    assert (book.spent, [one.epsilon for one in book.book.promises.values()]) == (1, [2.0])
    book.set_limit(PARTICIPANT, 20.0, calibrate)
    assert "whole participants" in str(refused(path, 1, weeks=4, share=3))
    with pytest.raises(pf.LedgerError, match="it has no assumption yet"):
        Ledger.create(path.with_name("empty")).set_limit(DAY, 1.0, calibrate)


def test_releases_made_elsewhere(path):
    with pytest.raises(pf.LedgerError, match="it is empty"):
        Ledger.create(path).add("a table", Charge(1, 1), None)
    pay(path, share=Fraction(1, 2))
    book, before = Ledger(path), path.read_bytes()
    elsewhere = Charge(COSTS[DAY], 2, MONDAY + WEEK, MONDAY + 2 * WEEK)
    for charge, of, error in (
        (elsewhere, None, pf.BudgetError),
        (replace(elsewhere, cost=UNBOUNDED), POPULATION, pf.BudgetError),
        (replace(elsewhere, first=None), POPULATION, pf.BudgetError),
        (elsewhere, replace(POPULATION, values=("gas",)), pf.LedgerError),
        (elsewhere, replace(POPULATION, participant="house"), pf.LedgerError),
    ):
        with pytest.raises(error):
            book.add("a table", charge, of)
    assert path.read_bytes() == before
    assert book.add("a table", elsewhere, POPULATION).spent == 1
    assert book.to_dict()["releases"][-1]["level"] is None
    refused(path, 1, share=Fraction(1, 100))


@pytest.mark.parametrize("seed", seeds(3, 40))
def test_what_a_file_says_is_spent_never_falls(tmp_path, seed):
    rng, path = random.Random(seed), tmp_path / "l"
    book, before, accepted = Ledger.create(path), Fraction(0), 0
    charges, promises = [], {}
    for turn in range(25):
        level = rng.choice([DAY, READING, INFORMED, PARTICIPANT])
        epsilon, share = rng.choice([0.01, 0.5, 1.0]), Fraction(rng.randrange(1, 9), 8)
        week, weeks = rng.randrange(12), rng.choice([1, 1, 4])
        what = rng.choice(["release", "release", "release", "alone", "fit", "limit", "add"])
        content = path.read_bytes()
        try:
            if what == "limit":
                known = promises.get(level)
                epsilon = epsilon if known is None else known.epsilon * rng.choice([0.5, 0.9])
                book.set_limit(level, epsilon, calibrate)
                promises[level] = promise_of(level, epsilon)
            elif what == "add":
                charge = terms(week, level, epsilon, share)[4].charge
                book.add("elsewhere", charge, POPULATION if turn else None)
                charges.append(charge)
            else:
                level = PARTICIPANT if what == "fit" else level
                asked = terms(week, level, epsilon, share, weeks=weeks, promise=what == "release")
                assert rehearsed(book, *asked).spent >= before
                with reserved(book, *asked) as paid:
                    assert paid.spent == book.spent
                charges.append(asked[4].charge)
                if what == "release":
                    promises.setdefault(level, asked[2])
        except (pf.BudgetError, pf.LedgerError):
            assert path.read_bytes() == content
            continue
        accepted += 1
        assert before <= book.spent <= 1
        before = book.spent
        assert before == spent(promises.values(), charges)
        assert all(holds(one, charges) for one in promises.values())
    assert accepted > 1
    assert book.book.charges == charges
    assert book.verify()[0] == len(book.entries())


# -- files that anybody may have written -----------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A ledger of all kinds of rows."""
    path = tmp_path_factory.mktemp("ledger") / "whole"
    of = {"of": replace(POPULATION, states=["a", "b"]), "theta": OF_STATES}
    pay(path, level=PARTICIPANT, promise=False, epsilon=0.1, **of)
    pay(path, share=Fraction(1, 2), certificate={"of": 1}, **of)
    pay(path, share=Fraction(1, 4), **of)
    pay(path, 3, READING, share=Fraction(1, 20), limit=2.0, **of)
    pay(path, 5, level=PARTICIPANT, limit=300.0, **of)
    Ledger(path).set_limit(DAY, 2.0, calibrate)
    return path


def promised_by(rows):
    """Whether all promises hold, by a second way of reading the rows and of adding up."""
    theta = [content for _, kind, content in rows if kind == "theta"]
    paid = [content for _, kind, content in rows if kind == "release"]
    fixed = ("participant", "step_seconds", "time_base", "cohort")
    of = {json.dumps([content["population"][name] for name in fixed]) for content in paid}

    def number(text):
        return 10**400 if text == "inf" else Fraction(text)

    def cost_at(time, content):
        charge, states = content["charge"], content["population"]["states"]
        first, last = charge["first"], charge["last"]
        if (first is not None and time < first) or (last is not None and last < time):
            return 0
        finer = theta and theta[0]["states"] is not None and states != theta[0]["states"]
        return 10**400 if finer else number(charge["cost"])

    def key(level):
        return level["window"], level["window"] and level["side_information"]

    times = {content["charge"]["first"] for content in paid} - {None} | {-(10**15)}
    highest = max(sum(cost_at(time, content) for content in paid) for time in times)
    everything = sum(number(content["charge"]["whole"]) for content in paid)
    levels = {key(c["level"]): c for _, kind, c in rows if kind == "promise"}  # the last ones
    kept = [len(of) < 2, len(theta) < 2]
    for (window, _), content in levels.items():
        by_time = window is not None and theta and highest <= Fraction(content["cost"])
        kept.append(by_time or everything <= Fraction(content["epsilon"]))
    kept += [key(content["level"]) in levels for content in paid if content["promise"]]
    kept += [number(c["charge"][name]) >= 0 for c in paid for name in ("cost", "whole")]
    return all(kept)


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_accepted_rows_keep_their_promises(whole, tmp_path, seed):
    rng, usable = random.Random(f"rows {seed}"), 0
    for turn in range(40):
        path = tmp_path / f"{turn}"
        shutil.copyfile(whole, path)
        rows = rows_of(path)
        mutate(rows, rng)
        rewrite(path, rows)
        before = path.read_bytes()
        try:
            Ledger(path).verify()
        except pf.LedgerError as error:
            said = str(error)
        else:
            said = ""
            usable += 1
            assert promised_by(rows_of(path))
            Ledger(path).to_dict()
        assert not {"\n", "\x1b"} & set(said)
        assert path.read_bytes() == before
        with suppress(pf.LedgerError, pf.BudgetError):
            states = replace(POPULATION, states=["a", "b"])
            pay(path, 6, share=Fraction(1, 9), of=states, theta=OF_STATES)
            assert promised_by(rows_of(path))
    assert 0 < usable < 40


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_changed_bytes_are_refused_or_change_nothing(whole, tmp_path, seed):
    rng = random.Random(f"bytes {seed}")
    original, path = whole.read_bytes(), tmp_path / "l"
    said = Ledger(whole).to_dict()
    for _ in range(60):
        content = bytearray(original)
        for _ in range(rng.choice((1, 1, 3, 30))):
            at = rng.randrange(120) if rng.random() < 0.3 else rng.randrange(len(content))
            content[at] = rng.randrange(256)
        if rng.random() < 0.1:
            del content[rng.randrange(len(content)) :]
        path.write_bytes(content)
        with suppress(pf.LedgerError):
            assert Ledger(path).to_dict() == said


@pytest.mark.parametrize(
    "content", [b"", b"time,value\n1,2\n", b"SQLite format 3\0" + b"\0" * 5000]
)
def test_foreign_files_are_refused_and_left_alone(path, content):
    path.write_bytes(content)
    for open_it in (Ledger, Ledger.create, pay):
        with pytest.raises(pf.LedgerError, match="ledger"):
            open_it(path)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


def test_other_databases_versions_and_paths(path, tmp_path):
    Ledger.create(path)
    with closing(sqlite3.connect(path)) as connection:
        for pragma in ("user_version = 4", "application_id = 1"):
            connection.execute(f"PRAGMA {pragma}")
            connection.commit()
            with pytest.raises(
                pf.LedgerError, match="no ledger of this program, or one from before"
            ):
                Ledger(path)
    os.mkfifo(tmp_path / "pipe")
    os.symlink("nowhere", tmp_path / "link")
    for name in ("none", "link", "pipe", "."):
        with pytest.raises(pf.LedgerError):
            Ledger(tmp_path / name)
    with pytest.raises(pf.LedgerError, match="cannot create"):
        Ledger.create(tmp_path / "none" / "x")
    with pytest.raises(pf.DataError, match="no folder"):
        pay(tmp_path / "none" / "x")
    (tmp_path / "data.csv").touch()
    os.symlink("data.csv", tmp_path / "other.csv")
    assert default_ledger(tmp_path / "other.csv") == path


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE entries SET content = replace(content, '1/50', '1/99') WHERE kind = 'promise'",
        "UPDATE entries SET kind = 'made' WHERE kind = 'theta'",
        "DELETE FROM entries WHERE number = 2",
        "UPDATE entries SET number = 0 WHERE number = 1",
    ],
)
def test_tampering_is_noticed(path, tampering):
    pay(path)
    book = Ledger(path)
    entries, noted = book.verify()
    pay(path, 1)
    assert (entries, book.verify(noted)[0]) == (4, 6)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(tampering)
        connection.executescript("DROP TRIGGER never_changed; DROP TRIGGER never_removed")
        connection.execute("DELETE FROM entries WHERE number > 3")
        with pytest.raises(pf.LedgerError, match="no row has the digest that was noted"):
            book.verify(noted)
        connection.execute(tampering)
        for use in (book.verify, book.to_dict, lambda: pay(path, 3), lambda: book.spent):
            with pytest.raises(pf.LedgerError, match="was changed after it was written"):
                use()
        connection.execute("CREATE VIEW more AS SELECT 1")
    with pytest.raises(pf.LedgerError, match="its tables are not those"):
        book.verify()


# -- kills, processes at once, full disks ----------------------------------------------------------


def start(path, name, said):
    process = FORKSERVER.Process(target=work, args=(path, name, said))
    process.start()
    return process


@pytest.mark.parametrize("processes", counts(16, 50))
def test_processes_at_once_never_overspend_and_lose_no_row(path, processes):
    """The first of them make the file; five of a fifth each fit, whoever comes first."""
    queue = FORKSERVER.SimpleQueue()
    workers = [start(path, f"q{i}", queue) for i in range(processes)]
    said = dict(queue.get() for _ in workers)
    for worker in workers:
        worker.join()
    made = {name for name, outcome in said.items() if outcome == "made"}
    assert (len(said), len(made)) == (processes, 5)
    shown = Ledger(path).to_dict()
    assert {release["query"] for release in shown["releases"] if release["made"]} == made
    assert len(shown["releases"]) == 5
    assert Ledger(path).verify()[0] == 12
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_kills_leave_a_readable_ledger(path):
    queue = FORKSERVER.SimpleQueue()
    began = time.monotonic()
    start(path, "whole", queue).join()
    took = time.monotonic() - began
    Ledger(path).set_limit(DAY, 100.0, calibrate)
    for i in range(20):
        worker = start(path, f"q{i}", queue)
        time.sleep(took * i / 20)
        worker.kill()
        worker.join()
        Ledger(path).verify()
    releases = Ledger(path).to_dict()["releases"]
    assert releases[0]["made"]
    pay(path, 1)
    assert len(Ledger(path).to_dict()["releases"]) == len(releases) + 1


def test_what_is_paid_for_stays_paid_for(path):
    said = "the ledger counts it as spent all the same"
    with pytest.raises(OSError, match=said), reserved(path, *terms()):
        raise OSError(28, "no space left on device", "out")
    assert [one["made"] for one in Ledger(path).to_dict()["releases"]] == [False]
    with pytest.raises(pf.BudgetError):
        pay(path)
    with reserved(None, *terms()) as paid:
        assert (paid.number, paid.name) == (None, "")
    with (
        pytest.raises(pf.LedgerError, match="only the note that it was made is missing"),
        reserved(path, *terms(1)),
    ):
        path.unlink()


def test_a_disk_that_fills_up(path, monkeypatch):
    def full(connection, *_):
        connection.execute("ROLLBACK")  # as SQLite itself does
        raise sqlite3.OperationalError("database or disk is full")

    pay(path)
    before = path.read_bytes()
    monkeypatch.setattr("pufferflow.accounting.ledger._write", full)
    with pytest.raises(pf.LedgerError, match=r"disk is full; no release is made"):
        pay(path, 1)
    assert path.read_bytes() == before


def test_certificates_and_words_are_kept(path):
    certificate = {"nodes": list(range(20_000)), "word": "Θ"}
    pay(path, certificate=certificate)
    text = Ledger(path).entries()[1].content["certificate"]
    assert json.loads(zlib.decompress(base64.b64decode(text))) == certificate
    assert len(text) < 60_000
    for wrong in ("a\nb", "x" * 1001, 3):
        with pytest.raises(pf.ParameterError, match="query is"):
            pay(path, 1, query=wrong)
    assert Ledger(path).book.promises == {DAY: Promise(DAY, 1.0, Fraction(1, 50))}
