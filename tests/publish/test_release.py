"""Releases from a table to the ledger: what is accepted, how much noise it gets, what it pays.

All that is seen of two tables that differ in one reading is the same but for noise, and so is how
often every function is called. Which readings there are is public; what is no state is refused.
"""

import contextlib
import cProfile
import gc
import io
import json
import os
import pickle
import re
import tempfile
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import pufferflow as pf
from pufferflow import cli
from pufferflow.accounting.account import Charge, Level, level_of
from pufferflow.accounting.approximate import event_delta, event_rho
from pufferflow.errors import BudgetError, LedgerError, ParameterError, UselessError
from pufferflow.publish import release as releasing
from pufferflow.publish.noise import Noise, calibrate, noise_scale
from pufferflow.records.schema import Fitted
from pufferflow.records.states import MISSING_TEXTS
from pufferflow.records.units import seconds_of, steps_of, text_of

MIXING, CHAIN = pf.mixing("2h", 0.5), pf.MarkovChain([[0.5, 0.5], [0.4, 0.6]])
NAMES = ["histogram", "mean", "sum", "exceedances", "most-frequent", "durations", "transitions"]
ALL = {"bounds": (0, 3), "threshold": 1, "edges": [1, 2]}
STATES = {"statistics": ["histogram"], "bounds": None, "edges": [1]}
PEOPLE = {"theta": None, "protect": "participant"}


def meters(start="2024-01-01", hours=168, people=20):
    """Hourly readings of meters between 0 and 3."""
    when = pd.date_range(start, periods=hours, freq="h", tz="UTC")
    meter, time = np.repeat([f"m{i:03d}" for i in range(people)], hours), np.tile(when, people)
    values = np.random.default_rng(1).uniform(0, 3, len(meter))
    return pd.DataFrame({"meter": meter, "time": time, "kwh": values})


def release(frame, **options):
    given = {"statistics": ["mean"], "bounds": (0, 3), "participant": "meter"} | options
    return pf.release(frame, given.pop("theta", MIXING), given.pop("epsilon", 1), **given)


def accepted(frame, **options):
    """A release that is made although most may be noise."""
    return release(frame, accept_noise=True, **options)


@pytest.fixture
def exact(monkeypatch, tmp_path):
    """No noise: what is released, or what a private fit is of, is what was counted. A ledger."""
    monkeypatch.setattr(Noise, "add", lambda self, counts, rng=None: counts)
    largest = partial(np.argsort, axis=1, kind="stable")
    monkeypatch.setattr(releasing, "most_frequent", lambda n, top, *_: largest(-n)[:, :top])
    return {"ledger": tmp_path / "l"}


def test_nothing_secret_can_be_reached_from_a_release(tmp_path):
    """Neither exact counts, nor names of participants and files, nor a chain fitted to data."""
    frame = meters("2024-02-01")
    options = STATES | {"ledger": tmp_path / "l", "output": tmp_path / "o", "epsilon": 1e-3}
    fit = pf.fit(meters(), edges=[1], participant="meter")
    held = pickle.dumps(accepted(frame, **options, theta=fit))
    (chain,), exact = fit.family.chains, np.histogram(frame["kwh"], [0, 1, 3])[0]
    for secret in ("m000", str(tmp_path), "matrix", chain.transition_matrix, exact):
        assert (secret.encode() if isinstance(secret, str) else secret.tobytes()) not in held


@pytest.mark.parametrize("level", [{}, PEOPLE], ids=["reading", "participant"])
def test_with_a_range_one_participant_changes_neither_noise_nor_acceptance(tmp_path, level):
    frame = meters(hours=100, people=5)
    shorter = frame[(frame["meter"] != "m003") | (frame["time"] < "2024-01-02")]
    span, both = {"first": "2024-01-01", "last": "2024-01-05T04:00"}, set()
    for table, ledger in ((frame, tmp_path / "one"), (shorter, tmp_path / "other")):
        made = accepted(table, **level, **span, ledger=ledger)
        both.add((made.tables[0].noise, pf.Ledger(ledger).book.spent))
    assert len(both) == 1


