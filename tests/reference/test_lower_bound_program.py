"""Lower bounds against linear programs over all sequences: attained, and never above."""

from itertools import product

import numpy as np
import pytest
from cases import counts, seeds
from sequence_programs import largest_loss, sequence_law, stated_loss

import pufferflow as pf


def random_chain(rng, largest):
    """Dense, sparse, nearly deterministic, transient and slow chains."""
    k = int(rng.integers(2, 4))
    length = int(rng.integers(2, largest[k] + 1))
    matrix = rng.dirichlet(np.full(k, rng.choice([0.1, 0.3, 1.0, 5.0])), k)
    kind = rng.integers(5)
    if kind == 0:
        matrix = matrix * (rng.random((k, k)) < 0.6) + 0.01 * np.eye(k)[rng.permutation(k)]
    elif kind == 1:
        matrix = np.eye(k)[rng.permutation(k)] + rng.choice([0, 1e-3]) * matrix
    elif kind == 2:
        matrix = np.triu(matrix) + 1e-12 * np.eye(k)
    elif kind == 3:
        matrix = 0.97 * np.eye(k) + 0.03 * matrix
    matrix /= matrix.sum(axis=1, keepdims=True)
    laws = ["stationary", rng.dirichlet(np.ones(k)), np.eye(k)[rng.integers(k)]]
    try:
        return pf.MarkovChain(matrix, laws[rng.integers(3)]), length
    except pf.ChainError:  # no unique stationary law
        return pf.MarkovChain(matrix, laws[1]), length


def random_epsilon(rng):
    return float(np.exp(rng.uniform(np.log(0.02), np.log(8))))


def check(chain, length, epsilon, window, knows):
    found = pf.lower_bound(chain, length, epsilon, window=window, knows=knows)
    assert (found.secret_window, found.knows) == (window, knows)
    if found.scale == 0:
        return
    joint = sequence_law(chain.transition_matrix, chain.initial_distribution, length)
    assert stated_loss(joint, found, found.scale * (1 - 1e-7)) > epsilon
    program = largest_loss(joint, 1 / found.scale, window, knows)
    assert epsilon * (1 - 1e-6) <= program <= epsilon * (1 + 1e-6)  # the tolerance of the solver


@pytest.mark.parametrize("seed", seeds(4, 100))
def test_one_record_needs_what_the_program_says(seed):
    rng = np.random.default_rng([1, seed])
    chain, length = random_chain(rng, {2: 6, 3: 4})
    check(chain, length, random_epsilon(rng), 1, "nothing")


@pytest.mark.parametrize("seed", seeds(2, 100))
def test_windows_need_what_the_program_says(seed):
    rng = np.random.default_rng([2, seed])
    chain, length = random_chain(rng, {2: 6, 3: 4})
    check(chain, length, random_epsilon(rng), int(rng.integers(2, length + 1)), "nothing")


@pytest.mark.parametrize("seed", seeds(2, 100))
def test_whoever_knows_records_learns_what_the_program_says(seed):
    """All sets of known records, not the nearest only."""
    rng = np.random.default_rng([3, seed])
    chain, length = random_chain(rng, {2: 4, 3: 3})
    check(chain, length, random_epsilon(rng), int(rng.integers(1, length + 1)), "any records")


@pytest.mark.parametrize("seed", seeds(2, 100))
def test_any_initial_law(seed):
    """The law that is stated shows it; none of those tried here shows a tenth more."""
    rng = np.random.default_rng([4, seed])
    chain, length = random_chain(rng, {2: 5, 3: 3})
    k = chain.states
    found = pf.lower_bound(pf.MarkovChain(chain.transition_matrix, "any"), length, random_epsilon(rng))
    law = np.full(k, 1 / k) if found.initial_law is None else np.array(found.initial_law)
    joint = sequence_law(chain.transition_matrix, law, length)
    assert stated_loss(joint, found, found.scale * (1 - 1e-7)) > found.epsilon
    laws = [0.999 * np.eye(k)[x] + 0.001 / k for x in range(k)] + list(rng.dirichlet(np.full(k, 0.2), 3))
    for law in laws:
        joint = sequence_law(chain.transition_matrix, law, length)
        assert largest_loss(joint, 1 / found.scale) <= 1.1 * found.epsilon


@pytest.mark.parametrize("seed", seeds(2, 100))
def test_one_set_for_all_entries_is_the_best_of_them(seed):
    rng = np.random.default_rng([5, seed])
    chain, length = random_chain(rng, {2: 6, 3: 5})
    found = pf.lower_bound(chain, length, random_epsilon(rng), alternating=False)
    assert not found.alternating
    assert not found.changing
    joint = sequence_law(chain.transition_matrix, chain.initial_distribution, length)
    k, scale = chain.states, found.scale * (1 + 1e-6)
    if not scale:
        return
    assert stated_loss(joint, found, found.scale * (1 - 1e-7)) > found.epsilon
    for inside in product([0.0, 1.0], repeat=k):
        tilt = np.exp(np.array(inside) / scale)
        tilted = joint
        for t in range(length):
            tilted = tilted * tilt.reshape([k if s == t else 1 for s in range(length)])
        for node in range(length):
            rest = tuple(t for t in range(length) if t != node)
            over, plain = tilted.sum(axis=rest), joint.sum(axis=rest)
            logs = np.log(over[plain > 0] / plain[plain > 0])
            assert logs.max() - logs.min() <= found.epsilon * (1 + 1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3.0])
