"""Releases from a table to the ledger: what is accepted, how much noise it gets, and what it pays."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.errors import (
    BudgetError,
    DataError,
    LedgerError,
    ParameterError,
    UselessError,
)
from pufferflow.models import PublicModel
from pufferflow.publish import release as releasing
from pufferflow.publish.calibrate import calibrate
from pufferflow.publish.noise import cost_of, noise_scale
from pufferflow.publish.request import Request
from pufferflow.publish.statistics import parse_statistics
from pufferflow.records.schema import Fitted, Schema

HOUR = pd.Timedelta(hours=1)
MIXING = pf.mixing("2h", 0.5)
NAMES = ["histogram", "mean", "sum", "exceedances", "durations", "transitions"]
ALL = {"statistics": NAMES, "bounds": (0, 3), "threshold": 1, "edges": [1, 2], "accept_noise": True}


def meters(start="2024-01-01", hours=168, people=20, seed=1):
    """Hourly readings of meters between 0 and 3."""
    rng = np.random.default_rng(seed)
    when = pd.date_range(start, periods=hours, freq="h", tz="UTC")
    return pd.concat(
        pd.DataFrame({"time": when, "kwh": rng.uniform(0, 3, hours), "meter": f"m{who:03d}"}) for who in range(people)
    )


def release(frame, **options):
    given = {"statistics": ["mean"], "bounds": (0, 3), "participant": "meter"} | options
    return pf.release(frame, given.pop("theta", MIXING), given.pop("epsilon", 1), **given)


@pytest.fixture
def exact(monkeypatch):
    """No noise, and no need of a random source: what is released is what was counted."""
    monkeypatch.setattr(releasing, "add_noise", lambda counts, scale: list(counts))
    monkeypatch.setattr(releasing, "open_dp", lambda: None)


def test_a_release_and_what_it_says():
    made = release(meters(), statistics=["mean-by-hour"], unit="kWh")
    frame = made.to_frame()
    assert list(frame["cell"]) == [f"{hour:02d}:00" for hour in range(24)]
    assert (abs(frame["value"] - 1.5) < 1 + frame["error"]).all()
    assert set(frame["unit"]) == {"kWh"}
    assert "any one reading" in made.statement
    assert "m000" not in made.statement


def test_noise_does_not_depend_on_the_table():
    """Neither on its length, nor on how participants differ: on Θ, level and ε alone."""
    scales = set()
    for hours, people in ((24, 1), (48, 3), (500, 7)):
        made = release(meters(hours=hours, people=people), accept_noise=True)
        scales.add(made.tables[0].scale)
    uneven = meters(hours=48, people=3).iloc[:60]
    scales.add(release(uneven, accept_noise=True).tables[0].scale)
    assert len(scales) == 1


def test_with_a_range_one_participant_changes_neither_noise_nor_acceptance(tmp_path):
    frame = meters(hours=100, people=5)
    shorter = frame[(frame["meter"] != "m003") | (frame["time"] < "2024-01-02")]
    both = []
    for k, table in enumerate((frame, shorter)):
        made = release(
            table,
            theta=None,
            protect="participant",
            first="2024-01-01",
            last="2024-01-05T04:00",
            ledger=tmp_path / f"{k}.ledger",
            accept_noise=True,
        )
        both.append((made.tables[0].scale, pf.Ledger(tmp_path / f"{k}.ledger").spent))
    assert both[0] == both[1]


@pytest.mark.parametrize("by", ["", "-by-hour", "-by-group"])
def test_readings_out_of_range_change_nothing(exact, by):
    frame = meters(hours=60, people=3)
    frame["tariff"] = frame["meter"].map({"m000": "a", "m001": "b", "m002": "a"})
    inside = frame[(frame["time"] >= "2024-01-01T06:00Z") & (frame["time"] < "2024-01-02T18:00Z")]
    wild = frame.copy()
    outside = ~wild["time"].isin(inside["time"])
    wild.loc[outside, "kwh"] = np.linspace(-1e9, 1e9, outside.sum())
    names = NAMES if by != "-by-hour" else NAMES[:4]
    options = ALL | {"statistics": [name + by for name in names], "group": "tariff"}
    span = {"first": "2024-01-01T06:00", "last": "2024-01-02T18:00"}
    tables = [release(table, **options, **span) for table in (frame, wild, inside)]
    for made in tables[1:]:
        for one, other in zip(made.tables, tables[0].tables, strict=True):
            np.testing.assert_array_equal(one.counts, other.counts)
            np.testing.assert_array_equal(one.sizes, other.sizes)


@pytest.mark.parametrize(
    ("theta", "side"),
    [
        (pf.mixing(2, 0.5), "any"),
        (pf.MarkovChain([[0.9, 0.1], [0, 1]], "any"), "none"),
        (pf.MarkovChain([[0, 1], [1, 0]], "any"), "none"),
    ],
)
def test_what_never_forgets_is_refused(theta, side):
    with pytest.raises(ParameterError, match=r"never forgets.*--protect participant"):
        release(
            meters(),
            theta=theta,
            statistics=["histogram"],
            bounds=None,
            edges=[1],
            side_information=side,
        )


def test_a_chain_of_a_clock_needs_a_clock_without_jumps():
    rows = [[[0.5, 0.5], [0.4, 0.6]], [[0.3, 0.7], [0.5, 0.5]]]
    frame = meters()
    frame["time"] = frame["time"].dt.tz_localize(None)
    options = {"theta": pf.PeriodicChain(rows), "statistics": ["histogram"], "bounds": None}
    with pytest.raises(DataError, match="skips a phase"):
        release(frame, **options, edges=[1])
    release(frame, **options, edges=[1], timezone="UTC", accept_noise=True)


def test_a_chain_on_states_covers_no_mean():
    with pytest.raises(ParameterError, match="within a state"):
        release(meters(), theta=pf.MarkovChain([[0.5, 0.5], [0.4, 0.6]]), edges=[1])


def test_a_chain_fitted_to_the_same_time_is_refused():
    chain = pf.MarkovChain([[0.5, 0.5], [0.4, 0.6]])
    known = Schema(states=pf.StateSpace.numeric([1]), step_seconds=3600)
    fitted = Fitted("2024-01-03T00:00:00Z", "2024-01-04T00:00:00Z", 25)
    model = PublicModel(pf.ChainFamily([chain]), replace(known, fitted=fitted))
    options = {"theta": model, "statistics": ["histogram"], "bounds": None, "accept_noise": True}
    with pytest.raises(DataError, match="fitted to readings of the same time"):
        release(meters(), **options)
    assert release(meters(), **options, fitted_to_others=True).warnings
    release(meters("2024-02-01"), **options)


def test_a_private_fit_outside_the_ledger_is_refused(tmp_path):
    """Hole 5: its ε would not be added."""
    frame = meters(people=60)
    options = {"participant": "meter", "edges": [1], "step": "1h", "most_transitions": 140, "timezone": "UTC"}
    span = {"first": "2024-01-01", "last": "2024-01-07"}
    fits = [
        pf.fit_privately(frame, 5.0, **options, **span, ledger=ledger) for ledger in (None, tmp_path / "one.ledger")
    ]
    use = {"statistics": ["histogram"], "bounds": None, "accept_noise": True}
    for fit in fits:
        with pytest.raises(LedgerError, match="not in this ledger"):
            release(frame, theta=fit, **use, ledger=tmp_path / "other.ledger")
    later = {"first": "2024-02-01", "last": "2024-02-07"}
    february = meters("2024-02-01", people=60)
    release(february, theta=fits[1], **use, **later, ledger=tmp_path / "one.ledger")


# -- the account -----------------------------------------------------------------------------------


def week(k):
    return meters(pd.Timestamp("2024-01-01") + k * 7 * 24 * HOUR, people=2, seed=k)


def test_a_year_of_weekly_releases(exact, tmp_path):
    """52 weeks at ε = 1 with the limit 1; then any one of them again is refused, and nothing written."""
    ledger = tmp_path / "year.ledger"
    for k in range(52):
        release(week(k), ledger=ledger, accept_noise=True, protect="1d")
    assert pf.Ledger(ledger).spent <= 1
    before = ledger.read_bytes()
    for k in (0, 17, 51):
        with pytest.raises(BudgetError):
            release(week(k), ledger=ledger, accept_noise=True, protect="1d", epsilon=1)
    assert ledger.read_bytes() == before


def test_a_statement_names_the_limit_in_force(exact, tmp_path):
    """Not the smaller epsilon of the release itself: other releases may use all of the limit."""
    options = {"ledger": tmp_path / "l", "accept_noise": True}
    assert "Together they keep ε = 2" in release(week(0), **options, limit=2).statement
    later = release(week(1), **options, epsilon=0.5)
    assert "Together they keep ε = 2" in later.statement
    assert "odds of any two possibilities by a factor of at most 1.65" in later.statement


def test_participants_are_used_up_for_ever_and_it_is_said(exact, tmp_path):
    options = {"theta": None, "protect": "participant", "accept_noise": True}
    made = release(week(0), **options, ledger=tmp_path / "l")
    assert "add up for ever, whatever their period" in made.statement
    assert "another period" not in made.statement
    assert made.lines(ledger="l")[2] == "ledger    l: now fully used for ever"
    with pytest.raises(BudgetError):
        release(week(1), **options, ledger=tmp_path / "l")


def test_rolling_weeks_share_what_is_allowed(exact, tmp_path):
    options = {"ledger": tmp_path / "l", "accept_noise": True, "share": 0.25}
    for k in range(6):
        frame = pd.concat([week(k + j) for j in range(4)])
        release(frame, **options)
    with pytest.raises(BudgetError):
        release(week(4), ledger=tmp_path / "l", accept_noise=True, share=0.5)


def test_several_kinds_of_the_same_readings(exact, tmp_path):
    options = {"ledger": tmp_path / "l", "accept_noise": True}
    months = pd.concat([week(k) for k in range(4)])
    release(months, **options, share=0.1)
    for k in range(4):
        release(week(k), **options, statistics=["mean-by-hour"], share=0.8)
        for day in range(7):
            there = week(k)["time"].min() + pd.Timedelta(days=day)
            own = week(k)[lambda t, d=there: (t["time"] >= d) & (t["time"] < d + 24 * HOUR)]
            release(own, **options, share=0.1)
    with pytest.raises(BudgetError):
        release(week(2), **options, share=0.001)


def test_a_private_fit_and_then_weekly_releases(exact, tmp_path):
    frame = meters("2023-12-01", people=60)
    options = {"participant": "meter", "edges": [1], "step": "1h", "most_transitions": 140, "timezone": "UTC"}
    span = {"first": "2023-12-01", "last": "2023-12-07"}
    fit = pf.fit_privately(frame, 1.0, **options, **span, ledger=tmp_path / "l")
    use = {"statistics": ["histogram"], "bounds": None, "accept_noise": True}
    for k in range(4):
        release(week(k), theta=fit, **use, ledger=tmp_path / "l")


def test_without_times_everything_adds_up(exact, tmp_path):
    table = pd.DataFrame({"kwh": np.linspace(0, 3, 500)})
    options = {"participant": None, "theta": pf.mixing(2, 0.5), "ledger": tmp_path / "l"}
    release(table, **options, accept_noise=True)
    with pytest.raises(BudgetError, match="times"):
        release(table, **options, accept_noise=True)


@pytest.mark.parametrize("cases", counts(60, 10_000))
def test_stored_costs_are_never_above_stored_limits(cases):
    rng = np.random.default_rng(7)
    for _ in range(cases):
        theta = pf.mixing(int(rng.integers(1, 100)), float(rng.uniform(0.05, 1)))
        epsilon = float(np.exp(rng.uniform(-4, 3)))
        window = int(rng.integers(1, 50))
        allowed = calibrate(theta, releasing.Level(window), epsilon).cost
        lipschitz = [int(n) for n in rng.integers(1, 2000, size=rng.integers(1, 7))]
        scales = [noise_scale(allowed, constant, len(lipschitz)) for constant in lipschitz]
        cost = sum(n / Fraction(s) for n, s in zip(lipschitz, scales, strict=True))
        assert 0.998 * allowed < cost <= Fraction(str(allowed))


# -- the guard -------------------------------------------------------------------------------------


def test_pure_noise_is_refused_and_the_remedies_hold(exact, tmp_path):
    """One meter, one week by hour: what the sentence proposes is then accepted."""
    options = {"statistics": ["mean-by-hour"], "protect": "1d", "unit": "kWh"}
    with pytest.raises(UselessError, match="pure noise") as refused:
        release(meters(people=1), **options, ledger=tmp_path / "l")
    assert not (tmp_path / "l").exists()
    said = str(refused.value)
    needed = int(re.search(r"at least ([\d,]+) for", said)[1].replace(",", ""))
    release(meters(people=needed), **options)
    with pytest.raises(UselessError):
        release(meters(people=needed // 2), **options)
    days = int(re.search(r"at least ([\d,]+) days", said)[1].replace(",", ""))
    release(meters(people=1, hours=24 * days), **options)
    if found := re.search(r"`protect` (\w+)", said):
        release(meters(people=1), **options | {"protect": found[1]})
    if "no cells" in said:
        release(meters(people=1), **options | {"statistics": ["mean"]})
    release(meters(people=1), **options, accept_noise=True)


def test_a_plan_is_what_a_release_gets():
    frame = meters(people=30)
    made = release(frame, statistics=["mean-by-hour"], protect="1d", accept_noise=True)
    planned = pf.plan(
        MIXING,
        ["mean-by-hour"],
        bounds=(0, 3),
        step="1h",
        participants=30,
        period="7d",
        protect="1d",
    )
    row = next(row for row in planned.rows if row.asked)
    assert row.error == pytest.approx(made.tables[0].error.half_width[0, 0])
    assert [r.protect for r in planned.rows] == ["reading", "1d", "participant"]
    dry = release(frame, statistics=["mean-by-hour"], protect="1d", dry_run=True)
    assert [(r.protect, r.error) for r in dry.rows] == [(r.protect, r.error) for r in planned.rows]


def test_a_simulation_is_repeatable_and_pays_nothing(tmp_path):
    options = {"seed": 7, "ledger": tmp_path / "l", "output": tmp_path / "made"}
    made = release(meters(), **options)
    again = release(meters(), **options | {"output": None})
    np.testing.assert_array_equal(made.tables[0].counts, again.tables[0].counts)
    assert not (tmp_path / "l").exists()
    assert not (tmp_path / "made" / "publish").exists()
    assert "NOT PRIVATE" in made.statement


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"share": 0}, "share is 0"),
        ({"share": "2"}, "at most 1"),
        ({"limit": 0.5}, "below epsilon"),
        ({"alone": True}, "none is kept"),
        ({"protect": "day"}, "protect is"),
        ({"protect": "1 fortnight"}, "protect is"),
        ({"side_information": "some"}, "side_information"),
        ({"statistics": ["above"]}, "now called exceedances"),
        ({"statistics": ["mean", "mean"]}, "name each once"),
        ({"statistics": [], "bounds": None}, "there must be some"),
        ({"statistics": ["mean-by-day"]}, "cells of mean"),
        ({"statistics": ["histogram"], "bounds": None}, "what the states are"),
        ({"bounds": (3, 0)}, "lower one first"),
        ({"bounds": None}, "needs `bounds`"),
        ({"threshold": 1}, "no statistic that is asked for takes `threshold`"),
        ({"longest": 0}, "longest"),
        ({"theta": None}, "what is assumed of the readings is not said"),
        ({"mechanism": "gk16"}, "unknown option"),
    ],
)
def test_bad_options_get_one_sentence(options, sentence):
    with pytest.raises(pf.PufferflowError, match=sentence) as refused:
        release(meters(), **options)
    assert "\n" not in str(refused.value)


def test_the_request_reads_no_data():
    with pytest.raises(ParameterError, match="epsilon"):
        Request.of("no such file.csv", MIXING, 0.0, {})


def test_costs_are_exact():
    statistic = parse_statistics(["mean"], (0, 1), None, None)
    assert cost_of(statistic, [2000.0]) == Fraction(1, 2)


# -- what can go wrong in between ------------------------------------------------------------------


def test_what_fails_after_it_is_paid_for_counts_as_spent(tmp_path, monkeypatch):
    ledger = tmp_path / "l"

    def fail(counts, scale):
        raise KeyboardInterrupt

    monkeypatch.setattr(releasing, "add_noise", fail)
    with pytest.raises(KeyboardInterrupt):
        release(meters(), ledger=ledger, output=tmp_path / "out")
    assert pf.Ledger(ledger).spent > 0.99
    assert not (tmp_path / "out").exists()


def test_without_exact_samplers_nothing_is_spent(tmp_path, monkeypatch):
    monkeypatch.setattr("pufferflow._optional.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"opendp is not installed.*publish"):
        release(meters(), ledger=tmp_path / "l")
    assert not (tmp_path / "l").exists()


def test_a_refused_release_leaves_no_ledger_and_no_folder(tmp_path):
    frame = meters()
    frame.loc[frame.index[5], "kwh"] = None
    frame["kwh"] = frame["kwh"].astype(object)
    frame.iloc[7, 1] = "no number"
    with pytest.raises(DataError) as refused:
        release(frame, ledger=tmp_path / "l", output=tmp_path / "out")
    assert "no number" not in str(refused.value).replace("is no number", "")
    assert list(tmp_path.iterdir()) == []


def test_states_that_cannot_occur_are_said():
    chain = pf.MarkovChain([[0.5, 0.5, 0], [0.4, 0.6, 0], [0.5, 0.5, 0]])
    options = {"statistics": ["histogram"], "bounds": None, "accept_noise": True, "edges": [1, 2]}
    assert any("cannot occur" in text for text in release(meters(), theta=chain, **options).warnings)
