import json
import multiprocessing
import os
import sqlite3
import time

import numpy as np
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.ledger import Ledger
from pufferflow.mechanisms import compute_scale
from tests.helpers.ledger_worker import CHAIN, LENGTH, work


def reserve(ledger, epsilon=1.0, **changes):
    scale = pf.mqm_exact(CHAIN, LENGTH, epsilon).scale
    terms = {"mechanism": "mqm-exact", "epsilon": epsilon, "scale": scale, "query": "histogram"} | changes
    return ledger.reserve(changes.pop("family", CHAIN), LENGTH, **{k: v for k, v in terms.items() if k != "family"})


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "data.ledger", 2.0)


def test_a_reservation_is_spent_before_the_release_is_made(ledger):
    assert ledger.spent == 0
    first = reserve(ledger)
    assert 0 < ledger.spent <= 1.0 + 1e-9
    ledger.record(first)
    second = reserve(ledger)
    shown = ledger.to_dict()
    assert [release["released"] for release in shown["releases"]] == [True, False]
    assert second.number == shown["releases"][1]["number"]
    assert ledger.spent == pytest.approx(shown["limit"] - shown["left"])
    checked = ledger.verify()
    assert (checked.entries, len(checked.digest)) == (5, 64)


def test_the_total_is_that_of_the_accountant(ledger):
    accountant = pf.Accountant(CHAIN, LENGTH)
    for epsilon in (0.3, 0.5):
        reserve(ledger, epsilon)
        accountant.add(pf.mqm_exact(CHAIN, LENGTH, epsilon).scale)
    assert ledger.spent == accountant.cost().epsilon


def test_a_release_past_the_limit_is_refused_with_what_is_left(ledger):
    reserve(ledger)
    before = ledger.entries()
    with pytest.raises(pf.BudgetError, match="is left: ask for at most") as refused:
        reserve(ledger, 5.0)
    assert refused.value.left == pytest.approx(2.0 - ledger.spent)
    assert ledger.entries() == before
    ledger.set_limit(20.0)
    reserve(ledger, 5.0)
    with pytest.raises(pf.LedgerError, match="lies below"):
        ledger.set_limit(0.5)


pytestmark = pytest.mark.usefixtures("scales_once")
FORGETS = pf.ForgettingFamily(5, 0.4)
CLOCK = pf.PeriodicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.7, 0.3], [0.4, 0.6]]])
NAMED = pf.LabelledChain(pf.MarkovChain([[0.9, 0.1, 0.0], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]), [0, 0, 1])
NEAR = pf.TotalVariationFamily([[0.8, 0.2], [0.3, 0.7]], [0.05, 0.05])


@pytest.mark.parametrize(
    ("family", "mechanism", "options"),
    [
        (CHAIN, "mqm-exact", {}),
        pytest.param(CHAIN, "leakage", {"window": 3}, marks=pytest.mark.long),
        (CHAIN, "leakage", {"window": 2, "knows": "any records"}),
        *((family, "leakage", {}) for family in (FORGETS, CLOCK, NAMED, NEAR)),
        (FORGETS, "leakage", {"window": 3}),
    ],
)
def test_the_epsilon_that_is_advised_fits_and_hardly_a_larger_one(ledger, family, mechanism, options):
    def reserve_at(epsilon):
        scale = compute_scale(mechanism, family, 8, epsilon, **options).scale
        ledger.reserve(family, 8, mechanism=mechanism, epsilon=epsilon, scale=scale, query="a count", **options)

    reserve_at(1.1)
    with pytest.raises(pf.BudgetError) as refused:
        reserve_at(5.0)
    with pytest.raises(pf.BudgetError):
        reserve_at(1.02 * refused.value.largest)
    reserve_at(refused.value.largest)


def test_every_family_ever_used_counts_all_releases(ledger):
    slow = pf.ChainFamily([pf.MarkovChain([[0.99, 0.01], [0.02, 0.98]])])
    reserve(ledger, 0.1)
    alone = ledger.spent
    ledger.set_limit(100.0)
    reserve(ledger, 0.1, family=slow)
    both = pf.Accountant(slow, LENGTH)
    both.add(pf.mqm_exact(CHAIN, LENGTH, 0.1).scale, releases=2)
    assert ledger.spent == both.cost().epsilon > alone


def test_one_way_of_making_states(ledger):
    reserve(ledger, 0.1)
    for other in (
        {"family": pf.ChainFamily([pf.MarkovChain([[0.5, 0.25, 0.25]] * 3)])},
        {"form": {"states": {"edges": [2.0]}}},
    ):
        with pytest.raises(pf.LedgerError, match="earlier releases made other steps of the records"):
            reserve(ledger, 0.1, **other)
    assert len(ledger.to_dict()["releases"]) == 1


