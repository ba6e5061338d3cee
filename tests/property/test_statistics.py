"""Statistics: constants against all changes of one record, counting in chunks against a plain twin, and their files."""

import itertools
import json
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import fftconvolve

import pufferflow as pf
from pufferflow.publishing import release as releasing
from pufferflow.publishing.noise import DiscreteLaplace, count_scale, joint_scale
from pufferflow.publishing.quantiles import quantile_rows, sum_bound
from pufferflow.publishing.released import NoisyTable
from pufferflow.publishing.statistics import CATALOGUE, parse_statistics
from pufferflow.publishing.statistics.base import bins
from pufferflow.records import tables
from pufferflow.records.reading import Reading
from pufferflow.records.rows import open_records
from pufferflow.records.tally import Batch, Tally

pytestmark = pytest.mark.usefixtures("scales_once")
SPACE = pf.StateSpace.numeric([0.5, 1.5])  # values 0, 1 and 2 have a state each
OPTIONS = {"bounds": (0, 2), "grid": 0.5, "threshold": 1, "durations": (1, 2, 4)}
MODEL = pf.PublicModel(pf.ForgettingFamily(3, 0.5), pf.RecordFormat(SPACE, 3600))


def statistics(*names):
    options = {
        "bounds": ("sum", "mean"),
        "grid": ("sum", "mean"),
        "threshold": ("above", "runs"),
        "durations": ("runs",),
    }
    kinds = {name.partition("-by-")[0].partition(":")[0] for name in names}
    return parse_statistics(names, options={key: OPTIONS[key] for key, of in options.items() if kinds & set(of)})


@dataclass(frozen=True)
class Values(Batch):
    """A batch whose values are given."""

    values: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def numbers(self):
        return self.values


def counted(statistic, values, missing):
    """Table of one record a step, at times 22:00, 23:00, 0:00, …, of which some steps are missing."""
    at = np.setdiff1d(np.arange(len(values) + len(missing)), missing)
    values = np.array(values, dtype=float)
    state = SPACE.encode_numbers(values)
    near = np.concatenate(([False], np.diff(at) == 1))
    came_from = np.concatenate(([0], state[:-1]))
    counter = statistic.counter(SPACE)
    counter.add(Values(np.zeros(len(at), np.int64), (22 + at) * 3600, state, came_from, near, values=values))
    return counter.finished()


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        pytest.param(f"{name}{by}", missing, marks=pytest.mark.long if by and missing else ())
        for name, kind in CATALOGUE.items()
        for by in ("", "-by-hour")
        if by[4:] in ("", *kind.cells)
        for missing in ((), (2,))
    ],
)
def test_one_record_changes_the_table_by_at_most_the_constant(name, missing):
    """All sequences of 5 records and all changes of one; the constant is reached, and sizes never change."""
    (statistic,) = statistics(name)
    found = {values: counted(statistic, values, missing) for values in itertools.product((0, 1, 2), repeat=5)}
    assert len({table.sizes for table in found.values()}) == 1
    largest = 0
    for values, table in found.items():
        for at, value in itertools.product(range(5), (0, 1, 2)):
            other = found[(*values[:at], value, *values[at + 1 :])]
            largest = max(largest, int(np.abs(table.counts - other.counts).sum()))
    assert largest == statistic.lipschitz


@examples(12, 120)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=9), st.data())
def test_no_value_changes_a_sum_by_more(values, data):
    """Whatever floats do: infinite and huge values are clipped."""
    low, high = sorted(data.draw(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=2, unique=True)))
    (total,) = parse_statistics(["sum"], options={"bounds": (low / 7, high / 7)})
    for value in values:
        [[steps]] = counted(total, [value], ()).counts
        assert 0 <= steps <= total.lipschitz == 1000
        clipped = min(max(value, low / 7), high / 7)
        assert abs(low / 7 + total.unit * steps - clipped) <= total.unit / 2 * (1 + 1e-6)


