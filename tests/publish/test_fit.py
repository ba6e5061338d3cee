"""Fits to public readings: counts, chains, the mixing families they lie in; and private fits.

Those bound contributions, add noise, give intervals that cover both, and look at nothing else.
"""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st
from processes import transition_counts

import pufferflow as pf
from pufferflow.accounting.account import Level, Promise
from pufferflow.errors import BudgetError
from pufferflow.models.estimation import noisy_confidence_bounds
from pufferflow.models.mixing import mixing_from_counts, mixing_of
from pufferflow.publish import private_fit
from pufferflow.publish.noise import Noise, noise_scale
from pufferflow.publish.private_fit import _margins, fit_privately
from pufferflow.records.counts import path_counts
from pufferflow.records.read import Steps


def walk(n):
    """Numbers that wander between 0 and 500, with times."""
    values = np.abs(np.cumsum(np.random.default_rng(1).normal(size=n)) * 30) % 500
    return pd.DataFrame({"time": pd.date_range("2024", periods=n, freq="30min"), "value": values})


def is_fitted(chain, counts):
    return np.allclose(chain.transition_matrix * counts.sum(axis=1, keepdims=True), counts)


def test_the_chain_is_that_of_the_counts(tmp_path):
    table, edges = walk(3000), [100, 200, 400]
    made = pf.fit(table, edges=edges)
    [chain] = made.family.chains
    assert is_fitted(chain, transition_counts(np.digitize(table["value"], edges), 4))
    assert "3,000 of 1 participant(s), 2024-01-01T00:00:00 to 2024-03-03T11:30:00" in made.summary()
    path = made.save(tmp_path / "model.json")
    assert path.stat().st_mode & 0o077 == 0
    assert pf.models.read_public_model(path).records == made.model.records
    assert "confidential" in repr(made)


def test_a_chain_that_would_not_be_ergodic_is_smoothed():
    never_left, of_period_2 = [[1, 2, 0], [1, 2, 1], [0, 0, 0]], [[0, 2], [1, 0]]
    for values, found in [("aababbbc", never_left), ("abab", of_period_2)]:
        made = pf.fit(pd.Series([*values]), states=sorted({*values}))
        assert is_fitted(made.family.chains[0], np.array(found) + 0.5)


def test_groups_have_a_chain_each_and_coverage_has_intervals():
    who, values = np.repeat([*"abcdefgh"], 50), np.random.default_rng(2).integers(0, 2, 400)
    table = pd.DataFrame({"who": who, "kind": np.where(who < "d", "x", "y"), "value": values})
    asked = {"participant": "who", "states": ["0", "1"], "rows_are_steps": True}
    made = pf.fit(table, group="kind", **asked)
    each = [
        sum(transition_counts(values[who == p], 2) for p in names) for names in ("abc", "defgh")
    ]
    assert all(map(is_fitted, made.family.chains, each))
    for start in ("stationary", "any"):
        family = pf.fit(table, coverage=0.9, start=start, **asked).family
        expected = pf.models.confidence_family(sum(each), 0.9, backward=start == "stationary")
        assert np.array_equal(family.low, expected.low)
        assert (family.backward is None) == (start == "any")


def test_the_mixing_families_are_those_of_the_chains_and_of_their_counts():
    table = walk(4000).assign(**{n: np.repeat(["p", "q"], 2000) for n in ("who", "kind")})
    made = pf.fit(table, edges=[150, 300], participant="who", group="kind")
    halves = np.digitize(table["value"], [150, 300]).reshape(2, -1)
    each = [transition_counts(half, 3) for half in halves]
    for row in made.mixing:
        steps = row["steps"]
        assert row["overlap"] == mixing_of(made.family, steps).overlap
        alone, both = (
            min(mixing_from_counts(n, steps, coverage).overlap for n in each)
            for coverage in (0.95, 0.975)
        )
        assert both - 1e-12 <= row["bound"] <= alone + 1e-12  # of all groups together
    overlaps = {row["after"]: row["overlap"] for row in made.mixing}
    printed = [line.split() for line in made.summary().splitlines() if "--mixing" in line]
    for _, time, overlap, *_ in printed:  # what is printed never exceeds what holds
        assert overlaps[time] - 0.01 < float(overlap) <= overlaps[time]


WHO = {"states": ["a", "b"], "participant": "who"}
TIMED = WHO | {"first": "2024-01-01", "last": "2024-01-01", "step": "1h", "timezone": "UTC"}


def frame(rows):
    """A table of participants, minutes since the day began and values."""
    times = pd.Timestamp("2024") + pd.to_timedelta([minute for _, minute, _ in rows], unit="min")
    who, _, values = zip(*rows, strict=True)
    return pd.DataFrame({"who": who, "time": times.strftime("%Y-%m-%dT%H:%M:%S"), "value": values})


REGULAR = [(f"p{i}", 60 * h, "ab"[i * h % 2]) for i in range(300) for h in range(24)]


