"""From raw data to counts: what kind of file it is, which states it has, what is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._checks import check_choice, check_positive, check_whole
from pufferflow._numbers import shortest
from pufferflow.data.household import START, MinuteWatts, iso, read_watts
from pufferflow.errors import DataError, ParameterError
from pufferflow.records import runs
from pufferflow.records.counting import Counted, count_records
from pufferflow.records.format import MOST_SECONDS
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records, open_records, stamp
from pufferflow.records.sample import Sample
from pufferflow.records.scan import scan_records
from pufferflow.records.states import States
from pufferflow.records.tables import PandasTable, open_table
from reproduction import tidy
from reproduction.data import people

UCI_START = {"bundled": START, "downloaded": "2006-12-16T17:24"}  # files with one column, watts
UCI_POWER = "Global_active_power"
SPANS = {525_600: "one year of minutes", 1_051_200: "two years of minutes"}
TABLE = "{name}: column {column!r}, {rows:,} rows"
DEFAULTS: dict[str, Any] = {"columns": None, "step_minutes": 1, "gap_minutes": 10, "states": None}
DEFAULTS |= {"bin_watts": 200, "bins": 51, "edges": None, "gaps": "bridge"}
DEFAULTS |= {"window_start": START, "window_minutes": 1_051_200}


@dataclass(frozen=True)
class RawData:
    """Records, and how they become counts."""

    records: Records
    states: States
    description: str  # for captions; what is only known after counting stands in braces
    settings: dict[str, Any]  # what shaped the sample, stored with it
    step_seconds: int | None = None  # None: the most common time between two records
    split_after_seconds: int | None = None  # a longer pause starts a new chain; None: none does
    state_names: tuple[str, ...] | None = None  # to be shown in place of those of the states
    only_group: str = "all"  # where no column has groups

    def count(self) -> Counted:
        """Return the counts; raises DataError: a row is wrong, or there is no transition."""
        because = None if self.split_after_seconds is None else "the settings say so"
        split = self.split_after_seconds
        return count_records(self.records, self.states, self.step_seconds, split, because)

    def group(self, name: str) -> str:
        """Return the name of a group in the sample."""
        return name if self.records.columns["group"] else self.only_group


def discretise(path: str | Path, settings: Mapping[str, Any], dataset: str, label: str) -> Sample:
    """Reduce raw data to counts of states and of transitions.

    Kind "power" reads the compact file of watts, the text of UCI #235, ``Electricity_P.csv`` of
    AMPds2, and other tables that ``pufferflow fit`` reads; kind "activity" the minutes of NHANES,
    and such tables in which every row has a state. ``settings`` are ``kind`` and what differs from
    :data:`DEFAULTS`; windows are for UCI #235, ``step_minutes`` for it and NHANES. ``label`` is
    "bundled", "downloaded" or "file". Raises ParameterError: a setting is out of range or has no
    use here; DataError: the file is missing, malformed, too short, or has no transition.
    """
    raw = OPENERS[settings["kind"]](path, DEFAULTS | {**settings}, label)
    counted, columns = raw.count(), raw.records.columns
    scan, step = counted.scan, counted.form.step_seconds or 1
    if settings["kind"] == "power" and scan.low < 0:
        raise DataError(f"{path}: a power of {scan.low:g} is below 0; correct it or leave it blank")
    participants = []
    for person in counted.participants:
        some = raw.step_seconds or person.observations < 2 or person.transition_counts.any()
        if settings["kind"] == "activity" and not some:
            what = f"has no two rows that are {step} s apart, the step of the others"
            raise DataError(f"{path}: participant {person.name!r} {what}; resample to one step")
        group = raw.group(person.group)
        name = person.name if columns["participant"] else group
        participants.append(replace(person, name=name, group=group))
    first, last = (stamp(raw.records, seconds) for seconds in (scan.first, scan.last))
    known = {"name": Path(path).name, "column": columns["value"], "rows": scan.rows}
    known |= {"people": len(participants), "first": first, "last": last}
    states, about = raw.state_names or counted.form.states.names, raw.description.format(**known)
    return Sample(dataset, label, about, step, states, tuple(participants), raw.settings)


def describe_sample(sample: Sample) -> pd.DataFrame:
    """Return the tidy table "samples", one row a participant."""
    rows = [
        {"dataset": sample.dataset, "label": sample.label, "group": person.group}
        | {"participant": person.name, "observations": person.observations}
        | {"segments": len(person.segment_lengths), "longest_segment": max(person.segment_lengths)}
        | {"transitions": int(person.transition_counts.sum())}
        for person in sample.participants
    ]
    return tidy.frame(rows, "samples")


def count_runs(
    path: str | Path, settings: Mapping[str, Any], edges: Sequence[float] | None = None
) -> dict[str, runs.Runs]:
    """Count three successive records, and steps by the hour of the day, of each group.

    As :func:`discretise` does; ``edges`` between states (W) stand in place of bins of equal width.
    """
    given = DEFAULTS | {**settings, "edges": edges}
    raw = OPENERS[settings["kind"]](path, given, settings.get("source", "file"))
    counted = runs.count_runs(raw.records, raw.count().form)
    return {raw.group(name): counts for name, counts in counted.items()}


def _open_power(path: str | Path, given: Mapping[str, Any], label: str) -> RawData:
    bin_watts, columns, step_minutes = given["bin_watts"], given["columns"], given["step_minutes"]
    check_positive(bin_watts, "bin_watts")
    bins = check_whole(given["bins"], "bins", 2)
    check_choice(given["gaps"], "gaps", ("bridge", "split"))
    check_whole(step_minutes, "step_minutes")
    edges = given["edges"] or [bin_watts * j for j in range(1, bins)]
    states = States(edges=tuple(edges))
    settings = {name: given[name] for name in ("bin_watts", "bins", "gaps")}
    split = 0 if given["gaps"] == "split" else None

    if label in UCI_START:
        name, where = "UCI #235 household electricity", f"UCI #235 ({label})"
        readings = read_watts(Path(path), UCI_START[label])
    elif not columns and UCI_POWER in open_table(path, separator=";").columns():
        name, where = "{name}: column 'Global_active_power'", str(path)
        readings = _read_uci_text(path)
    else:
        if not columns and "WHE" in open_table(path).columns():  # AMPds2: the whole house
            columns = {"value": "WHE"}
        records = open_records(path, Reading(**(columns or {})))
        about = TABLE + " from {first} to {last}"
        return RawData(records, states, about, settings, None, split, only_group="household")

    readings = readings.window(given["window_start"], given["window_minutes"], where)
    first, last = int(readings.minutes[0]), int(readings.minutes[-1])
    span = SPANS.get(last - first + 1, f"{last - first + 1:,} minutes")
    settings |= {name: given[name] for name in ("window_start", "window_minutes")}
    if step_minutes != 1:
        settings["step_minutes"] = step_minutes
        # the mean power of each step, at its first minute; none where a minute is missing
        steps = pd.Series(readings.watts).groupby(readings.minutes // step_minutes)
        means = steps.mean()[steps.count() == step_minutes]
        watts = np.asarray(means, dtype=np.float64)
        readings = MinuteWatts(step_minutes * means.index.to_numpy(), watts)
    table = pd.DataFrame({"time": 60 * readings.minutes, "watts": readings.watts})
    records = Records(PandasTable(table, where), Reading())
    names = [f"{low * bin_watts:g}-{(low + 1) * bin_watts:g} W" for low in range(bins - 1)]
    names.append(f">={(bins - 1) * bin_watts:g} W")
    about, step = f"{name}, {span} from {iso(first)[:10]}", 60 * step_minutes
    return RawData(records, states, about, settings, step, split, tuple(names), "household")


def _read_uci_text(path: str | Path) -> MinuteWatts:
    """Read the text of UCI #235, or a part with its header: fields between ``;``, kilowatts."""
    times: Any = {"time": "Date,Time", "time_format": "%d/%m/%Y %H:%M:00", "timezone": "UTC"}
    records = open_records(path, Reading(value=UCI_POWER, separator=";", **times))
    chunks = [(chunk.seconds, records.numbers(chunk)[0]) for chunk in records.chunks("reading")]
    if not chunks:
        raise DataError(f"{path}: a header and no data; check that its download finished")
    seconds, kilowatts = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return MinuteWatts(seconds // 60, np.rint(1000 * kilowatts))


def _open_activity(path: str | Path, given: Mapping[str, Any], label: str) -> RawData:
    gap_minutes, states, step_minutes = given["gap_minutes"], given["states"], given["step_minutes"]
    check_positive(gap_minutes, "gap_minutes", or_zero=True)
    settings, split = {"gap_minutes": gap_minutes}, int(min(60 * gap_minutes, MOST_SECONDS))
    header = open_table(path).columns()
    if "seqn" in header:
        if states is not None:
            raise ParameterError("states are for a table of your own; NHANES has its own")
        records, about = people.nhanes_records(path, step_minutes), people.NHANES
        if step_minutes != 1:
            about = f"{about.replace(' minutes', '')}, means over {step_minutes} minutes"
        settings |= people.NHANES_SETTINGS
        states = States(names=people.NHANES_STATES)
        return RawData(records, states, about, settings, 60 * step_minutes, split)

    # A local clock is taken as it is: a pause of an hour starts a chain of its own.
    columns = given["columns"] or ({"value": "state"} if "state" in header else {})
    records = open_records(path, Reading(**columns, timezone="UTC"), lone_rows=True)
    known, about = _states(records, states), TABLE + " of {people} participants"
    return RawData(records, known, about, settings, None, split)


def _states(records: Records, given: Sequence[str] | None) -> States:
    """Return the states as given, else in order of first appearance; every row must have one."""
    states = States(names=None if given is None else tuple(map(str, given)))
    scan = scan_records(records, states)
    if scan.hole is not None:
        what = "is missing; fill it in, remove the row, or name it among the states if it is one"
        raise records.fail(scan.hole[0], "state", scan.hole[1], what)
    if given is not None:
        return states
    # "1" and "1.0" are one state, called as it was first
    first = {shortest(name) or name: name for name in reversed(scan.names)}
    return States(names=tuple(name for name in scan.names if name in first.values()))


OPENERS: dict[str, Callable[..., RawData]] = {"power": _open_power, "activity": _open_activity}
