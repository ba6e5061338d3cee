"""Hostile input for all commands, from a seed: what works, changed in none, one or two places.

    python tests/helpers/fuzz_commands.py --runs 5000 --seed 7

A case takes a command line that works, on sound files of many kinds (:mod:`fuzz_inputs`), and changes nothing of it, or
one thing or two: bytes, numbers, rows or keys of a file, the value of an option, which file it is; now and then a file
becomes a device, a pipe, a link or a bomb. Each runs in a fork of a process that has imported the package.

What must hold of each: no traceback, an exit code of the four that are documented, one sentence where the code is 2, at
most :data:`MOST_SECONDS` of work and :data:`MOST_BYTES` of memory, no wait without end, and where it fails no file
made, changed or left behind.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import fuzz_inputs
from forged_ledgers import mutate_content, mutate_rows, rewrite, rows_of
from fuzz_inputs import SOUND, TABLES, WORDS, SoundFiles, bombs, csv_bytes, random_family, walk

import pufferflow as pf
from pufferflow import cli
from pufferflow._jit import compile_at_once
from pufferflow.cli._scales import scales_of

MOST_SECONDS = 90
"""Of processor time, for the wall clock of a busy machine says nothing; a command takes on about a minute unasked."""
MOST_BYTES = 2**30
PATIENCE = 15
"""Seconds of sleep, not of work, after which a run counts as waiting for ever."""
EXIT_CODES = (0, 2, 130, 141)

NUMBERS = (
    *("nan", "inf", "-inf", "1e308", "1e-308", "-1", "0", "-0", "", " ", "1e400", "5e-324", "1e91", "1e-91", "0x10"),
    *(str(2**62), str(2**63), str(-(2**63)), "1_000", "٣", "½", "1" * 5000, "1,2", "\udcff", "--", "true", "[1]"),
    *("1e9", "1e-9", "1000000", "100000000000", "3", "7", "0.3", "1e6"),
)
TEXTS = (
    *("", " ", "\udcff", "\x1b[31m", "a\nb", "x" * 5000, "a,b", "a,a", ",", "0,1", "1,0", "0,200,inf", "nan,1"),
    *("1e308,1e309", "%Q", "%Y-%m-%dT%H:%M", "walk,sit", "sit,walk,run,x", *WORDS),
)
JSONS = (
    *(None, True, -1, 0, 1, 0.5, 1e308, -1e308, 1e-308, 5e-324, 2**62, 2**64, 10**400, "", "a", "\ud800", "nan", "1/0"),
    *([], {}, [[]], [1], [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[1e308, 1e308], [0, 1]], "stationary", "any", "1/3"),
    *("1e999999", "7/9", 1e-7, 0.9999999, 300, 10**6, 10**9, [0.1] * 10, *WORDS[:8]),
)
FACTORS = (0, -1, 0.5, 2, 1000, 1 - 1e-12, 1 + 1e-12, 1e-7, 1e300)


# -- a command line that works -----------------------------------------------------------------------------


@dataclass
class Word:
    """An option or an argument, for which the flag is empty: what its value is, and that value.

    Kinds of files (:data:`FILES`) have their content as value, a switch has none; all others are texts.
    """

    flag: str
    kind: str
    value: str | bytes = ""


COMMANDS = sorted(set(cli.COMMANDS) - {"synthesise"})  # that one reads a folder; it has tests of its own

FILES = ("data", "model", "certificate", "network", "hidden", "counts", "ledger", "scenarios", "number")

OPTIONS = {
    "reading": [
        *((f"--{role}", "text") for role in ("time", "value", "participant", "group", "timezone", "time-format")),
        *((f"--{sign}", "text") for sign in ("separator", "decimal", "thousands")),
        ("--rows-are-steps", ""),
    ],
    "states": [("--states", "text"), ("--edges", "edges"), ("--step", "whole"), ("--split-after", "whole")],
    "releases": [
        *(("--epsilon", "epsilon"), ("--mechanism", "mechanism"), ("--post-process", "post"), ("--json", "")),
        *(("--split-because", "text"), ("--fitted-to-others", ""), ("--output", "output"), ("--no-figure", "")),
        *(("--protect", "protect"), ("--knows", "text"), ("--statistic", "statistic"), ("--by", "by")),
        *(("--grid", "real"), ("--threshold", "real"), ("--durations", "edges"), ("--quantiles", "edges")),
    ],
    "fit": [
        *(("--bins", "whole"), ("--width", "real"), ("--top", "whole"), ("--other", ""), ("--smoothing", "real")),
        *(("--start", "start"), ("--coverage", "real"), ("--epsilon", "epsilon"), ("--json", "")),
        *(("--sample", "output"), ("--chain", "output"), ("--split-because", "text")),
        *(("--private", ""), ("--most-transitions", "whole"), ("--confidence", "real"), ("--ledger", "ledger")),
        *(("--limit", "epsilon"), ("--no-ledger", "")),
    ],
    "release": [
        ("--ledger", "ledger"),
        ("--limit", "epsilon"),
        ("--no-ledger", ""),
        ("--dry-run", ""),
        ("--chain-is-public", ""),
    ],
    "count": [
        *(("--length", "length"), ("--threshold", "real"), ("--count", "text"), ("--states", "text")),
        *(
            ("--value", "text"),
            ("--separator", "text"),
            ("--decimal", "text"),
            ("--step", "whole"),
            ("--start", "text"),
        ),
        *(("--protect", "protect"), ("--knows", "text"), ("--epsilon", "epsilon"), ("--statement", "output")),
        *(("--ledger", "ledger"), ("--limit", "epsilon"), ("--no-ledger", ""), ("--dry-run", "")),
    ],
    "simulate": [("--seed", "whole"), ("--length", "length")],
    "plan": [
        *(("--accuracy", "real"), ("--confidence", "real"), ("--error", "error"), ("--length", "length")),
        *(("--records", "length"), ("--epsilon", "epsilon"), ("--mechanism", "mechanism"), ("--json", "")),
        *(("--figure", "output"), ("--releases", "whole"), ("--protect", "protect"), ("--step", "whole")),
    ],
    "ledger": [("--json", ""), ("--noted", "text"), ("", "epsilon")],
    "export": [("", "output"), ("--from", "moment"), ("--minutes", "minutes")],
    "scale": [("--certificate", "output"), ("--eigengap", "text")],
    "scales": [
        *(("--length", "length"), ("--epsilon", "epsilon"), ("--mechanism", "mechanism"), ("--count", "whole")),
        *(("--convention", "text"), ("--json", "")),
    ],
    "verify": [("--json", ""), ("--most-work", "real")],
    "audit": [("--scale", "real"), ("--histogram", ""), ("--window", "whole")],
    "check": [("--factor", "factor"), ("--length", "whole"), ("--preserving", ""), ("--json", "")],
    "noisymax": [
        *(("--release", "text"), ("--ties", "text"), ("--largest", "whole"), ("--ratio", "factor"), ("--json", "")),
    ],
    "general": [
        *(("--epsilon", "epsilon"), ("--group", "group"), ("--adversary", "scenarios"), ("--release", "number")),
        *(("--pair", "text"), ("", "text"), ("--json", "")),
    ],
    "network": [
        *(("--epsilon", "epsilon"), ("--secret", "text"), ("--query", "text"), ("--releases", "whole"), ("--json", "")),
    ],
}
"""What may be added to a command line: the options of a command, and those that several have."""
SHARED = {
    "fit": ("fit", "reading", "states"),
    "release": ("release", "releases", "reading", "states"),
    "simulate": ("simulate", "releases", "reading", "states"),
    "scale": ("scale", "scales"),
    "audit": ("audit", "scales"),
}

MECHANISMS = ("mqm-exact", "leakage", "group-dp", "gk16", "mqm-approx", "wasserstein", "entry-dp")
EPSILONS = ("1", "0.1", "5", "0.01", "20")
VALUES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "epsilon": (EPSILONS, NUMBERS),
    "length": (("1", "2", "20", "100", "1000"), NUMBERS),
    "whole": (("0", "1", "2", "3", "60"), NUMBERS),
    "real": (("0.5", "1", "10", "0.05"), NUMBERS),
    "edges": (("10", "100,500"), (*TEXTS, *NUMBERS)),
    "text": (("value", "time", "UTC", ",", ".", "v1", "general", "published"), TEXTS),
    "mechanism": (MECHANISMS, TEXTS),
    "group": (("a,b", "a"), TEXTS),
    "factor": (("2", "3/2", "1.5"), (*NUMBERS, "1/0", "1e9999")),
    "action": (("show", "verify"), TEXTS),
    "dataset": (("electricity",), TEXTS),
    "moment": (("2007-05-01T00:00", "2008-01-01T00:00"), (*TEXTS, "-0001-01-01", "9999-12-31T23:59")),
    "minutes": (("10", "100", "3000"), NUMBERS),
    "start": (("stationary", "any"), TEXTS),
    "error": (("bin", "bins", "total"), TEXTS),
    "post": (("clip", "simplex"), TEXTS),
    "protect": (("record", "participant", "1h", "60", "1d"), (*TEXTS, *NUMBERS)),
    "statistic": (("histogram:2", "transitions", "above", "runs-by-group", "histogram-by-hour"), (*TEXTS, "mean:-1")),
    "by": (("hour", "weekday", "month", "group"), TEXTS),
}
"""Usual and hostile values of each kind of option."""


class Lines:
    """Command lines that work, one method a command."""

    def __init__(self, dice: random.Random, sound: SoundFiles) -> None:
        self.dice, self.sound = dice, sound

    def _some(self, *words: Word, often: float = 0.3) -> list[Word]:
        return [word for word in words if self.dice.random() < often]

    def _of(self, flag: str, kind: str) -> Word:
        return Word(flag, kind, self.dice.choice(VALUES[kind][0]) if kind else "")

    def fit(self) -> list[Word]:
        name, kind = self.dice.choice(list(TABLES.items()))
        return [
            Word("", "data", self.sound.table(name, self.dice.choice(("2021", "2022")))),
            *_options(*kind.reading, *kind.states),
            *self._some(self._of("--json", ""), self._of("--epsilon", "epsilon"), self._of("--start", "start")),
            *self._some(Word("--sample", "output"), Word("--chain", "output")),
        ]

    def _released(self, *, simulated: bool = False) -> list[Word]:
        """Data with a chain that was fitted to others, or with one made by hand."""
        if self.dice.random() < 0.6:
            name = self.dice.choice(list(TABLES))
            data, chain = (self.sound.table(name, ending) for ending in ("2022", "chain"))
            return [Word("", "data", data), Word("--chain", "model", chain)]
        k = fuzz_inputs.some_states(self.dice)
        names = self.dice.sample(WORDS, k)
        timed, document = self.dice.random() < 0.7, random_family(self.dice, k)
        form = {"states": {"names": names, "other": False}, "step_seconds": 60 if timed else None}
        rows = walk(self.dice, names, self.dice.choice((30, 90, 500)), 2022)
        header, cells = ("time", "value"), [(at.isoformat(), value) for at, value in rows]
        content = csv_bytes(header if timed else header[1:], cells if timed else [cell[1:] for cell in cells])
        if self.dice.random() < 0.2:  # said on the command line
            said = [] if any("," in name for name in names) else [Word("--states", "text", ",".join(names))]
            said += [Word("--step", "whole", "60")] if timed else []
        else:
            document, said = document | {"records": form}, []
        return [Word("", "data", content), Word("--chain", "model", json.dumps(document).encode()), *said]

    def _how(self) -> list[Word]:
        return [
            self._of("--epsilon", "epsilon"),
            *self._some(Word("--no-figure", ""), often=0.95),
            *self._some(self._of("--mechanism", "mechanism"), self._of("--post-process", "post"), often=0.25),
            *self._some(Word("--output", "output"), Word("--json", "")),
        ]

    def release(self) -> list[Word]:
        account = self.dice.choice((["--no-ledger", ""], ["--limit", "epsilon"], ["--ledger", "output"], None, None))
        ledger = [] if account is None else [Word(*account, "20" if account[0] == "--limit" else "")]
        if self.dice.random() < 0.1:
            ledger = [Word("--ledger", "ledger", self.sound.any("ledger", self.dice))]
        return [
            *self._released(),
            *(self._how()),
            *ledger,
            *self._some(Word("--dry-run", ""), Word("--chain-is-public", ""), often=0.2),
        ]

    def count(self) -> list[Word]:
        rows = [self.dice.choice("01") for _ in range(self.dice.choice((1, 20, 300)))]
        return [
            Word("", "data", "".join(f"{row}\n" for row in rows).encode()),
            Word("--chain", "model", json.dumps(random_family(self.dice, 2)).encode()),
            self._of("--epsilon", "epsilon"),
            *self._some(self._of("--length", "length"), Word("--no-ledger", ""), Word("--dry-run", "")),
            *self._some(Word("--threshold", "real", "1"), Word("--statement", "output"), often=0.2),
        ]

    def simulate(self) -> list[Word]:
        source = self._released()
        if self.dice.random() < 0.5:
            source = [word for word in source if word.kind != "data"]
            source += [self._of("--length", "length"), Word("--output", "output")]
        return [*source, self._of("--seed", "whole"), *self._how()]

    def _model(self) -> bytes:
        if self.dice.random() < 0.2:
            return self.sound.any("model", self.dice)
        return json.dumps(random_family(self.dice, fuzz_inputs.some_states(self.dice))).encode()

    def plan(self) -> list[Word]:
        what = self.dice.choice((["--length"], ["--epsilon"], ["--length", "--epsilon"]))
        return [
            Word("--chain", "model", self._model()),
            Word("--accuracy", "real", self.dice.choice(("0.5", "0.05", "0.01"))),
            *(self._of(flag, flag[2:]) for flag in what),
            *(self._of("--mechanism", "mechanism") for _ in range(self.dice.choice((0, 1, 1, 2)))),
            *self._some(self._of("--error", "error"), Word("--confidence", "real", "0.5"), Word("--json", "")),
        ]

    def ledger(self) -> list[Word]:
        action = self.dice.choice(("show", "show", "verify", "set-limit"))
        return [
            Word("", "action", action),
            Word("", "ledger", self.sound.any("ledger", self.dice)),
            *([self._of("", "epsilon")] if action == "set-limit" else []),
            *(self._some(Word("--json", "")) if action == "show" else []),
        ]

    def export(self) -> list[Word]:
        return [
            Word("", "dataset", "electricity"),
            *[Word("", "output")] * self.dice.choice((1, 1, 2)),
            *self._some(self._of("--from", "moment")),
            *self._some(self._of("--minutes", "minutes"), often=0.9),
        ]

    def scale(self) -> list[Word]:
        certified = self.dice.random() < 0.3
        return [
            Word("", "model", self._model()),
            self._of("--length", "length"),
            *[self._of("--epsilon", "epsilon")] * (1 if certified else self.dice.choice((1, 1, 3))),
            *self._some(self._of("--mechanism", "mechanism"), Word("--json", "")),
            *self._some(
                Word("--count", "whole", "0"), Word("--certificate", "output") if certified else Word("--json", "")
            ),
        ]

    def verify(self) -> list[Word]:
        return [Word("", "certificate", self.sound.any("certificate", self.dice)), *self._some(Word("--json", ""))]

    def audit(self) -> list[Word]:
        k = self.dice.choice((2, 2, 3))
        how = self.dice.choice(([Word("--scale", "real", "10")], [self._of("--epsilon", "epsilon")]))
        query = [Word("--count", "whole", "0")] if self.dice.random() < 0.7 else [Word("--histogram", "")]
        few = query[0].flag == "--histogram"
        return [
            Word("", "model", json.dumps(random_family(self.dice, k)).encode()),
            Word("--length", "length", self.dice.choice(("2", "5", "10") if few else ("2", "20", "100"))),
            *(*how, *query),
            *self._some(self._of("--mechanism", "mechanism") if len(how) else Word("--json", ""), Word("--json", "")),
        ]

    def check(self) -> list[Word]:
        return [
            Word("", "hidden", json.dumps(fuzz_inputs.random_hidden(self.dice)).encode()),
            self._of("--factor", "factor"),
            *self._some(Word("--length", "whole", self.dice.choice("123")), Word("--json", "")),
        ]

    def noisymax(self) -> list[Word]:
        counts = [self.dice.randrange(3) for _ in range(self.dice.choice((1, 2, 5)))]
        return [
            Word("", "counts", json.dumps(counts).encode()),
            *self._some(Word("--release", "text", "value"), Word("--largest", "whole", "3"), Word("--json", "")),
        ]

    def network(self) -> list[Word]:
        return [
            Word("", "network", json.dumps(fuzz_inputs.random_network(self.dice)).encode()),
            *[self._of("--epsilon", "epsilon")] * self.dice.choice((1, 1, 2)),
            *self._some(Word("--secret", "text", "v0"), Word("--query", "text", "v0"), Word("--json", "")),
            *self._some(self._of("--releases", "whole"), often=0.1),
        ]

    def general(self) -> list[Word]:
        table = fuzz_inputs.random_scenarios(self.dice)
        pair = [Word("--pair", "text", "well"), Word("", "text", "ill")]
        return [
            Word("", "scenarios", table),
            self._of("--epsilon", "epsilon"),
            *self._some(Word("--adversary", "scenarios", self._scenarios(table)), Word("--json", "")),
            *(self._some(self._of("--group", "group"), often=0.6) if b",b," in table else []),
            *(pair if b"well" in table and b"ill" in table and self.dice.random() < 0.2 else []),
            *self._some(Word("--release", "number", self.dice.choice((b"0", b"1", b"2\n", b" 1/1")))),
        ]

    def _scenarios(self, table: bytes) -> bytes:
        return table if self.dice.random() < 0.5 else fuzz_inputs.random_scenarios(self.dice)


def _options(*words: str) -> list[Word]:
    """Options as they stand on a command line."""
    found: list[Word] = []
    for word in words:
        flag, _, value = word.partition("=")
        if word.startswith("--"):
            found.append(Word(flag, "text" if value else "", value))
        else:
            found[-1] = Word(found[-1].flag, "text", word)
    return found


# -- and what becomes of it --------------------------------------------------------------------------------


class Damage:
    """Changes of contents."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def of(self, content: bytes, kind: str) -> bytes:
        """The content with something changed."""
        if kind == "ledger":
            how = self.dice.choice((self._forge, self._forge, self._column, self._flip, self._cut))
        elif content[:1] == b"{":
            how = self.dice.choice((self._json,) * 8 + (self._flip, self._cut))
        elif kind in ("data", "scenarios"):
            how = self.dice.choice(
                (self._flip, self._cut, self._twice, self._field, self._field, self._rows, self._rows)
            )
        else:
            how = self.dice.choice((self._flip, self._cut, self._twice))
        return how(content)

    def _flip(self, content: bytes) -> bytes:
        changed = bytearray(content)
        for _ in range(self.dice.choice((1, 3, 10)) if changed else 0):
            changed[self.dice.randrange(len(changed))] = self.dice.randrange(256)
        return bytes(changed)

    def _cut(self, content: bytes) -> bytes:
        return content[: self.dice.randrange(len(content) + 1)]

    def _twice(self, content: bytes) -> bytes:
        at = self.dice.randrange(len(content) + 1)
        return content[:at] + content[self.dice.randrange(len(content) + 1) :]

    def _field(self, content: bytes) -> bytes:
        lines = content.split(b"\n")
        at = self.dice.randrange(min(len(lines), 6))
        fields = lines[at].split(b",")
        odd = ("-0001-01-01", "9999-12-31T23:59", "2021-06-01", "2021-03-28T02:30Z", "value", "time")
        fields[self.dice.randrange(len(fields))] = os.fsencode(self.dice.choice((*NUMBERS, *TEXTS, *odd)))
        lines[at] = b",".join(fields)
        return b"\n".join(lines)

    def _rows(self, content: bytes) -> bytes:
        """Rows left out, said twice, put elsewhere, many of them."""
        lines = content.split(b"\n")
        at = self.dice.randrange(1, len(lines) + 1)
        how = self.dice.randrange(6)
        if how == 0:
            del lines[at : at + self.dice.choice((1, 5, 50))]
        elif how == 1:
            lines[at:at] = lines[at - 1 : at + 3]
        elif how == 2:
            lines[1:] = reversed(lines[1:])
        elif how == 3:
            lines[1:] = lines[1:] * 2
        elif how == 4:
            lines[1:] = lines[1 : self.dice.choice((1, 2, 3))]
        else:
            lines.append(lines[-1] * 2000)
        return b"\n".join(lines)

    def _json(self, content: bytes) -> bytes:
        try:
            document = json.loads(content)
        except ValueError:
            return self._flip(content)
        places = [(at, key) for at in _containers(document) for key in (at if isinstance(at, dict) else range(len(at)))]
        if not places:
            return self._flip(content)
        at, key = self.dice.choice(places)
        dice, value = self.dice.random(), at[key]
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308
        if dice < 0.1:
            del at[key]
        elif dice < 0.2:
            at[key] = [value] * self.dice.choice((2, 40, 300))
        elif dice < 0.3 and isinstance(at, dict):
            at[self.dice.choice((*TEXTS, *at))] = value
        elif dice < 0.4 and isinstance(value, list):
            self.dice.shuffle(value)
        elif dice < 0.6 and number:
            at[key] = value * self.dice.choice(FACTORS)
        else:
            at[key] = self.dice.choice(JSONS)
        return json.dumps(document).encode()

    def _edited(self, content: bytes, edit: Callable[[str], None]) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger"
            path.write_bytes(content)
            edit(str(path))
            return path.read_bytes()

    def _forge(self, content: bytes) -> bytes:
        """Entries changed, with digests that fit."""

        def edit(path: str) -> None:
            rows = rows_of(path)
            for _ in range(self.dice.choice((1, 1, 3))):
                self.dice.choice((mutate_content, mutate_content, mutate_rows))(rows, self.dice)
            rewrite(path, rows)

        try:
            return self._edited(content, edit)
        except (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError):  # nothing left to change
            return content

    def _column(self, content: bytes) -> bytes:
        def edit(path: str) -> None:
            with contextlib.closing(sqlite3.connect(path)) as book:
                table = self.dice.choice(
                    [n for (n,) in book.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                )
                column = self.dice.choice([row[1] for row in book.execute(f"PRAGMA table_info({table})")])
                value = self.dice.choice((None, -1, 2**62, 1e308, "", "a", b"\xff", 0.5, "{}", "[]", "nan"))
                book.execute("PRAGMA ignore_check_constraints = 1")
                book.execute("DROP TRIGGER never_changed")
                book.execute(f"UPDATE {table} SET {column} = ?", (value,))
                book.commit()

        try:
            return self._edited(content, edit)
        except (sqlite3.Error, LookupError):
            return content


def _containers(value: object) -> list[dict[str, object] | list[object]]:
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(found for entry in inner for found in _containers(entry))]


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.fsencode(path))