# -- counting ----------------------------------------------------------------------------------------


@st.composite
def frames(draw):
    """Hourly rows of several participants of two groups, interleaved in chunks; some values missing."""
    rows = []
    for person in range(draw(st.integers(1, 3))):
        waits = draw(st.lists(st.sampled_from([1, 1, 1, 2, 30]), min_size=2, max_size=12))
        for at in np.cumsum(waits).tolist():
            value = draw(st.sampled_from(["0", "1", "2", "1", ""]))
            rows.append((f"p{person}", f"g{person % 2}", pd.Timestamp("2024-05-29") + pd.Timedelta(hours=at), value))
    rows.sort(key=lambda row: (row[2], row[0]))
    return pd.DataFrame(rows, columns=["participant", "group", "time", "value"])


def plainly(frame):
    """Every statistic, by pandas and loops: {name: {(cell, column): number}}."""
    seen = frame[frame["value"] != ""].assign(value=lambda f: f["value"].astype(int))
    cells = {
        "all": seen["time"].map(lambda _: "all"),
        "hour": seen["time"].dt.strftime("%H:00"),
        "weekday": seen["time"].dt.day_name(),
        "month": seen["time"].dt.month_name(),
        "group": seen["group"],
    }
    found = {}
    for by, cell in cells.items():
        found["histogram", by] = seen.groupby([cell.rename("cell"), "value"]).size().to_dict()
        found["sum", by] = {(c, 0): 2 * v for c, v in seen["value"].groupby(cell).sum().items()}
        found["above", by] = {(c, 0): v for c, v in (seen["value"] >= 1).groupby(cell).sum().items()}
    for by in ("all", "group"):
        moves, runs = {}, {}
        for _, of in seen.groupby("participant"):
            run = 0
            cell = of["group"].iloc[0] if by == "group" else "all"
            ends = [*of["time"].diff().iloc[1:].ne(pd.Timedelta(hours=1)), True]
            for (value, after), end in zip(itertools.pairwise([*of["value"], 0]), ends, strict=True):
                if not end:
                    moves[cell, 3 * value + after] = moves.get((cell, 3 * value + after), 0) + 1
                run = run + 1 if value >= 1 else 0
                if run and (end or after < 1):
                    column = (run >= 2) + (run >= 4)
                    runs[cell, column] = runs.get((cell, column), 0) + 1
                    run = 0
        found |= {("transitions", by): moves, ("runs", by): runs}
    return found, {by: cell.value_counts().to_dict() for by, cell in cells.items()}


@examples(8, 340)
@given(frames(), st.integers(1, 6))
def test_chunks_make_no_difference(frame, rows):
    if (frame["value"] == "").all():
        return
    expected, sizes = plainly(frame)
    names = [f"{name}-by-{by}" for name, by in expected]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS", rows)
        counters = [statistic.counter(SPACE) for statistic in statistics(*names)]
        Tally(MODEL.records, transitions=False, counters=counters).read(open_records(frame, Reading()))
    for counter, ((name, by), numbers) in zip(counters, expected.items(), strict=True):
        table = counter.finished()
        of = {(table.cells[i], j): int(table.counts[i, j]) for i, j in zip(*np.nonzero(table.counts), strict=True)}
        assert of == {key: number for key, number in numbers.items() if number}, name
        if name != "transitions":
            assert {cell: n for cell, n in zip(table.cells, table.sizes, strict=True) if n} == sizes[by]


def test_hours_are_those_of_the_clock():
    """Of a zone local ones, in summer too; of times with an offset those of UTC."""
    winter, summer = "2024-01-01 05:00", "2024-07-01 05:00"
    for column, reading, hours in (
        ([winter, summer], pf.Reading(timezone="Europe/Paris"), {"05:00"}),
        ([winter, summer], pf.Reading(), {"05:00"}),
        ([winter + "+02:00", summer + "+01:00"], pf.Reading(), {"03:00", "04:00"}),
    ):
        (histogram,) = statistics("histogram-by-hour")
        counter = histogram.counter(SPACE)
        frame = pd.DataFrame({"time": column, "value": [0, 1]})
        Tally(MODEL.records, transitions=False, counters=[counter]).read(open_records(frame, reading))
        table = counter.finished()
        assert {cell for cell, n in zip(table.cells, table.sizes, strict=True) if n} == hours


