"""Counts of steps are those of plain loops."""

from collections import Counter

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from pufferflow.errors import DataError
from pufferflow.records import read as reader
from pufferflow.records.counts import path_counts, spans
from pufferflow.records.read import Steps
from pufferflow.records.states import StateSpace


@pytest.fixture(scope="module", params=[3, reader.ROWS], autouse=True)
def part(request):
    """Readings that are counted at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "ROWS", request.param)
        yield


readings = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([1, 1, 1, 2, 30]), st.integers(0, 2)), max_size=60
)


@examples(20, 400)
@given(readings, st.sampled_from([60, 1800, None]), st.randoms(), st.integers(0, 5))
def test_counts_are_those_of_plain_loops(waits, step, random, most):
    rows, history, group_of, one = [], [[(0, 0)] for _ in range(3)], np.array([0, 1, 0]), step or 1
    expected, passed = [Counter() for _ in range(4)], Counter()
    for person, wait, state in waits:
        own, group = history[person], group_of[person]
        own.append((own[-1][0] + wait * one, state))
        rows.append((person, *own[-1]))
        expected[0][person, state] += 1
        if len(own) < 3 or wait > 1:
            continue
        moment, before = own[-2]
        passed[person] += 1
        expected[1][person, before, state] += passed[person] <= most
        expected[2][group, moment // 3600 % 24, before, state] += 1
        if len(own) > 3 and moment - own[-3][0] == one:
            expected[3][group, own[-3][1], before, state] += 1
    random.shuffle(rows)
    person, seconds, state = np.array(rows, dtype=int).reshape(-1, 3).T
    facts = {"people": ("a", "b", "c"), "groups": ("g", "h"), "group_of": group_of}
    space = StateSpace.categories(["x", "y", "z"])
    steps = Steps.of(seconds, person=person, state=state, states=space, step_seconds=step, **facts)
    found = [path_counts(steps, 1, each=True), path_counts(steps, each=True, most=most)]
    found += [path_counts(steps, hourly=True), path_counts(steps, 3)]
    for table, plain in zip(found, expected, strict=True):
        assert Counter({at: n for at, n in np.ndenumerate(table) if n}) == +plain


@examples(20, 200)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), unique=True), st.integers(0, 9))
def test_spans_end_where_a_gap_is_longer(rows, longest):
    plain = []
    for person in range(3):
        own = sorted(at for name, at in rows if name == person)
        for at in own:
            if plain and plain[-1][0] == person and at - plain[-1][2] - 1 <= longest:
                plain[-1][2] = at
            else:
                plain.append([person, at, at])
    person, step = ([row[i] for row in rows] for i in (0, 1))
    owner, length = spans(Steps.of(step, person=person, people=("a", "b", "c")), longest)
    assert owner.tolist() == [who for who, _, _ in plain]
    assert length.tolist() == [last - first + 1 for _, first, last in plain]


def test_more_counts_than_memory_holds_are_refused():
    states = StateSpace.numeric([float(i) for i in range(600)])
    with pytest.raises(
        DataError, match=r"counts \(1 x 601 x 601 x 601\) are more than can be kept"
    ):
        path_counts(Steps.of([0], state=[0], states=states), length=3)