def test_readings_out_of_range_change_nothing(exact):
    frame = meters(hours=60, people=3)
    frame["tariff"] = frame["meter"].map({"m000": "a", "m001": "b", "m002": "a"})
    outside = (frame["time"] < "2024-01-01T06:00Z") | (frame["time"] >= "2024-01-02T18:00Z")
    wild = frame.copy()
    wild.loc[outside, "kwh"] = np.linspace(-1e9, 1e9, outside.sum())
    names = NAMES + [f"{name}-by-group" for name in NAMES] + [f"{n}-by-hour" for n in NAMES[:5]]
    options = ALL | {"statistics": names, "group": "tariff"}
    options |= {"first": "2024-01-01T06:00", "last": "2024-01-02T18:00"}
    made = [accepted(table, **options).tables for table in (frame, wild, frame[~outside])]
    seen, *others = [[(t.counts.tolist(), t.sizes.tolist()) for t in tables] for tables in made]
    assert len(seen) == 19
    assert others == [seen, seen]


LOCAL = meters().assign(time=lambda table: table["time"].dt.tz_localize(None))
PERIODIC = pf.PeriodicChain([[[0.5, 0.5], [0.4, 0.6]], [[0.3, 0.7], [0.5, 0.5]]])
FITTED = Fitted("2024-01-03T00:00:00Z", "2024-01-04T00:00:00Z", 25)
HIGH = pf.records.StateSpace.numeric([1])
KNOWN = pf.records.Schema(states=HIGH, step_seconds=3600, fitted=FITTED)
MODEL = {"theta": pf.models.PublicModel(pf.ChainFamily([CHAIN]), KNOWN), "edges": None}
TRANSIENT = pf.MarkovChain([[0.5, 0.5, 0], [0.4, 0.6, 0], [0.5, 0.5, 0]])
ACCEPTED = [
    (LOCAL, {"theta": PERIODIC, "timezone": "UTC"}, []),
    (meters("2024-02-01"), MODEL, []),
    (meters(), MODEL | {"fitted_to_others": True}, ["not verified that"]),
    (meters(), {"theta": TRANSIENT, "edges": [1, 2]}, ["chain excludes"]),
]


@pytest.mark.parametrize(("frame", "options", "warned"), ACCEPTED)
def test_where_a_chain_may_not_hold_the_statement_warns(frame, options, warned):
    said = accepted(frame, **STATES | options).statement
    assert [words for words in ("not verified that", "chain excludes") if words in said] == warned


@pytest.mark.parametrize("share", [1, 0.25])
def test_a_release_is_one_row_of_its_cost_in_its_range(exact, share):
    asked = exact | {"share": share, "protect": "1d", "edges": [1, 2]}
    asked["statistics"] = ["mean-by-hour", "sum", "most-frequent"]
    tables = accepted(meters(), **asked).tables
    cost = sum(Fraction(t.statistic.lipschitz) / Fraction(t.noise.scale) for t in tables)
    book, begin = pf.Ledger(exact["ledger"]).book, 1704067200
    assert [*book.charges] == [Charge(cost, 168 * cost, begin, begin + 167 * 3600)]
    [promise] = book.promises.values()
    assert promise.cost == Fraction(str(calibrate(MIXING.in_steps(3600), Level(24), 1.0).cost))
    assert 0.998 * share * promise.cost < cost <= Fraction(share) * promise.cost
    for _ in range(round(1 / share) - 1):
        accepted(meters(), **asked)
    with pytest.raises(BudgetError, match="no room"):
        accepted(meters(), **asked)


F0 = Fraction(0)
MANY = [f"{name}-by-{cells}" for name in NAMES[:4] for cells in ("hour", "weekday")]
GAUSSIAN = ALL | {"protect": "1d", "delta": 1e-6, "statistics": MANY}


