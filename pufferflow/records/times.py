"""Formats of times: unix seconds, ISO times with an offset, or local times."""

import math
import re
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._util.checks import shown
from pufferflow.errors import ParameterError
from pufferflow.records.table import as_text

Integers = NDArray[np.int64]

CALENDAR = (-62_135_596_800, 253_402_300_799)
"""Unix seconds of the years 1 to 9999, the range of calendars."""
LATEST = 10**11
"""Unix seconds of the year 5138: larger numbers are milliseconds by mistake."""
NOWHEN = CALENDAR[0] - 1
"""Codes of an invalid time, and of one that daylight saving skips."""
HOUR = 3600
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
NANOSECONDS = (-9_223_372_036, 9_223_372_036)
"""Unix seconds that 64 bits hold in nanoseconds, which one time imposes on all of its format."""
KINDS = ("has a UTC offset", "has no UTC offset", "is in unix seconds")
# without \d and \s, which mean something else in pyarrow and are five times as slow
_OFFSET = "[0-9]:?[0-9]{2}(?::[0-9]{2})?(?:[.,][0-9]+)? ?(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)$"
_UNIX = r"^ *[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)? *$"
_ISO = "^ *[0-9][^.,]*(?:[.,][0-9]{1,6}(?:[^.,0-9][^.,]*)?)?$"  # nanoseconds shorten the calendar


def moments(
    texts: "pd.Series[Any]", form: str | None, zone: str | None
) -> tuple[Integers, Integers, NDArray[Any]]:
    """Return the first and last second that times may mean, and their kinds (indices of KINDS)."""
    early, formed = np.full(len(texts), NOWHEN), np.zeros(len(texts), dtype=bool)
    if pd.api.types.is_datetime64_any_dtype(texts):
        kind = np.full(len(texts), 1 if texts.dt.tz is None else 0)
    elif form is None and texts.dtype.kind in "iuf":
        kind = np.full(len(texts), 2)
    else:
        if form is not None:  # dates are typed, whatever the type of the other entries
            formed = np.array([not isinstance(e, date | np.datetime64) for e in texts], dtype=bool)
        if texts.dtype != "str":
            texts = pd.Series([*map(as_text, texts.tolist())], dtype="str")
        unix, iso, offset = (
            np.array(texts.str.contains(p), dtype=bool) for p in (_UNIX, _ISO, _OFFSET)
        )
        unix &= ~formed
        offset = np.where(formed, "%z" in (form or ""), offset)
        kind = np.where(unix, 2, np.where(offset, 0, 1))
        texts = texts.where(unix | iso | formed, "")
    if (kind == 2).any():
        numbers = texts[kind == 2].astype(np.float64).to_numpy(np.float64, na_value=np.nan)
        fine = (numbers >= CALENDAR[0]) & (numbers < LATEST)
        early[kind == 2] = np.where(fine & (np.where(fine, numbers, 0) % 1 == 0), numbers, NOWHEN)
    for way, dates in ((form or "", formed), ("ISO8601", ~formed & (kind < 2))):
        if not dates.any():
            continue
        with suppress(ValueError):  # the format itself is invalid
            found = pd.to_datetime(texts[dates], format=way, errors="coerce", utc=True)
            times = pd.DatetimeIndex(found)
            seconds, rest = np.divmod(times.asi8, PER_SECOND[times.unit])
            narrow = "%f" in way or ("%" not in way and dates is formed)
            first, last = NANOSECONDS if narrow else CALENDAR
            fine = (rest == 0) & (seconds >= first) & (seconds <= last)
            early[dates] = np.where(fine, seconds, NOWHEN)
    late, local = early.copy(), (kind == 1) & (early > NOWHEN)
    if zone is not None and local.any():
        clock = pd.DatetimeIndex(early[local].astype("datetime64[s]"))
        for ends, summer in ((early, True), (late, False)):
            dst = np.full(len(clock), summer)
            there = clock.tz_localize(zone, ambiguous=dst, nonexistent="NaT")
            ends[local] = np.where(there.isna(), NOWHEN, there.as_unit("s").asi8)
    return early, late, kind


def parse_range(
    first: str | None, last: str | None, timezone: str | None = None
) -> tuple[int | None, int | None]:
    """Return the first and the last second of a range of time, both included.

    ``last`` is exclusive, or a bare date, which means the whole day. Without an offset both are
    local times of ``timezone``, or in the time base of the table (UTC or local).

    >>> parse_range("1970-01-01", "1970-01-01"), parse_range(None, "1970-01-01T00:01")
    ((0, 86399), (None, 59))

    Raises ParameterError: one is not a time, or nothing lies between them.
    """
    ends: list[int | None] = []
    for text, name in ((first, "from"), (last, "to")):
        if text is None:
            ends.append(None)
            continue
        written = str(text).strip()
        try:
            if not is_time(written):
                raise ValueError
            moment = datetime.fromisoformat(written)
            moment += timedelta(days=name == "to" and len(written) == len("2024-01-31"))
            if moment.tzinfo is None:  # a time that daylight saving repeats is the first one
                moment = moment.replace(tzinfo=ZoneInfo(timezone or "UTC"))
        except (ValueError, OverflowError):
            advice = "give a time such as 2024-01-31 or 2024-01-31T12:00"
            raise ParameterError(f"{name} is {shown(text)}; {advice}") from None
        ends.append(math.ceil(moment.timestamp()) - (name == "to"))
    begin, end = ends
    if begin is not None and end is not None and end < begin:
        problem = f"nothing lies between from {shown(first)} and to {shown(last)}"
        raise ParameterError(f"{problem}; give a later end, or an earlier beginning")
    return begin, end


def is_time(text: str) -> bool:
    """Return whether a string begins with a date."""
    return re.match(r"\d{4}-\d\d-\d\d", text) is not None
