"""The power of one household as a Markov chain of power bins, one step a minute."""

from __future__ import annotations

import lzma
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pufferflow._checks import check_choice, check_positive, check_whole
from pufferflow._files import check_outputs, write_atomic
from pufferflow.datasets.ampds2 import is_ampds2, parse_ampds2
from pufferflow.datasets.minute_watts import MinuteWatts
from pufferflow.datasets.sources import SPLIT_BECAUSE, bundled_path, load_sources
from pufferflow.datasets.text import read_content
from pufferflow.datasets.uci import fetch_uci, is_uci_text, parse_uci_text
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.counting import Counted, count_records
from pufferflow.records.format import RecordFormat, StateSpace
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records, open_records, stamp
from pufferflow.records.runs import Runs, count_runs
from pufferflow.records.sample import Participant, Sample
from pufferflow.records.states import States
from pufferflow.records.tables import PandasTable

PAUSES = {"bridge": (None, None), "split": (0, SPLIT_BECAUSE)}
"""After how many seconds without a record a new chain starts, and why."""
LABELS = {"bundled": "bundled", "file": "file", "download": "downloaded"}
YEAR = 365 * 1440


def ingest_electricity(
    source: str,
    path: str | Path | None = None,
    *,
    bin_watts: float = 200,
    bins: int = 51,
    gaps: str = "bridge",
    window_start: str | None = "2007-05-01T00:00",
    window_minutes: int | None = 1051200,
    step_minutes: int = 1,
) -> Sample:
    """Reduce a household's power by the minute to counts of power bins and of steps between them.

    Parameters
    ----------
    source : {"bundled", "file", "download"}
        Two years of UCI #235 inside the package; a file; or the whole of UCI #235, see :func:`fetch_uci`.
    path : path, optional
        For "file": the text of UCI #235, or ``Electricity_P.csv`` of AMPds2 (column ``WHE``), told
        apart by their first line; or any other table that ``pufferflow fit`` reads without options. Each may be packed
        as zip, gzip or xz.
        For "download": the folder that keeps the compact copy; by default the user's cache folder.
    bin_watts : float
        Width of a bin in watts.
    bins : int
        Number of states k; the state is ``min(watts // bin_watts, bins - 1)``.
    gaps : {"bridge", "split"}
        One chain over all minutes, which only drops the transitions over missing minutes; or a new chain
        after every gap.
    window_start : str, optional
        First minute, ISO time on the clock of UCI #235; None is the first of the data.
        Other files are used whole, so both window settings are for UCI #235 only.
    window_minutes : int, optional
        Length of the window in minutes; None reaches to the end of the data.
    step_minutes : int
        Length of a time step of UCI #235 or AMPds2; the power is the mean of its minutes, if none is missing. Another
        table has a step of its own.

    Returns
    -------
    Sample
        One participant "household" in group "household", one step ``step_minutes``; of another table its own
        participants and step.

    Raises
    ------
    ParameterError
        A setting outside its range, or a path where none is used.
    DataError
        The file is missing or malformed, is shorter than the window, or has no two successive minutes.
    DownloadError
        The data could not be downloaded.

    Notes
    -----
    Sources: Hebrail and Berard, doi 10.24432/C58K54 (UCI #235); Makonin et al., doi 10.7910/DVN/FIE0S4 (AMPds2).
    """
    check_choice(source, "source", LABELS)
    if source == ("file" if path is None else "bundled"):
        raise ParameterError(f"source {source!r} with path {path!s}: a path goes with a file, or with a download")
    check_choice(gaps, "gaps", PAUSES)
    bins = check_whole(bins, "bins", 2)
    check_positive(bin_watts, "bin_watts")
    if window_minutes is not None:
        window_minutes = check_whole(window_minutes, "window_minutes", 2)
    step_minutes = check_whole(step_minutes, "step_minutes")
    try:
        np.datetime64(window_start, "m")
    except ValueError as error:
        raise ParameterError(f"window_start {window_start!r} is no ISO time; write it as 2007-05-01T00:00") from error

    settings = {"bin_watts": bin_watts, "bins": bins, "gaps": gaps}
    edges = States(edges=tuple(bin_watts * j for j in range(1, bins)))
    minutes = _minutes(source, path, window_start, window_minutes, step_minutes)
    if minutes is None:
        return _own_table(str(path), edges, gaps, settings)
    name, where, readings, window_start, window_minutes = minutes
    span, begin, readings = _span(readings), readings.start, readings.means(step_minutes)

    seen = ~np.isnan(readings.watts)
    if not seen.any():
        raise DataError(f"{where}: no power was recorded from {begin} on; choose another window or file")
    if not (np.diff(readings.minutes[seen]) == step_minutes).any():
        steps = "minutes" if step_minutes == 1 else f"steps of {step_minutes} minutes"
        raise DataError(
            f"{where}: {seen.sum()} observation(s) from {begin} on and no two in successive {steps}, "
            "so no transition to count; give a longer record"
        )
    records = _records(readings, where)
    counted = count_records(records, edges, 60 * step_minutes, *PAUSES[gaps])
    return Sample(
        dataset="electricity",
        label=LABELS[source],
        description=f"{name}, {span} from {begin[:10]}",
        step_seconds=60 * step_minutes,
        states=(
            *(f"{low * bin_watts:g}-{(low + 1) * bin_watts:g} W" for low in range(bins - 1)),
            f">={(bins - 1) * bin_watts:g} W",
        ),
        participants=_households(records, counted),
        settings=settings
        | {"window_start": window_start, "window_minutes": window_minutes}
        | ({} if step_minutes == 1 else {"step_minutes": step_minutes}),
    )