def plain(rows, most):
    """Reference: of each participant the first transitions of what is left, by hours."""
    found, kept = np.zeros((2, 2), dtype=int), {}
    for who, minute, value in rows:
        if value in ("a", "b") and minute % 60 == 0 and 0 <= minute < 1440:
            kept.setdefault(who, {}).setdefault(minute // 60, []).append("ab".index(value))
    for hours in kept.values():
        alone = {hour: states[0] for hour, states in hours.items() if len(states) == 1}
        for pair in [(alone[h], alone[h + 1]) for h in sorted(alone) if h + 1 in alone][:most]:
            found[pair] += 1
    return found.ravel().tolist()


minutes = st.integers(-3, 26).map(lambda h: 60 * h) | st.sampled_from([0, 30, 60, 61, 120])
readings = st.tuples(st.sampled_from("xyz"), minutes, st.sampled_from(["a", "b", "", "c"]))


@examples(20, 400)
@given(st.lists(readings, min_size=1, max_size=40), st.integers(1, 9))
def test_transitions_are_those_of_a_plain_count_in_any_order(rows, most):
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Noise, "add", lambda _, n: drawn.append(n.ravel().tolist()) or n * 0 + 9)
        for some in (rows, rows[::-1], sorted(rows, key=lambda r: r[1])):
            fit_privately(frame(some), 500.0, **TIMED, most_transitions=most)
    assert drawn == [plain(rows, most)] * 3


@pytest.mark.parametrize(("k", "steps"), [(2, 6), (3, 5)])
def test_a_reading_changes_four_transitions_at_most_and_a_participant_twice_n(k, steps):
    """Every pair of records of so many steps with missing readings, every N."""
    records = np.array(list(itertools.product(range(-1, k), repeat=steps)))
    who, step = np.nonzero(records >= 0)
    space, people = pf.records.StateSpace.categories([*"abc"[:k]]), (*map(str, records),)
    made = Steps.of(step, person=who, state=records[who, step], states=space, people=people)
    distance = (records[:, None] != records).sum(axis=2)
    for most in range(1, steps):
        each = path_counts(made, each=True, most=most).reshape(len(records), -1)
        changed = np.abs(each[:, None] - each).sum(axis=2)
        assert changed[distance == 1].max() == min(4, 2 * most)
        assert changed.max() == 2 * most


def outcome(source, folder, epsilon, **options):
    """Everything that is printed, written or refused."""
    folder.mkdir()
    files = {"output": folder / "model", "ledger": folder / "ledger"}
    try:
        fit = fit_privately(source, epsilon, **(TIMED | files | options))
        said = fit.summary(), repr(fit), fit.warnings, fit.paid, files["output"].read_text()
    except pf.PufferflowError as error:
        said = str(error).replace(str(folder), ""), type(error)
    charges = pf.Ledger(files["ledger"]).book.charges if files["ledger"].exists() else []
    return said, charges, {path.name: path.stat().st_mode for path in folder.iterdir()}


BAD = ("", "noon", "1704085200", "31/12/2023", "2024-01-01T05:00+02:00")


def random_rows(who, rng):
    """Any readings of one participant: missing, unknown, repeated, off the grid, at wrong times."""
    size = int(rng.choice([1, 2, 5, 30]))
    minute = 60 * rng.integers(-5, 40, size) + rng.choice([0, 0, 0, 17], size)
    values = rng.choice([*"abcA", "", "nan", "1e3"], size)
    rows = frame([(who, *row) for row in zip(minute, values, strict=True)])
    time = rows["time"] + rng.choice(["", "", "Z", "+05:30", "x"], size)
    return rows.assign(time=time.where(rng.random(size) < 0.9, rng.choice(BAD, size)))


@pytest.mark.parametrize("pairs", counts(60, 500))
def test_no_row_of_a_participant_is_refused_or_seen(pairs, tmp_path, monkeypatch):
    """With the same noise for two tables, everything is the same."""
    monkeypatch.setattr(Noise, "add", lambda _, counts: counts * 0 + 900)
    monkeypatch.setattr(private_fit.secrets, "token_hex", lambda size: "ab" * size)
    rng, kinds = np.random.default_rng(32), set()
    for case in range(pairs):
        others = [random_rows(f"p{i}", rng) for i in range(rng.choice([2, 5, 20]))]
        last = str(rng.choice(["2024-01-01", "2024-01-01T01:00", "2024-01-03"]))
        epsilon, most = float(rng.choice([0.5, 20.0, 200.0])), int(rng.integers(1, 40))
        found = []
        for side in ("own", "other"):
            source = pd.concat([*others, random_rows("me", rng)]).sample(frac=1, random_state=case)
            folder, asked = tmp_path / f"{case} {side}", {"last": last, "most_transitions": most}
            found.append(outcome(source, folder, epsilon, **asked))
        assert found[0] == found[1]
        kinds.add(found[0][0][0].split(",")[0][:30])
    assert len(kinds) > 4  # fits to numbers of participants, too few of them, no two steps


