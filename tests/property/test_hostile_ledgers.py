"""Ledgers that anybody may have written: each is refused in one sentence, or costs no less than its rows say.

The rows are changed and their digests made anew, as somebody would who wants more budget; the bytes at random.
"""

import copy
import hashlib
import json
import random
import shutil
import sqlite3
from contextlib import suppress

import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.models import parse_model

LENGTH = 40
CHAINS = [pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), pf.MarkovChain([[0.7, 0.3], [0.2, 0.8]])]
VALUES = [
    *(None, True, False, "", "x", "\ud800", "1\n2", "\x1b[31m", [], {}, [1], {"a": 1}, -1, 0, 1, 2, 0.5, -0.0, 1e-320),
    *(1e308, 10**400, 2**62, 2**63, 1e-90, 1e90, 1e91, "reserved", "0" * 64, [[[1.0]]], {"chains": []}, "9" * 5000),
    *({"chains": [{"transition_matrix": [[1e308, 1e308], [0, 1]]}]}, {"chains": [{"transition_matrix": [[1.0]]}]}),
    *({"binary_interval": [0.2, 0.8]}, {"interval": {"low": [[0]], "high": [[2]]}}, {"chains": [{}]}),
    {"chains": [{"transition_matrix": [[0.5, 0.5], [0.5, 0.5]], "initial_distribution": "any"}]},
]
TEXTS = ["", "null", "{", "[1]", '{"epsilon":NaN}', '{"epsilon":Infinity}', '{"epsilon":1,"epsilon":9}', "[" * 100_000]
COLUMNS = ("number", "time", "kind", "content")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A ledger of three releases under two chains, one of them recorded."""
    ledger = pf.Ledger.create(tmp_path_factory.mktemp("ledger") / "whole", 50.0)
    for i, chain in enumerate((*CHAINS, CHAINS[0])):
        scale = pf.mqm_exact(chain, LENGTH, 1.0 + i).scale
        made = ledger.reserve(chain, LENGTH, mechanism="mqm-exact", epsilon=1.0 + i, scale=scale, query="a count")
    ledger.record(made)
    return ledger


def canonical(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(document):
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def rows_of(path):
    connection = sqlite3.connect(path)
    rows = [list(row) for row in connection.execute("SELECT number, time, kind, content FROM entries ORDER BY number")]
    connection.close()
    return rows


def rewrite(path, rows):
    """Put these rows in the ledger, with digests that fit; what SQLite itself refuses is left out."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("DROP TRIGGER never_changed; DROP TRIGGER never_removed; DELETE FROM entries;")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    previous = ""
    for number, time, kind, content in rows:
        try:
            previous = digest({"after": previous, "entry": [number, time, kind, content]})
        except TypeError:  # of bytes there is none
            previous = hashlib.sha256(repr((previous, number)).encode()).hexdigest()
        try:
            connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (number, time, kind, content, previous))
        except (sqlite3.Error, OverflowError, UnicodeEncodeError):
            continue
    connection.close()


def places(document, path=()):
    """Every place of a document."""
    yield path
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inside:
        yield from places(value, (*path, key))


def changed(document, rng):
    """The document with a value, a key or an entry of a list changed somewhere."""
    document = copy.deepcopy(document)
    path = rng.choice([place for place in places(document) if place])
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    how = rng.choice(("value", "number", "number", "remove", "add"))
    value = parent[path[-1]]
    if how == "number" and isinstance(value, int | float) and not isinstance(value, bool):
        parent[path[-1]] = value * rng.choice((0, -1, 0.5, 2, 1000, 1 - 1e-5, 1 + 1e-5, 10**300))
    elif how == "remove":
        del parent[path[-1]]
    elif how == "add" and isinstance(parent, dict):
        parent[rng.choice(("x", "epsilon", "extent", "records", "digest"))] = rng.choice(VALUES)
    else:
        parent[path[-1]] = rng.choice(VALUES)
    return document


def mutate_content(rows, rng):
    row = rng.choice(rows)
    document = changed(json.loads(row[3]), rng)
    if row[2] == "family" and rng.random() < 0.5 and "model" in document:  # whoever changes a model names it anew
        before, document["digest"] = document.get("digest"), digest(document["model"])
        for other in rows:
            if rng.random() < 0.5 and isinstance(before, str):
                other[3] = other[3].replace(before, document["digest"])
    row[3] = canonical(document)


