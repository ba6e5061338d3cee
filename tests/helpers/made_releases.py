"""Releases made without any table: for tests of pages, folders and files."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from pufferflow._protection import Level
from pufferflow.accounting.ledger import Paid
from pufferflow.publish.request import ReleaseOptions
from pufferflow.publish.result import NoisyTable, Readings, Release
from pufferflow.publish.statistics import LABELS, Histogram, Mean, Statistic
from pufferflow.records.states import StateSpace


def noisy(kind: Statistic, cells, columns, sizes, counts, scale=100.0, word="kWh") -> NoisyTable:
    """A table with the given counts as its noisy ones."""
    sizes, counts = np.asarray(sizes), np.asarray(counts).reshape(len(cells), len(columns))
    ranges = np.broadcast_to(kind.ranges(sizes, np.minimum(sizes, 9), len(columns)), counts.shape)
    return NoisyTable(kind, tuple(cells), tuple(columns), sizes, counts, ranges, scale, word)


def means(cells=None, by="hour", size=7000, scale=5e4, word="kWh") -> NoisyTable:
    """Means between 0 and 3, of cells of one size."""
    kind, cells = Mean(by=by, bounds=(0, 3)), cells or LABELS[by]
    drawn = np.random.default_rng(1).integers(100, 900, len(cells)) * size
    return noisy(kind, cells, kind.columns(None, None), [size] * len(cells), drawn, scale, word)


def shares(states, by="all", size=10**5, scale=100.0) -> NoisyTable:
    """A histogram of named states, or of bins between numbers."""
    named = isinstance(states[0], str)
    space = StateSpace.categories(states) if named else StateSpace.numeric(states)
    kind, cells = Histogram(by=by), LABELS[by]
    columns = kind.columns(space, None)
    part = np.random.default_rng(1).dirichlet(np.ones(len(columns)), len(cells))
    return noisy(kind, cells, columns, [size] * len(cells), (part * size).astype(int), scale)


TIMES = 1800, "local", None, "2024-01-01T00:00:00", "2024-01-07T23:30:00"
OVERLAP = "any process whose values 1 hour apart overlap by at least 0.4"
WEEK = Release(
    tables=[means()],
    level=Level(48),
    epsilon=1.0,
    readings=Readings(168_000, 500, (), *TIMES),
    how=ReleaseOptions(),
    assumed=(f"The readings of one participant follow {OVERLAP}.",),
    documents={"theta.json": {"m": 1}, "certificate.json": {"proof": 1}},
    paid=Paid(1, Fraction(1), 1.0),
    date="2024-02-01",
)
"""A weekly profile by hour."""


def made(*tables: NoisyTable, **other) -> Release:
    """The same with other tables, or with other attributes of it or of its parts."""
    for name in ("readings", "paid", "how"):
        part = getattr(WEEK, name)
        own = {k: other.pop(k) for k in [*other] if hasattr(part, k)}
        other.setdefault(name, replace(part, **own))
    return replace(WEEK, tables=tables or WEEK.tables, **other)
