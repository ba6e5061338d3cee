"""Tables drawn from a seed, and the reader's reference implementation: a row at a time, in Python.

The tables have clocks, zones, gaps, missing values, groups, separators and signs.
"""

import csv
import math
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace

NAMES = ("sit", "stand", "walk", "10", "0.50")
ZONES = {
    "Europe/Paris": ("2021-03-28", "2021-10-31"),
    "America/New_York": ("2021-03-14", "2021-11-07"),
    "Australia/Sydney": ("2021-04-04", "2021-10-03"),
}


def draw(seed: int, *, shuffled: bool = False) -> tuple[str, Schema]:
    """A CSV in which each participant's rows are in order, or all are shuffled; how to read it."""
    rng = np.random.default_rng(seed)
    step = int(rng.choice([1, 60, 900, 1800, 3600]))
    clock = str(rng.choice(["unix", "offset", "local", "zone", "parts", "none"]))
    clock = "local" if shuffled and clock in ("zone", "none") else clock
    zone = str(rng.choice(list(ZONES))) if clock == "zone" else None
    day = str(rng.choice(ZONES[zone])) if zone else "2021-06-01"
    start = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    numbers, sign = bool(rng.integers(2)), str(rng.choice([".", ","]))
    people = [f"m{i}" for i in rng.permutation(int(rng.integers(1, 5)))]
    groups = {name: str(rng.choice(["g", "h"])) for name in people}
    known, grouped = len(people) > 1 or bool(rng.integers(2)), bool(rng.integers(2))
    rows = []
    for name in people:
        at = start - start % step + step * int(rng.integers(0, 50))
        for _ in range(int(rng.integers(2, 90))):
            at += step * int(rng.choice([1, 1, 1, 1, 1, 2, 7]))
            value = str(rng.choice(NAMES))
            if numbers:
                value = f"{rng.integers(0, 400) / 4:.{int(rng.integers(2, 4))}f}".replace(".", sign)
            value = str(rng.choice(["", "NA", "null", "?"])) if rng.random() < 0.15 else value
            rows.append((at, name, value))
    rows.sort(key=lambda row: row[0])  # interleaved, as a data base gives them
    if shuffled:
        rows = [rows[i] for i in rng.permutation(len(rows))]
    separator = ";" if sign == "," and numbers else str(rng.choice([",", ";", "\t"]))
    header = {"unix": ["ts"], "none": [], "parts": ["Date", "Hour"]}.get(clock, ["time"])
    lines = [[*header, *["meter"] * known, *["kind"] * grouped, "amount"]]
    for at, name, value in rows:
        who = [*[name] * known, *[groups[name]] * grouped]
        then = datetime.fromtimestamp(at, ZoneInfo(zone or "UTC"))
        written = [(then if clock == "offset" else then.replace(tzinfo=None)).isoformat()]
        if clock == "parts":
            written = then.strftime("%d.%m.%Y %H:%M:%S").split()
        elif clock in ("none", "unix"):
            written = [str(at)] * (clock == "unix")
        lines.append([*written, *who, value])
        if rng.random() < 0.02 and clock != "none":
            lines.append([""])
    parts = {"time": "Date,Hour", "time_format": "%d.%m.%Y %H:%M:%S"} if clock == "parts" else {}
    schema = Schema(
        value="amount",
        **parts,
        participant="meter" if known else None,
        group="kind" if grouped else None,
        timezone=zone,
        separator=separator,
        decimal="," if numbers and sign == "," else None,
        step_seconds=None if clock == "none" else step,
        states=StateSpace.numeric([10, 25.5, 80]) if numbers else StateSpace.categories(NAMES),
    )
    return "\n".join(separator.join(line) for line in lines) + "\n", schema


MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-")


class RefusedError(Exception):
    """With the numbers of the lines that are wrong."""


def moments(text, zone, form):
    """First and last second that a time may mean, and its clock; None where it is none."""
    if form is None and text.strip("+-").isdigit():
        return None if len(text) > 30 else (int(text), int(text), "unix")
    try:
        then = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
    except ValueError:
        return None
    clock = "local" if then.tzinfo is None else "offset"
    if clock == "local" and zone is not None:
        both = [then.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1)]
        back = [one.astimezone(UTC).astimezone(ZoneInfo(zone)) for one in both]
        if then not in [one.replace(tzinfo=None) for one in back]:
            return None  # the clocks left it out
    else:
        both = [then.replace(tzinfo=then.tzinfo or UTC)] * 2
    seconds = [(one - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1) for one in both]
    return None if any(s % 1 for s in seconds) else (*map(int, seconds), clock)


def meaning(text, states, decimal):
    """State of a value; None where it is missing, −2 where it is none."""
    for i, name in enumerate(() if states.edges else states.names):
        if text == name or (number(name) is not None and number(name) == number(text)):
            return i
    if text.lower() in MISSING:
        return None
    value = number(text.replace(".", "x").replace(",", ".") if decimal == "," else text)
    return sum(value >= edge for edge in states.edges) if states.edges and value is not None else -2


def number(text):
    with suppress(ValueError):
        return float(text)


def plain_read(text, schema, *, first=-math.inf, last=math.inf, total=False):
    """Return the names of the people, and (person, seconds, state) of the readings, sorted."""
    header, *lines = csv.reader(text.splitlines(), delimiter=schema.separator)
    times = schema.time.split(",") if schema.time else [n for n in ("time", "ts") if n in header]
    people, groups, found, before, bad, clock = {}, {}, [], {}, [], None
    for line, fields in enumerate(lines, 2):
        row = dict(zip(header, fields or [""], strict=False))
        if times and not any(fields):
            continue
        name = row[schema.participant] if schema.participant else "all"
        if total and name not in ("", "nan"):
            people.setdefault(name, len(people))
        if times:
            written = " ".join(row[name] for name in times)
            either = moments(written, schema.timezone, schema.time_format)
            if either is None:
                bad.append(line)
                continue
            at, clock = either[0], clock or either[2]
            if either[2] != clock and not total:
                bad.append(line)
            if not total and either[0] <= before.get(name, -math.inf):
                at = either[1]
        else:
            at = before.get(name, -1) + 1
        before[name] = at
        if times and not first <= at <= last:
            continue
        if name in ("", "nan"):
            bad.append(line)
            continue
        people.setdefault(name, len(people))
        group = row[schema.group] if schema.group else "all"
        if groups.setdefault(name, group) != group or group in ("", "nan"):
            bad.append(line)
        state = meaning(row["amount"], schema.states, schema.decimal)
        if state == -2:
            bad.append(line)
        elif state is not None:
            found.append((people[name], at, state, line))
    found.sort()
    step, keys = schema.step_seconds or 1, Counter(row[:2] for row in found)
    if total:
        found = [row for row in found if keys[row[:2]] == 1 and row[1] % step == 0]
        return list(people), [row[:3] for row in found]
    for one, other in () if bad else pairwise(found):
        if one[:2] == other[:2]:
            bad.append(max(one[3], other[3]))
        if one[0] == other[0] and (other[1] - one[1]) % step:
            bad.append(other[3])
    if bad:
        raise RefusedError(bad)
    return list(people), [row[:3] for row in found]
