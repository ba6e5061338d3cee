"""A plain table of states in time, ``participant,time,state`` with optional ``group``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow.datasets.reduction import reduce_record
from pufferflow.datasets.text import read_columns, read_header, refuse
from pufferflow.errors import DataError
from pufferflow.records.sample import Participant

EPOCH = pd.Timestamp(0, tz="UTC")
LATEST = 1e11
"""Unix seconds of the year 5138: larger numbers are milliseconds by mistake."""


def read_state_table(
    content: bytes, where: str, gap_minutes: float, states: Sequence[str] | None, step_seconds: int | None
) -> tuple[tuple[str, ...], int, tuple[Participant, ...]]:
    """Reduce the records of a table.

    Raises DataError: the table is malformed, its times do not advance by whole steps, or it holds no transition.

    Parameters
    ----------
    content : bytes
        A CSV with columns ``participant``, ``time`` (ISO, or unix seconds), ``state`` and optionally ``group``.
    gap_minutes : float
        Missing minutes that a chain may span.
    states : sequence of str or None
        The states in order; None takes those of the file in order of first appearance.
    step_seconds : int or None
        Time step; None takes the most common time difference, which must be the same for all participants.

    Returns
    -------
    states : tuple of str
    step_seconds : int
    participants : tuple of Participant
        In order of first appearance; the group is "all" where the table has none.
    """
    columns = ["participant", "time", "state"]
    if "group" in read_header(content, ","):
        columns.append("group")
    table = read_columns(content, columns, where)
    for column in ("participant", "state", *columns[3:]):
        refuse(table[column].str.strip() == "", table[column], where, "is empty; fill it in or remove the row")
    if "group" not in columns:
        table["group"] = "all"
    home = table.groupby("participant")["group"].transform("first")
    refuse(
        table["group"] != home, table["group"], where, "differs from the participant's first group; give one to each"
    )

    codes, states = _state_codes(table["state"], where, states)
    seconds = _unix_seconds(table["time"], where)
    person, names = pd.factorize(table["participant"])
    order = np.argsort(person, kind="stable")
    within = np.diff(person[order]) == 0
    waits = np.diff(seconds[order])

    def refuse_time(bad: NDArray[np.bool_], what: str) -> None:
        in_file_order = np.zeros(len(table), dtype=bool)
        in_file_order[order[1:]] = within & bad
        refuse(in_file_order, table["time"], where, what)

    refuse_time(waits <= 0, "does not come after the participant's row before; sort by time and remove repeats")
    if step_seconds is None:
        step_seconds = _common_step(waits[within], names[person[order][1:][within]], where)
    refuse_time(
        waits % step_seconds != 0,
        f"is not a multiple of {step_seconds} s after the participant's row before; resample it or set step_seconds",
    )

    participants = tuple(
        reduce_record(
            str(table["participant"].iloc[rows[0]]),
            str(table["group"].iloc[rows[0]]),
            seconds[rows] // step_seconds,
            codes[rows],
            len(states),
            gap_minutes * 60 / step_seconds,
        )
        for rows in np.split(order, np.flatnonzero(~within) + 1)
    )
    if not any(participant.transition_counts.any() for participant in participants):
        raise DataError(
            f"{where}: {len(table)} observation(s), but no participant has two that are {step_seconds} s apart, "
            "so no transition to count; give longer records or set step_seconds"
        )
    return states, step_seconds, participants


def _state_codes(
    column: pd.Series[str], where: str, states: Sequence[str] | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if states is None:
        states = list(column.unique())
    codes = pd.Index(states).get_indexer(pd.Index(column)).astype(np.int64)
    refuse(codes < 0, column, where, f"is none of the states given ({', '.join(states)}); add it or mend the row")
    return codes, tuple(states)


def _unix_seconds(column: pd.Series[str], where: str) -> NDArray[np.int64]:
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    if np.isnan(numbers[0]):
        times = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
        numbers = ((times - EPOCH) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)
        what = "is not an ISO time of whole seconds as 2017-05-14T09:00:00; mend or remove the row"
    else:
        what = "is not a unix time in whole seconds; mend or remove the row"
    refuse(~(np.abs(numbers) < LATEST) | (numbers % 1 != 0), column, where, what)
    return numbers.astype(np.int64)


def _common_step(waits: NDArray[np.int64], names: NDArray[np.str_], where: str) -> int:
    if not waits.size:
        raise DataError(f"{where}: one observation only for each participant, so no transition; give longer records")
    # mode() is sorted, so a tie goes to the smaller step
    steps = pd.Series(waits).groupby(names, sort=False).agg(lambda wait: wait.mode().iloc[0])
    other = steps[steps != steps.iloc[0]]
    if not other.empty:
        raise DataError(
            f"{where}: participant {steps.index[0]!r} has a step of {steps.iloc[0]} s but {other.index[0]!r} one of "
            f"{other.iloc[0]} s; resample to one step or set step_seconds"
        )
    return int(steps.iloc[0])