def _device(minor: int) -> Callable[[Path], None]:
    return lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))


ODD = (
    *(os.mkfifo, Path.mkdir, Path.touch, _socket, lambda path: path.symlink_to(path.name)),
    *(lambda path: path.symlink_to("nowhere"), lambda path: None),
    *(_device(3), _device(5), _device(7)),  # null, zero, full: nodes of the folder, for an output may replace them
)
"""What a name may stand for besides an ordinary file."""


class Case:
    """Words of a command and a folder of what they name, both from a seed."""

    def __init__(self, seed: int, sound: SoundFiles, bombs: Callable[[], dict[str, bytes]], folder: Path) -> None:
        self.dice, self.sound, self.bombs, self.folder = random.Random(seed), sound, bombs, folder
        self.number = 0
        self.odd: dict[int, Callable[[Path], None]] = {}
        self.command = self.dice.choice(COMMANDS)
        self.line: list[Word] = getattr(Lines(self.dice, sound), self.command)()
        for _ in range(self.dice.choice((0, 0, 0, 1, 1, 1, 2, 2))):
            self._change()
        self.words = [os.fsdecode(os.fsencode(word)) for word in self._words()]

    def _change(self) -> None:
        """One change of the command line."""
        how = self.dice.choices(
            (self._damage, self._value, self._add, self._drop, self._other, self._strange, self._stray),
            (40, 20, 15, 5, 7, 10, 3),
        )[0]
        how()

    def _pick(self, *kinds: str) -> Word | None:
        found = [word for word in self.line if word.kind in kinds]
        return self.dice.choice(found) if found else None

    def _damage(self) -> None:
        word = self._pick(*FILES)
        if word is not None:
            word.value = Damage(self.dice).of(word.value, word.kind)
        else:
            self._value()

    def _value(self) -> None:
        word = self._pick(*VALUES)
        if word is not None:
            word.value = self.dice.choice(VALUES[word.kind][self.dice.random() < 0.7])

    def _add(self) -> None:
        """An option more, or one twice."""
        of = SHARED.get(self.command, (self.command,))
        flag, kind = self.dice.choice([option for name in of for option in OPTIONS[name]])
        value: str | bytes = ""
        if kind in FILES:
            value = self._sound(kind)
        elif kind in VALUES:
            value = self.dice.choice(VALUES[kind][self.dice.random() < 0.4])
        self.line.append(Word(flag, kind, value))

    def _drop(self) -> None:
        if self.line:
            self.line.remove(self.dice.choice(self.line))

    def _sound(self, kind: str) -> bytes:
        if kind == "scenarios":
            return fuzz_inputs.random_scenarios(self.dice)
        if kind == "number":
            return self.dice.choice((b"1", b"", b"x", b"1e400", b"-1e99", b"1\n2", b"0." + b"3" * 3000, bytes(20_000)))
        return self.sound.any(kind if kind in SOUND else "certificate", self.dice)

    def _other(self) -> None:
        """Another file, of the same kind or of another."""
        word = self._pick(*FILES)
        if word is not None:
            word.value = self._sound(word.kind if self.dice.random() < 0.7 else self.dice.choice(FILES))

    def _strange(self) -> None:
        """A file or an output becomes a device, a pipe, a link, a bomb."""
        word = self._pick(*FILES, "output")
        if word is not None:
            self.odd[id(word)] = self._bomb if self.dice.random() < 0.3 else self.dice.choice(ODD)

    def _stray(self) -> None:
        word = Word("", "text", self.dice.choice((*TEXTS, *NUMBERS, "--json", "--help", "--version")))
        self.line.insert(self.dice.randint(0, len(self.line)), word)

    def _bomb(self, path: Path) -> None:
        bombs = self.bombs()
        path.write_bytes(bombs[self.dice.choice(sorted(bombs))])

    def _words(self) -> list[str]:
        """The command line, with the files that it names."""
        words = [self.command]
        for word in self.line:
            value = self._path(word) if word.kind in (*FILES, "output") else str(word.value)
            if word.flag == "":
                words += [value]
            elif word.kind == "":
                words += [word.flag]
            else:
                words += [f"{word.flag}={value}"] if value.startswith("-") else [word.flag, value]
        return words

    def _path(self, word: Word) -> str:
        """Name of the file of a word, which is made."""
        self.number += 1
        name = f"{self.number}{self.dice.choice((*('',) * 9, ' x', 'é', chr(0xDCFF), chr(10), '$', '-' * 200, '.csv'))}"
        path = self.folder / name
        if id(word) in self.odd:
            try:
                self.odd[id(word)](path)
            except OSError:  # devices are for root, and names of sockets are short
                path.mkdir()
        elif isinstance(word.value, bytes):
            path.write_bytes(word.value)
        elif self.dice.random() < 0.02:
            return self.dice.choice((f"missing/{name}", "", "n" * 300, "1"))
        return name