# -- noise, quantiles, releases ----------------------------------------------------------------------


@examples(12, 120)
@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 50)), min_size=1, max_size=5), st.floats(0.01, 1e6))
def test_shares_of_the_noise_never_cost_more_than_one_query(parts, scale):
    total = sum(weight for _, weight in parts)
    scales = [count_scale(scale, lipschitz / Fraction(weight, total)) for lipschitz, weight in parts]
    joint = joint_scale([(lipschitz, s) for (lipschitz, _), s in zip(parts, scales, strict=True)])
    cost = sum(lipschitz / Fraction(s) for (lipschitz, _), s in zip(parts, scales, strict=True))
    assert scale <= joint <= 1.01 * scale
    assert Fraction(joint) * cost <= 1


@pytest.mark.parametrize("scale", [0.3, 5.0, 700.0])
@pytest.mark.parametrize("terms", [1, 3])
def test_bounds_of_sums_hold(scale, terms):
    """Against the exact law, by convolution."""
    reach = int(40 * scale) + 5
    one = DiscreteLaplace(scale).probability(np.arange(-reach, reach + 1))
    law = one
    for _ in range(terms - 1):
        law = fftconvolve(law, one)  # off by 1e-14 in all
    values = np.arange(len(law)) - len(law) // 2
    h = sum_bound(scale, terms)
    assert law[values > h].sum() <= 0.025
    assert law[values > h / 3].sum() > 0.025  # no idle bound
    assert np.abs(values) @ law == pytest.approx(DiscreteLaplace(scale).mean_absolute) or terms > 1


def test_quantiles_lie_in_their_intervals():
    """Intervals hold the exact quantile in at least 95 % of releases; this fails by chance once in 10^6 runs."""
    edges = list(np.arange(1, 10, dtype=float))
    (histogram,) = statistics("histogram")
    space = pf.StateSpace.numeric(edges)
    exact = np.array([5, 50, 200, 300, 200, 100, 80, 40, 20, 5])
    rng, held = np.random.default_rng(1), 0
    for _ in range(300):
        noisy = [int(c) for c in exact + np.rint(rng.laplace(0, 12, 10)).astype(int)]
        table = NoisyTable(histogram, ("all",), bins(space), (1000,), tuple(noisy), 12.0)
        [row] = quantile_rows(table, edges, [0.5])
        held += row["low_95"] <= 3 and row["high_95"] >= 4  # C_4 = 555 is the first from 500 on: the bin 3 to 4
        assert 2 <= row["value"] <= 5
    assert held >= 275


def hourly(days=60):
    rng = np.random.default_rng(2)
    times = pd.date_range("2024-01-01", periods=24 * days, freq="h")
    return pd.Series(rng.integers(0, 3, len(times)) * (times.hour > 11), index=times)


