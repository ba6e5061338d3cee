"""Tables drawn from a seed, and what their rows mean, wrong ones included."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace

NAMES = ("sit", "stand", "walk", "10", "0.50")
EDGES = (10.0, 25.5, 80.0)
ZONES = {
    "Europe/Paris": ("2021-03-28", "2021-10-31"),
    "America/New_York": ("2021-03-14", "2021-11-07"),
    "Australia/Sydney": ("2021-04-04", "2021-10-03"),
}
MISSING, WRONG = None, -2  # in place of a state
BAD = {"abc": WRONG, "m0": WRONG, '"x y"': WRONG, "now": WRONG, "nan": MISSING, "N/A": MISSING}
BAD_NAMES = BAD | {"7": WRONG, "Sit": WRONG, "10.0": 3, "0.5": 4}
BAD_NUMBERS = BAD | {"7": 0, "1e30": 3, "9" * 400: 3, "0x10": WRONG, "2021-06-01": WRONG}
NO_TIMES = ("soon", "2021-06-01T00:00:00.5", "", "1e30", "nan", "10000-01-01T00:00Z", "9" * 400)
NO_TIMES += ("now", "0000-01-01", "1970-01-01T00:00:00.123456789", "2021-02-30", '"x y"')


@dataclass
class Row:
    """What a row means; ``at`` are the first and the last second that its time may be."""

    line: int
    at: tuple | None
    clock: str
    name: str
    group: str
    state: int | None


@dataclass
class Drawn:
    """A CSV text, what its rows mean, and how it is to be read."""

    text: str
    rows: list
    reading: dict  # fields of Schema
    step: int | None
    states: StateSpace

    @property
    def schema(self):
        return Schema(**self.reading, step_seconds=self.step, states=self.states)


def draw(seed: int) -> Drawn:
    """Return a table: sound or broken, shuffled or with each participant's rows in order."""
    rng = np.random.default_rng(seed)
    step, shuffled = int(rng.choice([1, 60, 900, 1800, 3600])), bool(rng.integers(2))
    clock = str(rng.choice(["unix", "offset", "local", "zone", "parts", "none"]))
    clock = "local" if shuffled and clock in ("zone", "none") else clock
    zone = str(rng.choice(list(ZONES))) if clock == "zone" else None
    day = str(rng.choice(ZONES[zone])) if zone else "2021-06-01"
    start = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    numbers, sign = bool(rng.integers(2)), str(rng.choice([".", ","]))
    people = [f"m{i}" for i in rng.permutation(int(rng.integers(1, 5)))]
    groups = {name: str(rng.choice(["g", "h"])) for name in people}
    known, grouped = len(people) > 1 or bool(rng.integers(2)), bool(rng.integers(2))
    separator = ";" if numbers and sign == "," else str(rng.choice([",", ";", "\t"]))
    bad_values = (BAD_NUMBERS | {f"1{sign}5": 0}) if numbers else BAD_NAMES

    def value():
        if rng.random() < 0.15:
            return str(rng.choice(["", "NA", "null", "?"])), MISSING
        if not numbers:
            return NAMES[i := int(rng.integers(len(NAMES)))], i
        number, digits = rng.integers(0, 400) / 4, int(rng.integers(2, 4))
        return f"{number:.{digits}f}".replace(".", sign), sum(number >= edge for edge in EDGES)

    drawn = []
    for name in people:
        at = start - start % step + step * int(rng.integers(0, 50))
        for _ in range(int(rng.integers(2, 90))):
            at += step * int(rng.choice([1, 1, 1, 1, 1, 2, 7]))
            drawn.append((at, name, *value()))
    drawn.sort(key=lambda row: row[0])  # interleaved, as a data base gives them
    if shuffled:
        drawn = [drawn[i] for i in rng.permutation(len(drawn))]
    times = {"unix": ["ts"], "none": [], "parts": ["Date", "Hour"]}.get(clock, ["time"])
    header = [*times, *["meter"] * known, *["kind"] * grouped, "amount"]
    reading = {"value": "amount", "separator": separator, "timezone": zone}
    reading |= {"time": "Date,Hour", "time_format": "%d.%m.%Y %H:%M:%S"} if clock == "parts" else {}
    reading |= {"participant": "meter"} if known else {}
    reading |= {"group": "kind"} if grouped else {}
    reading |= {"decimal": ","} if numbers and sign == "," else {}
    share, lines, rows = float(rng.choice([0, 0, 0.02, 0.6])), [header], []
    kind = clock if clock in ("unix", "offset", "none") else "local"
    for at, name, text, state in drawn:
        columns = dict.fromkeys(header) | {"meter": name, "kind": groups[name], "amount": text}
        columns |= dict(zip(times, written(at, clock, zone), strict=True))
        who, of = name if known else "all", groups[name] if grouped else "all"
        row = Row(len(lines) + 1, folds(at, zone), kind, who, of, state)
        if rng.random() < share:
            spoil(row, columns, str(rng.choice(header)), bad_values, rng)
        lines.append([columns[name] for name in header])
        if any(lines[-1]) or not times:
            rows.append(row)
        if rng.random() < 0.02 and times:
            lines.append([""])
    text = "\n".join(separator.join(line) for line in lines) + "\n"
    states = StateSpace.numeric(EDGES) if numbers else StateSpace.categories(NAMES)
    return Drawn(text, rows, reading, step if times else None, states)