@pytest.mark.parametrize("share", [1, 0.5])
def test_gaussian_noise_where_it_is_less_and_what_it_costs(tmp_path, share):
    ledger = tmp_path / "l"
    made = accepted(meters(), **GAUSSIAN, share=share, ledger=ledger)
    rho = sum(Fraction(t.statistic.square) / 2 / Fraction(t.noise.scale) ** 2 for t in made.tables)
    book, begin = pf.Ledger(ledger).book, 1704067200
    [promise], span = book.promises.values(), (begin, begin + 167 * 3600)
    assert [*book.charges] == [Charge(F0, F0, *span, rho, 168**2 * rho)]
    allowed = event_rho(1.0, 1e-6, float(promise.cost)) * share**2
    assert (promise.delta, made.delta, made.paid.delta) == (1e-6,) * 3
    assert 0.998 * allowed < rho <= allowed
    document = made.documents["certificate.json"]
    assert pf.verify_certificate(document).subject.endswith("delta 0.000001")
    more = event_delta(1.0, 1e-6, float(promise.cost)) * (1.1 if share < 1 else 0.1)
    less = 9e-7 if share == 1 else 1e-30
    wrong = {"rho": 1.1 * rho / share**2, "event_delta": more, "delta": less}
    for name, value in zip(wrong, map(str, map(float, wrong.values())), strict=True):
        forged = document | {"approximate": document["approximate"] | {name: value}}
        with pytest.raises(pf.errors.CertificateError, match=r"delta above .* is not excluded"):
            pf.verify_certificate(forged)
    plain = accepted(meters(), **GAUSSIAN | {"delta": None}, share=share)
    others = [replace(t, noise=t.other).middle for t in made.tables]
    assert others == [t.middle for t in plain.tables]
    assert sum(i for _, i in others) > sum(t.middle[1] for t in made.tables)
    assert made.statement.count("Laplace noise would have an error of") == len(MANY)
    assert "δ" not in plain.statement
    assert "delta" not in plain.to_dict()
    for _ in range(round(share**-2) - 1):  # four halves: what adds up is ρ
        accepted(meters(), **GAUSSIAN, share=share, ledger=ledger)
    with pytest.raises(BudgetError, match="no room"):
        accepted(meters(), **GAUSSIAN, share=share, ledger=ledger)
    accepted(meters("2024-01-08"), **GAUSSIAN, ledger=ledger)
    with pytest.raises(LedgerError, match="with a delta of 1e-06, not 1e-07"):
        accepted(meters("2024-01-15"), **GAUSSIAN | {"delta": 1e-7}, ledger=ledger)
    assert accepted(meters("2024-01-15"), **GAUSSIAN | {"delta": None}, ledger=ledger).delta == 0


def test_laplace_noise_where_it_is_less_or_no_other_fits(tmp_path):
    few = accepted(meters(), delta=1e-6, ledger=tmp_path / "l")
    assert few.tables[0].noise == accepted(meters()).tables[0].noise
    assert "Gaussian noise would have an error of" in few.statement
    assert (few.delta, few.paid.delta) == (0, 1e-6)
    named = accepted(meters(), **GAUSSIAN | {"statistics": [*MANY, "most-frequent"]}).tables
    assert {(table.noise.gaussian, table.other) for table in named} == {(False, None)}


