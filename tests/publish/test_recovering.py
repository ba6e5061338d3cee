"""Nobody finds a count in what may leave; without noise the same attack finds all of them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from cases import counts
from count_attack import constants, recovered

import pufferflow as pf
from pufferflow.publish import release as releasing

STEPS = 200
ALL = (
    "mean-by-hour",
    "sum",
    "exceedances-by-group",
    "durations",
    "transitions-by-group",
    "histogram-by-hour",
)


def people(change=False):
    """Two participants of two groups, a value a minute; with ``change`` one of them is another."""
    values = np.random.default_rng(3).integers(0, 9, (2, STEPS))
    if change:
        values[0, 90] = {0: 8}.get(values[0, 90], 0)
    times = pd.date_range("2024-01-01", periods=STEPS, freq="min", tz="UTC")
    rows = {
        "time": np.tile(times, 2),
        "who": np.repeat(["p", "q"], STEPS),
        "kind": np.repeat(["g", "h"], STEPS),
    }
    return pd.DataFrame(rows | {"value": values.ravel()})


def tallied(frame):
    """Every exact number that the statistics are made of."""
    hour, state = frame["time"].dt.hour, np.searchsorted([3, 6], frame["value"], side="right")
    found = {("sum", h): int(of.sum()) for h, of in frame["value"].groupby(hour)}
    found |= {("sum",): int(frame["value"].sum()), ("value",): int(frame["value"][90])}
    by_bin = pd.Series(1, frame.index).groupby([hour, state]).sum()
    found |= {("bin", *key): n for key, n in by_bin.items()}
    for group, of in frame.groupby("kind")["value"]:
        high, states = (of >= 5).to_numpy(), np.searchsorted([3, 6], of, side="right").tolist()
        found["above", group] = int(high.sum())
        pairs = list(itertools.pairwise(states))
        squared = itertools.product(range(3), repeat=2)
        found |= {("pair", group, pair): pairs.count(pair) for pair in squared}
        lengths = [len(list(run)) for above, run in itertools.groupby(high) if above]
        for n in (1, 2):
            found["runs", n] = found.get(("runs", n), 0) + lengths.count(n)
    return found


def published(frame, statistics, folder):
    own = {"bounds": (0, 8), "threshold": 5, "duration_edges": (1, 2, 3, 5)}
    names = {name.split("-")[0] for name in statistics}
    if not names & {"mean", "sum"}:
        own.pop("bounds")
    if not names & {"exceedances", "durations"}:
        own.pop("threshold")
    if "durations" not in names:
        own.pop("duration_edges")
    pf.release(
        frame,
        pf.mixing(5, 0.3),
        1.0,
        statistics=statistics,
        edges=[3, 6],
        participant="who",
        group="kind",
        accept_noise=True,
        output=folder,
        **own,
    )
    return folder / "publish"


CASES = [
    (ALL, 4),  # noise of scale 300 and more: a constant by chance in one of 10^6 runs
    pytest.param(ALL, 500, marks=pytest.mark.long),
    *(pytest.param((name,), 40, marks=pytest.mark.long) for name in ALL),
]


@pytest.mark.parametrize(("statistics", "releases"), CASES)
def test_no_number_is_recovered(tmp_path, statistics, releases):
    tables = people(), people(change=True)
    folders = [
        [published(frame, statistics, tmp_path / f"{i}-{number}") for number in range(releases)]
        for i, frame in enumerate(tables)
    ]
    truths = [tallied(frame) for frame in tables]
    assert recovered(folders, 2 * STEPS, truths, sizes()) == set()
    assert constants(folders[0]) == constants(folders[1])


def sizes():
    """Readings of both participants in the hours, whole and last."""
    return 120, 2 * (STEPS % 60), STEPS


def test_without_noise_every_number_that_differs_is_recovered(tmp_path, monkeypatch):
    """The control: had the noise been left out anywhere, the attack would have said so."""
    monkeypatch.setattr(releasing, "add_noise", lambda exact, scale: list(exact))
    tables = people(), people(change=True)
    folders = [
        [published(frame, ALL, tmp_path / f"{i}-{number}") for number in range(2)] for i, frame in enumerate(tables)
    ]
    truths = [tallied(frame) for frame in tables]
    different = {key for key in truths[0] if truths[0][key] != truths[1][key]} - {("value",)}
    assert {key[0] for key in different} == {"sum", "bin", "above", "pair", "runs"}
    found = recovered(folders, 2 * STEPS, truths, sizes())
    assert found >= {key for key in different if key[0] != "sum"}


def test_no_count_is_recovered_from_a_private_fit(tmp_path):
    """The tables differ in all readings of one participant."""
    rng, steps, releases = np.random.default_rng(4), 30, 6
    rows = rng.choice(["a", "b"], (200, steps))
    truths, fitted = [], []
    for i, first in enumerate((rows[:1], np.full((1, steps), "b"))):
        values = np.concatenate([first, rows[1:]])
        who = np.repeat(np.arange(200).astype(str), steps)
        table = pd.DataFrame({"who": who, "value": values.ravel()})
        pairs = [tuple(pair) for record in values.tolist() for pair in itertools.pairwise(record)]
        truths.append({pair: pairs.count(pair) for pair in itertools.product("ab", repeat=2)})
        fitted.append([])
        for number in range(releases):
            (folder := tmp_path / f"{i}-{number}").mkdir()
            pf.fit_privately(
                table,
                1.0,
                states=["a", "b"],
                participant="who",
                most_transitions=steps - 1,
                output=folder / "chain.json",
            )
            fitted[-1].append(folder)
    assert len({truth[pair] for truth in truths for pair in truth}) > 4
    assert recovered(fitted, 200 * (steps - 1), truths) == set()


@pytest.mark.parametrize("releases", counts(6, 500))
@pytest.mark.parametrize("noise", [True, False])
def test_no_line_of_a_running_count_gives_a_count_away(tmp_path, monkeypatch, releases, noise):
    if not noise:
        zeros = lambda self, arity: [0] * (arity + 1)  # noqa: E731
        monkeypatch.setattr(pf.RunningCount, "_drawn", zeros)
    values = np.random.default_rng(8).integers(0, 9, 60)
    twin = values.copy()
    twin[20] = 8 if twin[20] < 5 else 0
    runs = [np.cumsum(column >= 5).tolist() for column in (values, twin)]
    truths = [{("until", t): count for t, count in enumerate(run, 1)} for run in runs]
    cost = pf.event_epsilon(pf.mixing(5, 0.3), 60, 1.0)
    folders = [[], []]
    for i, column in enumerate((values, twin)):
        for number in range(releases):
            count = pf.RunningCount(60, cost)
            lines = [f"{t},{count.add(int(v >= 5))}" for t, v in enumerate(column, 1)]
            (folder := tmp_path / f"{i}-{number}").mkdir()
            (folder / "count.csv").write_text("\n".join(lines) + "\n")
            folders[i].append(folder)
    found = recovered(folders, 60, truths)
    assert found == (set() if noise else {("until", t) for t in range(21, 61)})