def mutate_rows(rows, rng):
    row = rng.choice(rows)
    how = rng.randrange(7)
    if how == 0:
        rows.remove(row)
    elif how == 1:
        rows.append([len(rows) + 1, *row[1:]])
    elif how == 2:
        rng.shuffle(rows)
    elif how == 3:
        row[3] = rng.choice(TEXTS)
    elif how == 4:
        row[rng.randrange(4)] = rng.choice((None, 1.5, b"\xff\x00", "\x00", "now", "9" * 100, 2**62, "limit"))
    elif how == 5:
        row[2] = rng.choice(("limit", "family", "reserved", "released", "spent", ""))
    else:
        rows[:] = rows[: rng.randrange(len(rows) + 1)]
    if rng.random() < 0.7:
        for number, one in enumerate(rows, 1):
            one[0] = number


def said_by_the_rows(path):
    """What the releases in the rows cost together, by a second way of adding up."""
    rows = [(kind, json.loads(content)) for _, _, kind, content in rows_of(path)]
    reserved = [content for kind, content in rows if kind == "reserved"]
    models = [content["model"] for kind, content in rows if kind == "family"]
    used = [m for m in models if digest(m) in {r["family"] for r in reserved}]
    assert len({digest(m) for m in used}) == len({r["family"] for r in reserved})
    total = 0.0
    for model in used:
        accountant = pf.Accountant(parse_model(model), max(r["length"] for r in reserved))
        for r in reserved:
            accountant.add(r["scale"])
        total = max(total, accountant.cost().epsilon)
    # the bound of one release may differ from its own ε in the last digits, never more
    return (
        min(total, reserved[0]["epsilon"]) if len(reserved) == 1 and total < 1.001 * reserved[0]["epsilon"] else total
    )


def use(path, rng, capsys):
    """One of the things that read a ledger: it says one sentence or does its work."""
    words = rng.choice((["show"], ["show", "--json"], ["verify"], ["set-limit", "1e80"], None))
    if words is not None:
        code = cli.main(["ledger", words[0], str(path), *words[1:]])
        captured = capsys.readouterr()
        assert (code, captured.err.count("\n")) in ((0, 0), (2, 1))
        assert "\x1b" not in captured.out + captured.err
        return
    with suppress(pf.LedgerError, pf.BudgetError):
        book = pf.Ledger(path)
        book.record(book.reserve(CHAINS[0], 3, mechanism="x", epsilon=1.0, scale=1e6, query="x"))


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("mutate", [mutate_content, mutate_rows])
def test_crafted_rows_are_refused_or_cost_what_they_say(whole, tmp_path, capsys, seed, mutate):
    rng = random.Random(f"{mutate.__name__} {seed}")
    usable = 0
    for turn in range(25):
        path = tmp_path / str(turn)
        shutil.copyfile(whole.path, path)
        rows = rows_of(path)
        mutate(rows, rng)
        rewrite(path, rows)
        before = path.read_bytes()
        try:
            spent = pf.Ledger(path).spent
        except pf.LedgerError:
            spent = None
        assert path.read_bytes() == before
        if spent is not None:
            usable += 1
            assert spent >= said_by_the_rows(path) * (1 - 1e-9)
        use(path, rng, capsys)
    assert usable < 25


@pytest.mark.parametrize("seed", range(10))
def test_changed_bytes_are_refused_or_change_nothing(whole, tmp_path, capsys, seed):
    rng = random.Random(f"bytes {seed}")
    original = whole.path.read_bytes()
    spent, limit = whole.spent, whole.limit
    for turn in range(30):
        content = bytearray(original)
        for _ in range(rng.choice((1, 1, 3, 30))):
            at = rng.randrange(120) if rng.random() < 0.3 else rng.randrange(len(content))
            content[at] = rng.randrange(256)
        if rng.random() < 0.1:
            del content[rng.randrange(len(content)) :]
        path = tmp_path / str(turn)
        path.write_bytes(content)
        try:
            book = pf.Ledger(path)
            assert (book.spent, book.limit) == (spent, limit)
        except pf.LedgerError:
            pass
        use(path, rng, capsys)
