"""Hostile input for all commands, from a seed: random and damaged files, devices, pipes, links, bombs, odd options.

    python tests/property/fuzz_commands.py --runs 5000 --seed 7

The package is imported once and every case runs in a fork of it. What must hold of each: no traceback, an exit code of
the four that are documented, one sentence where the code is 2, at most :data:`MOST_SECONDS` of work and
:data:`MOST_BYTES` of memory, no wait without end, and where it fails no file made, changed or left behind.
"""

from __future__ import annotations

import argparse
import bz2
import collections
import contextlib
import gzip
import hashlib
import io
import json
import lzma
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
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import pufferflow as pf
from pufferflow import cli
from pufferflow.mechanisms import find_mechanism
from pufferflow.models import write_model

MOST_SECONDS = 30
"""Of processor time: the wall clock of a busy machine says nothing."""
MOST_BYTES = 2**30
PATIENCE = 15
"""Seconds of sleep, not of work, after which a run counts as waiting for ever."""
EXIT_CODES = (0, 2, 130, 141)

NUMBERS = (
    *("nan", "inf", "-inf", "1e308", "1e-308", "-1", "0", "-0", "", " ", "1e400", "5e-324", "1e91", "1e-91", "0x10"),
    *(str(2**62), str(2**63), str(-(2**63)), "1_000", "٣", "½", "1" * 5000, "1,2", "\udcff", "--", "true", "[1]"),
)
TEXTS = (
    *(
        "",
        " ",
        "-",
        "nan",
        "none",
        "other",
        "é",
        "日本",
        "\udcff",
        "\x1b[31m",
        "a\nb",
        "$5%$",
        "=1+1",
        "x" * 5000,
        "../x",
    ),
    *(
        "a,b",
        "a,a",
        ",",
        "0,1",
        "1,0",
        "0,200,inf",
        "nan,1",
        "1e308,1e309",
        "'",
        '"',
        "%",
        "%Q",
        "%Y-%m-%dT%H:%M",
        "\\",
    ),
)
JSONS = (
    *(None, True, -1, 0, 1, 0.5, 1e308, -1e308, 1e-308, 5e-324, 2**62, 2**64, 10**400, "", "a", "\ud800", "nan", "1/0"),
    *([], {}, [[]], [1], [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[1e308, 1e308], [0, 1]], "stationary", "any", "1/3"),
)
TIMES = [f"2021-06-01T{i // 60:02d}:{i % 60:02d}" for i in range(90)]


# -- sound files, made once ------------------------------------------------------------------------------


def sound_files(folder: Path) -> None:
    """What the commands read, by the names that :data:`INPUTS` gives them."""
    values = ["sit" if i // 4 % 2 else "walk" for i in range(90)]
    numbers = [str(i * 37 % 911) for i in range(90)]
    for name, column in (("names.csv", values), ("numbers.csv", numbers)):
        (folder / name).write_text("time,value\n" + "".join(f"{t},{v}\n" for t, v in zip(TIMES, column, strict=True)))
    pq.write_table(pa.table({"time": TIMES, "value": values}), folder / "table.parquet")
    pq.write_table(pa.table({"time": [60 * i for i in range(90)], "value": range(90)}), folder / "numbers.parquet")
    two, three = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), pf.MarkovChain([[0.8, 0.1, 0.1]] * 3)
    sticky = pf.MarkovChain([[0.75, 0.25], [0.25, 0.75]])
    form = pf.RecordFormat(pf.StateSpace.categories(["sit", "walk"]), 60)
    write_model(folder / "model.json", sticky, form)
    write_model(folder / "plain.json", two)
    write_model(folder / "three.json", three)
    write_model(folder / "interval.json", pf.BinaryInterval(0.2, 0.8))
    write_model(folder / "box.json", pf.IntervalFamily([[0.6, 0.1], [0.2, 0.5]], [[0.9, 0.4], [0.5, 0.8]]))
    for name in ("mqm-exact", "leakage", "gk16", "wasserstein", "group-dp", "entry-dp"):
        with contextlib.suppress(pf.PufferflowError):
            found = find_mechanism(name).scale(sticky, 20, 1.0).certified(sticky)
            (folder / f"{name}.certificate").write_text(json.dumps(found.certificate))
    network = {
        "variables": [
            {"name": "Ann", "table": [0.9, 0.1]},
            {"name": "Bob", "parents": ["Ann"], "table": [[0.95, 0.05], [0.4, 0.6]]},
        ]
    }
    (folder / "network.json").write_text(json.dumps(network))
    hidden = {
        "transition_matrix": [[1, 0], [0, 1]],
        "observation_matrix": [["3/4", "1/4"], ["1/4", "3/4"]],
        "initial_distributions": {"yes": [1, 0], "no": [0, 1]},
        "length": 2,
    }
    (folder / "hidden.json").write_text(json.dumps(hidden))
    book = pf.Ledger.create(folder / "book.ledger", 3.0)
    book.record(book.reserve(sticky, 90, mechanism="leakage", epsilon=1.0, scale=9.0, query="histogram"))


