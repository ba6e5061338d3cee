"""Nobody finds a count in what may leave; the same attack finds all of them in what must not."""

import itertools

import numpy as np
import pandas as pd
import pytest
from cases import counts
from count_attack import constants, recovered

import pufferflow as pf
from pufferflow._protection import Level
from pufferflow.publishing.stream import StreamRequest, prepare_stream
from pufferflow.publishing.stream_values import Counted

pytestmark = pytest.mark.usefixtures("scales_once")
RELEASES = 6
"""Of each of two neighbouring tables; a noisy count is right each time with probability below (1/50)^12."""

STATES = ("a", "b", "c")
FORM = pf.RecordFormat(pf.StateSpace.categories(STATES), 60)
RECORDS = 397


def table(seed, change=False):
    """A record of states; with ``change`` one of its values is another."""
    states = np.random.default_rng(seed).choice(STATES, RECORDS, p=[0.5, 0.3, 0.2])
    if change:
        states[200] = {"a": "b", "b": "c", "c": "a"}[states[200]]
    return pd.Series(states, index=pd.date_range(f"20{seed:02}-01-01", periods=RECORDS, freq="min", tz="UTC"))


def truth(series):
    """Everything that could be recovered: counts of states, of transitions, and the rows of these."""
    steps = list(itertools.pairwise(series))
    return (
        {state: int((series == state).sum()) for state in STATES}
        | {pair: steps.count(pair) for pair in itertools.product(STATES, repeat=2)}
        | {("from", state): sum(step[0] == state for step in steps) for state in STATES}
    )


def release(series, model, folder, figure=False):
    pf.release_histogram(series, model, 1.0, form=FORM, ledger=None, output=folder, figure=figure)
    return folder / "publish"


@pytest.mark.parametrize("releases", counts(RELEASES, 500))
def test_no_count_is_recovered_from_what_is_published(tmp_path, releases, only_svg):
    """Θ is a choice: all that does not change from release to release is the same for both tables."""
    tables, model = (table(20), table(20, change=True)), pf.ForgettingFamily(5, 0.3)
    published = [
        [release(series, model, tmp_path / f"{i}-{number}", figure=number < 2) for number in range(releases)]
        for i, series in enumerate(tables)
    ]
    assert (published[0][0] / "histogram.svg").exists()
    assert recovered(published, RECORDS, [truth(series) for series in tables]) == set()
    assert constants(published[0]) == constants(published[1])


@pytest.fixture(scope="module")
def fits():
    """Chains fitted to two neighbouring tables of another time."""
    tables = (table(19), table(19, change=True))
    states = pf.States(names=STATES)
    return tables, [pf.fit_records(series, states=states, smoothing=0.0) for series in tables]


def test_no_count_of_what_the_chain_was_fitted_to_is_recovered_but_from_what_stays(fits, tmp_path):
    tables, chains = fits
    truths = [truth(series) for series in tables]
    folders = [[tmp_path / f"{i}-{number}" for number in range(RELEASES)] for i, _ in enumerate(tables)]
    for fit, of in zip(chains, folders, strict=True):
        for folder in of:
            pf.release_histogram(table(20), fit.model, 1.0, ledger=None, output=folder, figure=False)
    published = [[folder / "publish" for folder in of] for of in folders]
    assert recovered(published, RECORDS, truths) == set()
    internal = [[folder / "internal" for folder in of] for of in folders]
    different = {key for key in truths[0] if truths[0][key] != truths[1][key]}
    found = recovered(internal, RECORDS, truths)
    assert found >= {key for key in different if isinstance(key, tuple)}  # every transition count that differs


def test_every_count_is_recovered_from_a_sample(fits, tmp_path):
    tables, chains = fits
    for i, fit in enumerate(chains):
        (tmp_path / str(i)).mkdir()
        fit.sample.save(tmp_path / str(i) / "sample.json")
    truths = [truth(series) for series in tables]
    found = recovered([[tmp_path / "0"], [tmp_path / "1"]], RECORDS, truths)
    assert found >= {key for key in truths[0] if truths[0][key] != truths[1][key] and key[0] != "from"}


