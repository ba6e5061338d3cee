"""Releases made without any table: for tests of pages, folders and files."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from pufferflow._protection import Level
from pufferflow.publish.noise import table_error
from pufferflow.publish.result import NoisyTable, Release
from pufferflow.publish.statistics import LABELS, Histogram, Mean, Statistic, Table
from pufferflow.records.states import StateSpace


def noisy(kind: Statistic, cells, columns, sizes, counts, scale=100.0) -> NoisyTable:
    """A table with the given counts as its noisy ones."""
    sizes, counts = np.asarray(sizes), np.asarray(counts).reshape(len(cells), len(columns))
    ranges = np.broadcast_to(kind.ranges(sizes, np.minimum(sizes, 9), len(columns)), counts.shape)
    public = (kind, tuple(cells), tuple(columns), sizes, counts)
    return NoisyTable(*public, scale, table_error(Table(*public, ranges), scale), ranges)


def means(cells=None, by="hour", size=7000, scale=5e4) -> NoisyTable:
    """Means between 0 and 3, of cells of one size."""
    kind, cells = Mean(by=by, bounds=(0, 3)), cells or LABELS[by]
    drawn = np.random.default_rng(1).integers(100, 900, len(cells)) * size
    return noisy(kind, cells, kind.columns(None, None), [size] * len(cells), drawn, scale)


def shares(states, by="all", size=10**5, scale=100.0) -> NoisyTable:
    """A histogram of named states, or of bins between numbers."""
    named = isinstance(states[0], str)
    space = StateSpace.categories(states) if named else StateSpace.numeric(states)
    kind, cells = Histogram(by=by), LABELS[by]
    columns = kind.columns(space, None)
    part = np.random.default_rng(1).dirichlet(np.ones(len(columns)), len(cells))
    return noisy(kind, cells, columns, [size] * len(cells), (part * size).astype(int), scale)


WEEK = Release(
    tables=(means(),), level=Level(48), epsilon=1.0, participants=500, readings=168_000, unit="kWh",
    step_seconds=1800, first="2024-01-01T00:00:00", last="2024-01-07T23:30:00", clock="local",
    theta_text="any process whose values 1 hour apart overlap by at least 0.4",
    theta_document={"m": 1}, theta_is_public=True, certificate={"proof": 1}, ledger=True,
    spent=Fraction(1), limit=1.0, date="2024-02-01",
)  # fmt: skip
"""A weekly profile by hour."""


def made(*tables: NoisyTable, **other) -> Release:
    """The same with other tables, or with other attributes."""
    return replace(WEEK, **({"tables": tables} if tables else {}), **other)