def bombs(folder: Path) -> None:
    """Small files that hold much, or claim it."""
    made = {}
    for body in (b"0", b"\n", b"0,\n"):
        text = b"time,value\n" + body * (2**24 // len(body))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.csv", text)
        name = body.hex()
        made |= {f"{name}.zip": packed.getvalue(), f"{name}.gz": gzip.compress(text)}
        made |= {f"{name}.bz2": bz2.compress(text), f"{name}.xz": lzma.compress(text, preset=0)}
    made["line.csv"] = b"time,value\n" + b"a" * 2**23
    made["columns.csv"] = b",".join(b"c%d" % i for i in range(10**5)) + b"\n"
    made["big.json"] = b'{"chains": [' + b"[" * 10**5
    made["spaces.json"] = b" " * 2**24 + b"{}"
    for name, column in (
        ("dictionary.parquet", pa.DictionaryArray.from_arrays(pa.array([0] * 10**5, pa.int32()), ["x" * 10**6])),
        ("runs.parquet", pa.DictionaryArray.from_arrays(pa.array([0] * 10**6, pa.int32()), ["x"])),
        ("page.parquet", pa.array(["x" * (3 * 10**8), "y"])),
    ):
        packed = io.BytesIO()
        pq.write_table(pa.table({"value": column}), packed, compression="zstd")
        made[name] = packed.getvalue()
    for name, content in made.items():
        (folder / name).write_bytes(content)


# -- one case --------------------------------------------------------------------------------------------


INPUTS = {
    "data": ("names.csv", "numbers.csv", "table.parquet", "numbers.parquet"),
    "model": ("model.json", "plain.json", "three.json", "interval.json", "box.json"),
    "certificate": tuple(f"{n}.certificate" for n in ("mqm-exact", "leakage", "gk16", "wasserstein", "group-dp")),
    "network": ("network.json",),
    "hidden": ("hidden.json",),
    "ledger": ("book.ledger",),
}


class Case:
    """Words of a command and a folder of what they name, both from a seed."""

    def __init__(self, seed: int, sound: dict[str, bytes], bombs: dict[str, bytes], folder: Path) -> None:
        self.random, self.sound, self.bombs, self.folder = random.Random(seed), sound, bombs, folder
        self.number = 0
        command = self.random.choice(sorted(OPTIONS))
        self.words = [os.fsdecode(os.fsencode(word)) for word in [command, *self.arguments(command)]]

    def arguments(self, command: str) -> list[str]:
        words = []
        for flag, kind, often in OPTIONS[command]:
            if self.random.random() < often:
                value = [] if kind == "" else [self.value(kind)]
                words += value if flag == "" else [flag, *value] if self.random.random() < 0.9 else [flag]
        if self.random.random() < 0.05:
            words.insert(self.random.randint(0, len(words)), self.random.choice((*TEXTS, *NUMBERS, "--json", "--help")))
        return words

    def value(self, kind: str) -> str:
        if kind in INPUTS:
            return self.input(kind)
        if kind == "output":
            return self.output()
        usual, hostile = VALUES[kind]
        return self.random.choice(usual if self.random.random() < 0.7 else hostile)

    def name(self) -> str:
        self.number += 1
        ending = self.random.choice(("", "", "", "", " x", "é", "\udcff", "\n", "$", "-" * 200))
        return f"{self.number}{ending}"

    def input(self, kind: str) -> str:
        name, dice = self.name(), self.random.random()
        path = self.folder / name
        if dice < 0.35:
            path.write_bytes(self.good(kind))
        elif dice < 0.8:
            content = self.good(kind)
            if kind == "ledger" and self.random.random() < 0.7:
                self.crafted_ledger(path, content)
                return name
            for _ in range(self.random.choice((1, 1, 1, 2, 5))):
                content = self.damaged(content)
            path.write_bytes(content)
        else:
            return self.odd(name)
        return name

    def good(self, kind: str) -> bytes:
        return self.sound[self.random.choice([name for name in INPUTS[kind] if name in self.sound])]

    def output(self) -> str:
        name = self.name()
        if self.random.random() < 0.6:
            return name
        return self.random.choice((lambda: self.odd(name), lambda: f"missing/{name}", lambda: "", lambda: "n" * 300))()

    def odd(self, name: str) -> str:
        """Something that is no ordinary file, or one that holds too much."""
        path = self.folder / name
        make = self.random.choice((*ODD, *[self._bomb] * 3))
        try:
            make(path)
        except OSError:  # devices are for root, and names of sockets are short
            path.mkdir()
        return name

    def _bomb(self, path: Path) -> None:
        path.write_bytes(self.bombs[self.random.choice(sorted(self.bombs))])

    def damaged(self, content: bytes) -> bytes:
        how = self.random.choice((self._flip, self._cut, self._twice, self._field, self._field))
        if content[:1] == b"{" and self.random.random() < 0.8:
            how = self._json
        return how(content)

    def _flip(self, content: bytes) -> bytes:
        changed = bytearray(content)
        for _ in range(self.random.choice((1, 3, 10)) if changed else 0):
            changed[self.random.randrange(len(changed))] = self.random.randrange(256)
        return bytes(changed)

    def _cut(self, content: bytes) -> bytes:
        return content[: self.random.randrange(len(content) + 1)]

    def _twice(self, content: bytes) -> bytes:
        at = self.random.randrange(len(content) + 1)
        return content[:at] + content[self.random.randrange(len(content) + 1) :]

    def _field(self, content: bytes) -> bytes:
        lines = content.split(b"\n")
        at = self.random.randrange(min(len(lines), 6))
        fields = lines[at].split(b",")
        fields[self.random.randrange(len(fields))] = os.fsencode(
            self.random.choice((*NUMBERS, *TEXTS, "-0001-01-01", "9999-12-31T23:59", "2021-06-01", "2021-03-28T02:30Z"))
        )
        lines[at] = b",".join(fields)
        return b"\n".join(lines)

    def _json(self, content: bytes) -> bytes:
        try:
            document = json.loads(content)
        except ValueError:
            return self._flip(content)
        places = [(at, key) for at in _containers(document) for key in (at if isinstance(at, dict) else range(len(at)))]
        if not places:
            return self._flip(content)
        at, key = self.random.choice(places)
        dice = self.random.random()
        if dice < 0.15:
            del at[key]
        elif dice < 0.25:
            at[key] = [at[key]] * self.random.choice((2, 40, 300))
        elif dice < 0.3 and isinstance(at, dict):
            at[self.random.choice(TEXTS)] = at[key]
        else:
            at[key] = self.random.choice(JSONS)
        return json.dumps(document).encode()

    def crafted_ledger(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with contextlib.closing(sqlite3.connect(path)) as book:
            tables = [name for (name,) in book.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            table = self.random.choice(tables)
            column = self.random.choice([row[1] for row in book.execute(f"PRAGMA table_info({table})")])
            found = self.random.choice(book.execute(f"SELECT {column} FROM {table}").fetchall() or [("",)])[0]
            value = self.random.choice((None, -1, 2**62, 1e308, "", "a", b"\xff", 0.5, "{}", "[]", "nan"))
            if isinstance(found, str) and self.random.random() < 0.6:
                value = self.damaged(found.encode()).decode(errors="replace")
            with contextlib.suppress(sqlite3.Error):
                book.execute("PRAGMA ignore_check_constraints = 1")
                book.execute("DROP TRIGGER never_changed")
                book.execute(f"UPDATE {table} SET {column} = ?", (value,))
                book.commit()


def _containers(value: object) -> list[dict[str, object] | list[object]]:
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(found for entry in inner for found in _containers(entry))]


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.fsencode(path))


def _device(minor: int):
    return lambda path: os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))


