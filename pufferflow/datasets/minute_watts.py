"""A household's power by the minute, and the compact file it is kept in."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow.errors import DataError


@dataclass(frozen=True)
class MinuteWatts:
    """Rows of a power meter.

    Attributes
    ----------
    minutes : int array, shape (n,)
        Minutes since 1970-01-01T00:00 on the clock of the source, strictly increasing.
    watts : float array, shape (n,)
        Power in watts, NaN where the source has a row but no value.
    """

    minutes: NDArray[np.int64]
    watts: NDArray[np.float64]

    @classmethod
    def from_csv(cls, content: bytes, start: str) -> MinuteWatts:
        """Read what :meth:`to_csv` wrote; ``start`` is the ISO time of the first row."""
        watts = pd.read_csv(io.BytesIO(content), skip_blank_lines=False, dtype=np.float64)["watts"].to_numpy()
        return cls(_minute(start) + np.arange(len(watts), dtype=np.int64), watts)

    def to_csv(self) -> bytes:
        """Return whole watts, one line a row from the first minute to the last, blank where missing."""
        return ("\n".join(["watts", *self._texts()]) + "\n").encode()

    def to_table(self) -> str:
        """Return a CSV with the columns ``time`` and ``watts``, blank where missing."""
        times = np.datetime_as_string(self.minutes.astype("datetime64[m]")).tolist()
        lines = [f"{time},{watts}" for time, watts in zip(times, self._texts(), strict=True)]
        return "\n".join(["time,watts", *lines]) + "\n"

    def rows(self, first: int, end: int) -> MinuteWatts:
        """Return rows ``first`` to ``end - 1``, counted from 0."""
        return MinuteWatts(self.minutes[first:end], self.watts[first:end])

    def means(self, minutes: int) -> MinuteWatts:
        """Return the mean power of windows of so many minutes, each at its first; none where a minute is missing."""
        if minutes == 1:
            return self
        window, first, size = np.unique(self.minutes // minutes, return_index=True, return_counts=True)
        whole = size == minutes
        sums = np.add.reduceat(self.watts, first)
        return MinuteWatts(window[whole] * minutes, sums[whole] / minutes)

    def _texts(self) -> list[str]:
        codes, distinct = pd.factorize(self.watts)  # code -1 for NaN, which picks the blank
        texts = np.array([f"{watts:.0f}" for watts in distinct] + [""], dtype=object)
        return list(texts[codes])

    @property
    def start(self) -> str:
        """ISO time of the first row."""
        return _stamp(self.minutes[0])

    def window(self, start: str | None, length: int | None, where: str) -> MinuteWatts:
        """Return the rows of ``length`` minutes (None: to the last) from the ISO time ``start`` (None: the first) on.

        Raises DataError: the rows do not reach over the whole window.
        """
        first, last = self.minutes[0], self.minutes[-1]
        begin = first if start is None else _minute(start)
        end = last if length is None else begin + length - 1
        if not first <= begin <= end <= last:
            raise DataError(
                f"{where}: covers {_stamp(first)} to {_stamp(last)}, not the window {_stamp(begin)} to {_stamp(end)}; "
                "choose window_start and window_minutes inside, or None for the whole file"
            )
        rows = slice(*np.searchsorted(self.minutes, (begin, end + 1)))
        return MinuteWatts(self.minutes[rows], self.watts[rows])


def _minute(when: str) -> int:
    return int(np.datetime64(when, "m").astype(np.int64))


def _stamp(minute: int | np.int64) -> str:
    return str(np.datetime64(int(minute), "m"))
