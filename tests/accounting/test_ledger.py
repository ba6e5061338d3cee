"""The ledger's file: what is accepted and refused, hostile files, kills, processes at once."""

import base64
import json
import multiprocessing
import os
import random
import resource
import shutil
import sqlite3
import time
import zlib
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

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
    WEEK,
    elsewhere,
    pay,
    promise_of,
    terms,
    work,
)

import pufferflow as pf
from pufferflow.accounting.account import UNBOUNDED, Charge, Promise, spent
from pufferflow.accounting.ledger import Ledger, default_ledger, reserved, try_out

FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["tests.helpers.ledger_server"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pufferflow.ledger"


def refused(path, asked, error=pf.BudgetError):
    """The one refusal by all ways to ask, and that nothing was written."""
    before = path.read_bytes() if path.exists() else None
    ways, said = [partial(try_out, path), lambda asked: reserved(path, asked).__enter__()], set()
    for ask in ways if before is None else (*ways, Ledger(path).add):
        with pytest.raises(error) as found:
            ask(asked)
        said.add(str(found.value))
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(said) == 1
    return found.value


# -- a year of publications ------------------------------------------------------------------------


def test_52_weeks_at_full_epsilon_and_none_twice(path):
    assert (pay(path).number, Ledger(path).book.spent) == (3, 1)
    for week in range(1, 52):
        assert try_out(path, terms(week)).spent == pay(path, week).spent == 1
    again = refused(path, terms(17))
    assert "readings from 2024-12-30 00:00:00 UTC on are free" in str(again)
    assert again.free == MONDAY + 52 * WEEK
    instant = (MONDAY + 52 * WEEK - 1800, MONDAY + 53 * WEEK)
    assert refused(path, terms(span=instant)).free == again.free
    assert pay(path, 52).spent == 1
    other, latest = path.with_name("other"), (253_402_299_000, 253_402_300_798)  # in 9999
    pay(other, span=latest)
    assert refused(other, terms(span=latest)).free is None


def test_rolling_weeks_and_several_kinds(path):
    for week in range(8):
        pay(path, week, weeks=4, share=Fraction(1, 4))
    for week, share, free in ((8, Fraction(1, 2), 9), (7, Fraction(1, 100), 8)):
        rolling = terms(week, weeks=4, share=share)
        assert refused(path, rolling).free == MONDAY + free * WEEK
    for week in range(20, 24):
        pay(path, week, share=Fraction("0.9"))
    pay(path, 20, weeks=4, share=Fraction("0.1"), query="histogram")
    assert refused(path, terms(22, share=Fraction("0.001"))).free == MONDAY + 24 * WEEK


def test_a_private_fit_before_releases(path):
    assert pay(path, level=PARTICIPANT, promise=False, query="private fit", weeks=4).spent == 0
    refused(path, terms())  # the fit is paid for in its range, so the first release leaves as much
    pay(path, share=1 - Fraction(1, LONGEST) / COSTS[DAY])
    pay(path, 4)
    kinds = [row.kind for row in Ledger(path).book.rows[:5]]
    assert kinds == ["release", "made", "theta", "promise", "release"]


def test_without_times_everything_adds_up(path):
    timeless = {
        "of": replace(POPULATION, step_seconds=None, time_base="none"),
        "span": (None, None),
    }
    pay(path, **timeless, share=Fraction(3, 4))
    over = refused(path, terms(**timeless, share=Fraction(1, 2)))
    assert "without times everything adds up; with times new readings are free" in str(over)
    assert over.free is None
    pay(path, **timeless, share=Fraction(1, 4))
    with pytest.raises(pf.ParameterError, match="a range of times where there are none"):
        terms(of=timeless["of"])


# -- the holes of the issue ------------------------------------------------------------------------


def test_no_other_level_gives_budget_back(path):
    """Hole 1: participants spent .9993, then a cheap release of single readings: spent .0161."""
    pay(path, level=PARTICIPANT, share=Fraction("0.9993"))
    before = Ledger(path).book.spent
    for level in (READING, INFORMED, DAY):
        assert "for whole participants leaves no room" in str(refused(path, terms(level=level)))
    for level in (READING, INFORMED):
        pay(path, level=level, epsilon=0.0001, share=Fraction(1, 100), limit=1.0)
        assert Ledger(path).book.spent > before
    refused(path, terms(level=PARTICIPANT, share=Fraction("0.0007")))
    assert Ledger(path).to_dict()["spent_percent"] == 100


def test_a_cheap_release_first(path):
    pay(path, level=READING, epsilon=0.01, share=Fraction(1, 10))  # .112 of one participant
    refused(path, terms(level=PARTICIPANT))
    pay(path, level=PARTICIPANT, limit=2.0)
    error = refused(path, terms(level=PARTICIPANT, limit=3.0), pf.LedgerError)
    assert "its limit for whole participants is 2, not 3" in str(error)


OTHER_DATA = {"participant": None, "step_seconds": 900, "time_base": "local", "cohort": "north"}


def test_what_is_of_something_else_is_refused(path):
    """Hole 2: fits by house and by day were added as if of the same person."""
    pay(path)
    both = replace(POPULATION, values=("kwh", "gas"))
    for asked, said in (
        (terms(1, of=replace(POPULATION, participant="day")), "its releases have participant"),
        *((terms(1, of=replace(POPULATION, **{n: v})), f"have {n}") for n, v in OTHER_DATA.items()),
        (terms(1, theta=pf.MixingFamily(1, 0.4).document()), "assume something else (Θ)"),
        (terms(1, of=both), "no release before read the column 'gas'"),
        (terms(30_000), "more than 10,000,000 steps"),
    ):
        assert said in str(refused(path, asked, pf.LedgerError))
    pay(path, 1, of=both, new_values=True)
    pay(path, 2, of=replace(POPULATION, values=("gas",)))
    assert Ledger(path).book.population.values == ("kwh", "gas")
    refused(path.with_name("other"), terms(theta=None), pf.LedgerError)  # a promise about no Θ


def test_what_is_finer_than_the_states_of_theta(path):
    """Hole 9: a Θ on states says nothing of the values within them; only D is known then."""
    states = replace(POPULATION, states=[1.5])
    pay(path, level=PARTICIPANT, epsilon=0.001, promise=False, of=states)
    with pytest.raises(pf.ParameterError, match="publish functions of them alone"):
        pay(path, theta=OF_STATES)
    pay(path, theta=OF_STATES, of=states, share=Fraction("0.9"))
    for finer in (POPULATION, replace(POPULATION, states=[0.5])):
        error = refused(path, terms(2, PARTICIPANT, 0.01, of=finer, promise=False))
        assert "finer than the states of Θ" in str(error)
    pay(path, 2, PARTICIPANT, 0.01, of=states, promise=False)
    # where the finer release was first, only what everything of a participant costs can be promised
    other = path.with_name("other")
    pay(other, level=PARTICIPANT, epsilon=0.01, promise=False)
    error = refused(other, terms(1, of=states, theta=OF_STATES))
    assert "what is spent stays spent" in str(error)
    pay(other, 1, of=states, theta=OF_STATES, share=Fraction(1, 10))
    assert Ledger(other).book.spent == Fraction(0.01) + Fraction(LONGEST, 500)


# -- limits, and releases made elsewhere -----------------------------------------------------------


def test_limits_that_old_rows_break_leave_the_file_as_it_is(path):
    with pytest.raises(pf.LedgerError, match="a promise for windows needs an assumption"):
        Ledger.create(path).set_limit(promise_of(DAY))
    pay(path)
    before = path.read_bytes()
    for level, epsilon in ((DAY, 0.5), (PARTICIPANT, 6.0)):
        with pytest.raises(pf.BudgetError, match="releases that are there need"):
            Ledger(path).set_limit(promise_of(level, epsilon))
    assert path.read_bytes() == before
    Ledger(path).set_limit(promise_of(DAY, 2.0))
    pay(path)
    book = Ledger(path).book
    assert (book.spent, [one.epsilon for one in book.promises.values()]) == (1, [2.0])
    Ledger(path).set_limit(promise_of(PARTICIPANT, 20.0))
    assert "whole participants" in str(refused(path, terms(1, weeks=4, share=3)))


def test_releases_made_elsewhere(path):
    pay(path, share=Fraction(1, 2))
    later = Charge(COSTS[DAY], 2, MONDAY + WEEK, MONDAY + 2 * WEEK)
    refused(path, elsewhere(replace(later, cost=UNBOUNDED)))
    refused(path, elsewhere(replace(later, first=None)))
    refused(path, elsewhere(later, replace(POPULATION, values=("gas",))), pf.LedgerError)
    assert Ledger(path).add(elsewhere(later)).spent == 1
    assert Ledger(path).to_dict()["releases"][-1]["level"] is None
    refused(path, terms(1, share=Fraction(1, 100)))


@pytest.mark.parametrize("seed", seeds(3, 40))
def test_what_a_file_says_is_spent_never_falls(tmp_path, seed):
    rng, path = random.Random(seed), tmp_path / "l"
    ledger, before, accepted, charges, promises = Ledger.create(path), Fraction(0), 0, [], {}
    for _ in range(25):
        level = rng.choice([DAY, READING, INFORMED, PARTICIPANT])
        epsilon, share = rng.choice([0.01, 0.5, 1.0]), Fraction(rng.randrange(1, 9), 8)
        what = rng.choice(["release", "release", "release", "alone", "fit", "limit", "add"])
        level = PARTICIPANT if what == "fit" else level
        week, weeks, content = rng.randrange(12), rng.choice([1, 1, 4]), path.read_bytes()
        asked = terms(week, level, epsilon, share, weeks=weeks, promise=what == "release")
        try:
            if what == "limit":
                known = promises.get(level)
                epsilon = epsilon if known is None else known.epsilon * rng.choice([0.5, 0.9])
                ledger.set_limit(promise_of(level, epsilon))
                promises[level] = promise_of(level, epsilon)
            elif what == "add":
                ledger.add(elsewhere(asked.entry.charge))
            else:
                tried = try_out(ledger, asked)
                with reserved(ledger, asked) as paid:
                    assert paid == replace(tried, number=paid.number)
                if what == "release":
                    promises.setdefault(level, asked.promise)
        except (pf.BudgetError, pf.LedgerError):
            assert path.read_bytes() == content
            continue
        charges += [asked.entry.charge] * (what != "limit")
        accepted += 1
        book = ledger.book
        assert before <= book.spent == spent(promises.values(), charges) <= 1
        assert (book.charges, book.promises) == (charges, promises)
        before = book.spent
    assert accepted > 1
    assert ledger.verify()[0] == len(ledger.book.rows)


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
    Ledger(path).set_limit(promise_of(DAY, 2.0))
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
        path = shutil.copyfile(whole, tmp_path / f"{turn}")
        rows = rows_of(path)
        mutate(rows, rng)
        rewrite(path, rows)
        before, said = path.read_bytes(), ""
        try:
            Ledger(path).verify()
            Ledger(path).to_dict()
            usable += 1
            assert promised_by(rows_of(path))
        except pf.LedgerError as error:
            said = str(error)
        assert not {"\n", "\x1b"} & set(said)
        assert path.read_bytes() == before
        with suppress(pf.LedgerError, pf.BudgetError):
            states = replace(POPULATION, states=["a", "b"])
            pay(path, 6, share=Fraction(1, 9), of=states, theta=OF_STATES)
            assert promised_by(rows_of(path))
    assert 0 < usable < 40


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_changed_bytes_are_refused_or_change_nothing(whole, tmp_path, seed):
    rng, path = random.Random(f"bytes {seed}"), tmp_path / "l"
    original, said = whole.read_bytes(), Ledger(whole).to_dict()
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


def test_foreign_files_and_paths_are_refused_and_left_alone(path):
    pay(path.with_name("own"))
    own = path.with_name(
        "own"
    ).read_bytes()  # bytes 60 to 63 are the version, the last 4 of 72 PUFF
    foreign = [own[:63] + b"\4" + own[64:], own[:71] + b"G" + own[72:], b"time,value\n1,2\n", b""]
    for content in (*foreign, b"SQLite format 3\0" + b"\0" * 5000):
        path.write_bytes(content)
        for open_it in (Ledger, Ledger.create, pay):
            with pytest.raises(
                pf.LedgerError, match="no ledger of this program, or one from befor"
            ):
                open_it(path)
        assert path.read_bytes() == content
    assert sorted(os.listdir(path.parent)) == ["own", path.name]
    os.mkfifo(path.with_name("pipe"))
    os.symlink("nowhere", path.with_name("link"))
    for name in ("none", "link", "pipe", "."):
        with pytest.raises(pf.LedgerError):
            Ledger(path.parent / name)
    with pytest.raises(pf.LedgerError, match="cannot create"):
        Ledger.create(path.parent / "none" / "x")
    with pytest.raises(pf.DataError, match="no folder"):
        pay(path.parent / "none" / "x")
    os.symlink("own", path.with_name("other.csv"))
    assert default_ledger(path.with_name("other.csv")) == path


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
    ledger = Ledger(path)
    entries, noted = ledger.verify()
    pay(path, 1)
    assert (entries, ledger.verify(noted)[0]) == (4, 6)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(tampering)
        connection.executescript("DROP TRIGGER never_changed; DROP TRIGGER never_removed")
        connection.execute("DELETE FROM entries WHERE number > 3")
        with pytest.raises(pf.LedgerError, match="no row has the digest that was noted"):
            ledger.verify(noted)
        connection.execute(tampering)
        for use in (ledger.verify, ledger.to_dict, lambda: pay(path, 3)):
            with pytest.raises(pf.LedgerError, match="was changed after it was written"):
                use()
        connection.execute("CREATE VIEW more AS SELECT 1")
    with pytest.raises(pf.LedgerError, match="its tables are not those"):
        ledger.verify()


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
    shown = Ledger(path).to_dict()["releases"]
    assert sorted(release["query"] for release in shown if release["made"]) == sorted(made)
    assert (len(shown), Ledger(path).verify()[0]) == (5, 12)
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_kills_leave_a_readable_ledger(path):
    queue, began = FORKSERVER.SimpleQueue(), time.monotonic()
    start(path, "whole", queue).join()
    took = time.monotonic() - began
    Ledger(path).set_limit(promise_of(DAY, 100.0))
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
    with pytest.raises(OSError, match=said), reserved(path, terms()):
        raise OSError(28, "no space left on device", "out")
    assert [one["made"] for one in Ledger(path).to_dict()["releases"]] == [False]
    refused(path, terms())
    said = "only the note that it was made is missing"
    with pytest.raises(pf.LedgerError, match=said), reserved(path, terms(1)):
        path.unlink()


def test_a_disk_that_fills_up(path):
    pay(path)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), limits[1]))
    try:
        proof = {"nodes": random.Random(1).sample(range(10**9), 9999)}
        with pytest.raises(pf.LedgerError, match=r"disk.*; no release is made"):
            pay(path, 1, READING, share=Fraction(1, 40), certificate=proof)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before


def test_certificates_and_words_are_kept(path):
    certificate = {"nodes": list(range(20_000)), "word": "Θ"}
    pay(path, certificate=certificate)
    book = Ledger(path).book
    text = json.loads(book.rows[1].content)["certificate"]
    assert json.loads(zlib.decompress(base64.b64decode(text))) == certificate
    assert (len(text) < 60_000, book.promises) == (True, {DAY: Promise(DAY, 1.0, Fraction(1, 50))})
    for wrong in ("a\nb", "x" * 1001, 3):
        with pytest.raises(pf.ParameterError, match="query is"):
            terms(query=wrong)
