"""The power of one household by the minute: UCI #235, two years of it in a compact file."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pufferflow._util.files import check_output, write_atomic
from pufferflow.errors import DataError, ParameterError

BUNDLED = Path(__file__).parent / "electricity_uci235_minute_watts.csv.xz"
START = "2007-05-01T00:00"


def window(
    watts: pd.Series[float], start: str | None, length: int | None, where: str
) -> pd.Series[float]:
    """Return ``length`` minutes (None: all to the last) from ``start`` (None: from the first).

    Parameters
    ----------
    watts : series
        Power in watts by minutes since 1970-01-01T00:00 in the time base of the source, strictly
        increasing; NaN if the source has a row but no value.
    start, length : str, int, optional
        An ISO time and a number of minutes.
    where : str
        Name of the file for messages.

    Raises
    ------
    ParameterError
        ``start`` is not an ISO time, or ``length`` is less than 1.
    DataError
        The rows do not reach over the whole window.
    """
    if length is not None and length < 1:
        raise ParameterError(f"minutes is {length}; give a whole number of at least 1")
    reach = int(watts.index[0]), int(watts.index[-1])
    try:
        first = reach[0] if start is None else minute_of(start)
    except ValueError as error:
        sentence = f"the start {start!r} is not an ISO time; write it as 2007-05-01T00:00"
        raise ParameterError(sentence) from error
    last = reach[1] if length is None else first + length - 1
    if not reach[0] <= first <= last <= reach[1]:
        wanted = f"from: {start or iso(first)}" + (f", minutes: {length}" if length else "")
        raise DataError(
            f"{where}: the requested window ({wanted}) is not within the data, which reach from "
            f"{iso(reach[0])} to {iso(reach[1])} ({len(watts)} minutes); choose a window inside"
        )
    return watts.loc[first:last]


def minute_of(when: str) -> int:
    """Return the minutes from 1970-01-01T00:00 to an ISO time; raise ValueError otherwise."""
    return int(np.datetime64(when, "m").astype(np.int64))


def iso(minute: int) -> str:
    """Return the ISO time of :func:`minute_of`."""
    return str(np.datetime64(minute, "m"))


def read_watts(path: Path = BUNDLED, start: str = START) -> pd.Series[float]:
    """Read a compact file: a header, then whole watts, one line per minute, blank where missing.

    The index is as for :func:`window`. Raises DataError: the file is missing, damaged or not such a
    file.
    """
    try:
        with lzma.open(path) as stream:
            watts = pd.read_csv(stream, skip_blank_lines=False, dtype=np.float64)["watts"]
    except (OSError, EOFError, lzma.LZMAError, ValueError, KeyError) as error:
        raise DataError(f"{path} is not a file of minute watts ({error}); get it again") from error
    return watts.set_axis(watts.index + minute_of(start))


def export_household(
    paths: Sequence[str | Path], start: str | None = None, minutes: int | None = None
) -> int:
    """Write consecutive parts of equal length as CSV tables and return the number of rows of each.

    The columns are ``time`` (ISO, local time without daylight saving) and ``watts``. Remaining
    minutes are not written.

    Raises
    ------
    ParameterError
        ``start`` is not a time, there are fewer minutes than files, or two files are the same.
    DataError
        The window is not within the data, a file exists already, or its folder does not.
    """
    for part, path in enumerate(paths):
        check_output(path, *paths[:part])
    watts = window(read_watts(), start, minutes, "the bundled household")
    rows = len(watts) // len(paths)
    if not rows:
        found = f"{len(watts)} minutes do not fill {len(paths)} files"
        raise ParameterError(f"{found}; give more minutes")
    times = np.datetime_as_string(watts.index.to_numpy().astype("datetime64[m]"))
    table = pd.DataFrame({"time": times, "watts": watts.astype("Int64")})
    for part, path in enumerate(paths):
        here = table.iloc[part * rows : (part + 1) * rows]
        write_atomic(path, here.to_csv(index=False, lineterminator="\n"))
    return rows
