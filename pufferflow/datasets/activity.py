"""Physical activity of groups of people as Markov chains of postures and movement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pufferflow._checks import check_choice, check_positive, check_whole
from pufferflow._numbers import shortest
from pufferflow.datasets.nhanes import SETTINGS, STATES, nhanes_records, read_nhanes
from pufferflow.datasets.sources import SPLIT_BECAUSE, bundled_path
from pufferflow.datasets.text import read_content
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.counting import count_records
from pufferflow.records.format import MOST_SECONDS, RecordFormat, StateSpace
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records, open_records
from pufferflow.records.runs import Runs, count_runs, load_runs
from pufferflow.records.sample import Sample, load_sample
from pufferflow.records.scan import scan_records
from pufferflow.records.states import States
from pufferflow.records.tables import open_table


def ingest_activity(
    source: str,
    path: str | Path | None = None,
    *,
    gap_minutes: float = 10,
    states: Sequence[str] | None = None,
    step_seconds: int | None = None,
) -> Sample:
    """Reduce people's activity to counts of states and of steps between them.

    Parameters
    ----------
    source : {"bundled", "file"}
        The sample inside the package (71 people of NHANES 2003-04 in three groups), or a file.
    path : path, optional
        For "file": the NHANES minute counts (see :func:`pufferflow.datasets.nhanes.read_nhanes`), known by their
        column ``seqn``, packed or not; or any other table that ``pufferflow fit`` reads without options, as one with
        the columns ``participant``, ``time``, ``state`` and perhaps ``group``. Every row of it has a state.
    gap_minutes : float
        A longer time without observation starts a new chain; a shorter one is spanned by the chain, without
        a transition.
    states : sequence of str, optional
        For a table: its states in order; by default those found, in order of first appearance.
    step_seconds : int, optional
        For a table: the time step in seconds; by default the most common time difference.

    Returns
    -------
    Sample
        One participant a person; the groups are those of the file, or the three of NHANES.

    Raises
    ------
    ParameterError
        A setting outside its range or without use for the source.
    DataError
        The file is missing, malformed or without a transition, or the bundled sample was cut at other gaps.

    Notes
    -----
    Source of the bundled sample: CDC/NCHS, NHANES 2003-04 (public domain), see ``bundled/LICENCES.md``. In
    place of posture its states go by counts a minute: below 100 sedentary, below 760 standing still, below
    2020 standing moving, above active.
    """
    check_choice(source, "source", ("bundled", "file"))
    if (path is not None) != (source == "file"):
        raise ParameterError(f"source {source!r} with path {path!s}: a path goes with source 'file' and only with it")
    check_positive(gap_minutes, "gap_minutes", or_zero=True)
    if step_seconds is not None:
        step_seconds = check_whole(step_seconds, "step_seconds")
    if states is not None:
        if isinstance(states, str) or not states or len(set(states)) < len(states):
            raise ParameterError(f"states is {states!r}; give a list of different names, or None")
        states = tuple(map(str, states))

    settings: dict[str, Any] = {"gap_minutes": gap_minutes}
    pause = int(min(60 * gap_minutes, MOST_SECONDS))
    if path is not None and not _is_nhanes(path):
        return _own_table(_open(path), states, step_seconds, pause, settings)
    if states is not None or step_seconds is not None:
        raise ParameterError("states and step_seconds are for a table of your own; NHANES has its own")
    if path is None:
        return _bundled(gap_minutes)
    participants = read_nhanes(read_content(path), str(path), pause)
    return Sample(
        dataset="activity",
        label="file",
        description=f"NHANES 2003-04 hip accelerometer minutes, {len(participants)} people",
        step_seconds=60,
        states=STATES,
        participants=participants,
        settings=settings | SETTINGS,
    )


def activity_runs(
    source: str,
    path: str | Path | None = None,
    *,
    gap_minutes: float = 10,
    states: Sequence[str] | None = None,
    step_seconds: int | None = None,
) -> dict[str, Runs]:
    """Count the runs of successive records of each group; parameters and errors as for :func:`ingest_activity`."""
    sample = ingest_activity(source, path, gap_minutes=gap_minutes, states=states, step_seconds=step_seconds)
    if path is None:
        return load_runs(bundled_path("nhanes2003-runs"))
    form = RecordFormat(StateSpace.categories(sample.states), sample.step_seconds)
    return count_runs(nhanes_records(read_content(path), str(path)) if _is_nhanes(path) else _open(path), form)


def _is_nhanes(path: str | Path) -> bool:
    return "seqn" in open_table(path).columns()


def _open(path: str | Path) -> Records:
    """A user's table; a local clock is taken as it is, for a pause of an hour starts a chain of its own."""
    value = "state" if "state" in open_table(path).columns() else None
    return open_records(path, Reading(value=value, timezone="UTC"), lone_rows=True)


def _own_table(
    records: Records, states: tuple[str, ...] | None, step_seconds: int | None, pause: int, settings: dict[str, Any]
) -> Sample:
    """A user's table, read as ``pufferflow fit`` reads it; every row has a state, and all participants one step."""
    scan = scan_records(records, States(names=states))
    if scan.hole is not None:
        what = "is missing; fill it in or remove the row, or name it among the states if it is one"
        raise records.fail(scan.hole[0], "state", scan.hole[1], what)
    if states is None:  # "1" and "1.0" are one state, called as it was first
        first = {shortest(name) or name: name for name in reversed(scan.names)}
        states = tuple(name for name in scan.names if name in first.values())
    counted = count_records(records, States(names=states), step_seconds, pause, SPLIT_BECAUSE)
    participants, step = counted.participants, counted.form.step_seconds or 1
    for p in participants:
        if step_seconds is None and p.observations > 1 and not p.transition_counts.any():
            raise DataError(
                f"{records.table.where}: participant {p.name!r} has no two rows that are {step} s apart, the step of "
                "the others; resample to one step or set step_seconds"
            )
    table = f"{Path(records.table.where).name}: column {records.columns['value']!r}"
    return Sample(
        dataset="activity",
        label="file",
        description=f"{table}, {scan.rows:,} rows of {len(participants)} participants",
        step_seconds=step,
        states=counted.form.states.names,
        participants=participants,
        settings=settings,
    )


def _bundled(gap_minutes: float) -> Sample:
    sample = load_sample(bundled_path("nhanes2003-sample"))
    stored = sample.settings["gap_minutes"]
    if gap_minutes != stored:
        raise DataError(
            f"the bundled activity sample was cut at gaps of {stored} minutes and gap_minutes is {gap_minutes}; "
            f"use {stored}, or give the raw minute counts as source 'file'"
        )
    return sample
