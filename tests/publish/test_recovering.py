"""Nobody finds a count in what may leave; without noise the same attack finds all of them."""

from collections import Counter
from itertools import groupby, pairwise, product

import numpy as np
import pandas as pd
import pytest
from cases import counts
from count_attack import constants, recovered

import pufferflow as pf
from pufferflow.publish import release as releasing

STEPS = 200
SIZES = 120, 2 * (STEPS % 60), STEPS
"""Readings of both participants in the hours, whole and last."""
NEEDS = {
    "mean-by-hour": {"bounds": (0, 8)},
    "sum": {"bounds": (0, 8)},
    "exceedances-by-group": {"threshold": 5},
    "durations": {"threshold": 5, "duration_edges": (1, 2, 3, 5)},
    "transitions-by-group": {},
    "histogram-by-hour": {},
}
ALL = tuple(NEEDS)


def people(change):
    """Two participants of two groups, a value a minute; with ``change`` one value is another."""
    values = np.random.default_rng(3).integers(0, 9, (2, STEPS))
    if change:
        values[0, 90] = {0: 8}.get(values[0, 90], 0)
    times = pd.date_range("2024-01-01", periods=STEPS, freq="min", tz="UTC")
    who, kind = np.repeat(["p", "q"], STEPS), np.repeat(["g", "h"], STEPS)
    rows = {"time": np.tile(times, 2), "who": who, "kind": kind, "value": values.ravel()}
    return pd.DataFrame(rows)


def tallied(frame):
    """Every exact number that the statistics are made of."""
    value = frame["value"]
    hour, state = frame["time"].dt.hour, np.searchsorted([3, 6], value, side="right")
    found = {("sum",): int(value.sum()), ("value",): int(value[90])}
    found |= {("sum", h): int(of.sum()) for h, of in value.groupby(hour)}
    found |= {("bin", *key): len(of) for key, of in value.groupby([hour, state])}
    found |= {("runs", n): 0 for n in (1, 2)}
    for group, of in value.groupby(frame["kind"]):
        high, pairs = (of >= 5).to_numpy(), list(pairwise(state[of.index].tolist()))
        found["above", group] = int(high.sum())
        found |= {("pair", group, pair): pairs.count(pair) for pair in product(range(3), repeat=2)}
        lengths = [len(list(run)) for above, run in groupby(high) if above]
        for n in (1, 2):
            found["runs", n] += lengths.count(n)
    return found


def attacked(folder, statistics, releases):
    """Folders of releases of two neighbouring tables, truths, and what the attack finds."""
    own = {key: value for name in statistics for key, value in NEEDS[name].items()}
    own |= {"edges": [3, 6], "participant": "who", "group": "kind", "accept_noise": True}
    tables, folders = (people(False), people(True)), ([], [])
    for made, frame in zip(folders, tables, strict=True):
        for _ in range(releases):
            output = folder / str(len(list(folder.iterdir())))
            pf.release(frame, pf.mixing(5, 0.3), statistics=statistics, output=output, **own)
            made.append(output / "publish")
    truths = [tallied(frame) for frame in tables]
    return folders, truths, recovered(folders, 2 * STEPS, truths, SIZES)


LONG = [(ALL, 500), *(((name,), 40) for name in ALL)]
CASES = [(ALL, 4), *(pytest.param(*case, marks=pytest.mark.long) for case in LONG)]
"""Noise of scale 300 and more: a constant by chance in one of 10^6 runs."""


@pytest.mark.parametrize(("statistics", "releases"), CASES)
def test_no_number_is_recovered(tmp_path, statistics, releases):
    folders, _, found = attacked(tmp_path, statistics, releases)
    assert found == set()
    assert constants(folders[0]) == constants(folders[1])


def test_without_noise_every_number_that_differs_is_recovered(tmp_path, monkeypatch):
    """The control: had the noise been left out anywhere, the attack would have said so."""
    monkeypatch.setattr(releasing, "add_noise", lambda exact, scale: list(exact))
    _, truths, found = attacked(tmp_path, ALL, 2)
    different = {key for key in truths[0] if truths[0][key] != truths[1][key]} - {("value",)}
    assert {key[0] for key in different} == {"sum", "bin", "above", "pair", "runs"}
    assert found >= {key for key in different if key[0] != "sum"}


def test_no_count_is_recovered_from_a_private_fit(tmp_path_factory):
    """The tables differ in all readings of one participant."""
    truths, fitted = [], ([], [])
    rows = np.random.default_rng(4).choice(["a", "b"], (200, 30))
    who = np.repeat(np.arange(200).astype(str), 30)
    options = {"states": ["a", "b"], "participant": "who", "most_transitions": 29}
    for made, first in zip(fitted, (rows[:1], np.full((1, 30), "b")), strict=True):
        values = np.concatenate([first, rows[1:]])
        table = pd.DataFrame({"who": who, "value": values.ravel()})
        truths.append(Counter(pair for record in values.tolist() for pair in pairwise(record)))
        for _ in range(6):
            made.append(tmp_path_factory.mktemp("fit"))
            pf.fit_privately(table, 1.0, **options, output=made[-1] / "chain.json")
    assert len({truth[pair] for truth in truths for pair in truth}) > 4
    assert recovered(fitted, 200 * 29, truths) == set()


@pytest.mark.parametrize("releases", counts(6, 500))
@pytest.mark.parametrize("noise", [True, False])
def test_no_line_of_a_running_count_gives_a_count_away(
    tmp_path_factory, monkeypatch, releases, noise
):
    if not noise:
        zeros = lambda self, arity: [0] * (arity + 1)  # noqa: E731
        monkeypatch.setattr(pf.RunningCount, "_drawn", zeros)
    high = np.random.default_rng(8).integers(0, 9, 60) >= 5
    nearby, cost = high ^ (np.arange(60) == 20), pf.event_epsilon(pf.mixing(5, 0.3), 60, 1.0)
    truths, folders = [], ([], [])
    for made, column in zip(folders, (high, nearby), strict=True):
        truths.append({("until", t): n for t, n in enumerate(np.cumsum(column).tolist(), 1)})
        for _ in range(releases):
            count = pf.RunningCount(60, cost)
            lines = [f"{t},{count.add(int(one))}\n" for t, one in enumerate(column, 1)]
            made.append(tmp_path_factory.mktemp("count"))
            (made[-1] / "count.csv").write_text("".join(lines))
    found = recovered(folders, 60, truths)
    assert found == (set() if noise else {("until", t) for t in range(21, 61)})
