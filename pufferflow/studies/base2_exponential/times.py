"""Seconds of one release; they change from run to run and from machine to machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from pufferflow.related.dp.base2_exponential import Base2Exponential, Seeded
from pufferflow.studies.base2_exponential.attacks import NAIVE, naive_draws
from pufferflow.studies.base2_exponential.counts import ETA, SAMPLERS, STORED, STORED_BITS, far_utilities, laplace_grid
from pufferflow.studies.base2_exponential.stored import stored_draw, stored_sums
from pufferflow.studies.tidy import frame

TIMES = ["panel", "method", "outcomes", "utility_range", "precision_bits", "seconds", "repeats", "published_seconds"]
PUBLISHED_SECONDS = {75_000: 10.0}
"""What the source reports, on its own machine, for utilities 0, 1, …, n − 1."""
FLOATING = "floating-point Laplace"

Methods = dict[str, Callable[[], object]]


def measure_times(settings: Mapping[str, Any]) -> pd.DataFrame:
    """Seconds of one release (median of ``time_repeats``, after one that is not counted).

    Against the number of outcomes, of utilities 0, 1, …, n − 1; against the range, 0 and 999 utilities at its far end;
    and of a Laplace-like release against the granularity of its grid, beside one number of floating-point Laplace
    noise. All as in the author's benchmarks. Besides both samplers: all cumulative sums stored as exact integers, which
    is what the source describes, as far as they fit into ``STORED_BITS``; and the naive floats.
    """
    return frame(_rows(settings), TIMES)


def _rows(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    jobs = [("outcomes", list(range(n))) for n in settings["time_outcomes"]]
    jobs += [("range", far_utilities(span)) for span in settings["time_ranges"]]
    for panel, utilities in jobs:
        for row in _timed(panel, *_exponential(utilities), settings["time_repeats"]):
            published = PUBLISHED_SECONDS.get(len(utilities)) if panel == "outcomes" else None
            yield row | {"published_seconds": published}
    for granularity in settings["time_granularities"]:
        yield from _timed("laplace", *_laplace(granularity), settings["time_repeats"])


def _exponential(utilities: list[int]) -> tuple[Methods, Base2Exponential]:
    span, size = utilities[-1], len(utilities)
    mechanisms = {sampler: Base2Exponential(ETA, 0, span, size, sampler=sampler) for sampler in SAMPLERS}
    exact = mechanisms["rejection"]
    methods: Methods = {sampler: partial(mechanism.release, utilities) for sampler, mechanism in mechanisms.items()}
    if span * size <= STORED_BITS:
        source = Seeded()
        methods[STORED] = lambda: stored_draw(stored_sums(exact, utilities), source)
    methods[NAIVE] = _naive(utilities, exact.epsilon)
    return methods, exact


def _laplace(granularity: float) -> tuple[Methods, Base2Exponential]:
    grids = {sampler: laplace_grid(granularity, sampler) for sampler in SAMPLERS}
    exact = grids["rejection"].mechanism
    methods: Methods = {sampler: partial(grid.release, 0) for sampler, grid in grids.items()}
    methods[NAIVE] = _naive(list(map(float, grids["rejection"].utilities(0))), exact.epsilon)
    methods[FLOATING] = partial(np.random.default_rng().laplace, 0.0, 1 / exact.epsilon)
    return methods, exact


def _naive(utilities: Sequence[float], epsilon: float) -> Callable[[], object]:
    return partial(naive_draws, utilities, epsilon, 1, np.random.default_rng())


def _timed(panel: str, methods: Methods, exact: Base2Exponential, repeats: int) -> Iterator[dict[str, Any]]:
    for name, release in methods.items():
        seconds = []
        for _ in range(1 + repeats):
            began = perf_counter()
            release()
            seconds.append(perf_counter() - began)
        yield {
            "panel": panel,
            "method": name,
            "outcomes": exact.max_outcomes,
            "utility_range": exact.utility_max,
            "precision_bits": exact.precision,
            "seconds": median(seconds[1:]),  # the first one also warms up
            "repeats": repeats,
        }
