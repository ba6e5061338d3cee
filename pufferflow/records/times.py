"""Times as they are written: unix seconds, ISO times with an offset, or those of a local clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._numbers import shortest

Clock = Literal["offset", "local", "unix"]
Integers = NDArray[np.int64]

LATEST = 1e11
"""Unix seconds of the year 5138: larger numbers are milliseconds by mistake."""

CALENDAR = (-62_135_596_800, 253_402_300_799)
"""Unix seconds of the years 1 to 9999, in which calendars can be read; :mod:`datetime` has no others."""

_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_OFFSET = r"\d:?\d\d(?::\d\d)?(?:[.,]\d+)? ?(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
_DAYLIGHT_MONTHS = (3, 4, 9, 10, 11)


def parse_times(
    column: pd.Series[Any], time_format: str | None
) -> tuple[Integers, NDArray[np.int8], NDArray[np.bool_]]:
    """Seconds since 1970, the clock of each (index into offset, local, unix), and a mark where it cannot be read."""
    count = len(column)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        seconds, bad = _whole_seconds(pd.DatetimeIndex(column))
        return seconds, np.full(count, 0 if isinstance(column.dtype, pd.DatetimeTZDtype) else 1, dtype=np.int8), bad
    if pd.api.types.is_numeric_dtype(column.dtype):
        seconds, bad = _unix_seconds(column)
        return seconds, np.full(count, 2, dtype=np.int8), bad
    texts = column.astype("str")
    if time_format is not None:
        seconds, bad = _calendar(texts, time_format)
        return seconds, np.full(count, 0 if "%z" in time_format else 1, dtype=np.int8), bad
    if is_number(texts.iloc[0]):
        seconds, bad = _unix_seconds(texts)
        clocks = np.full(count, 2, dtype=np.int8)
        if bad.any():  # another clock is another complaint than no time at all
            seconds[bad], still = _calendar(texts[bad], "ISO8601")
            clocks[bad] = np.where(still, 2, np.where(_has_offset(texts[bad]), 0, 1))
            bad[bad] = still
        return seconds, clocks, bad
    seconds, bad = _calendar(texts, "ISO8601")
    clocks = np.where(_has_offset(texts), 0, 1).astype(np.int8)
    if bad.any():
        seconds[bad], still = _unix_seconds(texts[bad])
        clocks[bad] = np.where(still, clocks[bad], 2)
        bad[bad] = still
    return seconds, clocks, bad


def _calendar(texts: pd.Series[Any], time_format: str) -> tuple[Integers, NDArray[np.bool_]]:
    try:
        return _whole_seconds(pd.DatetimeIndex(pd.to_datetime(texts, format=time_format, errors="coerce", utc=True)))
    except (ValueError, OverflowError):  # the format itself, or a year that no clock has
        return np.zeros(len(texts), dtype=np.int64), np.ones(len(texts), dtype=bool)


def _whole_seconds(times: pd.DatetimeIndex) -> tuple[Integers, NDArray[np.bool_]]:
    ticks, second = times.asi8, _A_SECOND[times.unit]
    seconds = ticks // second
    bad = np.asarray(times.isna()) | (ticks % second != 0) | (seconds < CALENDAR[0]) | (seconds > CALENDAR[1])
    return np.where(bad, 0, seconds), bad


def _unix_seconds(column: pd.Series[Any]) -> tuple[Integers, NDArray[np.bool_]]:
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = ~((numbers >= CALENDAR[0]) & (numbers < LATEST))
    seconds = np.where(bad, 0, numbers)
    bad |= seconds % 1 != 0
    return np.where(bad, 0, seconds).astype(np.int64), bad


def _has_offset(texts: pd.Series[Any]) -> NDArray[np.bool_]:
    return np.array(texts.str.contains(_OFFSET, regex=True), dtype=np.bool_)


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    return shortest(text.strip()) is not None


def is_time(text: str) -> bool:
    """Whether a text begins with a date."""
    return bool(re.match(r"\d{4}-\d\d-\d\d", text.strip()))


def clocks_change(seconds: int) -> bool:
    """Whether local clocks may change then: early on a Sunday in spring or autumn."""
    then = datetime.fromtimestamp(seconds, UTC)
    return then.weekday() == 6 and then.month in _DAYLIGHT_MONTHS and then.hour <= 4