ODD = (
    *(os.mkfifo, Path.mkdir, Path.touch, _socket, lambda path: path.symlink_to(path.name)),
    *(lambda path: path.symlink_to("nowhere"), lambda path: None),
    *(_device(3), _device(5), _device(7)),  # null, zero, full: nodes of the folder, for an output may replace them
)
"""What a name may stand for besides an ordinary file."""

VALUES = {
    "epsilon": (("1", "0.1", "5", "0.01", "20"), NUMBERS),
    "length": (("1", "2", "20", "100", "1000"), (*NUMBERS, "1000000", "100000000000")),
    "whole": (("0", "1", "2", "3", "60"), NUMBERS),
    "real": (("0.5", "1", "10", "0.05"), NUMBERS),
    "states": (("sit,walk", "a,b", "a,b,c"), TEXTS),
    "edges": (("10", "100,500"), (*TEXTS, *NUMBERS)),
    "text": (("value", "time", "UTC", ",", "."), TEXTS),
    "mechanism": (("mqm-exact", "leakage", "group-dp", "gk16", "mqm-approx", "wasserstein", "entry-dp"), TEXTS),
    "factor": (("2", "3/2", "1.5"), (*NUMBERS, "1/0", "1e9999")),
    "name": (("Ann", "Bob"), TEXTS),
    "action": (("show", "verify"), ("show", "verify", "x")),
    "dataset": (("electricity",), TEXTS),
    "moment": (("2007-05-01T00:00", "2008-01-01T00:00"), (*TEXTS, "-0001-01-01", "9999-12-31T23:59")),
    "minutes": (("10", "100", "3000"), NUMBERS),
    "start": (("stationary", "any"), TEXTS),
    "error": (("bin", "l1", "max"), TEXTS),
    "post": (("clip", "simplex"), TEXTS),
}
"""Usual and hostile values of each kind of option."""