def spoil(row: Row, columns: dict, name: str, values: dict, rng) -> None:
    """Put something else into a column, and what it means into the row."""
    if name == "amount":
        columns[name] = str(rng.choice(list(values)))
        row.state = values[columns[name]]
    elif name in ("meter", "kind"):
        columns[name] = str(rng.choice(["", "nan", "m0", "g"]))
        setattr(row, {"meter": "name", "kind": "group"}[name], columns[name])
    else:
        columns[name] = str(rng.choice([*NO_TIMES, "7"]))
        unix = columns[name] == "7" and name not in ("Date", "Hour")
        row.at, row.clock = ((7, 7), "unix") if unix else (None, row.clock)


def written(at: int, clock: str, zone: str | None) -> list[str]:
    """A time in the columns of a clock."""
    if clock in ("none", "unix"):
        return [str(at)] * (clock == "unix")
    then = datetime.fromtimestamp(at, ZoneInfo(zone or "UTC"))
    if clock == "parts":
        return then.strftime("%d.%m.%Y %H:%M:%S").split()
    return [then.isoformat() if clock == "offset" else then.replace(tzinfo=None).isoformat()]


def folds(at: int, zone: str | None) -> tuple:
    """The seconds that a local time may mean where clocks go back."""
    then = datetime.fromtimestamp(at, ZoneInfo(zone or "UTC"))
    return tuple(int(then.replace(fold=fold).timestamp()) for fold in (0, 1))


class RefusedError(Exception):
    """With the numbers of the lines that are wrong."""


def plain_read(drawn, *, first=-math.inf, last=math.inf, total=False):
    """Return the names of the people, and (person, seconds, state) of the readings, sorted."""
    people, groups, before, found, bad = {}, {}, {}, [], []
    clock = next((row.clock for row in drawn.rows if row.at), None)
    for row in drawn.rows:
        named = row.name not in ("", "nan")
        if total and named:
            people.setdefault(row.name, len(people))
        at = before.get(row.name, -1) + 1  # without times
        if row.clock != "none":
            if row.at is None or (row.clock != clock and not total):
                bad.append(row.line)
            if row.at is None:
                continue
            back = not total and row.at[0] <= before.get(row.name, -math.inf)
            at = row.at[back]
        before[row.name] = at
        if not first <= at <= last:
            continue
        if not named:
            bad.append(row.line)
            continue
        people.setdefault(row.name, len(people))
        if groups.setdefault(row.name, row.group) != row.group or row.group in ("", "nan"):
            bad.append(row.line)
        if row.state == WRONG:
            bad.append(row.line)
        elif row.state is not MISSING:
            found.append((people[row.name], at, row.state, row.line))
    found.sort()
    step, keys = drawn.step or 1, [row[:2] for row in found]
    if total:
        found = [row for row in found if keys.count(row[:2]) == 1 and row[1] % step == 0]
    elif not bad:
        for one, other in pairwise(found):
            if one[:2] == other[:2]:
                bad.append(max(one[3], other[3]))
            if one[0] == other[0] and (other[1] - one[1]) % step:
                bad.append(other[3])
    if bad and not total:
        raise RefusedError(bad)
    return list(people), [row[:3] for row in found]
