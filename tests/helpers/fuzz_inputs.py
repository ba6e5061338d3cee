"""What the commands read, sound and of many kinds, and small files that hold much."""

from __future__ import annotations

import bz2
import contextlib
import csv
import datetime
import gzip
import io
import json
import lzma
import os
import random
import shutil
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import pufferflow as pf
from pufferflow import cli
from pufferflow.mechanisms import find_mechanism
from pufferflow.models import parse_model

WORDS = (
    *(
        "walk",
        "sit",
        "-",
        "none",
        "NA",
        "null",
        "?",
        "nan",
        "+",
        "other?",
        "$5%$",
        "$$",
        "=1+1",
        "@x",
        "é",
        "日本",
        "a b",
    ),
    *('"', "'", "<b>", "|", "\\", "%", "#", "1", "2.50", "1e3", "-0", "true", "\u202e", "x" * 300, "😀", "_^{", "../x"),
)
"""Names of states, most of which mean something elsewhere."""

Rows = list[tuple[datetime.datetime, str]]


# -- tables ----------------------------------------------------------------------------------------------


def walk(dice: random.Random, words: Sequence[str], rows: int, year: int, step: int = 60) -> Rows:
    """Records of one participant: a value stays for a while."""
    at, value, found = datetime.datetime(year, 6, 1), words[0], []
    for _ in range(rows):
        value = value if dice.random() < 0.6 else dice.choice(words)
        found.append((at, value))
        at += datetime.timedelta(seconds=step)
    return found


def csv_bytes(header: Sequence[str], rows: Sequence[Sequence[object]], separator: str = ",") -> bytes:
    """A CSV file."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode(errors="surrogateescape")


def parquet_bytes(**columns: object) -> bytes:
    """A Parquet file."""
    packed = io.BytesIO()
    pq.write_table(pa.table(columns), packed)
    return packed.getvalue()


def zip_bytes(content: bytes) -> bytes:
    """A ZIP archive of one file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.csv", content)
    return packed.getvalue()


def _iso(rows: Rows, ending: str = "") -> list[tuple[str, str]]:
    return [(at.isoformat() + ending, value) for at, value in rows]


def _unix(rows: Rows) -> list[int]:
    return [int(at.replace(tzinfo=datetime.UTC).timestamp()) for at, _ in rows]


def _plain(rows: Rows) -> bytes:
    return csv_bytes(("time", "value"), _iso(rows))


def _people(rows: Rows, *more: str) -> bytes:
    return csv_bytes(
        ("participant", *more, "time", "value"),
        [(f"p{i % 3}", *(f"g{i % 3 % 2}" for _ in more), *row) for i, row in enumerate(_iso(rows))],
    )


def _gaps(rows: Rows) -> bytes:
    kept = [(time, "" if i % 17 == 3 else value) for i, (time, value) in enumerate(_iso(rows)) if not 30 < i < 50]
    return csv_bytes(("time", "value"), kept)


def _german(rows: Rows) -> bytes:
    return csv_bytes(("Zeit", "Wert"), [(f"{at:%d.%m.%Y %H:%M}", f"1.{int(v):03d},5") for at, v in rows], ";")


def _timestamps(rows: Rows) -> bytes:
    return parquet_bytes(
        time=pa.array([at for at, _ in rows], pa.timestamp("ns", "UTC")), watts=[float(value) for _, value in rows]
    )


def _dictionary(rows: Rows) -> bytes:
    return parquet_bytes(unix_time=_unix(rows), activity=pa.array([value for _, value in rows]).dictionary_encode())


class TableKind(NamedTuple):
    """How a table is written, what values it has, and how it is read."""

    write: Callable[[Rows], bytes]
    words: tuple[str, ...] = ("sit", "walk", "run")
    reading: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    rows: int = 90