READING = [
    *((f"--{role}", "text", 0.04) for role in ("time", "value", "participant", "group")),
    *((f"--{name}", "text", 0.04) for name in ("timezone", "time-format", "separator", "decimal", "thousands")),
    ("--rows-are-steps", "", 0.1),
]
SPLIT = [("--split-after", "whole", 0.1), ("--split-because", "text", 0.1)]
RELEASE = [
    *(("--chain", "model", 0.98), ("--epsilon", "epsilon", 0.98), ("--mechanism", "mechanism", 0.2)),
    *(("--post-process", "post", 0.1), ("--states", "states", 0.15), ("--edges", "edges", 0.1)),
    *(("--step", "whole", 0.1), *SPLIT, ("--output", "output", 0.5)),
    *(("--no-figure", "", 0.8), ("--json", "", 0.3)),
]
SCALES = [
    *(("--mechanism", "mechanism", 0.4), ("--count", "whole", 0.3), ("--json", "", 0.3)),
    ("--convention", "text", 0.03),
]
OPTIONS = {
    "fit": [
        *(("", "data", 0.98), ("--bins", "whole", 0.1), ("--width", "real", 0.1), ("--edges", "edges", 0.1)),
        *(("--states", "states", 0.1), ("--top", "whole", 0.1), ("--other", "", 0.1), ("--step", "whole", 0.1)),
        *(*SPLIT, ("--smoothing", "real", 0.1), ("--start", "start", 0.1)),
        *(("--coverage", "real", 0.1), ("--epsilon", "epsilon", 0.1), ("--sample", "output", 0.2)),
        *(("--chain", "output", 0.2), ("--json", "", 0.3), *READING),
    ],
    "release": [
        *(("", "data", 0.98), *RELEASE, ("--ledger", "ledger", 0.2), ("--limit", "epsilon", 0.1)),
        *(("--no-ledger", "", 0.1), ("--dry-run", "", 0.2), *READING),
    ],
    "simulate": [("", "data", 0.3), ("--length", "length", 0.7), ("--seed", "whole", 0.98), *RELEASE, *READING],
    "plan": [
        *(("--chain", "model", 0.98), ("--accuracy", "real", 0.98), ("--confidence", "real", 0.2)),
        *(("--error", "error", 0.2), ("--length", "length", 0.6), ("--records", "length", 0.2)),
        *(("--epsilon", "epsilon", 0.5), ("--mechanism", "mechanism", 0.6), ("--figure", "output", 0.05)),
        ("--json", "", 0.3),
    ],
    "ledger": [("", "action", 1.0), ("", "ledger", 0.98), ("--json", "", 0.2)],
    "export": [
        *(("", "dataset", 0.98), ("", "output", 0.98), ("", "output", 0.3), ("--from", "moment", 0.4)),
        ("--minutes", "minutes", 0.9),
    ],
    "scale": [
        *(("", "model", 0.98), ("--length", "length", 0.98), ("--epsilon", "epsilon", 0.98), *SCALES),
        *(("--eigengap", "text", 0.03), ("--certificate", "output", 0.2)),
    ],
    "verify": [("", "certificate", 0.98), ("--json", "", 0.2)],
    "audit": [
        *(("", "model", 0.98), ("--length", "length", 0.98), ("--scale", "real", 0.3), ("--epsilon", "epsilon", 0.8)),
        *(("--histogram", "", 0.3), *SCALES),
    ],
    "check": [("", "hidden", 0.98), ("--factor", "factor", 0.98), ("--length", "whole", 0.5), ("--json", "", 0.3)],
    "network": [
        *(("", "network", 0.98), ("--epsilon", "epsilon", 0.98), ("--secret", "name", 0.2), ("--query", "name", 0.2)),
        ("--json", "", 0.3),
    ],
}
"""Of each command: option or "" for an argument, kind of its value, how often it is given."""


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


