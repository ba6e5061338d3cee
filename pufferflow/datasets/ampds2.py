"""AMPds2 (Makonin et al., doi 10.7910/DVN/FIE0S4), the paper's electricity data: ``Electricity_P.csv``."""

from __future__ import annotations

import numpy as np

from pufferflow.datasets.minute_watts import MinuteWatts
from pufferflow.datasets.text import parse_column, read_columns, read_header, refuse, refuse_unordered


def is_ampds2(content: bytes) -> bool:
    """Whether the first line names the columns ``unix_ts`` (in any case) and ``WHE``, as a file of AMPds2 does."""
    names = read_header(content, ",")
    return "WHE" in names and "unix_ts" in (name.lower() for name in names)


def parse_ampds2(content: bytes, where: str) -> MinuteWatts:
    """Read the whole-house power of a CSV with columns ``unix_ts`` (s, any case) and ``WHE`` (W; blank where missing).

    Raises DataError: a column is missing, a field cannot be read, a power is negative, or the times do not advance by
    multiples of 60 s.
    """
    time_column = next(name for name in read_header(content, ",") if name.lower() == "unix_ts")
    table = read_columns(content, (time_column, "WHE"), where)
    what = "is not a power in watts >= 0; mend it or leave it blank"
    watts = parse_column(table["WHE"], where, what, missing=("",))
    times = table[time_column]
    seconds = parse_column(times, where, "is not a time in seconds since 1970; mend or remove the row")
    refuse_unordered(seconds, times, where)
    uneven = (seconds - seconds[0]) % 60 != 0
    refuse(uneven, times, where, "is not a multiple of 60 s after the first row; resample to whole minutes")
    return MinuteWatts((seconds // 60).astype(np.int64), watts)