def test_several_under_one_epsilon(tmp_path, monkeypatch):
    monkeypatch.setattr(releasing, "add_noise", lambda counts, scale: list(counts))
    names = ["histogram-by-hour:2", "mean-by-hour", "transitions", "above-by-weekday", "runs", "sum-by-month"]
    ledger, data = tmp_path / "ledger", hourly()
    made = pf.release_statistics(
        data, MODEL, 1.0, names, ledger=ledger, protect="1d", quantiles=[0.5], output=tmp_path / "out", figure=False,
        **OPTIONS,
    )  # fmt: skip
    [entry] = pf.Ledger(ledger).to_dict()["releases"]
    assert entry["scale"] == made.scale >= made.calibration.scale
    assert entry["query"].startswith("histogram-by-hour, mean-by-hour, transitions, above-by-weekday, runs, sum-by-")
    assert pf.Ledger(ledger).spent == pytest.approx(1.0, rel=0.01)
    pf.verify_certificate(json.loads((tmp_path / "out/publish/certificate.json").read_text()))
    frame = pd.read_csv(tmp_path / "out/publish/statistics.csv")
    mean = frame[frame["statistic"] == "mean"].set_index("cell")
    by_hour = data.groupby(data.index.strftime("%H:00")).mean()
    assert mean["value"].to_dict() == pytest.approx(by_hour.to_dict())
    assert (mean["high_95"] - mean["value"] > mean["expected_error"]).all()
    months = frame[frame["statistic"] == "sum"].set_index("cell")["value"]
    assert months.to_dict() == {"January": data[: 31 * 24].sum(), "February": data[31 * 24 :].sum()}
    shares = frame[frame["statistic"] == "histogram"].groupby("cell")["value"].sum()
    assert shares.tolist() == pytest.approx([1.0] * 24)
    assert set(frame["statistic"]) == {"histogram", "mean", "transitions", "above", "runs", "sum", "quantile"}
    scales = {table.statistic.full_name: table.noise_scale for table in made.tables}
    assert scales["transitions"] / scales["histogram-by-hour"] == pytest.approx(4, rel=0.01)  # L 4 to 2, weights 1 to 2
    assert "together by at most 4" in made.statement
    read = json.loads((tmp_path / "out/publish/statistics.json").read_text())
    assert [one["lipschitz"] for one in read["statistics"]] == [2, 4, 4, 1, 3, 4]
    assert len(read["rows"]) == len(frame)


