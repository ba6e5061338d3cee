"""The reader's reference implementation: plain Python, a row at a time, on the text of a table."""

import csv
import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

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
    try:
        return float(text)
    except ValueError:
        return None


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
