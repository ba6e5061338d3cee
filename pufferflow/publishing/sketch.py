"""The figure of a running count: of a few of its lines, as many as can be told apart, so that memory does not grow."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pandas as pd

from pufferflow.publishing.stream import HEADER, PreparedStream

POINTS = 1000
"""Lines that are drawn."""


class Sketch:
    """Keeps every so many lines of a stream and the last one.

    Parameters
    ----------
    length : int
        T, the most records that come.
    """

    def __init__(self, length: int) -> None:
        self._every = -(-length // POINTS)
        self._seen = 0
        self._kept: list[str] = []
        self._last = HEADER

    def add(self, line: str) -> None:
        """See the header, and then the line of each record."""
        if line == HEADER:
            return
        if self._seen % self._every == 0:
            self._kept.append(line)
        self._seen += 1
        self._last = line

    def table(self) -> pd.DataFrame:
        """What is drawn: the columns of the lines, the time as text where it is one."""
        last = [] if self._last in (HEADER, *self._kept[-1:]) else [self._last]
        return pd.read_csv(StringIO("\n".join([HEADER, *self._kept, *last])))

    def draw(self, stem: Path, made: PreparedStream) -> str:
        """Write the figure, where there is a line; return what went wrong, or nothing: the lines are out already."""
        try:
            if not (table := self.table()).empty:
                from pufferflow.drawing.releases import running_count
                from pufferflow.drawing.style import save_figure

                save_figure(running_count(table, made.request.counted.said, made.caption), stem)
        except Exception as error:
            return type(error).__name__
        return ""
