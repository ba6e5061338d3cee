"""Activity of other people, and in other time steps, than the study of it uses: what a difference is made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from pufferflow.datasets.nhanes import SETTINGS, STATES, read_nhanes
from pufferflow.datasets.sources import SPLIT_BECAUSE, bundled_path
from pufferflow.datasets.text import read_columns, read_content
from pufferflow.errors import DataError
from pufferflow.records.counting import count_records
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records
from pufferflow.records.sample import Sample, load_sample
from pufferflow.records.states import States
from pufferflow.records.tables import PandasTable

PAUSE_SECONDS = 600
"""A longer time without a record starts a new chain, as in the study of activity."""

NHANES_STEPS = {"nhanes2003-120s": 2, "nhanes2003-300s": 5}
"""Minutes of a time step of the samples of the same 71 people."""

INTENSITIES = ("sedentary", "lightly active", "fairly active", "very active")
"""States of the codes 0 to 3 of a Fitbit minute."""


def other_activity() -> tuple[Sample, ...]:
    """Return the samples that are bundled for comparison: NHANES in coarser steps, and minutes of Fitbit wearers."""
    return tuple(load_sample(bundled_path(name)) for name in (*NHANES_STEPS, "fitbit2016"))


def coarser_nhanes(path: str | Path, step_minutes: int) -> Sample:
    """Reduce the minute counts of NHANES to a sample with a longer time step.

    Raises DataError as :func:`pufferflow.datasets.nhanes.read_nhanes`.
    """
    participants = read_nhanes(read_content(path), str(path), PAUSE_SECONDS, step_minutes)
    people = f"NHANES 2003-04 hip accelerometer, {len(participants)} people, means over {step_minutes} minutes"
    settings = {"gap_minutes": PAUSE_SECONDS // 60, **SETTINGS}
    return Sample("activity", "bundled", people, 60 * step_minutes, STATES, participants, settings)


def read_fitbit(path: str | Path) -> Sample:
    """Reduce minutes of intensity codes, one row a person, to a sample of one group.

    Raises DataError: the file is unreadable, a column is missing, or a code is none of 0 to 3.

    Parameters
    ----------
    path : path
        A CSV of ``id`` and ``intensity_codes``, one digit a minute without gaps; packed or not.
    """
    table = read_columns(read_content(path), ("id", "intensity_codes"), str(path))
    parts = []
    for line, (name, text) in enumerate(zip(table["id"], table["intensity_codes"], strict=True), start=2):
        codes = np.frombuffer(str(text).encode(), dtype=np.uint8).astype(np.int64) - ord("0")
        if codes.size == 0 or codes.min() < 0 or codes.max() >= len(INTENSITIES):
            raise DataError(f"{path}, line {line}: intensity_codes has more than digits 0 to 3; mend the row")
        state = np.array(INTENSITIES, dtype=object)[codes]
        parts.append(pd.DataFrame({"time": 60 * np.arange(codes.size), "state": state, "participant": str(name)}))
    records = Records(PandasTable(pd.concat(parts).assign(group="fitbit_wearers"), str(path)), Reading())
    counted = count_records(records, States(names=INTENSITIES), 60, PAUSE_SECONDS, SPLIT_BECAUSE)
    people = f"Fitbit minutes of spring 2016, {len(counted.participants)} people, sleep and non-wear included"
    return Sample("activity", "bundled", people, 60, INTENSITIES, counted.participants, {})