@pytest.mark.parametrize("margin", range(4))
def test_the_intervals_hold_those_of_every_count_within_the_margins(margin):
    for row in np.random.default_rng(margin).integers(-3, 9, (10, 2)):
        noisy = np.array([row, row])
        low, high = noisy_confidence_bounds(noisy, 0.9, margin=margin, others=margin)
        boxes = [range(max(w - margin, 0), max(w + margin, 0) + 1) for w in row]
        for each in itertools.product(*boxes):
            exact = noisy_confidence_bounds(np.array([each, each]), 0.9)
            assert (low <= exact[0] + 1e-12).all()
            assert (exact[1] <= high + 1e-12).all()


CHAINS = {2: [[0.9, 0.1], [0.3, 0.7]], 3: [[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]]}


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize(("k", "confidence"), [(2, 0.5), (3, 0.9)])
def test_the_intervals_hold_the_chain_with_their_confidence(k, confidence, ways):
    """Of 1,000 fits fewer hold by 4 standard deviations with probability below 1e-4."""
    runs, steps, miss, rng = 1000, 20, (1 - confidence) / 2, np.random.default_rng(5)
    matrix = np.array(CHAINS[k])
    stationary = np.linalg.matrix_power(matrix, 999)[0]
    states = [rng.choice(k, p=stationary, size=(runs, 200))]
    for _ in range(steps):
        drawn = rng.random((runs, 200, 1)) >= matrix.cumsum(axis=1)[states[-1], :-1]
        states.append(drawn.sum(axis=-1))
    flat = np.arange(runs)[:, None] * k * k + np.array(states[:-1]) * k + states[1:]
    pooled = np.bincount(flat.ravel(), minlength=runs * k * k)
    scale = noise_scale(Fraction(0.3), 2 * steps)
    margin, others = _margins(k, scale, miss)
    noisy = Noise(scale).add(pooled.reshape(runs, k, k))
    back = matrix.T * stationary / stationary[:, None]

    def held(**reach):
        inside = np.ones(runs, dtype=bool)
        for side, truth in [(noisy, matrix), (noisy.transpose(0, 2, 1), back)][:ways]:
            low, high = noisy_confidence_bounds(side, 1 - miss, ways, **reach)
            inside &= ((low <= truth) & (truth <= high)).all(axis=(1, 2))
        return int(inside.sum())

    least = runs * confidence - 4 * np.sqrt(runs * confidence * (1 - confidence))
    assert held(margin=margin, others=others) >= least > 2 * held()


def test_a_fit_is_one_row_without_a_promise_and_its_file_is_safe_to_publish(tmp_path, monkeypatch):
    files = {"ledger": tmp_path / "ledger", "output": tmp_path / "model"}
    fit_privately(frame(REGULAR), 1.0, **TIMED, **files, dry_run=True)
    assert list(tmp_path.iterdir()) == []
    fit = fit_privately(frame(REGULAR), 1.0, **TIMED, **files)
    how = fit.model.records.fitted_privately
    assert pf.models.read_public_model(files["output"]).records == fit.model.records
    # 23 transitions in a day of hours: one reading changes 4 of them, all readings 46
    book, scale = pf.Ledger(files["ledger"]).book, Fraction(how.noise_scale)
    [entry] = book.releases.values()
    assert (entry.charge.cost, entry.charge.whole) == (4 / scale, 46 / scale)
    assert (entry.charge.first, entry.charge.last) == (1704067200, 1704067200 + 86399)
    assert how.token in entry.query
    assert (entry.promise, book.promises, entry.population.states) == (False, {}, ["a", "b"])
    assert fit.warnings == ()
    # what a promise does not allow is not drawn
    pf.Ledger(files["ledger"]).set_limit(Promise(Level(None), 1.5, Fraction(0)))
    before = files["ledger"].read_bytes()
    monkeypatch.setattr(Noise, "add", None)
    with pytest.raises(BudgetError):
        fit_privately(frame(REGULAR), 1.0, **TIMED, ledger=files["ledger"])
    assert files["ledger"].read_bytes() == before
    monkeypatch.setattr(Noise, "add", lambda *_: np.array([[0, 9], [-9, 0]]))
    assert len(fit_privately(frame(REGULAR), 1.0, **TIMED).warnings) == 1


REFUSED = [
    ({"participant": None}, "the column of the participants"),
    ({"first": None}, "give `step`, `timezone`"),
    ({"last": "2024-01-01T01:00"}, "two steps"),
    ({"group": "who"}, "unknown option 'group'"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_is_not_public_is_refused_before_a_row_is_read(options, said, monkeypatch):
    monkeypatch.setattr(private_fit, "read", None)
    with pytest.raises(pf.PufferflowError, match=said):
        fit_privately(frame(REGULAR), 1.0, **(TIMED | options))