NUMBERS = tuple(str(i * 37 % 911) for i in range(90))
ODD_LIST = "--states=-,none,$5%$,=1+1,é"
TABLES = {
    "names": TableKind(_plain),
    "numbers": TableKind(_plain, NUMBERS),
    "width": TableKind(_plain, NUMBERS, states=("--width", "200")),
    "edges": TableKind(_plain, NUMBERS, states=("--edges", "100,500")),
    "odd": TableKind(_plain, ("-", "none", "$5%$", "=1+1", "é"), states=(ODD_LIST,)),
    "top": TableKind(_plain, ("a", "a", "b", "b", "c", "d", "e"), states=("--top", "2", "--other")),
    "two": TableKind(_plain, ("0", "1"), states=("--coverage", "0.9")),
    "any": TableKind(_plain, states=("--start", "any", "--smoothing", "1")),
    "people": TableKind(_people),
    "groups": TableKind(lambda rows: _people(rows, "group"), rows=120),
    "gaps": TableKind(_gaps, states=("--split-after", "600", "--split-because", "the device was off")),
    "steps": TableKind(lambda rows: csv_bytes(("value",), [(value,) for _, value in rows])),
    "rows": TableKind(lambda rows: csv_bytes(("x", "y"), _iso(rows)), reading=("--value", "y", "--rows-are-steps")),
    "unix": TableKind(
        lambda rows: csv_bytes(("ts", "kw"), zip(_unix(rows), (v for _, v in rows), strict=True)), NUMBERS
    ),
    "offset": TableKind(lambda rows: csv_bytes(("time", "value"), _iso(rows, "+02:00"))),
    "zone": TableKind(_plain, reading=("--timezone", "Europe/Paris")),
    "german": TableKind(
        _german,
        NUMBERS,
        (
            *("--separator", ";", "--decimal", ",", "--thousands", ".", "--time-format", "%d.%m.%Y %H:%M"),
            *("--time", "Zeit", "--value", "Wert", "--timezone", "UTC"),
        ),
    ),
    "crlf": TableKind(lambda rows: b"\xef\xbb\xbf" + _plain(rows).replace(b"\n", b"\r\n")),
    "quoted": TableKind(_plain, ('"a"', "b, c", "d e", "x" * 300)),
    "gz": TableKind(lambda rows: gzip.compress(_plain(rows))),
    "bz2": TableKind(lambda rows: bz2.compress(_plain(rows))),
    "xz": TableKind(lambda rows: lzma.compress(_plain(rows))),
    "zip": TableKind(lambda rows: zip_bytes(_plain(rows))),
    "parquet": TableKind(lambda rows: parquet_bytes(time=[at for at, _ in rows], value=[value for _, value in rows])),
    "timestamps": TableKind(_timestamps, NUMBERS, states=("--bins", "4")),
    "dictionary": TableKind(_dictionary),
    "many": TableKind(_plain, tuple(map(str, range(40))), states=("--bins", "40"), rows=3000),
    "long": TableKind(_plain, rows=20000),
}
"""By name. Each is fitted to one year, and another is released."""


# -- models ----------------------------------------------------------------------------------------------


def _row(dice: random.Random, weights: Sequence[float]) -> list[float]:
    total = sum(weights) or 1.0
    head = [weight / total for weight in weights[1:]]
    return [max(0.0, 1 - sum(head)), *head]


def _dense(dice: random.Random, k: int) -> list[list[float]]:
    return [_row(dice, [dice.random() for _ in range(k)]) for _ in range(k)]


def _mild(dice: random.Random, k: int) -> list[list[float]]:
    return [_row(dice, [dice.uniform(0.8, 1.2) for _ in range(k)]) for _ in range(k)]


def _sparse(dice: random.Random, k: int) -> list[list[float]]:
    return [_row(dice, [dice.random() * (dice.random() < 0.4 or j == (i + 1) % k) for j in range(k)]) for i in range(k)]


def _slow(dice: random.Random, k: int) -> list[list[float]]:
    leaving = [10.0 ** -dice.randint(1, 8) for _ in range(k)]
    return [[1 - leaving[i] if j == i else leaving[i] / (k - 1) for j in range(k)] for i in range(k)]


def _cycle(dice: random.Random, k: int) -> list[list[float]]:
    stay = dice.choice((0.0, 0.5, 0.9, 0.9999, 1.0))
    return [[stay if j == i else 1 - stay if j == (i + 1) % k else 0.0 for j in range(k)] for i in range(k)]


def _absorbing(dice: random.Random, k: int) -> list[list[float]]:
    return [[float(j == i) if i == 0 else 1 / k for j in range(k)] for i in range(k)]


def _same(dice: random.Random, k: int) -> list[list[float]]:
    return [_row(dice, [1.0] * k)] * k


SHAPES = (_dense, _dense, _dense, _mild, _sparse, _slow, _cycle, _absorbing, _same)


def random_chain(dice: random.Random, k: int, shapes: Sequence[Callable[..., list[list[float]]]] = SHAPES) -> dict:
    """A chain as in a model file, with any of the three starts."""
    matrix = dice.choice(shapes)(dice, k)
    given = dice.choice(([1.0, *[0.0] * (k - 1)], [1 / k] * k, _row(dice, [dice.random() for _ in range(k)])))
    return {"transition_matrix": matrix, "initial_distribution": dice.choice(("stationary", "any", given))}


