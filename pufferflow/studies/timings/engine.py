"""The noise-scale engine against a plain-numpy twin and against a floor, in one process.

The floor computes P, P², … up to the length of the active quilt, once for each direction, with the BLAS and
nothing else. Ratios are of medians in the same run; the machine may be busy, so they mean more than times.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._jit import compile_at_once
from pufferflow._types import Floats
from pufferflow.datasets import ingest_electricity
from pufferflow.influence._reference import tabulated_noise_scale
from pufferflow.markov import BinaryInterval, MarkovChain
from pufferflow.mechanisms import NoiseScale, gk16, mqm_approx, mqm_exact
from pufferflow.studies.real_data.chains import fit_chains
from pufferflow.studies.synthetic.measure import alpha_grid
from pufferflow.studies.tidy import frame
from pufferflow.studies.timings.leakage import leakage_times

COLUMNS = [
    "workload",
    "engine_milliseconds",
    "twin_milliseconds",
    "floor_milliseconds",
    "twin_over_engine",
    "engine_over_floor",
    "megabytes",
    "bar",
    "met",
    "machine",
]

_FRESH = """
import pufferflow as pf
pf.mqm_exact(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), 100, 1.0)
"""

_MEMORY = """
import tracemalloc
import pufferflow as pf
from pufferflow.studies.timings.engine import lazy_dense_chain
pf.mqm_exact(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 100, 1.0)
tracemalloc.start()
pf.mqm_exact(pf.MarkovChain(lazy_dense_chain(51, 0.05, 1)), 10**6, 1.0)
print(tracemalloc.get_traced_memory()[1] / 2**20)
"""


def lazy_dense_chain(states: int, move: float, seed: int) -> Floats:
    """Transition matrix that stays with probability 1 − ``move`` and else goes by a random dense row."""
    rows = np.random.default_rng(seed).dirichlet(np.ones(states), states)
    return (1 - move) * np.eye(states) + move * rows


def milliseconds(work: Callable[[], object], repeats: int, prepare: Callable[[], object] | None = None) -> float:
    """Median over ``repeats`` of the milliseconds of ``work``; ``prepare`` runs before each, untimed."""
    times = []
    for _ in range(repeats):
        if prepare is not None:
            prepare()
        began = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - began))
    return median(times)


def engine_benchmark(repeats: int = 9) -> pd.DataFrame:
    """Measure all workloads; one row each, milliseconds, with the bar it is held against."""
    compile_at_once()
    electricity = fit_chains(ingest_electricity("bundled"), 0, "stationary")["household"].transition_matrix
    power = np.linspace(1.0, 0.0, 51) ** 4
    given = power / power.sum()
    mqm_exact(MarkovChain(electricity, given), 1000, 1.0)  # compiles
    rows: list[dict[str, Any]] = []

    def exact(matrix: Floats, start: Any, length: Any, epsilon: float) -> tuple[float, NoiseScale]:
        chains: list[MarkovChain] = []

        def fresh() -> None:
            chains[:] = [MarkovChain(matrix, start)]  # no table of an earlier repeat is used again

        return milliseconds(lambda: mqm_exact(chains[0], length, epsilon), repeats, fresh), mqm_exact(
            MarkovChain(matrix, start), length, epsilon
        )

    def add(workload: str, engine: float, bar: str = "", met: bool | None = None, **others: float) -> None:
        rows.append({"workload": workload, "engine_milliseconds": engine, "bar": bar, "met": met, **others})

    def against_twin(workload: str, matrix: Floats, length: int, epsilon: float, limit: float | None) -> None:
        engine, result = exact(matrix, "stationary", length, epsilon)
        law = MarkovChain(matrix).stationary_distribution
        twin = milliseconds(lambda: tabulated_noise_scale(matrix, law, length, epsilon), 3)
        assert result.quilt is not None
        steps = (result.quilt.left or 0) + (result.quilt.right or 0)

        def powers() -> None:
            product = matrix
            for _ in range(steps):
                product = product @ matrix

        floor = milliseconds(powers, repeats)
        bar, met = "", None
        if limit is not None:
            bar = f"≤ {limit:g} ms, ≥ 50 × twin, ≤ 5 × floor"
            met = engine <= limit and twin >= 50 * engine and engine <= 5 * floor
        add(
            workload,
            engine,
            bar,
            met,
            twin_milliseconds=twin,
            floor_milliseconds=floor,
            twin_over_engine=twin / engine,
            engine_over_floor=engine / floor,
        )

    engine, _ = exact(np.array([[0.9, 0.1], [0.4, 0.6]]), [1, 0], 100, 1.0)
    add("running example θ1, T = 100", engine)
    against_twin("4-state chain, T = 9000", lazy_dense_chain(4, 0.3, 4), 9000, 1.0, None)
    for epsilon in (0.2, 1.0, 5.0):
        against_twin(f"electricity (bundled, 51 states), ε = {epsilon:g}", electricity, 1051200, epsilon, 15)
    against_twin("dense chain, 51 states, moves 5 % of the time", lazy_dense_chain(51, 0.05, 1), 10**6, 1.0, 5)
    against_twin("dense chain, 51 states, moves 10 % of the time", lazy_dense_chain(51, 0.1, 1), 10**6, 1.0, 5)
    large = lazy_dense_chain(500, 0.01, 0)
    slow = milliseconds(lambda: mqm_exact(MarkovChain(large), 10**6, 1.0), 1)
    add("500 states, mixing time 100", slow, "≤ 5 s", slow <= 5000)

    for name, start in (("stationary", "stationary"), ("given", given), ("any", "any")):
        times = {length: exact(electricity, start, length, 1.0)[0] for length in (10**3, 10**6, 10**9)}
        for length, engine in times.items():
            bar, met = "", None
            if length == 10**9:
                bar, met = "≤ 1.25 × T = 10^6", engine <= 1.25 * times[10**6]
            add(f"electricity, {name} start, T = 10^{round(np.log10(length))}", engine, bar, met)
    lengths = np.random.default_rng(2).integers(1, 10**6, 10_000).tolist()
    engine, _ = exact(electricity, "stationary", lengths, 1.0)
    one, _ = exact(electricity, "stationary", 10**6, 1.0)  # beside what is compared with it: the machine is shared
    add("electricity, cohort of 10,000 segments", engine, "≤ 3 × one segment", engine <= 3 * one)

    chains: list[MarkovChain] = []
    grid = milliseconds(
        lambda: [mqm_exact(chains[0], 10**6, float(e)) for e in np.geomspace(0.1, 10, 100)],
        3,
        lambda: chains.__setitem__(slice(None), [MarkovChain(electricity)]),
    )
    add("electricity, 100 values of ε from 0.1 to 10", grid, "≤ 10 × one value", grid <= 10 * one)

    def figure() -> None:
        for alpha in alpha_grid(0.1, 0.4, 0.01):
            family = BinaryInterval(alpha, 1 - alpha)
            for epsilon in (0.2, 1.0, 5.0):
                for mechanism in (mqm_exact, mqm_approx, gk16):
                    mechanism(family, 100, epsilon)

    figure()
    engine = milliseconds(figure, 3)
    add("Figure 4: 31 classes × 3 ε × 3 mechanisms, T = 100", engine, "≤ 500 ms", engine <= 500)
    fresh = milliseconds(lambda: subprocess.run([sys.executable, "-c", _FRESH], check=True), 3)
    add("first call in a fresh process, imports included", fresh, "≤ 1 s", fresh <= 1000)
    megabytes = float(subprocess.run([sys.executable, "-c", _MEMORY], check=True, capture_output=True).stdout)
    bar, met = "≤ 200 MB above imports", megabytes <= 200
    rows.append({"workload": "51 states, peak memory", "megabytes": megabytes, "bar": bar, "met": met})
    for workload, now, before, bar, met in leakage_times(electricity):
        beside = {} if before is None else {"twin_milliseconds": before, "twin_over_engine": before / now}
        add(workload, now, bar, met, **beside)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return frame((row | {"machine": machine} for row in rows), COLUMNS)
