"""The models of ``tests/reference/scales.csv``: one of every kind, by name, the same everywhere."""

from functools import cache
from pathlib import Path

import numpy as np
from written_calls import called

import pufferflow as pf
from pufferflow.models import confidence_family

LINES = Path(__file__).with_suffix(".txt").read_text("utf-8").replace("\n    ", " ").splitlines()
BUILDERS = dict(line.split(" = ", 1) for line in LINES)
"""Calls, by the names of the models."""

LINE = np.diag(np.full(11, 0.3), 1) + np.diag(np.full(11, 0.2), -1)
THETA1, CYCLE = [[0.9, 0.1], [0.4, 0.6]], [[0, 1, 0], [0.5, 0, 0.5], [0.5, 0.5, 0]]


def drawn(states, seed, move=1.0, zeros=0.0):
    """A random matrix that stays with probability 1 − ``move`` and has a share of zeros."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(states), states)
    rows[rng.random(rows.shape) < zeros] = 0.0
    rows += 1e-3 * np.eye(states) * (rows.sum(axis=1) == 0)
    rows /= rows.sum(axis=1, keepdims=True)
    return (1 - move) * np.eye(states) + move * rows


def decaying(states):
    weights = np.linspace(1.0, 0.0, states) ** 4
    return weights / weights.sum()


def sparse():
    """Of six states, each of which moves to the next with probability .01 at least."""
    return drawn(6, 6, 0.8, 0.5) * 0.99 + 0.01 * np.roll(np.eye(6), 1, axis=1)


def intervals(states, seed, width, backward=False):
    rng = np.random.default_rng(seed)

    def bounds():
        centre = drawn(states, rng, 0.5)
        low, high = np.maximum(centre - width, centre / 10), np.minimum(centre + width, 1.0)
        return np.where(high < 1, low, np.minimum(low, 1.0)), high

    forwards, backwards = bounds(), bounds() if backward else None
    backward = pf.IntervalFamily(*backwards) if backwards else None
    return pf.IntervalFamily(*forwards, backward=backward)


def counted(states, seed, records, backward):
    counts = np.round(records * drawn(states, seed, 0.2)).astype(int)
    return confidence_family(counts, backward=backward)


def total_variation(states, seed, radius):
    return pf.TotalVariationFamily(drawn(states, seed, 0.5), radius)


def periodic(states, pieces, repeat, start="stationary", move=0.2, zeros=0.0):
    matrices = [drawn(states, 100 + piece, move, zeros) for piece in range(pieces)]
    return pf.PeriodicChain(matrices, repeat=repeat, initial_distribution=start)


def observed(states, labels, start="stationary", move=0.2):
    return pf.HiddenChain(pf.MarkovChain(drawn(states, 7, move), start), labels)


def of_order(states, order, start="stationary", seed=3):
    rows = np.random.default_rng(seed).dirichlet(np.full(states, 2.0), (states,) * order)
    return pf.HiddenChain.of_order(rows, start)


def emitting(start):
    shown = [[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]]
    return pf.HiddenChain.hidden(pf.MarkovChain([[0.9, 0.1], [0.3, 0.7]], start), shown)


def lasting(start):
    jumps = [[0.0, 0.6, 0.4], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    lasts = [[0.2, 0.3, 0.5], [0.6, 0.4, 0], [0, 0, 1.0]]
    return pf.HiddenChain.with_durations(jumps, lasts, start)


@cache
def built(name):
    return called(BUILDERS[name], globals())