def random_family(dice: random.Random, k: int) -> dict:
    """A model file without records."""
    what = dice.random()
    if what < 0.1 and k == 2:
        low = dice.uniform(0.01, 0.5)
        return {"binary_interval": [low, dice.uniform(low, 0.99)]}
    if what < 0.25 and k < 5:
        middle, width = _dense(dice, k), dice.choice((0.0, 0.001, 0.05, 0.3))
        return {
            "interval": {
                "low": [[max(0.0, p - width) for p in row] for row in middle],
                "high": [[min(1.0, p + width) for p in row] for row in middle],
            }
        }
    return {"chains": [random_chain(dice, k) for _ in range(dice.choice((1, 1, 1, 2, 5)))]}


def some_states(dice: random.Random) -> int:
    """Number of states: few, seldom many."""
    return dice.choice((2, 2, 2, 3, 3, 4, 6, 9, 30))


def random_network(dice: random.Random) -> dict:
    """A network file."""
    variables: list[dict] = []
    states: list[int] = []
    for i in range(dice.choice((1, 2, 3, 5, 8, 12))):
        parents = dice.sample(range(i), min(i, dice.choice((0, 1, 1, 1, 2))))
        k = dice.choice((2, 2, 2, 3))
        variable = {"name": f"v{i}", "table": _table(dice, [states[parent] for parent in parents], k)}
        variables.append(variable | ({"parents": [f"v{parent}" for parent in parents]} if parents else {}))
        states.append(k)
    return {"variables": variables}


def random_scenarios(dice: random.Random) -> bytes:
    """A table of scenarios: laws given secrets, or databases of two or three records a, b, c."""
    rows = []
    scenarios = dice.choice(([""], ["u,", "v,"]))
    if dice.random() < 0.5:
        header = "secret,value,probability"
        for scenario in scenarios:
            for secret in dice.sample(("well", "ill", "away"), dice.choice((2, 3))):
                values = dice.sample(range(-3, 9), dice.choice((1, 2, 4)))
                law = _law(dice, len(values))
                rows += [f"{scenario}{secret},{value},{p}" for value, p in zip(values, law, strict=True)]
    else:
        records = "abc"[: dice.choice((2, 3))]
        header = f"{','.join(records)},value,probability"
        databases = list(product("01", repeat=len(records)))
        for scenario in scenarios:
            law = _law(dice, len(databases))
            rows += [
                f"{scenario}{','.join(database)},{database.count('1')},{p}"
                for database, p in zip(databases, law, strict=True)
            ]
    return "\n".join([("scenario," if scenarios[0] else "") + header, *rows]).encode() + b"\n"


def _table(dice: random.Random, parents: Sequence[int], k: int) -> list:
    if not parents:
        return _row(dice, [dice.random() for _ in range(k)])
    return [_table(dice, parents[1:], k) for _ in range(parents[0])]


def _law(dice: random.Random, k: int) -> list[str]:
    parts = [dice.randint(0, 4) for _ in range(k - 1)]
    rest = dice.randint(1, 4)
    return [f"{part}/{sum(parts) + rest}" for part in (*parts, rest)]


def random_hidden(dice: random.Random) -> dict:
    """A file of a hidden Markov model, now and then with a free parameter."""
    k, seen = dice.choice((2, 2, 3, 4)), dice.choice((2, 2, 3))
    model: dict = {
        "transition_matrix": [_law(dice, k) for _ in range(k)],
        "observation_matrix": [_law(dice, seen) for _ in range(k)],
        "initial_distributions": {word: _law(dice, k) for word in dice.sample(WORDS, dice.choice((2, 2, 3)))},
        "length": dice.choice((1, 2, 3, 5)),
    }
    if dice.random() < 0.25:
        first = next(iter(model["initial_distributions"]))
        model["initial_distributions"][first] = [*["0"] * (k - 2), "p", "1 - p"]
        model |= {"parameters": {"p": ["1/4", "3/4"]}, "length": dice.choice((1, 2, 3))}
    return model


# -- sound files, made where they are asked for -------------------------------------------------------------


def _table_files(name: str) -> None:
    """Tables of two years, and the chain that is fitted to the first."""
    dice, kind = random.Random(name), TABLES[name]
    for year in (2021, 2022):
        Path(f"{name}.{year}").write_bytes(kind.write(walk(dice, kind.words, kind.rows, year)))
    _run("fit", f"{name}.2021", *kind.reading, *kind.states, "--chain", f"{name}.chain", "--sample", "sample")