def electricity_runs(
    source: str,
    path: str | Path | None = None,
    *,
    edges_watts: Sequence[float],
    window_start: str | None = "2007-05-01T00:00",
    window_minutes: int | None = 1051200,
    step_minutes: int = 1,
) -> Runs:
    """Count the runs of successive power bins, of all households of the data together.

    Parameters
    ----------
    source, path, window_start, window_minutes, step_minutes
        As for :func:`ingest_electricity`.
    edges_watts : sequence of float
        Increasing; k − 1 of them for k states.

    Raises
    ------
    ParameterError, DataError, DownloadError
        As for :func:`ingest_electricity`, or the edges do not increase.
    """
    check_choice(source, "source", LABELS)
    states = StateSpace.numeric(edges_watts)
    minutes = _minutes(source, path, window_start, window_minutes, step_minutes)
    if minutes is None:
        records = open_records(str(path), Reading())
        step = count_records(records, States(edges=tuple(edges_watts))).form.step_seconds
    else:
        records, step = _records(minutes.readings.means(step_minutes), minutes.where), 60 * step_minutes
    runs = count_runs(records, RecordFormat(states, step)).values()
    return Runs(np.sum([r.triples for r in runs], axis=0), np.sum([r.hourly for r in runs], axis=0))


def export_electricity(
    paths: Sequence[str | Path], *, start: str | None = None, minutes: int | None = None
) -> list[int]:
    """Write the bundled minutes as CSV tables, columns ``time`` (ISO, local clock without jumps) and ``watts``.

    Raises ParameterError: ``start`` is no time, the window is not within the data, there are fewer minutes than files,
    or two files are the same; DataError: a file exists already, or its folder does not.

    Parameters
    ----------
    paths : sequence of path
        Each gets one of consecutive parts of equal length; minutes that are left over are not written.
    start : str, optional
        First minute, ISO time.
    minutes : int, optional
        Of all parts together; None reaches to the end.

    Returns
    -------
    list of int
        Rows written to each.
    """
    check_outputs(paths, new=True)
    if minutes is not None and minutes < 1:
        raise ParameterError(f"minutes is {minutes}; give a whole number of at least 1")
    readings = _bundled()
    first, last = readings.minutes[[0, -1]].astype("datetime64[m]")
    try:
        begin = first if start is None else np.datetime64(start, "m")
    except ValueError as error:
        raise ParameterError(f"the start {start!r} is no ISO time; write it as 2007-05-01T00:00") from error
    there = int((last - begin).astype(np.int64)) + 1
    if not first <= begin <= last or (minutes is not None and minutes > there):
        asked = "" if minutes is None else f", minutes: {minutes}"
        raise ParameterError(
            f"the window asked for (from: {start or begin}{asked}) is not within the data, which reach from {first} to "
            f"{last} ({len(readings.minutes)} minutes); choose a window inside"
        )
    readings = readings.window(start, minutes, "UCI #235 (bundled)")
    rows = len(readings.minutes) // len(paths)
    if not rows:
        raise ParameterError(f"{len(readings.minutes)} minutes do not fill {len(paths)} files; give more minutes")
    for i, path in enumerate(paths):
        write_atomic(path, readings.rows(i * rows, (i + 1) * rows).to_table())
    return [rows] * len(paths)


