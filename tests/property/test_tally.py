"""Counting in chunks against the plain reduction of whole records."""

import math

import numpy as np
import pandas as pd
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_counting import reduce_record

from pufferflow.records import tables
from pufferflow.records.format import RecordFormat, StateSpace
from pufferflow.records.reading import Reading
from pufferflow.records.rows import open_records
from pufferflow.records.tally import Tally

NAMES = ("a", "b", "c")


@st.composite
def interleaved(draw):
    """Rows of several participants: increasing times each, some values missing."""
    people = {}
    for name in NAMES[: draw(st.integers(1, 3))]:
        waits = draw(st.lists(st.sampled_from([1, 1, 1, 2, 5]), min_size=2, max_size=12))
        values = [draw(st.sampled_from(["x", "y", "z", ""])) for _ in waits]
        people[name] = list(zip(np.cumsum(waits).tolist(), values, strict=True))
    rows = [(name, *row) for name, of in people.items() for row in of]
    order = draw(st.permutations(range(len(rows))))
    rest = {name: iter(of) for name, of in people.items()}
    shuffled = [(rows[i][0], *next(rest[rows[i][0]])) for i in order]
    return pd.DataFrame(shuffled, columns=["participant", "time", "value"])


@examples(8, 340)
@given(interleaved(), st.sampled_from([None, 0, 60, 180]), st.integers(1, 5))
def test_chunks_make_no_difference(frame, split, rows):
    frame["time"] *= 60
    form = RecordFormat(
        StateSpace.categories(["x", "y", "z"]), 60, split, split_because=None if split is None else "off"
    )
    expected = {}
    for name, of in frame.groupby("participant", sort=False):
        seen = of[of["value"] != ""]
        if len(seen):
            codes = seen["value"].map({"x": 0, "y": 1, "z": 2}).to_numpy()
            gap = math.inf if split is None else split / 60
            expected[name] = reduce_record(name, "all", seen["time"].to_numpy() // 60, codes, 3, gap)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS", rows)
        records = open_records(frame, Reading())
        full, pooled = Tally(form, transitions=True), Tally(form, transitions=False)
        full.read(records)
        pooled.read(records)
        if expected:
            assert {p.name: p for p in full.participants(records)} == expected
            lengths = sorted(n for p in expected.values() for n in p.segment_lengths)
            assert sorted(pooled.segments()[1].tolist()) == lengths
        total = sum((p.state_counts for p in expected.values()), np.zeros(3, dtype=int))
        assert pooled.state_counts.sum(axis=0).tolist() == total.tolist()


@given(
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=20),
    st.lists(st.integers(-50, 50), min_size=1, unique=True),
)
def test_every_number_has_a_state(values, edges):
    space = StateSpace.numeric(sorted(edges))
    codes = space.encode_numbers(np.array(values))
    for value, code in zip(values, codes, strict=True):
        assert code == sum(edge <= value for edge in edges)
    assert len(space.names) == len(edges) + 1
