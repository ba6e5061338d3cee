"""Calls that are written in text files, with the public names of all rooms; the models of
``tests/reference/scales.csv`` and how they are drawn: one of every kind, the same everywhere.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import pufferflow as pf

ROOMS = (pf.audit, pf.mechanisms, pf.models, pf.networks)
NAMES = {name: getattr(room, name) for room in ROOMS for name in dir(room)}
NAMES |= {"np": np, "pd": pd, "pf": pf}
TEXT = Path(__file__).with_name("frozen_families.txt").read_text("utf-8")
BUILDERS = dict(line.split(" = ", 1) for line in TEXT.replace("\n    ", " ").splitlines())
"""Calls, by the names of the models."""

LINE = np.diag(np.full(11, 0.3), 1) + np.diag(np.full(11, 0.2), -1)


def called(text, names):
    """What a call gives, with the names of a test besides."""
    return eval(text, NAMES | names)


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


def intervals(states, seed, width, backward=False):
    rng, ways = np.random.default_rng(seed), []
    for _ in range(1 + backward):
        centre = drawn(states, rng, 0.5)
        ways.append((np.maximum(centre - width, centre / 10), np.minimum(centre + width, 1.0)))
    reverse = pf.IntervalFamily(*ways[1]) if backward else None
    return pf.IntervalFamily(*ways[0], backward=reverse)


def periodic(states, pieces, repeat, start="stationary", move=0.2, zeros=0.0):
    matrices = [drawn(states, 100 + piece, move, zeros) for piece in range(pieces)]
    return pf.PeriodicChain(matrices, repeat=repeat, initial_distribution=start)


def of_order(states, order, start="stationary", seed=3):
    rows = np.random.default_rng(seed).dirichlet(np.full(states, 2.0), (states,) * order)
    return pf.HiddenChain.of_order(rows, start)


@cache
def built(name):
    return called(BUILDERS[name], globals())