def test_no_count_is_recovered_from_a_private_fit(tmp_path):
    """The tables differ in all records of one participant."""
    rng, steps = np.random.default_rng(4), 30
    rows = rng.choice(["a", "b"], (200, steps))
    truths, fitted = [], []
    for i, first in enumerate((rows[:1], np.full((1, steps), "b"))):
        values = np.concatenate([first, rows[1:]])
        people = pd.DataFrame({"participant": np.repeat(np.arange(200).astype(str), steps), "value": values.ravel()})
        pairs = [tuple(pair) for record in values.tolist() for pair in itertools.pairwise(record)]
        truths.append({pair: pairs.count(pair) for pair in itertools.product("ab", repeat=2)})
        fitted.append([])
        for number in range(RELEASES):
            (folder := tmp_path / f"{i}-{number}").mkdir()
            pf.fit_privately(
                people,
                pf.RecordFormat(pf.StateSpace.categories(["a", "b"])),
                1.0,
                most_transitions=steps - 1,
                ledger=None,
                reading=pf.Reading(rows_are_steps=True),
                output=folder / "chain.json",
            )
            fitted[-1].append(folder)
    assert len({truth[pair] for truth in truths for pair in truth}) > 4
    assert recovered(fitted, 200 * (steps - 1), truths) == set()
    assert constants(fitted[0]) == constants(fitted[1])


# -- other statistics ------------------------------------------------------------------------------------

ALL = ("mean-by-hour", "sum", "above-by-group", "runs", "transitions-by-group", "histogram-by-hour")
STEPS = 200


def people(change=False):
    """Two participants of two groups, a value a minute; with ``change`` one of them is another."""
    values = np.random.default_rng(3).integers(0, 9, (2, STEPS))
    if change:
        values[0, 90] = {0: 8}.get(values[0, 90], 0)
    times = pd.date_range("2024-01-01", periods=STEPS, freq="min", tz="UTC")
    rows = {
        "time": np.tile(times, 2),
        "participant": np.repeat(["p", "q"], STEPS),
        "group": np.repeat(["g", "h"], STEPS),
    }
    return pd.DataFrame(rows | {"value": values.ravel()})


def tallied(frame):
    """Every exact number that the statistics are made of."""
    hour, state = frame["time"].dt.hour, np.searchsorted([3, 6], frame["value"], side="right")
    found = {("sum", h): int(of.sum()) for h, of in frame["value"].groupby(hour)}
    found |= {("sum",): int(frame["value"].sum()), ("value",): int(frame["value"][90])}
    found |= {("bin", *key): n for key, n in pd.Series(1, frame.index).groupby([hour, state]).sum().items()}
    for group, of in frame.groupby("group")["value"]:
        high, states = (of >= 5).to_numpy(), np.searchsorted([3, 6], of, side="right").tolist()
        found["above", group] = int(high.sum())
        pairs = list(itertools.pairwise(states))
        found |= {("pair", group, pair): pairs.count(pair) for pair in itertools.product(range(3), repeat=2)}
        lengths = [len(list(run)) for above, run in itertools.groupby(high) if above]
        for n in (1, 2):
            found["runs", n] = found.get(("runs", n), 0) + lengths.count(n)
    return found


def several(frame, statistics, folder):
    form = pf.RecordFormat(pf.StateSpace.numeric([3, 6]), 60)
    options = {"bounds": (0, 8), "grid": 1, "threshold": 5, "durations": (1, 2, 3, 5)}
    own = {"mean": ("bounds", "grid"), "sum": ("bounds", "grid"), "above": ("threshold",)}
    own["runs"] = ("threshold", "durations")
    wanted = {name for statistic in statistics for name in own.get(statistic.split("-")[0], ())}
    quantiles = (0.1, 0.5) if "histogram-by-hour" in statistics else ()
    pf.release_statistics(
        frame,
        pf.PublicModel(pf.ForgettingFamily(5, 0.3), form),
        1.0,
        statistics,
        ledger=None,
        quantiles=quantiles,
        output=folder,
        figure=False,
        **{name: options[name] for name in wanted},
    )
    return folder / "publish"