def complaints(status: int, used: object, said: bytes, changed: list[str]) -> list[str]:
    """What does not hold of a run; ``changed`` are the files made or changed."""
    found = []
    lines = said.decode(errors="replace").splitlines()
    if os.WIFSIGNALED(status):
        found.append(f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
    code = os.waitstatus_to_exitcode(status)
    if code not in EXIT_CODES:
        found.append(f"exit code {code}: {lines[-1] if lines else ''}")
    if any("Traceback" in line for line in lines):
        found.append(f"traceback: {lines[-1]}")
    elif any(not line.startswith("pufferflow: ") for line in lines):
        found.append(f"on standard error: {lines[0]}")
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


def _made(folder: Path, make: Callable[[Path], None]) -> dict[str, bytes]:
    """Files by name, made in a fork: the memory that takes would be counted for every case."""
    folder.mkdir()
    child = os.fork()
    if child == 0:
        try:
            make(folder)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(f"{make.__name__} failed")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Fuzzer:
    """Runs cases; ``home`` holds what they share."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.sound, self.bombs = (_made(home / make.__name__, make) for make in (sound_files, bombs))
        self.codes: collections.Counter[str] = collections.Counter()
        self.slowest, self.largest = 0.0, 0

    def warm(self) -> None:
        """Load what forks would each load again."""
        import matplotlib.figure  # noqa: F401

        from pufferflow.reporting import style  # noqa: F401

        for name in cli.COMMANDS:
            __import__(f"pufferflow.cli.{name}")

    def run(self, seed: int) -> list[str]:
        """Run the case of a seed; what does not hold of it."""
        folder, scratch = self.home / "case", self.home / "scratch"
        for fresh in (folder, scratch):
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
        case = Case(seed, self.sound, self.bombs, folder)
        self.words = case.words
        before = content_of(folder)
        sink = "/dev/full" if case.random.random() < 0.02 else None
        status, used, said = run_forked(case.words, folder, self.home / "out", scratch, sink)
        after = content_of(folder)
        changed = [
            os.fsdecode(os.path.basename(p)) for p in after.keys() | before.keys() if after.get(p) != before.get(p)
        ]
        found = complaints(status, used, said, changed if sink is None else [])
        if any(scratch.iterdir()):
            found.append(f"left in the temporary folder: {[path.name for path in scratch.iterdir()][:3]}")
        self.codes[f"{case.words[0]} {os.waitstatus_to_exitcode(status)}"] += 1
        self.slowest = max(self.slowest, used.ru_utime + used.ru_stime)
        self.largest = max(self.largest, used.ru_maxrss >> 10)
        return found


def main() -> int:
    """Run the cases asked for; 1 if something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6, help="stop then, with what was found (default: never)")
    parser.add_argument("--keep", metavar="FOLDER", help="copy the folders of failing cases here")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as home:
        fuzzer = Fuzzer(Path(home))
        fuzzer.warm()
        end = time.monotonic() + arguments.minutes * 60
        for number in range(arguments.runs):
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
    runs = sum(fuzzer.codes.values())
    print(f"{runs} runs, {failed} failed; slowest {fuzzer.slowest:.1f} s, largest {fuzzer.largest} MB")
    print(dict(sorted(fuzzer.codes.items())))
    return int(failed > 0)


def _special(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not stat.S_ISREG(os.lstat(os.path.join(folder, name)).st_mode)]


if __name__ == "__main__":
    sys.exit(main())
