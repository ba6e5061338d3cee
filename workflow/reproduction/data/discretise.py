"""From raw data to counts of states and transitions, for each kind of file."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow.data.household import START, iso, read_watts, window
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.counts import path_counts
from pufferflow.records.read import Steps, find_columns, read, stamp
from pufferflow.records.schema import MAX_SECONDS, Schema
from pufferflow.records.states import MISSING, MISSING_TEXTS, StateSpace, shortest
from pufferflow.records.table import Table
from reproduction import tidy
from reproduction.data import people
from reproduction.data.sample import Sample, participants
from reproduction.data.tables import own_columns, own_table

UCI_START = {"bundled": START, "downloaded": "2006-12-16T17:24"}  # files with one column, watts
UCI_POWER = "Global_active_power"
SPANS = {525_600: "one year of minutes", 1_051_200: "two years of minutes"}
TABLE = "{name}: column {column!r}, {rows:,} rows"
DEFAULTS: dict[str, Any] = {"columns": None, "step_minutes": 1, "gap_minutes": 10, "states": None}
DEFAULTS |= {"bin_watts": 200, "bins": 51, "edges": None, "gaps": "bridge"}
DEFAULTS |= {"window_start": START, "window_minutes": 1_051_200}


@dataclass(frozen=True)
class RawData:
    """Steps with states, and the rules for counting them."""

    steps: Steps
    description: str  # for captions; values that counting yields are in braces
    split_after_seconds: float  # a longer pause starts a new chain


class Runs(NamedTuple):
    """Counts of a group: of three states one step apart, and of two by the hour of the day."""

    triples: NDArray[np.int64]
    hourly: NDArray[np.int64]


def discretise(path: str | Path, settings: Mapping[str, Any], dataset: str, label: str) -> Sample:
    """Reduce raw data to counts of states and of transitions.

    Kind "power" reads the compact file of watts, the text file of UCI #235, ``Electricity_P.csv``
    of AMPds2, and other tables that ``pufferflow fit`` reads; kind "activity" reads the minutes of
    NHANES, and such tables with a state in every row. ``settings`` are ``kind`` and deviations from
    :data:`DEFAULTS`; windows are for UCI #235, ``step_minutes`` for it and NHANES. ``label`` is
    "bundled", "downloaded" or "file". Raises ParameterError: a setting is out of range or not
    applicable; DataError: the file is missing, malformed, too short, or has no transition.
    """
    raw = OPENERS[settings["kind"]](path, DEFAULTS | {**settings}, label)
    steps, step = raw.steps, raw.steps.step_seconds or 1
    if settings["kind"] == "power" and steps.value is not None and (steps.value < 0).any():
        at = stamp(steps, int(steps.seconds[(steps.value < 0).argmax()]))
        raise DataError(f"{path}: the power at {at} is below 0; correct it or leave it blank")
    everybody = participants(steps, raw.split_after_seconds / step)
    for person in everybody:
        some = person.observations < 2 or person.transition_counts.any()
        if settings["kind"] == "activity" and label == "file" and not some:
            problem = f"has no two rows that are {step} s apart, the step of the others"
            raise DataError(f"{path}: participant {person.name!r} {problem}; resample to one step")
    if not any(person.transition_counts.any() for person in everybody):
        problem = f"no two of {steps.rows:,} row(s) have values one step ({step} s) apart"
        raise DataError(f"{path}: {problem}; give longer records")
    first, last = (stamp(steps, at) for at in steps.extent or (0, steps.rows - 1))
    known = {"name": Path(path).name, "column": steps.columns["value"], "rows": steps.rows}
    known |= {"people": len(everybody), "first": first, "last": last}
    assert steps.states is not None
    about = raw.description.format(**known)
    return Sample(dataset, label, about, step, steps.states.names, everybody)


def describe_sample(sample: Sample) -> pd.DataFrame:
    """Return the tidy table "samples", one row per participant."""
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
) -> dict[str, Runs]:
    """Count three successive records, and steps by the hour of the day, of each group.

    Arguments are those of :func:`discretise`; ``edges`` (W) replace bins of equal width.
    """
    given = DEFAULTS | {**settings, "edges": edges}
    raw = OPENERS[settings["kind"]](path, given, settings.get("source", "file"))
    both = path_counts(raw.steps, 3), path_counts(raw.steps, hourly=True)
    return dict(zip(raw.steps.groups, map(Runs, *both), strict=True))


def _open_power(path: str | Path, given: Mapping[str, Any], label: str) -> RawData:
    columns, step_minutes = given["columns"], given["step_minutes"]
    edges = given["edges"] or [given["bin_watts"] * j for j in range(1, given["bins"])]
    states = StateSpace.numeric(edges)
    split = 0 if given["gaps"] == "split" else math.inf

    if label in UCI_START:
        name, where = "UCI #235 household electricity", f"UCI #235 ({label})"
        watts = read_watts(Path(path), UCI_START[label])
    elif not columns and UCI_POWER in own_table(path, ";").columns:
        name, where = "{name}: column 'Global_active_power'", str(path)
        watts = _read_uci_text(path)
    else:
        table = own_table(path)
        if not columns and "WHE" in table.columns:  # AMPds2: the whole house
            columns = {"value": "WHE"}
        schema = Schema(**own_columns(table) | (columns or {}), states=states)
        steps = read(table, schema)
        if steps.columns["group"] is None:
            steps = replace(steps, groups=("household",))
        return RawData(steps, TABLE + " from {first} to {last}", split)

    watts = window(watts, given["window_start"], given["window_minutes"], where)
    first, last = int(watts.index[0]), int(watts.index[-1])
    span = SPANS.get(last - first + 1, f"{last - first + 1:,} minutes")
    if step_minutes != 1:
        # the mean power of each step, at its first minute; none if a minute is missing
        steps_of = watts.groupby(step_minutes * (watts.index // step_minutes))
        watts = steps_of.mean()[steps_of.count() == step_minutes]
    rows, watts = len(watts), watts.dropna()
    values = np.asarray(watts, dtype=np.float64)
    names = (f"{low:g}-{high:g} W" for low, high in pairwise([0, *edges]))
    steps = Steps.of(
        60 * watts.index.to_numpy(),
        value=values,
        state=states.encode_numbers(values),
        states=replace(states, names=(*names, f">={edges[-1]:g} W")),
        groups=("household",),
        step_seconds=60 * step_minutes,
        time_base="utc",
        where=where,
        rows=rows,
    )
    return RawData(steps, f"{name}, {span} from {iso(first)[:10]}", split)


def _read_uci_text(path: str | Path) -> "pd.Series[float]":
    """Read the text file of UCI #235, or a part with its header: kilowatts, separated by ``;``."""
    times: Any = {"time": "Date,Time", "time_format": "%d/%m/%Y %H:%M:00", "timezone": "UTC"}
    schema = Schema(value=UCI_POWER, step_seconds=60, **times)
    steps = read(own_table(path, ";"), schema)
    assert steps.value is not None
    assert steps.extent is not None
    table = pd.Series(np.rint(1000 * steps.value), index=steps.seconds // 60)
    ends = {second // 60 for second in steps.extent}  # which may have no value
    return table.reindex(table.index.union(pd.Index(sorted(ends))))


def _open_activity(path: str | Path, given: Mapping[str, Any], label: str) -> RawData:
    gap_minutes, states, step_minutes = given["gap_minutes"], given["states"], given["step_minutes"]
    split = int(min(60 * gap_minutes, MAX_SECONDS))
    table = own_table(path)
    if "seqn" in table.columns:
        if states is not None:
            raise ParameterError("states are for a table of your own; NHANES has its own")
        steps, about = people.nhanes_steps(path, step_minutes), people.NHANES
        if step_minutes != 1:
            about = f"{about.replace(' minutes', '')}, means over {step_minutes} minutes"
        return RawData(steps, about, split)

    # Local times are not converted: when summer time begins the hour's gap starts a new chain.
    columns = given["columns"] or ({"value": "state"} if "state" in table.columns else {})
    schema = Schema(**own_columns(table) | columns | {"timezone": "UTC"})
    schema = replace(schema, states=_states(table, schema, states))
    about = TABLE + " of {people} participants"
    return RawData(read(table, schema), about, split)


def _states(table: Table, schema: Schema, given: Sequence[str] | None) -> StateSpace:
    """Return the given states, or the table's in order of appearance; every row needs one."""
    space = None if given is None else StateSpace.categories([str(name) for name in given])
    found: dict[str, str] = {}  # "1" and "1.0" are one state, with its first name
    column = find_columns(table, schema)["value"]
    for rows in table.batches(table.columns):
        values = rows.loc[(rows != "").any(axis=1), column].drop_duplicates()
        texts = [str(value).strip() for value in values]
        if space is None:
            lost = np.array([text.lower() in MISSING_TEXTS for text in texts], dtype=bool)
        else:
            lost = space.encode_names(texts) == MISSING
        if lost.any():
            place = f"{table.where}, {table.place(int(values.index[int(lost.argmax())]))}"
            problem = "is missing; fill it in, remove the row, or name it among the states"
            raise DataError(f"{place}: the state {problem}")
        for text in texts:
            found.setdefault(shortest(text) or text, text)
    if space is None and not found:
        raise DataError(f"{table.where}: a header and no data; check that its download finished")
    return space or StateSpace.categories(list(found.values()))


OPENERS: dict[str, Callable[..., RawData]] = {"power": _open_power, "activity": _open_activity}