def _run(*words: str) -> None:
    """Run a command that must succeed, in silence."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = cli.main(words)
    if code:
        raise RuntimeError(f"{words}: {said.getvalue()}")


INTERVALS = (
    {"binary_interval": [0.4, 0.6]},
    {"interval": {"low": [[0.6, 0.1], [0.2, 0.5]], "high": [[0.9, 0.4], [0.5, 0.8]]}},
)
SIZES = (*(2,) * 9, *(3,) * 3, *(4,) * 3)
"""Numbers of states of the chains that are certified."""


def _certificates(number: int) -> None:
    """Those of all mechanisms that certify a scale of one family."""
    dice = random.Random(number)
    document = (*INTERVALS, *({"chains": [random_chain(dice, k, (_dense, _mild))]} for k in SIZES))[number]
    family = parse_model(document)
    for mechanism in ("mqm-exact", "mqm-approx", "leakage", "gk16", "wasserstein", "group-dp", "entry-dp"):
        with contextlib.suppress(pf.PufferflowError):
            found = find_mechanism(mechanism).scale(family, dice.choice((2, 9, 25)), 1.0).certified(family)
            if found.certificate is not None:
                Path(f"{mechanism}.certificate").write_text(json.dumps(found.certificate))


def _ledger(number: int) -> None:
    """A ledger of so many families, each with as many releases."""
    dice = random.Random(number)
    book = pf.Ledger.create(f"{number}.ledger", 20.0 + number)
    families = [parse_model({"chains": [random_chain(dice, 2, (_dense, _slow))]}) for _ in range(number)]
    for family in families * number:
        scale = dice.uniform(20, 900)
        book.record(book.reserve(family, 40, mechanism="leakage", epsilon=0.1, scale=scale, query="histogram"))


def _ledger_of_releases() -> None:
    """The ledger that two releases of a table leave."""
    _table_files("names")
    for epsilon in ("0.5", "0.25"):
        words = ("--chain", "names.chain", "--epsilon", epsilon, "--no-figure", "--output", "out", "--limit", "3")
        _run("release", "names.2022", *words)
        shutil.rmtree("out")
    os.rename("names.2022.ledger", "names.ledger")


SOUND: dict[str, tuple[tuple[str, ...], dict[str, Callable[[], None]]]] = {
    "data": ((".2021", ".2022"), {name: partial(_table_files, name) for name in TABLES}),
    "model": ((".chain",), {name: partial(_table_files, name) for name in TABLES}),
    "ledger": (
        (".ledger",),
        {str(number): partial(_ledger, number) for number in range(4)} | {"names": _ledger_of_releases},
    ),
    "certificate": (
        (".certificate",),
        {str(number): partial(_certificates, number) for number in range(len(INTERVALS + SIZES))},
    ),
}
"""By kind: how its files end, and what makes some of them, by name."""


class SoundFiles:
    """Files that are sound, each made once; ``made`` gives what a function writes, by name."""

    def __init__(self, made: Callable[[Callable[[], None]], dict[str, bytes]]) -> None:
        self._made = made
        self._files: dict[tuple[str, ...], dict[str, bytes]] = {}

    def table(self, name: str, ending: str) -> bytes:
        """A table of a year, or the chain that was fitted to the first."""
        return self._of("data", name)[f"{name}.{ending}"]

    def any(self, kind: str, dice: random.Random) -> bytes:
        """One of a kind."""
        endings, makers = SOUND[kind]
        files = self._of(kind, dice.choice(list(makers)))
        return files[dice.choice([name for name in sorted(files) if name.endswith(endings)])]

    def _of(self, kind: str, name: str) -> dict[str, bytes]:
        at = ("data" if kind == "model" else kind, name)
        if at not in self._files:
            self._files[at] = self._made(SOUND[kind][1][name])
        return self._files[at]


def bombs() -> None:
    """Small files that hold much, or claim it."""
    made = {}
    for body in (b"0", b"\n", b"0,\n"):
        head, part = b"time,value\n", body * (2**20 // len(body))
        text = head + 16 * part
        name = body.hex()
        made |= {f"{name}.zip": zip_bytes(text), f"{name}.gz": gzip.compress(text)}
        # of bz2, which is slow on what repeats, one part many times
        made |= {
            f"{name}.bz2": bz2.compress(head) + 16 * bz2.compress(part),
            f"{name}.xz": lzma.compress(text, preset=0),
        }
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
        Path(name).write_bytes(content)
