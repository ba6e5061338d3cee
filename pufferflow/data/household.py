"""The power of one household by the minute: UCI #235, two years of it in a compact file."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._util.files import check_output, write_atomic
from pufferflow.errors import DataError, ParameterError

BUNDLED = Path(__file__).parent / "electricity_uci235_minute_watts.csv.xz"
START = "2007-05-01T00:00"


@dataclass(frozen=True)
class MinuteWatts:
    """Rows of a power meter.

    Attributes
    ----------
    minutes : int array, shape (n,)
        Minutes since 1970-01-01T00:00 in the time base of the source, strictly increasing.
    watts : float array, shape (n,)
        Power in watts, NaN if the source has a row but no value.
    """

    minutes: NDArray[np.int64]
    watts: NDArray[np.float64]

    def window(self, start: str | None, length: int | None, where: str) -> MinuteWatts:
        """Return ``length`` minutes (None: all to the last) from ``start`` (None: from the first).

        Raises
        ------
        ParameterError
            ``start`` is not an ISO time, or ``length`` is less than 1.
        DataError
            The rows of the file ``where`` do not reach over the whole window.
        """
        if length is not None and length < 1:
            raise ParameterError(f"minutes is {length}; give a whole number of at least 1")
        reach = int(self.minutes[0]), int(self.minutes[-1])
        try:
            first = reach[0] if start is None else minute_of(start)
        except ValueError as error:
            sentence = f"the start {start!r} is not an ISO time; write it as 2007-05-01T00:00"
            raise ParameterError(sentence) from error
        last = reach[1] if length is None else first + length - 1
        if not reach[0] <= first <= last <= reach[1]:
            asked = f"from: {start or iso(first)}" + (f", minutes: {length}" if length else "")
            raise DataError(
                f"{where}: the requested window ({asked}) is not within the data, which reach from "
                f"{iso(reach[0])} to {iso(reach[1])} ({len(self.minutes)} minutes); "
                "choose a window inside"
            )
        rows = slice(*np.searchsorted(self.minutes, (first, last + 1)))
        return MinuteWatts(self.minutes[rows], self.watts[rows])


def minute_of(when: str) -> int:
    """Return the minutes from 1970-01-01T00:00 to an ISO time; raise ValueError otherwise."""
    return int(np.datetime64(when, "m").astype(np.int64))


def iso(minute: int) -> str:
    """Return the ISO time of :func:`minute_of`."""
    return str(np.datetime64(minute, "m"))


def read_watts(path: Path = BUNDLED, start: str = START) -> MinuteWatts:
    """Read a compact file: a header, then whole watts, one line per minute, blank where missing.

    Raises DataError: the file is missing, damaged or not such a file.
    """
    try:
        with lzma.open(path) as stream:
            table = pd.read_csv(stream, skip_blank_lines=False, dtype=np.float64)
        watts = table["watts"].to_numpy()
    except (OSError, EOFError, lzma.LZMAError, ValueError, KeyError) as error:
        raise DataError(f"{path} is not a file of minute watts ({error}); get it again") from error
    minutes = minute_of(start) + np.arange(len(watts), dtype=np.int64)
    return MinuteWatts(minutes, watts)


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
    readings = read_watts().window(start, minutes, "the bundled household")
    rows = len(readings.minutes) // len(paths)
    if not rows:
        found = len(readings.minutes)
        raise ParameterError(f"{found} minutes do not fill {len(paths)} files; give more minutes")
    for part, path in enumerate(paths):
        here = slice(part * rows, (part + 1) * rows)
        times = np.datetime_as_string(readings.minutes[here].astype("datetime64[m]"))
        table = pd.DataFrame({"time": times, "watts": readings.watts[here]})
        table = table.astype({"watts": "Int64"})
        write_atomic(path, table.to_csv(index=False, lineterminator="\n"))
    return rows