# -- running it and what must hold -------------------------------------------------------------------------


def content_of(folder: Path) -> dict[bytes, object]:
    """Everything in a folder: kind and content."""
    found: dict[bytes, object] = {}
    for at, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = os.path.join(at, name)
            mode = os.lstat(path).st_mode
            found[path] = stat.S_IFMT(mode)
            if stat.S_ISREG(mode):
                with open(path, "rb") as stream:
                    found[path] = hashlib.sha256(stream.read()).digest()
    return found


def run_forked(words: list[str], folder: Path, out: Path, scratch: Path, sink: str | None) -> tuple[int, object, bytes]:
    """Run the command line in a fork; its wait status, what it used, and its standard error."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _prepare(folder, out, scratch, sink)
            sys.argv = ["pufferflow", *words]
            code = cli.main()
            if code == 0:
                sys.stdout.flush()
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os.write(2, traceback.format_exc().encode(errors="replace"))
        os._exit(code)
    status, used = _wait(child)
    return status, used, out.with_suffix(".err").read_bytes()


def _wait(child: int) -> tuple[int, resource.struct_rusage]:
    """Wait for a child; one that sleeps on and on is killed."""
    worked, asleep = "", 0.0
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            return status, used
        time.sleep(0.02)
        state, _, *rest = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()
        now = " ".join(rest[9:11])  # ticks of work
        asleep = asleep + 0.02 if state == "S" and now == worked else 0.0
        worked = now
        if asleep > PATIENCE:
            os.kill(child, signal.SIGALRM)


def _prepare(folder: Path, out: Path, scratch: Path, sink: str | None) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (space + 4 * MOST_BYTES,) * 2)  # for the sake of the machine
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS + 10, MOST_SECONDS + 20))
    os.chdir(folder)
    os.environ["TMPDIR"] = str(scratch)
    tempfile.tempdir = None
    for number, path, flags in (
        (0, "/dev/null", os.O_RDONLY),
        (1, sink or str(out), os.O_WRONLY | os.O_CREAT),
        (2, str(out.with_suffix(".err")), os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        opened = os.open(path, flags)
        os.dup2(opened, number)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)


def complaints(status: int, used: object, said: bytes, changed: list[str], states: bool = False) -> list[str]:
    """What does not hold of a run; ``changed`` are the files made or changed.

    A command that ``states`` says on standard error what it protects, for its numbers alone go to standard output.
    """
    found = []
    lines = said.decode(errors="replace").splitlines()
    if os.WIFSIGNALED(status):
        found.append(f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
    code = os.waitstatus_to_exitcode(status)
    if code not in EXIT_CODES:
        found.append(f"exit code {code}: {lines[-1] if lines else ''}")
    if any("Traceback" in line for line in lines):
        found.append(f"traceback: {lines[-1]}")
    elif strange := [
        line for line in lines if not line.startswith("pufferflow: ") and (not states or "Warning" in line)
    ]:
        found.append(f"on standard error: {strange[0]}")
    if code == 2 and sum(line.startswith("pufferflow: error: ") for line in lines) != 1:
        found.append("not one sentence")
    seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    if seconds > MOST_SECONDS:
        found.append(f"{seconds:.0f} s")
    if memory > MOST_BYTES:
        found.append(f"{memory >> 20} MB")
    if code != 0 and changed:
        found.append(f"files after a failure: {changed[:3]}")
    if any(Path(name).name.startswith((".", "tmp")) for name in changed):
        found.append(f"left behind: {changed[:3]}")
    return found


def _made(make: Callable[[], None]) -> dict[str, bytes]:
    """Files by name, made in a fork: the memory that takes would be counted for every case."""
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            try:
                os.chdir(folder)
                make()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError(f"{make} failed")
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@dataclass
class Tally:
    """Runs of a command: how often each exit code, the most processor seconds and megabytes."""

    codes: collections.Counter[int] = field(default_factory=collections.Counter)
    slowest: float = 0.0
    largest: int = 0

    def add(self, code: int, used: resource.struct_rusage) -> None:
        """Count a run."""
        self.codes[code] += 1
        self.slowest = max(self.slowest, used.ru_utime + used.ru_stime)
        self.largest = max(self.largest, used.ru_maxrss >> 10)

    def __str__(self) -> str:
        runs = sum(self.codes.values())
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items()))
        return f"{runs:6} runs, {self.codes[0] / runs:4.0%} succeed ({codes}); {self.slowest:.1f} s, {self.largest} MB"


class Fuzzer:
    """Runs cases; ``home`` holds what they share."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._warm()
        self.sound = SoundFiles(_made)
        self.tallies: dict[str, Tally] = collections.defaultdict(Tally)

    @cached_property
    def bombs(self) -> dict[str, bytes]:
        return _made(bombs)

    def _warm(self) -> None:
        """Load what forks would each load again."""
        import matplotlib.figure  # noqa: F401

        from pufferflow.drawing import style  # noqa: F401

        for name in COMMANDS:
            __import__(f"pufferflow.cli.{name}")
        compile_at_once()
        family = pf.ChainFamily([pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]], "any")])
        for mechanism in MECHANISMS[:-1]:  # the kernels; entry-dp has none
            scales_of([mechanism], family, [20], [1.0], {"states": [1]})[0].certified(family)

    def run(self, seed: int) -> list[str]:
        """Run the case of a seed; what does not hold of it."""
        folder, scratch = self.home / "case", self.home / "scratch"
        for fresh in (folder, scratch):
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
        case = Case(seed, self.sound, lambda: self.bombs, folder)
        self.words = case.words
        before = content_of(folder)
        sink = "/dev/full" if case.dice.random() < 0.02 else None
        status, used, said = run_forked(case.words, folder, self.home / "out", scratch, sink)
        after = content_of(folder)
        changed = [
            os.fsdecode(os.path.basename(p)) for p in after.keys() | before.keys() if after.get(p) != before.get(p)
        ]
        found = complaints(status, used, said, changed if sink is None else [], states=case.command == "count")
        if any(scratch.iterdir()):
            found.append(f"left in the temporary folder: {[path.name for path in scratch.iterdir()][:3]}")
        self.tallies[case.command].add(os.waitstatus_to_exitcode(status), used)
        return found