def test_a_cycle_needs_the_noise_of_a_group(epsilon):
    cycle = pf.MarkovChain(np.eye(3)[[1, 2, 0]])
    for length in (2, 6, 100, 10**6):
        found = pf.lower_bound(cycle, length, epsilon)
        assert found.scale == pytest.approx(min(length, found.before + 1 + found.after) / epsilon, rel=1e-6)
        assert length / epsilon * (1 - 1e-5) <= found.scale <= length / epsilon
        assert sum(repeats * len(sets) for repeats, sets in found.later) == found.after
        assert len(found.later) < 10


def loss_along(matrix, law, length, found, scale):
    """What Laplace noise of this scale leaks of the stated record, on the stated count: a vector an entry."""

    def product(entries, values, rows, cost):
        for t in entries:
            tilt = np.ones(len(matrix))
            tilt[list(found.counted(t))] = np.exp(cost)
            values = (values * tilt) @ rows
            values = values / values.max()
        return values

    def leak(cost):
        behind = product(range(1, found.node), law, matrix, cost)
        ahead = product(range(length, found.node, -1), np.ones(len(matrix)), matrix.T, cost)
        own = np.array([cost * (x in found.states) for x in range(len(matrix))])
        logs = own[list(found.pair)] + np.log(behind[list(found.pair)]) + np.log(ahead[list(found.pair)])
        return logs[0] - logs[1]

    return leak(1 / scale) - leak(0.0)


@pytest.mark.parametrize("seed", seeds(2, 60))
def test_slow_chains_are_followed_to_their_ends(seed):
    """Farther than entries have sets of their own: the last ones again and again, up to the first record."""
    rng = np.random.default_rng([6, seed])
    k, length = int(rng.integers(2, 4)), int(rng.integers(4500, 9000))
    move = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0])), k) * (rng.random((k, k)) < 0.7)
    move = np.triu(move) if rng.random() < 0.7 else move
    matrix = np.eye(k) + 10.0 ** rng.uniform(-6, -2.5) * move
    matrix /= matrix.sum(axis=1, keepdims=True)
    start = rng.dirichlet(np.ones(k)) if rng.random() < 0.5 else "any"
    found = pf.lower_bound(pf.MarkovChain(matrix, start), length, random_epsilon(rng))
    law = found.initial_law if found.initial_law is not None else start if isinstance(start, np.ndarray) else np.ones(k)
    assert loss_along(matrix, np.array(law), length, found, found.scale * (1 - 1e-6)) > found.epsilon
    assert found.scale <= length / found.epsilon


@pytest.mark.parametrize(
    ("matrix", "start", "length", "epsilon"),
    [
        ([[0.9999, 0.0001], [0, 1]], "any", 10**5, 5.0),
        ([[0.9999, 0.0001], [0, 1]], [0.5, 0.5], 10**5, 0.1),
        ([[0.999, 0.001, 0], [0, 0.999, 0.001], [0, 0, 1]], "any", 20_000, 0.1),
        ([[0.999, 0.001, 0], [0, 0.999, 0.001], [0, 0, 1]], [0.4, 0.3, 0.3], 20_000, 5.0),
    ],
)
def test_chains_that_absorb_late_need_about_the_noise_of_a_group(matrix, start, length, epsilon):
    found = pf.lower_bound(pf.MarkovChain(matrix, start), length, epsilon)
    assert 0.95 * length < found.scale * epsilon <= length


def test_absorbing_chains_from_any_start_are_followed_far():
    chain = pf.MarkovChain([[0.999, 0.001], [0, 1]], "any")
    assert 999 < pf.lower_bound(chain, 1000, 1.0).scale <= 1000  # that of a group


def test_what_underflows_hides_no_query_that_does_not():
    """Some values of late records are too unlikely for floats; queries at other nodes still leak thousandfold."""
    chain = pf.MarkovChain([[0, 5e-6, 1 - 5e-6], [1 / 22, 20 / 22, 1 / 22], [0, 0, 1]], "any")
    assert 4000 < pf.lower_bound(chain, 7000, 1.0).scale <= 7000


def test_a_window_of_all_records_is_a_group():
    chain = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
    assert pf.lower_bound(chain, 8, 0.5, window=8).scale == pytest.approx(16)
    assert pf.lower_bound(chain, 8, 0.5, window=20).scale == pytest.approx(16)
    assert pf.lower_bound(chain, 10**5, 0.5, window=10**4).scale >= 4096 / 0.5


@pytest.mark.parametrize("length", counts(15, 50))
def test_more_to_hide_needs_more_noise(length):
    chain = pf.MarkovChain([[0.7, 0.3, 0], [0.2, 0.5, 0.3], [0.1, 0.4, 0.5]])
    scales = [
        pf.lower_bound(chain, length, 1.0, window=w, knows=k).scale
        for k in ("nothing", "any records")
        for w in (1, 2, 9)
    ]
    assert scales[0] < scales[1] < scales[2]
    assert scales[3] < scales[4] < scales[5]
    assert all(a <= b for a, b in zip(scales[:3], scales[3:], strict=True))


def test_bad_windows_and_knowledge():
    chain = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
    with pytest.raises(pf.ParameterError, match="window"):
        pf.lower_bound(chain, 8, 0.5, window=0)
    with pytest.raises(pf.ParameterError, match="knows"):
        pf.lower_bound(chain, 8, 0.5, knows="all")
