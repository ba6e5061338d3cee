"""Physical activity of groups of people as Markov chains of postures and movement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pufferflow._checks import check_choice, check_positive, check_whole
from pufferflow.datasets.nhanes import SETTINGS, STATES, read_nhanes
from pufferflow.datasets.sources import bundled_path
from pufferflow.datasets.state_table import read_state_table
from pufferflow.datasets.text import read_content, read_header
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.sample import Sample, load_sample


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
        For "file", recognised by its first line and possibly packed as zip, gzip or xz: the NHANES minute
        counts (see :func:`pufferflow.datasets.nhanes.read_nhanes`), or a table ``participant,time,state`` with
        optional ``group``, time being ISO or unix seconds.
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
        states = [str(state) for state in states]

    content = None if path is None else read_content(path)
    if content is not None and "seqn" not in read_header(content, ","):
        states, step_seconds, participants = read_state_table(content, str(path), gap_minutes, states, step_seconds)
        description = f"{Path(str(path)).name}: activity of {len(participants)} participants"
        return Sample("activity", "file", description, step_seconds, states, participants, {"gap_minutes": gap_minutes})
    if states is not None or step_seconds is not None:
        raise ParameterError("states and step_seconds are for a participant,time,state table; NHANES has its own")
    if content is None:
        return _bundled(gap_minutes)
    participants = read_nhanes(content, str(path), gap_minutes)
    return Sample(
        dataset="activity",
        label="file",
        description=f"NHANES 2003-04 hip accelerometer minutes, {len(participants)} people",
        step_seconds=60,
        states=STATES,
        participants=participants,
        settings={"gap_minutes": gap_minutes, **SETTINGS},
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
