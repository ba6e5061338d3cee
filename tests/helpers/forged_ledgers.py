"""Ledgers that anybody may have written: rows changed, and put back with digests that fit."""

import copy
import hashlib
import json
import sqlite3
from contextlib import closing

from pufferflow.accounting.entries import canonical

VALUES = [
    *(None, True, False, "", "x", "\ud800", "1\n2", "\x1b[31m", [], {}, [1], {"a": 1}, -1, 0, 1, 2),
    *(0.5, -0.0, 1e-320, 1e308, 10**400, 2**62, 2**63, 1e-90, 1e91, "inf", "nan", "1/0", "-1/3"),
    *("0", "1/3", "9" * 5000, "1e999999999", "theta", "made", "none", "any", "utc", [[[1.0]]]),
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


def places(document):
    """Every container of a document, with every key or place in it."""
    inside = document.items() if isinstance(document, dict) else ()
    for key, value in enumerate(document) if isinstance(document, list) else inside:
        yield document, key
        yield from places(value)


def _scaled(value, rng):
    """A number, or the text of a fraction, made larger or smaller; None of anything else."""
    if isinstance(value, str) and value.replace("/", "").isdecimal():
        over, _, under = value[:99].partition("/")
        return f"{int(over) * rng.choice((0, 1, 2, 1000))}/{int(under or 1) * rng.choice((1, 3))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return rng.choice((value - 604800, value + 604800, 0, -value, value * 1000, value // 2))
    return None


def mutate(rows, rng):
    """Scale, change, delete, swap or copy nodes of the rows, a row itself being one of them."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        nodes = list(places(rows))
        numbers = [(at, key) for at, key in nodes if _scaled(at[key], rng) is not None]
        of_rows = [node for node in nodes if node[0] is rows]
        if not numbers:
            return
        parent, key = rng.choice(rng.choice((nodes, numbers, numbers, of_rows)))
        other, beside = rng.choice([node for node in nodes if node[0] is parent])
        how = rng.choice(("scale",) * 3 + ("change", "delete", "swap"))
        if how == "scale" and (scaled := _scaled(parent[key], rng)) is not None:
            parent[key] = scaled
        elif how == "delete" and (isinstance(parent, dict) or parent is rows):
            del parent[key]
        elif how == "swap":
            parent[key], other[beside] = other[beside], parent[key]
        elif parent is rows:
            rows.insert(rng.randrange(len(rows) + 1), copy.deepcopy(parent[key]))
        else:
            parent[key] = rng.choice(VALUES)