def main() -> int:
    """Run the cases asked for; 1 if something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default: 0)")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop then, with what was found (default: never)")
    parser.add_argument("--keep", metavar="FOLDER", help="copy the folders of failing cases here")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as home:
        fuzzer = Fuzzer(Path(home))
        end = time.monotonic() + arguments.minutes * 60
        for number in range(arguments.first, arguments.first + arguments.runs):
            if time.monotonic() > end:
                break
            seed = arguments.seed * 10**6 + number
            found = fuzzer.run(seed)
            if found:
                failed += 1
                print(f"case {seed} (--seed {arguments.seed}, number {number}): {'; '.join(found)}")
                print(
                    "   ", ascii([word if len(word) < 200 else word[:200] + "..." for word in fuzzer.words]), flush=True
                )
                if arguments.keep:
                    shutil.copytree(
                        Path(home) / "case", Path(arguments.keep) / str(seed), symlinks=True, ignore=_special
                    )
    for command, tally in sorted(fuzzer.tallies.items()):
        print(f"{command:9}{tally}")
    print(f"{sum(tally.codes.total() for tally in fuzzer.tallies.values())} runs, {failed} failed")
    return int(failed > 0)


def _special(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not stat.S_ISREG(os.lstat(os.path.join(folder, name)).st_mode)]


if __name__ == "__main__":
    sys.exit(main())
