"""A user's own table of power, read as ``pufferflow fit`` reads it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from pufferflow.errors import DataError
from pufferflow.records.format import RecordFormat, StateSpace
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records, open_records, stamp
from pufferflow.records.sample import Sample
from pufferflow.records.tally import Tally, add_waits, common_step


def read_power_table(path: str, edges: list[float], *, split: bool) -> Sample:
    """Count the bins of power of a table.

    Raises DataError: the table is malformed or holds no transition.

    Parameters
    ----------
    path : str
        CSV (also packed) or Parquet; columns are known by the names in :data:`pufferflow.records.reading.GUESSES`.
    edges : list of float
        Between two bins; the first and the last bin are open.
    split : bool
        Whether every missing step starts a new chain.

    Returns
    -------
    Sample
        Its participants are households, in one group; the caption names the file and the column.
    """
    records = open_records(path, Reading())
    step = _step(records)
    pauses = {"split_after_seconds": 0, "split_because": "the settings say so"} if split else {}
    form = RecordFormat(StateSpace.numeric(edges), step, **pauses)  # type: ignore[arg-type]
    tally = Tally(form, transitions=True)
    tally.read(records)
    households = tuple(
        replace(p, name="household" if records.columns["participant"] is None else p.name, group="household")
        for p in tally.participants(records)
    )
    if not any(household.transition_counts.any() for household in households):
        raise DataError(
            f"{path}: {tally.rows} row(s), and no two with values that are one step ({step or 1} s) apart, so no "
            "transition to count; give a longer record"
        )
    period = f"{stamp(records, tally.first)} to {stamp(records, tally.last)}"
    return Sample(
        dataset="electricity",
        label="file",
        description=f"{Path(path).name}: column {records.columns['value']!r}, {tally.rows:,} rows from {period}",
        step_seconds=step or 1,
        states=form.states.names,
        participants=households,
    )


def _step(records: Records) -> int | None:
    """Most common time between two rows; None where there are no times. Raises where a value is no finite number."""
    waits = Counter[int]()
    for chunk in records.chunks("looking"):
        add_waits(waits, chunk, records)
        records.numbers(chunk, finite=True)
    return None if records.columns["time"] is None else common_step(waits, records)