def test_bins_are_any_where_theta_says_no_states(ledger):
    steps = {"step_seconds": 60, "columns": {"value": "watts"}}

    def pay(states, family=FORGETS, **other):
        reserve(ledger, 0.1, family=family, form=steps | {"states": {"edges": states}} | other)

    pay([2.0])
    pay([1.0, 5.0])
    assert len({r.form for r in ledger.reservations()}) == 2
    for other in ({"step_seconds": 30}, {"columns": {"value": "amperes"}}, {"family": CHAIN}):
        with pytest.raises(pf.LedgerError, match="earlier releases made other steps"):
            pay([3.0], **other)
    ledger.verify()
    assert len(ledger.reservations()) == 2


@pytest.mark.parametrize("content", [b"", b"time,value\n1,2\n", b"SQLite format 3\0" + b"\0" * 5000])
def test_foreign_files_are_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "x.ledger"
    path.write_bytes(content)
    for open_it in (Ledger, lambda p: Ledger.create(p, 1.0)):
        with pytest.raises(pf.LedgerError, match="ledger"):
            open_it(path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["x.ledger"]


def test_a_database_of_another_program_is_refused(tmp_path):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE entries (number INTEGER)")
    connection.commit()
    connection.close()
    with pytest.raises(pf.LedgerError, match="another program"):
        Ledger(path)


def test_a_missing_ledger_or_folder(tmp_path):
    with pytest.raises(pf.LedgerError, match="create one"):
        Ledger(tmp_path / "none")
    with pytest.raises(pf.LedgerError, match="cannot create"):
        Ledger.create(tmp_path / "none" / "x", 1.0)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE entries SET content = replace(content, '\"scale\"', '\"scalf\"') WHERE kind = 'reserved'",
        "UPDATE entries SET content = '{\"epsilon\":9.0}' WHERE kind = 'limit'",
        "DELETE FROM entries WHERE number = 2",
    ],
)
def test_tampering_is_noticed(ledger, tampering):
    reserve(ledger, 0.1)
    ledger.verify()
    connection = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="never"):
        connection.execute(tampering)
    connection.executescript(f"DROP TRIGGER never_changed; DROP TRIGGER never_removed; {tampering};")
    connection.close()
    with pytest.raises(pf.LedgerError, match="changed after it was written"):
        ledger.verify()


def test_a_damaged_page_is_noticed(ledger):
    for _ in range(5):
        reserve(ledger, 0.01)
    content = bytearray(ledger.path.read_bytes())
    content[4096:4196] = b"\xff" * 100
    ledger.path.write_bytes(content)
    with pytest.raises(pf.LedgerError, match="ledger"):
        Ledger(ledger.path).verify()


FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["tests.helpers.ledger_server"])


def start(ledger, scale, name, said):
    process = FORKSERVER.Process(target=work, args=(ledger.path, scale, name, said))
    process.start()
    return process


@pytest.mark.parametrize("processes", counts(16, 50))
def test_processes_at_once_never_overspend_and_lose_no_row(tmp_path, processes):
    scale = pf.mqm_exact(CHAIN, LENGTH, 0.1).scale
    affordable = processes * 2 // 5
    accountant = pf.Accountant(CHAIN, LENGTH)
    accountant.add(scale, releases=affordable)
    ledger = Ledger.create(tmp_path / "l", accountant.cost().epsilon * (1 + 1e-9))
    queue = FORKSERVER.SimpleQueue()
    workers = [start(ledger, scale, f"q{i}", queue) for i in range(processes)]
    said = dict(queue.get() for _ in workers)
    for worker in workers:
        worker.join()
    made = {name for name, outcome in said.items() if outcome == "made"}
    assert (len(said), len(made)) == (processes, affordable)
    shown = ledger.to_dict()
    assert len(shown["releases"]) == affordable
    assert all(release["released"] for release in shown["releases"])
    assert {release["query"] for release in shown["releases"]} == made
    assert shown["spent"] <= shown["limit"]
    ledger.verify()


def test_twenty_kills_leave_a_readable_ledger(tmp_path):
    ledger = Ledger.create(tmp_path / "l", 100.0)
    scale = pf.mqm_exact(CHAIN, LENGTH, 0.1).scale
    queue = FORKSERVER.SimpleQueue()
    began = time.monotonic()
    start(ledger, scale, "whole", queue).join()
    whole = time.monotonic() - began
    for i in range(20):
        worker = start(ledger, scale, f"q{i}", queue)
        time.sleep(whole * i / 20)
        worker.kill()
        worker.join()
        ledger.verify()
    releases = ledger.to_dict()["releases"]
    assert releases[0]["released"]
    reserve(ledger, 0.1)
    assert len(ledger.to_dict()["releases"]) == len(releases) + 1


