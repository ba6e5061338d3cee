"""Which ledger a release is entered in, under whatever name the data come, and whether what is said of it is true."""

import hashlib
import json
import multiprocessing
import os
import shutil
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.ledger import UNNOTICED, Ledger
from pufferflow.models import write_model
from pufferflow.publishing import release as releasing

pytestmark = pytest.mark.usefixtures("scales_once")
CHAIN = pf.MarkovChain([[0.6, 0.4], [0.3, 0.7]])
TIMES = pd.date_range("2021-06-01", periods=300, freq="min", name="time")
DATA = pd.DataFrame({"value": np.random.default_rng(1).integers(0, 2, 300)}, index=TIMES).astype(str)
MODEL = pf.PublicModel(pf.ChainFamily([CHAIN]), pf.RecordFormat(pf.StateSpace.categories(["0", "1"]), 60))


@pytest.fixture
def release(tmp_path, monkeypatch, capsys):
    """Release a table by the command line: exit code, output, errors."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    DATA.to_csv("../there/d.csv")
    write_model("m.json", MODEL.family, MODEL.records)
    count = iter(range(1000))

    def run(data, *more):
        output = f"out{next(count)}"
        words = ("release", data, "--chain", "m.json", "--epsilon", "0.5", "--no-figure", "--output", output, *more)
        code = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


D = "../there/d.csv"


def test_a_link_has_the_ledger_of_the_file_it_leads_to(release):
    os.symlink(D, "first.csv")
    os.symlink("first.csv", "link.csv")
    code, out, err = release("link.csv")
    assert (code, err) == (0, "")
    assert f"(new: {UNNOTICED})" in out
    assert sorted(os.listdir("../there")) == ["d.csv", "d.csv.ledger"]
    for name in ("link.csv", "first.csv", D, "../there/../there/d.csv"):
        code, _, err = release(name)
        assert (code, "the limit of" in err) == (2, True)
        assert "(new:" not in release(name, "--no-ledger")[1]
    assert not any(name.endswith(".ledger") for name in os.listdir())


def test_a_ledger_beside_a_link_is_one_of_the_data(release):
    os.symlink(D, "link.csv")
    Ledger.create("link.csv.ledger", 0.6)
    code, _, err = release("link.csv")
    assert (code, "link.csv has the ledger link.csv.ledger" in err) == (2, True)
    assert not os.path.exists(f"{D}.ledger")
    assert release("link.csv", "--ledger", "link.csv.ledger")[0] == 0


def test_another_ledger_is_refused_where_the_data_have_one(release):
    assert release(D, "--limit", 9)[0] == 0
    spent = Ledger(f"{D}.ledger").entries()
    for more in (["--ledger", "other"], ["--ledger", "other", "--limit", 5], ["--ledger", "other", "--dry-run"]):
        code, out, err = release(D, *more)
        assert (code, out) == (2, "")
        assert "d.csv has the ledger ../there/d.csv.ledger, and releases in two ledgers are never added up" in err
    for ledger in ("other", Ledger.create("made", 5.0)):
        with pytest.raises(pf.LedgerError, match="never added up"):
            pf.release_histogram(D, MODEL, 0.5, ledger=ledger)
    assert not os.path.exists("other")
    assert Ledger(f"{D}.ledger").entries() == spent
    os.symlink(f"{D}.ledger", "same")
    assert release(D, "--ledger", "same")[0] == 0
    assert len(Ledger(f"{D}.ledger").reservations()) == 2


def test_no_account_is_said(release):
    code, out, err = release(D, "--no-ledger")
    assert code == 0
    assert err == ("pufferflow: warning: no account is kept of this release: whoever makes another has to add them\n")
    assert err.removeprefix("pufferflow: warning: ").strip() in out
    assert "ledger" not in out
    assert release(D)[0] == 0
    for more in ([], ["--dry-run"], ["--json"]):
        code, out, err = release(D, "--no-ledger", *more)
        assert code == 0
        assert "no account is kept of this release, although the data have the ledger d.csv.ledger: " in err
    assert "although the data have the ledger d.csv.ledger" in json.loads(out)["statement"]


def test_the_statement_names_the_ledger_and_what_it_cannot_notice(tmp_path, release):
    path = tmp_path / "my.ledger"
    for ledger in (path, str(path), pf.Ledger.create(tmp_path / "own", 9.0)):
        said = pf.release_histogram(DATA, MODEL, 0.5, ledger=ledger, limit=9.0).statement
        name = "own" if isinstance(ledger, Ledger) else "my.ledger"
        kept = f"this one is entered in the ledger {name}, but {UNNOTICED}"
        assert f"Releases of the same records add up; {kept}." in said
        assert str(tmp_path) not in said
    assert "no account is kept" in pf.release_histogram(DATA, MODEL, 0.5, ledger=None).statement
    simulated = pf.simulate_release(DATA, MODEL, 0.5, seed=1)
    assert "Releases of the same records add up." in simulated.statement
    assert "ledger " not in simulated.statement


def test_hard_links_and_copies_are_named_where_they_can_be_seen(release):
    os.link(D, "../there/hard.csv")
    code, out, err = release(D)
    assert code == 0
    assert "has 2 names (hard links)" in err
    assert "has 2 names (hard links)" in out
    os.unlink("../there/hard.csv")
    shutil.copyfile(D, "../there/copy.csv")
    DATA.reset_index().to_parquet("../there/d.parquet")
    for name in ("copy.csv", "d.parquet"):
        for more in (["--dry-run"], []):
            code, _, err = release(f"../there/{name}", *more)
            assert code == 0
            assert "the ledger d.csv.ledger, beside the data, is of as many records of the same period" in err
    DATA[:-1].to_csv("../there/other.csv")
    assert release("../there/other.csv")[2] == ""


def test_the_ledger_shows_which_records(release, capsys):
    for _ in range(2):
        assert release(D, "--limit", 9)[0] == 0
    DATA.set_index(TIMES + pd.Timedelta("1D")).rename_axis("time").to_csv(D)
    assert release(D)[0] == 0
    assert cli.main(["ledger", "show", f"{D}.ledger"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("n 300 from 2021-06-01T00:00:00 to 2021-06-01T04:59:00") == 2
    assert shown.count("n 300 from 2021-06-02T00:00:00") == 1
    assert shown.count("of the same time as 1\n") == 1
    assert shown.count("of the same time") == 1
    book = Ledger.create("rows", 9.0)
    rows = pf.PublicModel(MODEL.family, pf.RecordFormat(MODEL.records.states))
    pf.release_histogram(DATA.reset_index(drop=True), rows, 0.5, ledger=book)
    (only,) = book.reservations()
    assert (only.extent.records, only.extent.first, only.extent.last) == (300, None, None)


def test_who_loses_a_race_opens_the_ledger_that_the_winner_made(tmp_path, monkeypatch):
    create = Ledger.create

    def second(path, limit):
        create(path, 2.0)  # another process, in the meantime
        return create(path, limit)

    monkeypatch.setattr(Ledger, "create", second)
    assert releasing.open_ledger(tmp_path / "a", 2.0).limit == 2.0
    assert releasing.open_ledger(tmp_path / "b", 1.0, given=False).limit == 2.0
    with pytest.raises(pf.ParameterError, match="has the limit 2, not 1"):
        releasing.open_ledger(tmp_path / "c", 1.0)
    with pytest.raises(pf.LedgerError, match="exists already"):
        create(tmp_path / "a", 1.0)


def test_a_link_that_leads_nowhere_is_no_new_ledger(release):
    os.symlink("loop", "loop")
    os.symlink("nowhere", "dangling")
    os.mkfifo("pipe")
    for name, message in (("loop", "symbolic links"), ("dangling", "No such file"), ("pipe", "is a device or a pipe")):
        for more in ([], ["--dry-run"]):
            code, out, err = release(D, "--ledger", name, *more)
            assert (code, out, err.count("\n")) == (2, "", 1)
            assert message in err


def fails_for(kind, monkeypatch):
    append = pf.ledger.append_entry

    def full(connection, this, content):
        if this == kind:
            raise sqlite3.OperationalError("database or disk is full")
        return append(connection, this, content)

    monkeypatch.setattr("pufferflow.ledger.append_entry", full)


def test_a_disk_that_fills_before_the_release(release, monkeypatch):
    Ledger.create(f"{D}.ledger", 5.0)
    fails_for("reserved", monkeypatch)
    code, out, err = release(D)
    assert (code, out) == (2, "")
    assert "disk is full; no release is made; whether it counts as spent, pufferflow ledger show says" in err
    assert not os.path.exists("out0")


def test_a_disk_that_fills_after_the_release_loses_a_note_and_nothing_else(release, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        fails_for("released", patch)
        code, out, err = release(D)
        assert code == 0
        assert "wrote out0/" in out
        assert err.count("\n") == 1
        assert "the release is made and counts as spent, only the note that it was made is missing" in err
        assert "must not be put in the ledger's place" in err
        assert "restore" not in err
        assert pf.release_histogram(DATA, MODEL, 0.5, ledger=tmp_path / "x").records == 300
    (only,) = Ledger(f"{D}.ledger").to_dict()["releases"]
    assert not only["released"]
    assert release(D)[0] == 2  # it is spent


def test_only_a_noted_digest_shows_a_rewritten_ledger(tmp_path, capsys):
    book = Ledger.create(tmp_path / "l", 2.0)
    noted = book.verify().digest
    pf.release_histogram(DATA, MODEL, 0.5, ledger=book)
    assert book.verify(noted).entries == 4
    connection = sqlite3.connect(book.path)
    connection.executescript("DROP TRIGGER never_changed; DROP TRIGGER never_removed")
    connection.execute("DELETE FROM entries WHERE number > 1")
    (time,) = connection.execute("SELECT time FROM entries").fetchone()
    raised = '{"epsilon":9.0}'
    text = json.dumps({"after": "", "entry": [1, time, "limit", raised]}, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    connection.execute("UPDATE entries SET content = ?, digest = ?", (raised, digest))
    connection.commit()
    connection.close()
    assert cli.main(["ledger", "verify", str(book.path)]) == 0
    said = capsys.readouterr().out
    assert "none changed" not in said
    assert "only a digest noted before can tell" in said
    assert cli.main(["ledger", "verify", str(book.path), "--noted", noted]) == 2
    assert "entries were rewritten, or an older copy was put in its place" in capsys.readouterr().err
    assert cli.main(["ledger", "verify", str(book.path), "--noted", digest]) == 0
    assert "is as it was then" in capsys.readouterr().out


def test_help_says_what_a_ledger_cannot_notice(capsys):
    assert cli.main(["ledger", "--help"]) == 0
    assert UNNOTICED in " ".join(capsys.readouterr().out.split())


def killed_while_creating(path):
    """A process that is killed while it makes a ledger."""

    def die(*_):
        os.kill(os.getpid(), 9)

    pf.ledger.append_entry = die
    Ledger.create(path, 1.0)


def test_kills_leave_nothing_for_long(tmp_path):
    for i in range(5):
        process = multiprocessing.get_context("fork").Process(target=killed_while_creating, args=(tmp_path / f"{i}",))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        process.join()
        assert process.exitcode == -9
    assert len(os.listdir(tmp_path)) == 1
    Ledger.create(tmp_path / "last", 1.0)
    assert os.listdir(tmp_path) == ["last"]


def test_a_reservation_is_recorded_where_it_was_made(tmp_path):
    one, two = (Ledger.create(tmp_path / name, 9.0) for name in "ab")
    made = one.reserve(CHAIN, 9, mechanism="x", epsilon=1.0, scale=50.0, query="q")
    with pytest.raises(pf.LedgerError, match="is no reservation"):
        two.record(made)
    with pytest.raises(pf.ParameterError, match="reservation is"):
        one.record(3)
    one.record(made)
    assert (one.verify().entries, two.verify().entries) == (4, 1)


def test_a_ledger_of_version_1_is_read_and_carried_on(tmp_path):
    book = Ledger.create(tmp_path / "l", 9.0)
    connection = sqlite3.connect(book.path)
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    Ledger(book.path).reserve(CHAIN, 9, mechanism="x", epsilon=1.0, scale=50.0, query="q")
    connection = sqlite3.connect(book.path)
    assert connection.execute("PRAGMA user_version").fetchone() == (4,)
    connection.execute("PRAGMA user_version = 5")
    connection.close()
    with pytest.raises(pf.LedgerError, match="has version 5"):
        Ledger(book.path)


def test_a_foreign_view_or_trigger_is_refused(tmp_path):
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    columns = "i AS number, '' AS time, '' AS kind, '' AS content, '' AS digest"
    endless = f"CREATE VIEW entries AS {numbers} SELECT {columns} FROM n"
    for i, statement in enumerate((f"DROP TABLE entries; {endless}", "CREATE TABLE more (x)")):
        book = Ledger.create(tmp_path / str(i), 9.0)
        connection = sqlite3.connect(book.path)
        connection.executescript(statement)
        connection.close()
        with pytest.raises(pf.LedgerError, match="its tables are not those that this program makes"):
            book.entries()


def test_releases_too_costly_to_add_up_pass_every_limit(tmp_path):
    book = Ledger.create(tmp_path / "l", 1e90)
    for _ in range(2):
        with pytest.raises(pf.BudgetError):
            book.reserve(CHAIN, 9, mechanism="x", epsilon=1.0, scale=1e-90, query="q")
    accountant = pf.Accountant(CHAIN, 9)
    accountant.add(1e-90, releases=2)
    assert not accountant.within(1e90)
    assert accountant.cost().epsilon >= 1e90