@pytest.mark.parametrize(
    ("statistics", "releases"),
    [
        (ALL, 4),  # noise of scale 300 and more: a constant by chance in one of 10^6 runs
        pytest.param(ALL, 500, marks=pytest.mark.long),
        *(pytest.param((name,), 40, marks=pytest.mark.long) for name in ALL),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "all" if len(value) > 1 else value[0],
)
def test_no_number_of_other_statistics_is_recovered(tmp_path, statistics, releases):
    tables = people(), people(change=True)
    published = [
        [several(frame, statistics, tmp_path / f"{i}-{number}") for number in range(releases)]
        for i, frame in enumerate(tables)
    ]
    assert recovered(published, 2 * STEPS, [tallied(frame) for frame in tables], sizes(STEPS)) == set()
    one, other = map(constants, published)
    # a noisy quantile in an open bin has an end less, which moves what follows in its file
    assert {where: x for where, x in one.items() if where in other} == {
        where: x for where, x in other.items() if where in one
    }


def sizes(steps):
    """Records of both participants in the hours, whole and last."""
    return 120, 2 * (steps % 60), steps


def test_without_noise_every_number_that_differs_is_recovered(tmp_path, monkeypatch):
    """The control: had the noise been left out anywhere, the attack would have said so."""
    monkeypatch.setattr("pufferflow.publishing.release.add_noise", lambda exact, scale: list(exact))
    tables = people(), people(change=True)
    published = [
        [several(frame, ALL, tmp_path / f"{i}-{number}") for number in range(2)] for i, frame in enumerate(tables)
    ]
    truths = [tallied(frame) for frame in tables]
    different = {key for key in truths[0] if truths[0][key] != truths[1][key]} - {("value",)}
    assert recovered(published, 2 * STEPS, truths, sizes(STEPS)) >= different
    assert {key[0] for key in different} == {"sum", "bin", "above", "pair", "runs"}


# -- the running count -----------------------------------------------------------------------------------


def stream(values, folder):
    """What the lines of a running count are, in a file."""
    folder.mkdir()
    request = StreamRequest(
        pf.PublicModel(pf.ForgettingFamily(5, 0.3)), len(values), 1.0, Counted(threshold=5), Level()
    )
    prepared = prepare_stream(request)
    (folder / "count.csv").write_text("\n".join(prepared.lines([int(value >= 5) for value in values])) + "\n")
    (folder / "statement.txt").write_text(prepared.statement.text())
    return folder


@pytest.mark.parametrize("releases", counts(RELEASES, 500))
@pytest.mark.parametrize("noise", [True, False])
def test_no_line_of_a_running_count_gives_a_count_away(tmp_path, monkeypatch, releases, noise):
    if not noise:
        monkeypatch.setattr(pf.RunningCount, "_drawn", lambda self, arity: [0] * (arity + 1))
    values = np.random.default_rng(8).integers(0, 9, 60)
    twin = values.copy()
    twin[20] = 8 if twin[20] < 5 else 0
    runs = [np.cumsum(column >= 5).tolist() for column in (values, twin)]
    truths = [{("until", t): count for t, count in enumerate(run, 1)} for run in runs]
    published = [
        [stream(column.tolist(), tmp_path / f"{i}-{number}") for number in range(releases)]
        for i, column in enumerate((values, twin))
    ]
    found = recovered(published, 60, truths)
    assert found == (set() if noise else {("until", t) for t in range(21, 61)})
    if noise:
        assert constants(published[0]) == constants(published[1])
