"""Leakage bounds against a linear program over all sequences, which knows no Markov property and no coupling."""

import numpy as np
import pytest
from cases import counts, seeds
from sequence_programs import largest_loss, largest_loss_of_counts, plain_loss, sequence_law

import pufferflow as pf
from pufferflow.errors import ChainError


def random_case(seed):
    rng = np.random.default_rng(seed)
    k, length = [(2, 2), (2, 4), (2, 5), (3, 3), (3, 4), (4, 3), (5, 2)][seed % 7]
    matrix = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), k)
    if seed % 3 == 0:  # some impossible steps
        matrix = matrix * (rng.random((k, k)) < 0.6) + 0.01 * np.eye(k)[rng.permutation(k)]
        matrix /= matrix.sum(axis=1, keepdims=True)
    cost = rng.choice([0.01, 0.1, 0.5, 1.5, 4.0])
    return rng, matrix, length, float(cost)


def excess(seed, start):
    """Excess of the bound over the program, and whether both are of a binary chain."""
    rng, matrix, length, cost = random_case(seed)
    k = len(matrix)
    if start == "stationary":
        try:
            chain = pf.MarkovChain(matrix)
        except ChainError:
            return None
        laws = [chain.stationary_distribution]
    elif start == "given":
        law = rng.dirichlet(np.ones(k)) * (rng.random(k) < 0.7)
        law = law / law.sum() if law.any() else np.eye(k)[0]
        chain, laws = pf.MarkovChain(matrix, law), [law]
    else:
        chain = pf.MarkovChain(matrix, "any")
        laws = [0.999 * np.eye(k)[rng.integers(k)] + 0.001 / k, *rng.dirichlet(np.ones(k) * 0.2, 3)]
    program = max(plain_loss(sequence_law(matrix, law, length), cost) for law in laws)
    bound = pf.leakage_loss(chain, length, 1 / cost)
    assert bound >= program * (1 - 1e-6)  # the tolerance of the solver
    return bound / program - 1


@pytest.mark.parametrize("start", ["stationary", "given", "any"])
@pytest.mark.parametrize("seed", seeds(2, 170))
def test_never_below_the_program(seed, start):
    found = excess(seed, start)
    if found is not None and start != "any":
        assert found < 0.15


def wider_case(seed, *size):
    """A chain, dense, sparse, periodic or transient; an initial law, T, c, window and knowledge."""
    rng = np.random.default_rng([seed, *size])
    k, length = size or [(2, 3), (2, 4), (3, 3), (2, 5), (2, 6), (3, 4)][rng.integers(3 if seed < 100 else 6)]
    matrix = rng.dirichlet(np.full(k, rng.choice([0.5, 1.0, 5.0])), k)
    kind = rng.integers(4)
    if kind == 1:
        matrix = matrix * (rng.random((k, k)) < 0.6) + 0.02 * np.eye(k)[rng.permutation(k)]
    elif kind == 2:
        matrix = np.eye(k)[np.roll(np.arange(k), 1)] + rng.integers(2) * 0.3 * (rng.random((k, k)) < 0.2) * matrix
    elif kind == 3:
        matrix[-1] = np.eye(k)[-1]
    matrix = np.where(matrix < 2e-3, 0, matrix)
    matrix /= matrix.sum(axis=1, keepdims=True)
    law = rng.dirichlet(np.ones(k)) * 0.97 + 0.03 / k if rng.random() < 0.7 else np.eye(k)[rng.integers(k)]
    side_information = str(rng.choice(["none", "any"]))
    window = int(rng.integers(1 if side_information != "none" else 2, 4))
    return matrix, law, length, float(rng.choice([0.01, 0.1, 0.5, 1.5])), window, side_information


@pytest.mark.parametrize("start", ["given", "stationary", "any"])
@pytest.mark.parametrize("seed", seeds(3, 170))
def test_windows_and_known_records_never_below_the_program(seed, start):
    matrix, law, length, cost, window, side_information = wider_case(seed)
    try:
        chain = pf.MarkovChain(matrix, law if start == "given" else start)
    except ChainError:
        return
    law = chain.stationary_distribution if start == "stationary" else law
    program = largest_loss(sequence_law(matrix, law, length), cost, window, side_information)
    bound = pf.leakage_loss(chain, length, 1 / cost, window=window, side_information=side_information)
    assert bound >= program * (1 - 1e-6)
    if start != "any" and program >= min(window, length) * cost:  # some windows differ in all places
        assert bound <= 2 * program


@pytest.mark.parametrize("seed", seeds(1, 60))
def test_counts_are_the_program_where_any_records_are_known(seed):
    matrix, law, length, cost, window, _ = wider_case(seed)
    joint = sequence_law(matrix, law, min(length, 4))
    assert largest_loss_of_counts(joint, cost, window) == pytest.approx(
        largest_loss(joint, cost, window, "any"), rel=1e-6
    )


@pytest.mark.parametrize("start", ["given", "stationary", "any"])
@pytest.mark.parametrize(
    ("states", "length", "seed"),
    [(2, 8, 0), (3, 5, 0)]
    + [pytest.param(k, 8, seed, marks=pytest.mark.long) for k, most in ((2, 170), (3, 4)) for seed in range(most)],
)
def test_all_sets_of_known_records(states, length, seed, start):
    """Of eight records, and all values of these: the bound is above what they let be learnt."""
    matrix, law, _, cost, window, _ = wider_case(seed, states, length)
    try:
        chain = pf.MarkovChain(matrix, law if start == "given" else start)
    except ChainError:
        return
    law = chain.stationary_distribution if start == "stationary" else law
    learnt = largest_loss_of_counts(sequence_law(matrix, law, length), cost, window)
    assert pf.leakage_loss(chain, length, 1 / cost, window=window, side_information="any") >= learnt * (1 - 1e-12)


@pytest.mark.parametrize("cases", counts(2, 4))
def test_programs_of_one_record_are_the_whole_programs(cases):
    """The reduction to the records outside of the window, against all sequences."""
    for seed in range(cases):
        _, matrix, length, cost = random_case(seed)
        law = np.full(len(matrix), 1 / len(matrix))
        joint = sequence_law(matrix, law, length)
        assert largest_loss(joint, cost) == pytest.approx(plain_loss(joint, cost), rel=1e-6)