def test_nothing_of_the_data_is_in_the_file(ledger):
    reserve(ledger, 0.1, certificate={"scale": 1.5})
    text = json.dumps(ledger.to_dict())
    assert set(json.loads(text)["releases"][0]) == {
        *(
            "number",
            "mechanism",
            "epsilon",
            "scale",
            "window",
            "knows",
            "query",
            "family",
            "length",
            "certificate",
            "form",
            "steps",
            "extent",
            "time",
            "released",
            "overlaps",
        )
    }


def test_an_altered_ledger_pays_for_nothing(ledger):
    reserve(ledger, 0.5)
    connection = sqlite3.connect(ledger.path)
    connection.executescript("DROP TRIGGER never_removed; DELETE FROM entries WHERE kind = 'reserved';")
    connection.execute("INSERT INTO entries VALUES (3, 'now', 'reserved', '[1]', 'x')")
    connection.commit()
    connection.close()
    for use in (lambda: reserve(ledger, 0.5), lambda: ledger.spent, ledger.to_dict, lambda: ledger.set_limit(9.0)):
        with pytest.raises(pf.LedgerError, match="changed after it was written"):
            use()


def test_a_ledger_without_entries_is_damaged(ledger):
    connection = sqlite3.connect(ledger.path)
    connection.executescript("DROP TRIGGER never_removed; DELETE FROM entries;")
    connection.close()
    for use in (lambda: reserve(ledger, 0.5), lambda: ledger.limit, ledger.verify):
        with pytest.raises(pf.LedgerError, match="does not begin with a limit"):
            use()


def test_no_room_for_a_ledger(tmp_path, monkeypatch):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("pufferflow.ledger.append_entry", full)
    with pytest.raises(pf.LedgerError, match="disk is full"):
        Ledger.create(tmp_path / "x", 1.0)
    assert os.listdir(tmp_path) == []


def test_a_disk_that_fills_up_ends_the_transaction(ledger, monkeypatch):
    def full(connection, *_):
        connection.execute("ROLLBACK")  # as SQLite itself does
        raise sqlite3.OperationalError("database or disk is full")

    before = ledger.entries()
    with monkeypatch.context() as patch:
        patch.setattr("pufferflow.ledger.append_entry", full)
        with pytest.raises(pf.LedgerError, match="disk is full"):
            reserve(ledger, 0.5)
    assert ledger.entries() == before


def test_words_and_single_chains(ledger):
    with pytest.raises(pf.ParameterError, match="both are words"):
        reserve(ledger, 0.1, query=object())
    first = reserve(ledger, 0.1)
    second = reserve(ledger, 0.1, family=CHAIN.chains[0])
    assert first.family == second.family


@pytest.mark.parametrize("cases", counts(8, 24))
def test_a_release_is_paid_for_by_the_epsilon_it_was_calibrated_to(tmp_path, cases):
    """The bound of leakage, computed anew for the same chain, may differ in the sixth digit."""
    rng = np.random.default_rng(0)
    above = 0
    for n in range(cases):
        k = int(rng.integers(2, 6))
        rows = [0.7 * np.eye(k) + 0.3 * rng.dirichlet(np.full(k, 0.5), k) for _ in range(2)]
        family = pf.ChainFamily([pf.MarkovChain(matrix) for matrix in rows])
        epsilon = float(rng.choice([0.1, 0.5, 3]))
        scale = pf.leakage(family, 1000, epsilon).scale
        ledger = Ledger.create(tmp_path / str(n), epsilon)
        ledger.reserve(family, 1000, mechanism="leakage", epsilon=epsilon, scale=scale, query="a count")
        assert ledger.spent <= epsilon
        ledger.verify()
        with pytest.raises(pf.BudgetError):
            ledger.reserve(family, 1000, mechanism="leakage", epsilon=epsilon, scale=scale, query="a count")
        anew = pf.Accountant(pf.ChainFamily([pf.MarkovChain(matrix) for matrix in rows]), 1000)
        anew.add(scale)
        above += anew.cost().epsilon > epsilon
    assert above


def test_a_wrong_epsilon_pays_for_nothing(ledger):
    """What a scale costs is computed; the word of the caller counts in the last digits only."""
    with pytest.raises(pf.BudgetError):
        ledger.reserve(CHAIN, LENGTH, mechanism="mqm-exact", epsilon=0.01, scale=0.5, query="a count")


def test_a_ledger_is_for_its_owner_alone(tmp_path):
    """It holds the chains, from which the counts they were fitted to can be found again."""
    book = Ledger.create(tmp_path / "ledger", 1.0)
    assert book.path.stat().st_mode & 0o777 == 0o600