@pytest.mark.parametrize("level", [PEOPLE, {}], ids=["participant", "day"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_noise_of_a_release_and_of_its_simulation(level, delta, monkeypatch):
    """Squares of normal variables, and absolute values of two-sided exponential ones."""
    asked = GAUSSIAN | level | {"delta": delta}
    made = [accepted(meters(), **asked, seed=seed).tables for seed in (None, 3)]
    monkeypatch.setattr(Noise, "add", lambda self, counts, rng: counts)
    exact = accepted(meters(), **asked).tables
    for tables in made:
        pairs = zip(tables, exact, strict=True)
        noise = np.concatenate([((t.counts - e.counts) / t.noise.scale).ravel() for t, e in pairs])
        total, freedom = (2 * abs(noise), 2) if delta is None else (noise**2, 1)
        assert 1e-8 < chi2.cdf(total.sum(), freedom * len(noise)) < 1 - 1e-8


def test_without_times_all_releases_are_of_the_same_readings(exact):
    untimed = pd.DataFrame({"kwh": np.linspace(0, 3, 500), "meter": "m"})
    accepted(untimed, theta=pf.mixing(2, 0.5), **exact)
    with pytest.raises(BudgetError, match="times"):
        accepted(untimed, theta=pf.mixing(2, 0.5), **exact)


def test_a_private_fit_and_then_weekly_releases(exact, tmp_path):
    """Hole 5: a fit outside the ledger is refused, for its ε would not be added."""
    options = {"participant": "meter", "edges": [1], "step": "1h", "timezone": "UTC"}
    options |= {"first": "2023-12-01", "last": "2023-12-07", "most_transitions": 140}
    frame = meters("2023-12-01", people=400)
    for ledger in (None, tmp_path / "other"):
        fit = pf.fit_privately(frame, 5.0, **options, ledger=ledger)
        with pytest.raises(LedgerError, match="not in this ledger"):
            release(meters(), **STATES | {"theta": fit}, **exact)
    fit = pf.fit_privately(frame, 1.0, **options, **exact)
    for monday in pd.date_range("2024-01-01", periods=4, freq="7D"):
        accepted(meters(monday), **STATES | {"theta": fit}, **exact)


@pytest.mark.parametrize("cases", counts(30, 2_000))
def test_stored_costs_are_never_above_stored_limits(cases):
    """Five draws of Lipschitz constants each; beyond ε = e^2.4 slow families are refused."""
    rng = np.random.default_rng(7)
    for _ in range(cases):
        theta = pf.mixing(int(rng.integers(1, 100)), float(rng.uniform(0.05, 1)))
        epsilon = float(np.exp(rng.uniform(-4, 2.4)))
        allowed = calibrate(theta, Level(int(rng.integers(1, 50))), epsilon).cost
        for _ in range(5):
            lipschitz = [int(n) for n in rng.integers(1, 2000, size=rng.integers(1, 7))]
            scales = [noise_scale(allowed, constant, len(lipschitz)) for constant in lipschitz]
            cost = sum(n / Fraction(s) for n, s in zip(lipschitz, scales, strict=True))
            assert 0.998 * allowed < cost <= Fraction(str(allowed))


def test_pure_noise_is_refused_and_the_remedies_hold(exact):
    """Meters of one week by hour: what the sentence proposes is then accepted."""
    options = {"statistics": ["mean-by-hour"], "protect": "1d", "unit": "kWh"}
    with pytest.raises(UselessError, match="pure noise") as refused:
        release(meters(people=30), **options, **exact)
    assert not exact["ledger"].exists()
    tried = release(meters(), **ALL | {"statistics": NAMES}, unit="kWh", dry_run=True)
    assert {row["unit"] for row in tried.rows} == {"", "kWh", "readings", "runs"}
    (said,) = release(meters(people=30), **options, dry_run=True).warnings
    assert said == str(refused.value)
    helps = r"at least (\d+) for .*`protect` (\w+), no cells \((\w+)\), .*at least (\d+) days"
    needed, protect, coarser, days = re.search(helps, said).groups()
    with pytest.raises(UselessError):
        release(meters(people=int(needed) - 3), **options)
    release(meters(people=int(needed)), **options)
    release(meters(people=30, hours=24 * int(days)), **options)
    release(meters(people=30), **options | {"protect": protect})
    release(meters(people=30), **options | {"statistics": [coarser]})

    wide = {"statistics": ["mean"], "protect": "100d"}  # above the length of the records
    with pytest.raises(UselessError, match="`protect` participant"):
        release(meters(people=50), **wide)
    release(meters(people=50), **wide | PEOPLE)
    first = {"statistics": ["mean"], "protect": "1d", "share": 0.5, "longest": 2}
    with pytest.raises(UselessError, match=r"a larger `share`, a larger `longest`") as refused:
        release(meters(people=30), **first)
    (longer,) = map(int, re.findall(r"`longest` \(at least (\d+)\)", str(refused.value)))
    release(meters(people=30, hours=longer), **first | {"longest": longer})


@pytest.mark.parametrize("hours", [1, 2, 5, 12])
def test_a_plan_is_of_the_cells_that_occur(hours):
    """What it says of a table, which it does not see, is what a dry run says."""
    every = meters(hours=840).iloc[::hours]
    options = {"statistics": ["mean-by-hour", "histogram-by-weekday"], "bounds": (0, 3)}
    tried = release(every, **options, edges=[1], dry_run=True)
    known = {"step": f"{hours}h", "period": "35d", "participants": 20, "states": 2}
    assert pf.plan(MIXING, **options, **known).rows == tried.rows


def test_a_plan_takes_the_states_of_its_chain():
    """Without them it asked for their number, and with another one it showed another error."""
    chain = pf.fit(meters(), participant="meter", value="kwh", edges=[1])
    known = {"step": "1h", "period": "7d", "participants": 100}
    assert pf.plan(chain, **known).rows == pf.plan(chain, **known, states=2).rows
    with pytest.raises(ParameterError, match="the model contradicts `states`; leave it out"):
        pf.plan(chain, **known, states=5)


def test_a_sampler_that_is_missing_shows_before_anything_is_paid_for(tmp_path, monkeypatch):
    monkeypatch.setattr("pufferflow._util.optional.find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"opendp, which is not installed.*publish"):
        release(meters(), ledger=tmp_path / "l", output=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_times_and_levels():
    """More steps for a window hide more; more steps for mixing assume less: they are rounded up."""
    times = {"90s": 90, "30min": 1800, "1.5h": 5400, "7d": 604_800, 60: 60, "60": 60}
    for text, seconds in times.items():
        assert seconds_of(text, "step") == seconds == seconds_of(text_of(seconds), "step")
    for step, steps in ((2400, 2), (3600, 1), (86_400, 1)):
        assert steps_of("1h", step, "x") == steps
        assert pf.mixing("1h", 0.4).in_steps(step) == pf.MixingFamily(steps, 0.4)
    for protect, window in {"reading": 1, "participant": None, "1d": 24, "3": 3}.items():
        level = level_of(protect, "none", 3600)
        assert level == Level(window) == level_of(level.description(3600), "none", 3600)


ODD = [*"-?+1Ä", "none", "NA", "n/a", "null", "nan", "NaN", "a b", "2.50", "$x$", "=1+1", "other?"]
OF_STATES = ("histogram", "histogram-by-hour", "transitions", "transitions-by-group")
OF_STATES += ("most-frequent", "most-frequent-by-hour")
NUMERIC = (*OF_STATES, "mean-by-hour", "mean", "sum", "exceedances-by-group", "durations")
STRAY = ("no state", "1,5", "0x10", "1e", "--")
WILD = ("1e300", "-inf", "inf", "0", "3.5", "1e-300", "-7", "12345678901234567890")


@st.composite
def cases(draw):
    """A table, one that differs in one reading, in which way, and how both are released."""
    numeric = draw(st.booleans())
    if numeric:
        names, words = [], [*WILD, *map(str, range(-6, 7))]
        edges = sorted(draw(st.sets(st.integers(-5, 5), min_size=1, max_size=3)))
        options = f"--edges={','.join(map(str, edges))} --bounds -3 3 --threshold 1".split()
    else:
        names = draw(st.lists(st.sampled_from(ODD), min_size=2, max_size=4, unique_by=str.lower))
        words, options = names, ["--states", ",".join(names)]
    options += [f"--statistic={name}" for name in (NUMERIC if numeric else OF_STATES)]
    rows = []
    for person in range(draw(st.integers(1, 3))):
        waits = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 20]), min_size=2, max_size=12))
        for step in np.cumsum(waits).tolist():
            rows.append((f"p{person}", step, draw(st.sampled_from([*words, ""]))))
    gone = {text for text in MISSING_TEXTS if text not in {name.lower() for name in names}}
    nearby, edit = [*rows], draw(st.sampled_from(["value", "value", "value", "missing", "stray"]))
    if known := [i for i, row in enumerate(rows) if row[2]]:
        new = {"value": words, "missing": sorted(gone & {"", "na", "?"}), "stray": STRAY}[edit]
        at = draw(st.sampled_from(known))
        nearby[at] = (*rows[at][:2], draw(st.sampled_from(new)))
    if edit == "missing":  # any values of the readings that are left
        rows = [(*row[:2], "" if row[2].lower() in gone else words[0]) for row in nearby]
    level = draw(st.sampled_from(["reading", "3", "participant"]))
    options += ["--protect", level, *["--mixing", "3", "0.5"] * (level != "participant")]
    timed = ["--step", "1min", "--timezone", "UTC"]
    options += draw(st.sampled_from([timed, ["--rows-are-steps"]]))
    return rows, nearby, edit if known else "value", options


