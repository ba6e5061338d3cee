"""The reader's reference implementation: plain Python, a row at a time, on the text of a table."""

import csv
import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-")


class RefusedError(Exception):
    """With the numbers of the lines that are wrong."""


def moments(text, reading):
    """First and last second that a time may mean, and its clock; None where it is none."""
    zone, form = reading.get("timezone"), reading.get("time_format")
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


def meaning(text, edges, names, reading):
    """State of a value; None where it is missing, −2 where it is none."""
    if names is not None:
        for i, name in enumerate(names):
            if text == name or (number(name) is not None and number(name) == number(text)):
                return i
        return None if text.lower() in MISSING else -2
    if text.lower() in MISSING:
        return None
    if reading.get("decimal") == ",":
        text = text.replace(".", "x").replace(",", ".")
    value = number(text)
    return -2 if value is None else sum(value >= edge for edge in edges)


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def plain_read(drawn, *, first=-math.inf, last=math.inf, total=False):
    """Return the names of the people, and (person, seconds, state) of the readings, sorted."""
    reading, step = drawn.reading, drawn.step
    lines = list(csv.reader(drawn.text.splitlines(), delimiter=reading["separator"]))
    place = {name: i for i, name in enumerate(lines[0])}
    times = [n for n in (reading.get("time") or "").split(",") if n] or [
        n for n in ("time", "ts") if n in place
    ]
    people, groups, found, before, bad = {}, {}, [], {}, []
    clock = None
    for line, fields in enumerate(lines[1:], 2):
        fields = fields or [""]
        if times and not any(fields):
            continue
        name = fields[place[reading["participant"]]] if "participant" in reading else "all"
        if total and name not in ("", "nan"):
            people.setdefault(name, len(people))
        if times:
            either = moments(" ".join(fields[place[name]] for name in times), reading)
            if either is None:
                bad.append(line)
                continue
            at, clock = either[0], clock or either[2]
            if either[2] != clock and not total:
                bad.append(line)
            if not total and either[0] <= before.get(name, -math.inf):
                at = either[1]
            before[name] = at
            if not first <= at <= last:
                continue
        else:
            at = before[name] = before.get(name, -1) + 1
        if name in ("", "nan"):
            bad.append(line)
            continue
        people.setdefault(name, len(people))
        group = fields[place[reading["group"]]] if "group" in reading else "all"
        if groups.setdefault(name, group) != group or group in ("", "nan"):
            bad.append(line)
        state = meaning(fields[place["amount"]], drawn.edges, drawn.names, reading)
        if state == -2:
            bad.append(line)
        elif state is not None:
            found.append((people[name], at, state, line))
    found.sort()
    keys = [row[:2] for row in found]
    if total:
        found = [row for row in found if keys.count(row[:2]) == 1]
        return list(people), [row[:3] for row in found if row[1] % (step or 1) == 0]
    if bad:
        raise RefusedError(bad)
    for one, other in pairwise(found):
        if one[:2] == other[:2]:
            bad.append(max(one[3], other[3]))
        if one[0] == other[0] and (other[1] - one[1]) % (step or 1):
            bad.append(other[3])
    if bad:
        raise RefusedError(bad)
    return list(people), [row[:3] for row in found]