def _records(readings: MinuteWatts, where: str) -> Records:
    table = pd.DataFrame({"time": 60 * readings.minutes, "watts": readings.watts})
    return Records(PandasTable(table, where), Reading())


class _Minutes(NamedTuple):
    """Minutes of a household, where they are from, and the window they were cut to."""

    name: str
    where: str
    readings: MinuteWatts
    window_start: str | None
    window_minutes: int | None


def _minutes(
    source: str,
    path: str | Path | None,
    window_start: str | None,
    window_minutes: int | None,
    step_minutes: int,
) -> _Minutes | None:
    """The minutes of a source; None where a file is a table of another kind."""
    name, where = "UCI #235 household electricity", f"UCI #235 ({LABELS[source]})"
    if source == "bundled":
        readings = _bundled()
    elif source == "download":
        readings = fetch_uci(_user_cache() if path is None else path)
    else:
        where = str(path)
        content = read_content(where)
        if is_ampds2(content):
            column, window_start, window_minutes = "WHE", None, None
            readings = parse_ampds2(content, where)
        elif not content.startswith(b"PAR1") and is_uci_text(content):
            column = "Global_active_power"
            readings = parse_uci_text(content, where)
        else:
            if step_minutes != 1:
                raise ParameterError(
                    f"step_minutes is {step_minutes}, and {where} has a step of its own; resample the table instead"
                )
            return None
        name = f"{Path(where).name}: column {column!r}"  # a header alone does not say where data are from
    readings = readings.window(window_start, window_minutes, where)
    return _Minutes(name, where, readings, window_start, window_minutes)


def _own_table(path: str, edges: States, gaps: str, settings: dict[str, Any]) -> Sample:
    """A user's table, read as ``pufferflow fit`` reads it; the caption names the file and the column."""
    records = open_records(path, Reading())
    counted = count_records(records, edges, None, *PAUSES[gaps])
    scan = counted.scan
    period = f"{stamp(records, scan.first)} to {stamp(records, scan.last)}"
    return Sample(
        dataset="electricity",
        label="file",
        description=f"{Path(path).name}: column {records.columns['value']!r}, {scan.rows:,} rows from {period}",
        step_seconds=counted.form.step_seconds or 1,
        states=counted.form.states.names,
        participants=_households(records, counted),
        settings=settings,
    )


def _households(records: Records, counted: Counted) -> tuple[Participant, ...]:
    """The participants as one group; where no column names them there is one."""
    named = records.columns["participant"] is not None
    return tuple(replace(p, name=p.name if named else "household", group="household") for p in counted.participants)


@cache
def _bundled() -> MinuteWatts:
    """Unpacked once, however many windows and steps of it are taken."""
    content = lzma.decompress(bundled_path("uci235-window").read_bytes())
    readings = MinuteWatts.from_csv(content, load_sources()["uci235-window"]["start"])
    readings.minutes.flags.writeable = readings.watts.flags.writeable = False
    return readings


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pufferflow"


def _span(readings: MinuteWatts) -> str:
    minutes = int(readings.minutes[-1] - readings.minutes[0]) + 1
    return {YEAR: "one year of minutes", 2 * YEAR: "two years of minutes"}.get(minutes, f"{minutes:,} minutes")
