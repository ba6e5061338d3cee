"""Leakage by couplings, beside the engines before: of chains and lower bounds, and of the wider families.

They are checked out of the repository's history and timed by the same lines in the same run; without one (an installed
package) their times are missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pufferflow._types import Floats

_CHAINS = """
import json, sys, time
import numpy as np
import pufferflow as pf
from pufferflow import _jit

_jit.PATIENCE = 0  # compile at once, where the engine interprets at all
from pufferflow.studies.cohort.measure import simulated_member

matrix = np.load(sys.argv[1])
pf.leakage(pf.MarkovChain(np.random.default_rng(0).dirichlet(np.ones(30), 30)), 1000, 1.0)  # compiles

def took(chain, epsilon):
    began = time.perf_counter()
    pf.leakage(chain, 1051200, epsilon)
    return 1e3 * (time.perf_counter() - began)

times = {f"cold {e:g}": took(pf.MarkovChain(matrix), e) for e in (0.2, 1.0, 5.0)}
chain = pf.MarkovChain(matrix)
took(chain, 0.2)
times |= {f"warm {e:g}": took(chain, e) for e in (0.25, 1.0, 1.05)}
settings = {"states": 4, "shortest": 500, "longest": 5000, "persistence": 0.5}
people = [simulated_member(number, settings, "stationary", 1) for number in range(41)]
for number, person in enumerate(people):
    if number == 1:
        began = time.perf_counter()
    pf.leakage(person.chain, person.lengths, 1.0)
times["participant"] = 1e3 * (time.perf_counter() - began) / 40
for number, person in enumerate(people):
    if number == 1:
        began = time.perf_counter()
    pf.lower_bound(person.chain, person.lengths, 1.0)
times["lower"] = 1e3 * (time.perf_counter() - began) / 40
print(json.dumps(times))
"""
_FAMILIES = """
import json, sys, time
import numpy as np
import pufferflow as pf
from pufferflow import _jit

_jit.PATIENCE = 0  # compile at once, where the engine interprets at all

rng = np.random.default_rng(1)
matrix = np.load(sys.argv[1])

def dense(k):
    return 0.9 * np.eye(k) + 0.1 * rng.dirichlet(np.ones(k), k)

counts = np.round(5000 * dense(5)).astype(int)
hours = [dense(13) for _ in range(24)]
families = {
    "intervals": lambda: pf.confidence_family(counts, backward=True),
    "order": lambda: pf.LabelledChain(pf.MarkovChain(dense(9)), [0, 0, 0, 1, 1, 1, 2, 2, 2]),
    "hours": lambda: pf.PeriodicChain(hours, repeat=60),
    "informed": lambda: pf.MarkovChain(matrix),
}
times = {}
for name, made in families.items():
    knows = "any records" if name == "informed" else "nothing"
    pf.leakage(made(), 1000, 1.0, knows=knows)  # compiles
    family = made()
    began = time.perf_counter()
    pf.leakage(family, 1051200, 1.0, knows=knows)
    times[name] = 1e3 * (time.perf_counter() - began)
print(json.dumps(times))
"""
_WEEK = """
import json, sys, time
import numpy as np
import pufferflow as pf

rng = np.random.default_rng(0)
hours = [rng.dirichlet(np.ones(51), 51) for _ in range(168)]
pf.leakage(pf.PeriodicChain(hours[:2]), 1000, 1.0)  # compiles
began = time.perf_counter()
pf.leakage(pf.PeriodicChain(hours), 1051200, 1.0)
print(json.dumps({"week": 1e3 * (time.perf_counter() - began)}))
"""
BEFORE = ((_CHAINS, "37bec912"), (_FAMILIES, "33307dc4"), (_WEEK, "4c44bb26"))
"""What is timed, and the commit of the previous engine."""
_ROWS = (
    ("cold 0.2", "leakage, electricity (51 states), first ε = 0.2", 1000.0),
    ("cold 1", "leakage, electricity (51 states), first ε = 1", 1000.0),
    ("cold 5", "leakage, electricity (51 states), first ε = 5", 1000.0),
    ("warm 0.25", "leakage, electricity, ε = 0.25 after 0.2", 300.0),
    ("warm 1", "leakage, electricity, ε = 1 after 0.25", 300.0),
    ("warm 1.05", "leakage, electricity, ε = 1.05 after 1", 300.0),
    ("participant", "leakage, a participant of the cohort", None),
    ("lower", "lower bound, a participant of the cohort", None),
    ("intervals", "leakage, 95 % intervals of 5 states with backward bounds", None),
    ("order", "leakage, 9 states behind 3 labels", None),
    ("hours", "leakage, 24 matrices of 13 states, minutes", 5000.0),
    ("week", "leakage, 168 random matrices of 51 states", 60_000.0),
    ("informed", "leakage, electricity, any records known", None),
)


def leakage_times(electricity: Floats) -> Iterator[tuple[str, float, float | None, str, bool | None]]:
    """Yield what is timed, milliseconds now and before (None: not known), the bar and whether it is met."""
    here = Path(__file__).parents[3]
    now: dict[str, float] = {}
    before: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        matrix = Path(folder) / "matrix.npy"
        np.save(matrix, electricity)
        for timed, commit in BEFORE:
            now |= _times(timed, here, matrix)
            checkout = Path(folder) / commit
            worktree = ["git", "-C", str(here), "worktree"]
            if subprocess.run([*worktree, "add", "--detach", str(checkout), commit], capture_output=True).returncode:
                continue
            try:
                before |= _times(timed, checkout, matrix)
            finally:
                subprocess.run([*worktree, "remove", "--force", str(checkout)], check=True, capture_output=True)
    for key, workload, bar in _ROWS:
        said, met = ("", None) if bar is None else (f"≤ {bar:g} ms", now[key] <= bar)
        yield workload, now[key], before.get(key), said, met


def _times(timed: str, folder: Path, matrix: Path) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", timed, str(matrix)]
    done = subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True)
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times
