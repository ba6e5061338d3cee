"""Ledgers that anybody may have written: rows taken out, changed, and put back with digests that fit."""

import copy
import hashlib
import json
import sqlite3
from contextlib import closing

VALUES = [
    *(None, True, False, "", "x", "\ud800", "1\n2", "\x1b[31m", [], {}, [1], {"a": 1}, -1, 0, 1, 2, 0.5, -0.0, 1e-320),
    *(1e308, 10**400, 2**62, 2**63, 1e-90, 1e90, 1e91, "reserved", "0" * 64, [[[1.0]]], {"chains": []}, "9" * 5000),
    *({"chains": [{"transition_matrix": [[1e308, 1e308], [0, 1]]}]}, {"chains": [{"transition_matrix": [[1.0]]}]}),
    *({"binary_interval": [0.2, 0.8]}, {"interval": {"low": [[0]], "high": [[2]]}}, {"chains": [{}]}),
    {"chains": [{"transition_matrix": [[0.5, 0.5], [0.5, 0.5]], "initial_distribution": "any"}]},
]
TEXTS = ["", "null", "{", "[1]", '{"epsilon":NaN}', '{"epsilon":Infinity}', '{"epsilon":1,"epsilon":9}', "[" * 100_000]


def canonical(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(document):
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def rows_of(path):
    with closing(sqlite3.connect(path)) as connection:
        entries = connection.execute("SELECT number, time, kind, content FROM entries ORDER BY number")
        return [list(row) for row in entries]


def rewrite(path, rows):
    """Put these rows in the ledger, with digests that fit; what SQLite itself refuses is left out."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        connection.executescript("DROP TRIGGER never_changed; DROP TRIGGER never_removed; DELETE FROM entries;")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        previous = ""
        for number, time, kind, content in rows:
            try:
                previous = digest({"after": previous, "entry": [number, time, kind, content]})
            except TypeError:  # of bytes there is none
                previous = hashlib.sha256(repr((previous, number)).encode()).hexdigest()
            try:
                connection.execute(
                    "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (number, time, kind, content, previous)
                )
            except (sqlite3.Error, OverflowError, UnicodeEncodeError):
                continue


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
