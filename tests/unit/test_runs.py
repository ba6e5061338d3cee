"""Counts of runs against a plain loop."""

import io
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from pufferflow.errors import DataError
from pufferflow.records.format import RecordFormat, StateSpace
from pufferflow.records.reading import Reading
from pufferflow.records.rows import Records
from pufferflow.records.runs import count_runs, load_runs, runs_json
from pufferflow.records.tables import PandasTable

STATES = ("a", "b", "c")
GROUPS = {"ann": "one", "bob": "two", "cem": "one"}


def plain(rows, step):
    """Counters of triples and of steps by hour, by group."""
    triples, hourly = Counter(), Counter()
    for person, group in GROUPS.items():
        own = [(time, state) for name, time, state in rows if name == person and state is not None]
        for i in range(1, len(own)):
            (t, x), (u, y) = own[i - 1], own[i]
            if u - t != step:
                continue
            hourly[group, t // 3600 % 24, x, y] += 1
            if i > 1 and t - own[i - 2][0] == step:
                triples[group, own[i - 2][1], x, y] += 1
    return triples, hourly


steps = st.lists(
    st.tuples(st.sampled_from(sorted(GROUPS)), st.sampled_from([1, 1, 1, 2, 30]), st.sampled_from([*STATES, None])),
    min_size=1,
    max_size=60,
)


@examples(10, 260)
@given(steps, st.sampled_from([60, 1800]), st.integers(1, 7))
def test_runs_are_those_of_a_plain_loop(waits, step, size):
    at = dict.fromkeys(GROUPS, 0)
    rows = []
    for person, wait, state in waits:
        at[person] += wait * step
        rows.append((person, at[person], state))
    table = pd.DataFrame(rows, columns=["participant", "time", "state"])
    table["group"] = table["participant"].map(GROUPS)

    class Parts(PandasTable):
        def chunks(self, columns, work="reading"):
            for start in range(0, len(table), size):
                yield start, table.loc[start : start + size - 1, list(columns)].reset_index(drop=True)

    records = Records(Parts(table, "here"), Reading(value="state"), lone_rows=True)
    runs = count_runs(records, RecordFormat(StateSpace.categories(STATES), step))
    triples, hourly = plain(rows, step)
    for group, of in runs.items():
        for index, count in np.ndenumerate(of.triples):
            assert count == triples[(group, *(STATES[i] for i in index))]
        for (hour, x, y), count in np.ndenumerate(of.hourly):
            assert count == hourly[group, hour, STATES[x], STATES[y]]
    assert sum(of.triples.sum() for of in runs.values()) == triples.total()
    assert sum(of.hourly.sum() for of in runs.values()) == hourly.total()


def test_runs_survive_a_file(tmp_path):
    table = pd.read_csv(io.StringIO("time,state\n0,a\n60,b\n120,b\n180,a\n"))
    form = RecordFormat(StateSpace.categories(STATES), 60)
    runs = count_runs(Records(PandasTable(table, "here"), Reading(value="state")), form)
    assert runs["all"].triples.sum() == 2
    assert "as private as the data" in repr(runs["all"])
    path = tmp_path / "runs.json"
    path.write_text(runs_json(runs), encoding="utf-8")
    again = load_runs(path)
    assert again.keys() == runs.keys()
    assert (again["all"].triples == runs["all"].triples).all()
    assert (again["all"].hourly == runs["all"].hourly).all()


def test_too_many_states_are_refused():
    table = pd.DataFrame({"time": [0, 60], "value": [0.0, 1.0]})
    form = RecordFormat(StateSpace.numeric([float(i) for i in range(300)]), 60)
    with pytest.raises(DataError, match="301 states have 27,270,901 runs of three; merge states"):
        count_runs(Records(PandasTable(table, "here"), Reading()), form)