def written(rows, path):
    times = [f"{np.datetime64('2022-01-01T00:00:00') + 60 * step}" for _, step, _ in rows]
    table = pd.DataFrame(rows, columns=["who", "time", "reading"])
    table = table.assign(time=times, kind=table["who"].replace("p2", "p0"))
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)


def run(words):
    """Exit code and what is printed of a release whose noisy numbers are all 7; what was drawn."""
    drawn, out, err = [], io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as mp:
        mp.setattr(Noise, "add", lambda of, n, rng: drawn.append((n.shape, of)) or n * 0 + 7)
        mp.setattr(releasing, "most_frequent", lambda n, k, s, _: drawn.append(s) or n[:, :k] * 0)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            words = ["release", *words, "--value", "reading", "--participant", "who"]
            code = cli.main([*words, "--group", "kind", "--epsilon", "1", "--accept-noise"])
    return code, out.getvalue(), err.getvalue(), drawn


def released(rows, suffix, options):
    """What is seen of a release, and all files but for times of entries and their digests."""
    files, table = {}, Path(f"data{suffix}")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        written(rows, table)
        seen = run([str(table), *options])
        for path in {*Path().rglob("*.*")} - {table, Path(f"{table}.release")}:
            content = path.read_bytes()
            if path.suffix == ".ledger":
                rows = [row.content for row in pf.Ledger(path).book.rows]
                content = json.dumps(rows, default=str)
            files[path] = path.stat().st_mode, content
        times = {path.stat().st_mtime_ns for path in Path(f"{table}.release").rglob("*")}
    assert bool(seen[3]) == (seen[0] == 0) == (len(times) == 1)
    return *seen, files


