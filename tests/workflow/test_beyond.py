"""Studies beyond the paper: related bounds against all sets, pieces of the cohort.

Other studies are in the stored tables of test_shown.py.
"""

import itertools
import math

import numpy as np
import pytest
from cases import seeds

import pufferflow as pf
from reproduction import tidy
from reproduction.beyond import cohort
from reproduction.beyond.peers import (
    TemporalLeakage,
    bayesian_dp_threshold,
    certainty,
    random_cases,
    related_bounds,
)

# -- related bounds: by all sets of states, and never below ours for their own adversary ----------


def plain_temporal_leakage(chain, length, cost):
    """Largest α_i + β_i − c, with L over all sets of states."""
    matrix, start = chain.transition_matrix, chain.stationary_distribution
    sets = np.array(list(itertools.product([0, 1], repeat=len(start)))).T
    leaks = []
    for rows in (matrix.T * start / start[:, None], matrix):
        leak, found = cost, [cost]
        for _ in range(length - 1):
            reach = np.log1p(np.expm1(leak) * (rows @ sets))
            leak = cost + (reach[:, None] - reach[None]).max()
            found.append(leak)
        leaks.append(found)
    return max(back + ahead - cost for back, ahead in zip(leaks[0], leaks[1][::-1], strict=True))


@pytest.mark.parametrize("seed", seeds(10, 500))
def test_temporal_leakage_is_that_of_all_sets_and_never_below_ours(seed):
    (chain, _), *_ = itertools.islice(random_cases(seed + 1, 1, 3), seed, None)
    length, cost = [1, 2, 7, 60][seed % 4], 10 ** (seed % 7 / 2 - 2)
    loss = TemporalLeakage(chain, length).loss(cost)
    assert loss == pytest.approx(plain_temporal_leakage(chain, length, cost), rel=1e-9)
    ours = pf.leakage_loss(chain, length, 1 / cost)
    assert ours <= loss * (1 + 1e-6)
    stay = chain.transition_matrix.trace()
    if chain.states == 2 and stay >= 1:  # the bound is attained there
        assert ours == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("seed", seeds(12, 300))
def test_certainty_is_that_of_the_best_release_and_never_below_all_later_ones(seed):
    """Against all releases of a record, and of three records, that attain e^ε on sets of states."""
    cost, since = 10 ** (seed % 4 / 2 - 1), 1 + seed % 3
    (case,) = itertools.islice(random_cases(3, 30, seed), seed % 3, seed % 3 + 1)
    found = {row["bound"]: row["certainty"] for row in certainty(iter([case]), [cost], [since])}
    matrix = case[0].transition_matrix
    sets = np.exp(cost * np.array(list(itertools.product([0, 1], repeat=len(matrix)))).T)
    three = sets  # columns: what a release reveals of each state
    for _ in range(2):
        three = (sets[:, :, None] * (matrix @ three)[:, None]).reshape(len(matrix), -1)
    best = {}
    for bound, release in (("one-record", sets), ("all-later", three)):
        chances = np.linalg.matrix_power(matrix, since) @ release
        best[bound] = (chances.max(axis=0) / (chances.max(axis=0) + chances.min(axis=0))).max()
    assert found["one-record"] == pytest.approx(best["one-record"], rel=1e-12)
    assert best["all-later"] <= found["all-later"] * (1 + 1e-12)


def test_rows_of_the_study():
    rows = list(related_bounds(random_cases(10, 40, 1), [0.5, 30.0]))
    for row in rows:
        lowest, most = (0, 1) if row["bound"] == "lower-bound" else (1, math.inf)
        assert lowest - 1e-5 <= row["relative_noise"] <= most  # scales are found to 1e-7 of ε
    applies = [row for row in rows if row["bound"] == "bdp" and not row["reason"]]
    assert applies
    for row in applies:
        assert row["scale"] == 1 / (row["epsilon"] - row["smallest_epsilon"])


def test_extreme_chains():
    disjoint = pf.MarkovChain(
        [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]
    )
    assert TemporalLeakage(disjoint, 10**6).scale(1.0) == pytest.approx(10**6, rel=1e-6)
    independent = pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]])
    assert TemporalLeakage(independent, 100).scale(2.0) == 0.5
    assert bayesian_dp_threshold(disjoint) == math.inf
    assert bayesian_dp_threshold(pf.MarkovChain([[0.8, 0.2], [0.4, 0.6]])) == 4 * math.log(4)


# -- cohort ----------------------------------------------------------------------------------------

COHORT = {"participants": 23, "states": 3, "shortest": 20, "longest": 200, "persistence": 0.8}
COHORT |= {"epsilons": [0.5, 2], "lower_bound": False}
COHORT["mechanisms"] = ["group-dp", "gk16", "mqm-approx", "mqm-exact"]


def run(folder, pieces=1, **changes):
    """All pieces of a cohort, written and read again."""
    folder.mkdir()
    files = [folder / f"{piece}.csv" for piece in range(1, pieces + 1)]
    for number, file in enumerate(files, start=1):
        rows = cohort.measure(f"{number}-of-{pieces}", COHORT | changes, {}, 3)
        tidy.write(tidy.frame(rows, "beyond"), file, "beyond")
    gathered = tidy.read_all(files, "beyond")
    tidy.write(gathered, folder / "cohort.csv", "beyond")
    tidy.write(cohort.summarise(gathered), folder / "summary.csv", "cohort_summary")
    return gathered


def test_bytes_do_not_depend_on_the_number_of_pieces(tmp_path):
    for name, pieces in (("one", 1), ("four", 4), ("many", 25)):  # two of 25 are empty
        run(tmp_path / name, pieces)
        for file in ("cohort.csv", "summary.csv"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "one" / file).read_bytes()


def test_more_participants_epsilons_or_mechanisms_change_no_other_row(tmp_path):
    small, mechanisms = run(tmp_path / "small", 2), [*COHORT["mechanisms"], "entry-dp"]
    large = run(tmp_path / "large", 3, participants=30, epsilons=[0.5, 1, 2], mechanisms=mechanisms)
    few, many = (set(rows.astype(str).itertuples(index=False)) for rows in (small, large))
    assert few < many
