"""The models of ``tests/reference/scales.csv``: one of every kind, by name, the same everywhere."""

from functools import cache

import numpy as np

import pufferflow as pf
from pufferflow.models import confidence_family

LINE = np.diag(np.full(11, 0.3), 1) + np.diag(np.full(11, 0.2), -1)


def drawn(states, seed, move=1.0, zeros=0.0):
    """A random matrix that stays with probability 1 − ``move`` and has a share of zeros."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(states), states)
    rows[rng.random(rows.shape) < zeros] = 0.0
    rows += 1e-3 * np.eye(states) * (rows.sum(axis=1) == 0)
    rows /= rows.sum(axis=1, keepdims=True)
    return (1 - move) * np.eye(states) + move * rows


def chain(matrix, start="stationary"):
    return lambda: pf.MarkovChain(matrix, start)


def decaying(states):
    weights = np.linspace(1.0, 0.0, states) ** 4
    return weights / weights.sum()


def intervals(states, seed, width, stay=0.5, backward=False):
    rng = np.random.default_rng(seed)

    def bounds():
        centre = drawn(states, rng, 1 - stay)
        low, high = np.maximum(centre - width, centre / 10), np.minimum(centre + width, 1.0)
        return np.where(high < 1, low, np.minimum(low, 1.0)), high

    forwards, backwards = bounds(), bounds() if backward else None
    return lambda: pf.IntervalFamily(
        *forwards, backward=pf.IntervalFamily(*backwards) if backwards else None
    )


def counted(states, seed, records, backward):
    counts = np.round(records * drawn(states, seed, 0.2)).astype(int)
    return lambda: confidence_family(counts, backward=backward)


def total_variation(states, seed, radius):
    return lambda: pf.TotalVariationFamily(drawn(states, seed, 0.5), radius)


def periodic(states, pieces, repeat, start="stationary", move=0.2, zeros=0.0):
    matrices = [drawn(states, 100 + piece, move, zeros) for piece in range(pieces)]
    return lambda: pf.PeriodicChain(matrices, repeat=repeat, initial_distribution=start)


def observed(states, labels, start="stationary", move=0.2):
    return lambda: pf.HiddenChain(pf.MarkovChain(drawn(states, 7, move), start), labels)


def of_order(states, order, start="stationary", seed=3):
    rows = np.random.default_rng(seed).dirichlet(np.full(states, 2.0), (states,) * order)
    return lambda: pf.HiddenChain.of_order(rows, start)


def emitting(start):
    shown = [[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]]
    return lambda: pf.HiddenChain.hidden(pf.MarkovChain([[0.9, 0.1], [0.3, 0.7]], start), shown)


def lasting(start):
    jumps, lasts = (
        [[0.0, 0.6, 0.4], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]],
        [[0.2, 0.3, 0.5], [0.6, 0.4, 0], [0, 0, 1.0]],
    )
    return lambda: pf.HiddenChain.with_durations(jumps, lasts, start)


THETA1, CYCLE = [[0.9, 0.1], [0.4, 0.6]], [[0, 1, 0], [0.5, 0, 0.5], [0.5, 0.5, 0]]
BUILDERS = {
    "binary_sticky": chain([[0.9, 0.1], [0.1, 0.9]]),
    "binary_flipping": chain([[0.1, 0.9], [0.7, 0.3]]),
    "binary_nearly_equal": chain([[0.5, 0.5], [0.5 + 1e-9, 0.5 - 1e-9]]),
    "theta1_given": chain(THETA1, [1, 0]),
    "theta2_given": chain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1]),
    "theta1_any": chain(THETA1, "any"),
    "cycle_of_three": chain(CYCLE),
    "cycle_of_three_any": chain(CYCLE, "any"),
    "permutation": chain(np.eye(3)[[1, 2, 0]]),
    "permutation_any": chain(np.eye(3)[[1, 2, 0]], "any"),
    "absorbing_any": chain([[0.9, 0.1, 0], [0, 0.5, 0.5], [0, 0, 1]], "any"),
    "absorbing_given": chain([[0.9, 0.1, 0], [0, 0.5, 0.5], [0, 0, 1]], [1, 0, 0]),
    "transient": chain([[0.5, 0.3, 0.2], [0, 0.6, 0.4], [0, 0.1, 0.9]]),
    "rare": chain([[1 - 1e-12, 1e-12, 0], [0.3, 0.4, 0.3], [1e-6, 0.5, 0.5 - 1e-6]]),
    "one_state": chain([[1.0]]),
    "four": chain(drawn(4, 4, 0.3)),
    "four_given": chain(drawn(4, 4, 0.3), decaying(4)),
    "four_any": chain(drawn(4, 4, 0.3), "any"),
    "four_slow": chain(drawn(4, 5, 0.02)),
    "four_slow_given": chain(drawn(4, 5, 0.02), [0.7, 0.1, 0.1, 0.1]),
    "four_slow_any": chain(drawn(4, 5, 0.02), "any"),
    "six_sparse": chain(drawn(6, 6, 0.8, 0.5) * 0.99 + 0.01 * np.roll(np.eye(6), 1, axis=1)),
    "six_sparse_any": chain(
        drawn(6, 6, 0.8, 0.5) * 0.99 + 0.01 * np.roll(np.eye(6), 1, axis=1), "any"
    ),
    "line_of_twelve": chain(LINE + np.diag(1 - LINE.sum(axis=1))),
    "twenty": chain(drawn(20, 8, 0.3)),
    "twenty_given": chain(drawn(20, 8, 0.3), decaying(20)),
    "fifty_one": chain(drawn(51, 1, 0.1)),
    "fifty_one_given": chain(drawn(51, 1, 0.1), decaying(51)),
    "fifty_one_any": chain(drawn(51, 1, 0.1), "any"),
    "seventy": chain(drawn(70, 9, 0.5)),
    "seventy_any": chain(drawn(70, 9, 0.5), "any"),
    "chains": lambda: pf.ChainFamily([BUILDERS["theta1_given"](), BUILDERS["theta2_given"]()]),
    "chains_any": lambda: pf.ChainFamily([BUILDERS["four_any"](), BUILDERS["four"]()]),
    "binary_interval": lambda: pf.BinaryInterval(0.2, 0.8),
    "binary_interval_narrow": lambda: pf.BinaryInterval(0.4, 0.6),
    "intervals_of_two": intervals(2, 1, 0.05),
    "intervals_of_three": intervals(3, 2, 0.02, backward=True),
    "intervals_of_four": counted(4, 3, 5000, False),
    "intervals_of_four_backward": counted(4, 3, 5000, True),
    "intervals_of_seven": intervals(7, 4, 0.01),
    "intervals_of_fourteen": intervals(14, 4, 0.001),
    "intervals_that_stay": lambda: pf.IntervalFamily([[0, 0], [0, 0]], [[1, 1], [1, 1]]),
    "total_variation_of_two": total_variation(2, 5, 0.02),
    "total_variation_of_four": total_variation(4, 5, [0.01, 0.02, 0.01, 0.03]),
    "mixing_hour": lambda: pf.MixingFamily(60, 0.4),
    "mixing_step": lambda: pf.MixingFamily(1, 0.1),
    "periodic_of_two": periodic(2, 3, 1),
    "periodic_any": periodic(2, 3, 1, "any"),
    "periodic_sparse": periodic(4, 3, 2, "any", 0.9, 0.3),
    "periodic_day": periodic(4, 24, 60),
    "periodic_day_any": periodic(3, 24, 60, "any"),
    "observed": observed(9, [0, 0, 0, 1, 1, 1, 2, 2, 2]),
    "observed_any": observed(4, [0, 0, 1, 2], "any"),
    "observed_given": observed(4, [0, 1, 1, 0], [0.4, 0.3, 0.2, 0.1]),
    "second_order": of_order(2, 2),
    "second_order_any": of_order(2, 2, "any"),
    "second_order_of_three": of_order(3, 2),
    "third_order": of_order(2, 3, seed=5),
    "hidden_markov": emitting("stationary"),
    "hidden_markov_given": emitting([0.5, 0.5]),
    "durations": lasting("stationary"),
    "durations_any": lasting("any"),
}


@cache
def built(name):
    return BUILDERS[name]()