def test_what_is_published_of_values_is_but_the_noise():
    """Two tables that differ in one record differ in noisy numbers alone."""
    one = hourly()
    other = one.copy()
    other.iloc[700] = 2 - other.iloc[700]
    names = ["histogram-by-hour", "mean-by-weekday", "transitions", "runs", "above-by-month"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releasing, "add_noise", lambda counts, scale: [7] * len(counts))
        files = [
            pf.release_statistics(data, MODEL, 1.0, names, ledger=None, quantiles=[0.5], **OPTIONS).files()
            for data in (one, other)
        ]
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["median"], "statistic 1 has no known name; choose from histogram"),
        (["mean"], "mean needs bounds"),
        (["above"], "above needs a threshold"),
        (["histogram:0"], "weight of histogram"),
        (["histogram:x"], "the weight of histogram is 'x'"),
        (["histogram-by-day"], "by of histogram is 'day'; choose from all, hour"),
        (["transitions-by-hour"], "by of transitions is 'hour'; choose from all, group"),
        (["histogram", "histogram:2"], "name each once"),
        ([], "there must be some"),
        ([3], "statistic 1 is an int"),
    ],
)
def test_what_cannot_be_had_is_refused(asked, message):
    with pytest.raises(pf.ParameterError, match=message):
        pf.release_statistics(hourly(2), MODEL, 1.0, asked, ledger=None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": (2, 1)}, "bounds must be two finite numbers"),
        ({"bounds": (0, 1), "grid": 0.3}, "grid 0.3 does not divide"),
        ({"bounds": (0, 1), "threshold": 3}, "no statistic that is asked for has threshold"),
        ({"bound": (0, 1)}, "unknown option 'bound'"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(pf.ParameterError, match=message):
        pf.release_statistics(hourly(2), MODEL, 1.0, ["mean"], ledger=None, **options)


def test_categories_have_no_mean_and_steps_no_hours():
    form = pf.RecordFormat(pf.StateSpace.categories(["0", "1", "2"]), 3600)
    model = pf.PublicModel(MODEL.family, form)
    with pytest.raises(pf.ParameterError, match="mean needs numbers"):
        pf.release_statistics(hourly(2), model, 1.0, ["mean"], ledger=None, bounds=(0, 2))
    model = pf.PublicModel(MODEL.family, pf.RecordFormat(SPACE))
    with pytest.raises(pf.ParameterError, match="histogram-by-hour needs times"):
        pf.release_statistics(pd.Series([0, 1, 2, 1] * 9), model, 1.0, ["histogram-by-hour"], ledger=None)


def test_the_shell_releases_several(tmp_path, run, only_svg):
    data = tmp_path / "d.csv"
    hourly().rename_axis("time").rename("value").to_csv(data)
    theta = ("--forgets", 3, 0.5, "--edges", "0.5,1.5", "--step", 3600, "--epsilon", 1, "--protect", "1d")
    several = ("--statistic", "histogram:3", "--statistic", "transitions-by-all", "--statistic", "mean", "--by", "hour")
    terms = ("release", data, *theta, *several, "--bounds", 0, 2, "--quantiles", "0.25,0.75")
    code, out, err = run(*terms, "--dry-run", "--no-figure")
    assert (code, err) == (0, "")
    assert "of histogram-by-hour; expected error" in out
    code, out, err = run(*terms)
    assert (code, err) == (0, "")
    assert "more rows in" in out
    publish = tmp_path / "d.csv.release" / "publish"
    assert {path.name for path in publish.iterdir()} == {
        *("statistics.csv", "statistics.json", "statement.txt", "statement.md", "chain.json", "certificate.json"),
        *("histogram-by-hour.svg", "transitions.svg", "mean-by-hour.svg"),
    }
    code, out, err = run(*terms[:2], *theta, "--by", "weekday", "--bounds", 0, 2, "--output", tmp_path / "x")
    assert code == 2
    assert "no statistic that is asked for has bounds" in err


def test_statistics_of_numbers_need_no_bins(tmp_path, run):
    """Where nothing is fitted and nothing counts states, none are to be made up; the noise is the same."""
    data = tmp_path / "d.csv"
    hourly().rename_axis("time").rename("value").to_csv(data)
    theta = ("--forgets", 3, 0.5, "--step", 3600, "--epsilon", 1, "--bounds", 0, 2, "--threshold", 1)
    numbers = ("--statistic", "mean-by-hour", "--statistic", "above", "--statistic", "runs")
    rehearsed = ("--no-ledger", "--no-figure", "--dry-run", "--output", tmp_path / "x")
    said = [
        run("release", data, *theta, *numbers, *edges, *rehearsed)
        for edges in ((), ("--edges", "0,1,2"), ("--edges", "0.5"))
    ]
    assert said[0][0] == 0
    noise = [[line for line in out.splitlines() if line.startswith(("noise", "mechanism"))] for _, out, _ in said]
    assert noise[0] == noise[1] == noise[2] != []
    code, _, err = run("release", data, *theta[:7])  # a histogram
    assert code == 2
    assert "--states or --edges" in err


def test_unequal_bins_are_drawn_unequal():
    """Areas are shares; bins of one width stay as they were, named one by one."""
    from pufferflow.drawing.releases import histogram

    shares = np.array([0.1, 0.2, 0.3, 0.4])
    table = pd.DataFrame({"state": list("abcd"), "frequency": shares, "low_95": shares, "high_95": shares})
    table["privacy"] = "epsilon = 1"
    for edges, widths in (([0, 1, 5], [1, 1, 4, 4]), ([0, 1, 2], None), (None, None)):
        axes = histogram(table, "x", edges).axes[0]
        assert axes.get_xlabel() == ("state" if edges is None else "value")
        assert axes.get_title() == "Histogram"
        drawn = np.array([bar.get_width() for bar in axes.patches])
        if widths is None:
            assert drawn == pytest.approx(np.full(4, 0.8))
            continue
        assert drawn == pytest.approx(0.96 * np.array(widths))
        assert [bar.get_height() for bar in axes.patches] * np.array(widths) == pytest.approx(shares)
        assert axes.get_ylabel() == "share of records per unit of value"