@examples(10, 550)
@given(cases(), st.sampled_from([".csv", ".csv", ".parquet"]))
def test_one_reading_changes_nothing_but_counts(case, suffix):
    rows, nearby, edit, options = case
    code, out, err, _, files = other = released(nearby, suffix, options)
    if edit != "stray":
        assert released(rows, suffix, options) == other
    assert "Traceback" not in err
    if edit == "stray" or code != 0:
        assert (code, out, files, err.count("pufferflow: error:")) == (2, "", {}, 1)


def calls(change, folder):
    """How often each function of the package is called where one of 600 readings is another."""
    values = [str(number) for number in np.random.default_rng(2).integers(0, 9, 600)]
    values[317] = change
    folder.mkdir()
    written([("p", step, value) for step, value in enumerate(values)], folder / "data.csv")
    words = "--mixing 5 0.4 --edges 2:8:2 --bounds 0 9 --timezone UTC --no-ledger "
    words += "--statistic most-frequent "
    words += f"--statistic mean-by-hour --statistic histogram --output {folder}/release"
    profile = cProfile.Profile()
    gc.collect()
    gc.disable()  # what other tests left behind is not to be closed, and counted, meanwhile
    try:
        assert profile.runcall(run, [f"{folder}/data.csv", *words.split()])[0] == 0
    finally:
        gc.enable()
    made = {row.code: row.callcount for row in profile.getstats() if not isinstance(row.code, str)}
    here = os.path.dirname(pf.__file__)
    return {code: count for code, count in made.items() if code.co_filename.startswith(here)}


def test_one_reading_changes_no_call(tmp_path):
    """What is kept from one release to the next is there before the first is looked at."""
    changes = ("5", "4", "1e300", "inf", "-7", "1000000", "3.25")
    _, usual, *others = (calls(change, tmp_path / change) for change in changes)
    assert sum(usual.values()) > 300
    assert all(other == usual for other in others)
