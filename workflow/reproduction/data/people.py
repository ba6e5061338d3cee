"""Minutes of the participants of NHANES 2003-04 (hip accelerometers) and of Fitbit wearers."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pufferflow.errors import DataError
from pufferflow.records.read import Steps
from pufferflow.records.states import StateSpace
from reproduction.data.sample import Sample, participants
from reproduction.data.tables import own_table

DAY, MIN_WEAR_MINUTES, SATURATED = 1440, 3000, 32767
NHANES = "NHANES 2003-04 hip accelerometer minutes, {people} people"
NHANES_STATES = ("active", "standing_still", "standing_moving", "sedentary")
CUT_POINTS = (100, 760, 2020)
LEVELS = np.array([3, 1, 2, 0])
"""State of a minute by its counts: below the first cut point, below the second, …"""
GROUPS = ("men_18_54", "older_women_55plus", "overweight_women_18_54")
"""In the paper's order (cyclists, older women, overweight women): the men stand in for cyclists."""
FITBIT_STATES = ("sedentary", "lightly active", "fairly active", "very active")


def nhanes_steps(path: str | Path, step_minutes: int = 1) -> Steps:
    """Return the minutes worn by the people of the three groups whose device worked.

    Seconds count from midnight of the first day. The state of a longer step, a divisor of 1440, is
    that of its mean count, if all its minutes are worn. Raises DataError: a row cannot be read, or
    no one is kept.
    """
    days = _nhanes_days(path)
    men, adult = days["sex"] == "M", days["age"].between(18, 54)
    members = (adult & men, (days["age"] >= 55) & ~men, adult & ~men & (days["bmi"] >= 25))
    calibrated = (days["paxcal"] == 1).groupby(days["seqn"]).transform("all")
    minutes, states, names, group_of = [], [], [], []
    for group, member in enumerate(members):
        for who, person in days[member & calibrated].groupby("seqn", sort=False):
            worn, counts = (np.stack(person[name].tolist()) for name in ("worn", "counts"))
            if worn.sum() < MIN_WEAR_MINUTES or (counts == SATURATED).any():
                continue
            steps = (len(person), DAY // step_minutes, step_minutes)
            whole = worn.reshape(steps).all(axis=2)
            midnights = DAY * person["day_index"].to_numpy(dtype=np.int64)[:, np.newaxis]
            minutes.append((midnights + np.arange(0, DAY, step_minutes))[whole])
            mean = counts.reshape(steps).mean(axis=2)[whole]
            states.append(LEVELS[np.searchsorted(CUT_POINTS, mean, side="right")])
            names.append(str(who))
            group_of.append(group)
    if not names:
        raise DataError(f"{path}: holds no participant to keep; check that devices were worn")
    given: dict[str, Any] = {"states": StateSpace.categories(NHANES_STATES), "people": tuple(names)}
    given |= {"groups": GROUPS, "group_of": np.array(group_of, dtype=np.int32)}
    return _steps(path, minutes, states, step_seconds=60 * step_minutes, **given)


def _steps(path: str | Path, minutes: list[Any], visits: list[Any], **others: Any) -> Steps:
    """Return the steps of people, given arrays of each one's minutes and states."""
    person = np.repeat(np.arange(len(minutes)), list(map(len, minutes)))
    given: dict[str, Any] = {"person": person, "state": np.concatenate(visits)} | others
    return Steps.of(60 * np.concatenate(minutes), time_base="utc", where=str(path), **given)


def _nhanes_days(path: str | Path) -> pd.DataFrame:
    """Read the numbers of each person and day, and arrays of its minutes worn and counts."""
    numbers = ["age", "paxcal", "day_index", "bmi"]
    days = _read_columns(path, ("seqn", *numbers, "sex", "wear_minutes", "counts"))
    unknown = days["bmi"] == ""  # some people have none
    days[numbers] = days[numbers].apply(pd.to_numeric, errors="coerce")
    fine = days[numbers[:3]].ge(0).all(axis=1) & (unknown | days["bmi"].ge(0))
    fine &= days["sex"].isin(["M", "F"]) & ~(days.groupby("seqn")["day_index"].diff() <= 0)
    fine &= days["counts"].str.fullmatch(rf"\d+( \d+){{{DAY - 1}}}")
    fine &= days["wear_minutes"].str.fullmatch(r"(\d+-\d+(;\d+-\d+)*)?")

    def refused(row: int) -> DataError:
        problem = f"no person's day of {DAY} counts, after the one before"
        return DataError(f"{path}, line {row + 2}: {problem}; correct it")

    if not fine.all():
        raise refused(int(fine.to_numpy().argmin()))
    worn = np.zeros((len(days), DAY), dtype=bool)
    for row, runs in enumerate(days["wear_minutes"]):
        for first, last in (map(int, run.split("-")) for run in runs.split(";") if run):
            if not first <= last < DAY:
                raise refused(row)
            worn[row, first : last + 1] = True
    counts = np.fromstring(" ".join(days["counts"]), dtype=np.int64, sep=" ")
    return days.assign(worn=list(worn), counts=list(counts.reshape(worn.shape)))


def fitbit(path: str | Path) -> Sample:
    """Return the counts of Fitbit wearers from a file with a row per person, a digit per minute."""
    table = _read_columns(path, ("id", "intensity_codes"))
    states = [np.array([int(code) for code in text]) for text in table["intensity_codes"]]
    minutes = [np.arange(len(own)) for own in states]
    people = tuple(table["id"])
    given: dict[str, Any] = {"states": StateSpace.categories(FITBIT_STATES), "people": people}
    given |= {"groups": ("fitbit_wearers",), "group_of": np.zeros(len(people), dtype=np.int32)}
    steps = _steps(path, minutes, states, step_seconds=60, **given)
    about = f"Fitbit minutes of spring 2016, {len(people)} people, sleep and non-wear included"
    return Sample("activity", "bundled", about, 60, FITBIT_STATES, participants(steps))


def _read_columns(path: str | Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """Read columns as strings, row i being line i + 2; raises DataError: one is missing."""
    table = own_table(path)
    if missing := sorted({*columns} - {*table.columns}):
        raise DataError(f"{path}, line 1: there is no column {missing[0]!r}; correct the header")
    rows = pd.concat(table.batches(columns), ignore_index=True)
    if rows.empty:
        raise DataError(f"{path}: a header and no data; check that its download finished")
    return rows
