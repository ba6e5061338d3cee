"""NHANES 2003-04 hip accelerometer minutes (CDC/NCHS): who is kept, in which group, in which state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_whole
from pufferflow.datasets.sources import SPLIT_BECAUSE
from pufferflow.datasets.text import parse_column, read_columns, refuse
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.counting import count_records
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records
from pufferflow.records.sample import Participant
from pufferflow.records.states import States
from pufferflow.records.tables import PandasTable

DAY = 1440
STATES = ("active", "standing_still", "standing_moving", "sedentary")
CUT_POINTS = (100, 760, 2020)
"""Counts a minute from which on a minute is standing still, standing moving, active; below: sedentary."""
STATE_OF_LEVEL = np.array(["sedentary", "standing_still", "standing_moving", "active"], dtype=object)
GROUPS = ("men_18_54", "older_women_55plus", "overweight_women_18_54")
"""In the paper's order (cyclists, older women, overweight women); the men stand in for the cyclists."""
MIN_WEAR_MINUTES = 3000
SATURATED = 32767
SETTINGS: dict[str, Any] = {
    "cut_points_counts_per_minute": list(CUT_POINTS),
    "min_wear_minutes": MIN_WEAR_MINUTES,
    "kept": "device calibrated on all days, no saturated count",
}
COLUMNS = ("seqn", "day_index", "paxcal", "age", "sex", "bmi", "wear_minutes", "counts")


def read_nhanes(content: bytes, where: str, split_after_seconds: int, step_minutes: int = 1) -> tuple[Participant, ...]:
    """Count the states and transitions of :func:`nhanes_records`; raises as that.

    Parameters
    ----------
    content, where, step_minutes
        As for :func:`nhanes_records`.
    split_after_seconds : int
        Longest time of non-wear that a chain may span.

    Returns
    -------
    tuple of Participant
        Group by group, in the order of the file; the name is the ``seqn``.
    """
    records = nhanes_records(content, where, step_minutes)
    step = 60 * step_minutes
    return count_records(records, States(names=STATES), step, split_after_seconds, SPLIT_BECAUSE).participants


def nhanes_records(content: bytes, where: str, step_minutes: int = 1) -> Records:
    """Reduce the minutes worn of the people in the three groups.

    Raises DataError: a column is missing, a field cannot be read, a person's days are not in order, or nobody is kept.

    Parameters
    ----------
    content : bytes
        A CSV of one row a person and day: ``seqn``, ``day_index``, ``paxcal`` (1: calibrated), ``age`` (years),
        ``sex`` (M, F), ``bmi`` (kg/m2 or blank), ``wear_minutes`` (as ``0-85;126-127``), ``counts`` (1440 integers).
    step_minutes : int
        Length of a time step, a divisor of 1440; its state is that of the mean count, if all its minutes are worn.

    Returns
    -------
    Records
        Group by group, in the order of the file; seconds count from midnight of the first day.

    Raises
    ------
    DataError
        The file is no such table, or holds nobody to keep.
    ParameterError
        ``step_minutes`` does not divide a day.
    """
    if DAY % check_whole(step_minutes, "step_minutes", 1, DAY):
        raise ParameterError(f"step_minutes is {step_minutes}; it must divide the {DAY} minutes of a day")
    table = read_columns(content, COLUMNS, where)

    def numbers(column: str, missing: tuple[str, ...] = ()) -> NDArray[np.float64]:
        what = "is not a number >= 0; mend or remove the row"
        return parse_column(table[column], where, what, missing=missing)

    sex, age, bmi = table["sex"].astype(str), numbers("age"), numbers("bmi", missing=("",))
    refuse(~sex.isin(["M", "F"]), sex, where, "is neither M nor F; mend or remove the row")
    young = (age >= 18) & (age <= 54)
    members = (young & (sex == "M"), (age >= 55) & (sex == "F"), young & (sex == "F") & (bmi >= 25))

    calibrated = pd.Series(numbers("paxcal") == 1).groupby(table["seqn"], observed=True).transform("all")
    day, seqn = numbers("day_index").astype(np.int64), table["seqn"].astype(str)
    repeated = pd.Series(day).groupby(seqn).diff() <= 0
    refuse(repeated, table["day_index"], where, "does not come after the person's row before; sort and remove repeats")
    wear, counts = table["wear_minutes"].astype(str).to_numpy(), table["counts"].astype(str).to_numpy()

    tables = []
    for group, member in zip(GROUPS, members, strict=True):
        chosen = seqn[member & calibrated]
        for name, rows in chosen.groupby(chosen, sort=False).groups.items():
            worn = np.stack([_worn(wear[row], f"{where}, line {row + 2}") for row in rows])
            count = np.stack([_counts(counts[row], f"{where}, line {row + 2}") for row in rows])
            if worn.sum() < MIN_WEAR_MINUTES or (count == SATURATED).any():
                continue
            windows = (len(rows), DAY // step_minutes, step_minutes)
            whole = worn.reshape(windows).all(axis=2)
            minutes = (day[rows, None] * DAY + np.arange(0, DAY, step_minutes))[whole]
            mean = count.reshape(windows).mean(axis=2)[whole]
            states = STATE_OF_LEVEL[np.searchsorted(CUT_POINTS, mean, side="right")]
            record = {"time": 60 * minutes, "state": states, "participant": str(name), "group": group}
            tables.append(pd.DataFrame(record))
    if not tables:
        raise DataError(f"{where}: holds no participant to keep; check that it has calibrated devices worn for days")
    return Records(PandasTable(pd.concat(tables), where), Reading())


def _worn(runs: str, where: str) -> NDArray[np.bool_]:
    """Mark the minutes of a day inside ``first-last`` runs."""
    worn = np.zeros(DAY, dtype=bool)
    for run in filter(None, runs.split(";")):
        first, _, last = run.partition("-")
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last) < DAY):
            raise DataError(f"{where}: wear_minutes has {run!r}, not two minutes of the day as 126-127; mend the row")
        worn[int(first) : int(last) + 1] = True
    return worn


def _counts(text: str, where: str) -> NDArray[np.int64]:
    """Read a day of counts."""
    try:
        counts = np.array(text.split(), dtype=np.int64)
    except ValueError as error:
        raise DataError(f"{where}: counts cannot be read ({error}); mend the row") from error
    if len(counts) != DAY or counts.min() < 0:
        raise DataError(f"{where}: {len(counts)} counts, not {DAY} numbers >= 0; mend the row")
    return counts
