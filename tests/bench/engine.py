"""How fast the engine is, beside plain numpy and an older commit.

Run as ``make bench``. With the environment variable ``BASE=<commit>`` every workload is measured in
a worktree of that commit too.
Reference: plain numpy, every power of P up to the needed length and all quilts.
"""

import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count, product
from math import isnan, nan
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd

import pufferflow as pf
from pufferflow._util import jit as _jit
from pufferflow.models import confidence_family

ROOT = Path(__file__).resolve().parents[2]
TWO_YEARS = 1051200  # minutes
FIRST_CALL = """import pufferflow as pf
pf.mqm_exact(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0]), 100, 1.0)"""
CALLS = count(1)
WORKTREE = ["git", "-C", str(ROOT), "worktree"]


@dataclass
class Workload:
    """The time of ``work(make())`` but for ``make``; in the unit "MB" the peak of memory."""

    name: str
    work: Callable
    make: Callable = lambda: None
    repeats: int = 9
    reference: Callable | None = None
    unit: str = "ms"


def workloads():
    """Yield all workloads."""
    household = electricity()
    yield beside_numpy("4-state chain, T = 9000", lazy_chain(4, 0.3, 4), 9000, 1.0)
    for e in (0.2, 1.0, 5.0):
        yield beside_numpy(f"electricity (51 states), ε = {e:g}", household, TWO_YEARS, e)
    name, matrix = "500 states, mixing time 100", lazy_chain(500, 0.01, 0)
    yield exact(name, matrix, "stationary", 10**6, repeats=1)
    weights = np.linspace(1.0, 0.0, 51) ** 4
    starts = {"given": weights / weights.sum(), "any": "any", "stationary": "stationary"}
    for (kind, start), digits in product(starts.items(), (3, 6, 9)):
        yield exact(f"electricity, {kind} start, T = 10^{digits}", household, start, 10**digits)
    many = np.random.default_rng(2).integers(1, 10**6, 10_000).tolist()
    yield exact("electricity, 10,000 segments", household, "stationary", many)
    new = partial(new_chain, household)
    name, grid = "electricity, 100 values of ε from 0.1 to 10", np.geomspace(0.1, 10, 100).tolist()
    yield Workload(name, lambda chain: [pf.mqm_exact(chain, 10**6, e) for e in grid], new)
    yield Workload("Figure 4: 31 classes × 3 ε × 3 mechanisms", figure4)
    name, first = "first call in a fresh process", [sys.executable, "-c", FIRST_CALL]
    yield Workload(name, lambda _: subprocess.run(first, check=True))
    name, matrix = "51 states, peak memory (MB)", lazy_chain(51, 0.05, 1)
    yield exact(name, matrix, "stationary", 10**6, unit="MB")

    for epsilons in ([0.2], [1.0], [5.0], [0.2, 0.25, 1.0, 1.05]):
        name = f"electricity, ε = {', then '.join(f'{e:g}' for e in epsilons)}"
        yield leakage(name, new, epsilons)
    name = "leakage, electricity, any records as side information"
    yield Workload(name, lambda c: pf.leakage(c, TWO_YEARS, 1.0, side_information="any"), new)
    counts, nine = np.round(5000 * lazy_chain(5, 0.1, 1)).astype(int), lazy_chain(9, 0.1, 1)
    name = "95 % intervals of 5 states, backward bounds"
    yield leakage(name, lambda: confidence_family(counts + next(CALLS), backward=True), [1.0])
    name, seen = "9 states with 3 observations", [0, 0, 0, 1, 1, 1, 2, 2, 2]
    yield leakage(name, lambda: pf.HiddenChain(new_chain(nine), seen), [1.0])
    name, day = "24 matrices of 13 states, minutes", [lazy_chain(13, 0.1, h) for h in range(24)]
    yield leakage(name, lambda: new_period(day, 60), [1.0])
    name, week = "168 random matrices of 51 states", [lazy_chain(51, 1, h) for h in range(168)]
    yield leakage(name, lambda: new_period(week, 1), [1.0], repeats=1)
    yield Workload("lower bound, electricity", lambda c: pf.lower_bound(c, TWO_YEARS, 1.0), new)

    for n in range(1, 6):
        yield noisy_max(n, "exact search", "check")
    for n in range(1, 6):
        yield noisy_max(n, "z3", "check_by_solver", repeats=1)
    name, utilities = "base-2 release of 75,000 outcomes", list(range(75_000))  # as of Ilvento
    base2 = partial(pf.dp.Base2Exponential, pf.dp.Eta(1, 1), 0, 74_999, 75_000)
    yield Workload(name, lambda mechanism: mechanism.release(utilities), base2)


def lazy_chain(states, move, seed):
    """Return a matrix that stays with probability 1 − ``move`` and else takes a random row."""
    rows = np.random.default_rng(seed).dirichlet(np.ones(states), states)
    return (1 - move) * np.eye(states) + move * rows


def new_chain(matrix, start="stationary"):
    """Return a chain that no call has seen before: equal chains would share their tables."""
    move = 1 - 1e-9 * next(CALLS)
    return pf.MarkovChain(move * np.asarray(matrix) + (1 - move) * np.eye(len(matrix)), start)


def new_period(matrices, repeat):
    """Return a periodic chain that no call has seen before."""
    return pf.PeriodicChain([new_chain(m).transition_matrix for m in matrices], repeat=repeat)


def electricity():
    """Return the transition matrix of the bundled household: bins of 200 W, steps of a minute."""
    # the data of this checkout for BASE as well, wherever the package keeps them
    packed = next((ROOT / "pufferflow").rglob("electricity_uci235_minute_watts.csv.xz"))
    watts = pd.read_csv(packed, skip_blank_lines=False)["watts"]
    states = (watts // 200).clip(upper=50).rename("from")
    counts = pd.crosstab(states, states.shift(-1))  # without missing minutes
    return pf.fit_chain(counts.to_numpy())[0].transition_matrix


def exact(name, matrix, start, length, **more):
    """MQMExact at ε = 1 for a chain that has no table of an earlier call."""
    new = partial(new_chain, matrix, start)
    return Workload(name, lambda chain: pf.mqm_exact(chain, length, 1.0), new, **more)


def beside_numpy(name, matrix, length, epsilon):
    """MQMExact for a stationary start beside the reference, which must agree."""
    new = partial(new_chain, matrix)

    def reference(chain):
        scale = reference_scale(matrix, length, epsilon)
        np.testing.assert_allclose(scale, pf.mqm_exact(chain, length, epsilon).scale, rtol=1e-6)

    return Workload(name, lambda c: pf.mqm_exact(c, length, epsilon), new, reference=reference)


@np.errstate(divide="ignore", invalid="ignore")
def reference_scale(matrix, length, epsilon):
    """Return the scale of Algorithm 3 from all quilts of the middle node: P > 0, T is large."""
    stationary = pf.MarkovChain(matrix).stationary_distribution
    first = np.log(stationary[None, :] / stationary[:, None])
    forward, backward = [], []
    power, best = np.eye(len(matrix)), length / epsilon
    while 2 * len(forward) < length and len(forward) < epsilon * best:
        power = power @ matrix
        logs = np.log(power)
        forward.append(np.array([np.nanmax(x - logs, axis=1) for x in logs]).ravel())
        behind = first + np.array([np.nanmax(x - logs.T, axis=1) for x in logs.T])
        backward.append(behind.ravel())
        e = float((forward[-1] + backward[-1]).max())
        best = min(best, (2 * len(forward) - 1) / (epsilon - e)) if e < epsilon else best
    right, distances = np.array(forward), np.arange(1, len(forward) + 1)
    for a, left in enumerate(backward, start=1):
        slack = epsilon - (right + left).max(axis=1)
        scales = (a + distances[slack > 0] - 1) / slack[slack > 0]
        best = float(scales.min(initial=best))
    return best


def figure4(_):
    """Compute the scales of Figure 4, upper row, but those of the Wasserstein Mechanism."""
    for alpha in np.arange(10, 41) / 100 + 1e-9 * next(CALLS):
        family = pf.BinaryInterval(alpha, 1 - alpha)
        for epsilon, mechanism in product((0.2, 1.0, 5.0), (pf.mqm_exact, pf.mqm_approx, pf.gk16)):
            mechanism(family, 100, epsilon)


def leakage(name, new, epsilons, **more):
    """Leakage calibration of two years of minutes: the last ε, after the others."""

    def make():
        model = new()
        for epsilon in epsilons[:-1]:
            pf.leakage(model, TWO_YEARS, epsilon)
        return model

    name = f"leakage, {name}"
    return Workload(name, lambda model: pf.leakage(model, TWO_YEARS, epsilons[-1]), make, **more)


def noisy_max(n, name, function, **more):
    """Decide whether Noisy Max of n counts is ln 2-DP (Liu, Wang and Zhang, Example 7.2)."""

    def model():
        # every list of counts is a secret; neighbours differ by one in one count
        lists = list(product(range(3), repeat=n))
        ends = [(a, (*a[:i], a[i] + 1, *a[i + 1 :])) for a in lists for i in range(n) if a[i] < 2]
        pairs = [(str(a), str(b)) for a, b in ends]
        priors = {str(a): [[int(x == value) for value in range(3)] for x in a] for a in lists}
        return pf.hmm.NoisyMax("value").model(priors, pairs=pairs)

    name = f"Noisy Max of {n} counts, {name}"
    return Workload(name, lambda model: getattr(pf.hmm, function)(model, 2), model, **more)


def measured(workload, column):
    """Return the median of "work" or "reference", without a first call if repeated."""
    work = getattr(workload, column)
    if work is None:
        return nan
    repeats = min(workload.repeats, 3 if column == "reference" else 9)
    values = []
    for _ in range(repeats if repeats == 1 else 1 + repeats):
        made = workload.make()
        if workload.unit == "MB":
            tracemalloc.start()
            work(made)
            values.append(tracemalloc.get_traced_memory()[1] / 2**20)
            tracemalloc.stop()
        else:
            began = perf_counter()
            work(made)
            values.append(1e3 * (perf_counter() - began))
    return median(values[-repeats:])


def serve():
    """Run as BASE: measure the next workload for each line of the input, and answer by a line."""
    for workload, _ in zip(workloads(), sys.stdin, strict=False):
        value = nan
        try:
            value = measured(workload, "work")
        except Exception as error:  # an old commit cannot run all of them
            print(f"BASE, {workload.name}: {type(error).__name__}: {error}", file=sys.stderr)
        print(value, flush=True)


def table(base):
    """Yield the lines of the Markdown table, each as soon as it is measured."""
    if base is not None:
        command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        # the folder it works in is the first that a further process imports from
        pipes |= {"cwd": base, "env": os.environ | {"PYTHONPATH": str(base)}}
        server = subprocess.Popen(command, text=True, **pipes)
    yield "| workload | ms | reference | BASE ÷ now |"
    yield "| --- | ---: | ---: | ---: |"
    for case in workloads():
        now, reference = measured(case, "work"), measured(case, "reference")
        ratio = nan
        if base is not None and server.poll() is None:
            print(file=server.stdin, flush=True)
            ratio = float(server.stdout.readline() or nan) / now
        yield f"| {' | '.join([case.name, *map(shown, (now, reference, ratio))])} |"
    yield f"\nMedians of one run; {os.cpu_count()} cores, Python {sys.version.split()[0]}."


def shown(value):
    """Return three significant digits, or a dash for NaN."""
    return "–" if isnan(value) else f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def main():
    """Print the table."""
    _jit.PATIENCE = 0  # compile at once, where kernels are interpreted at all
    if sys.argv[1:] == ["--serve"]:
        return serve()
    commit = os.environ.get("BASE")
    with tempfile.TemporaryDirectory() as parent:
        base = Path(parent) / "base" if commit else None
        if commit and subprocess.run([*WORKTREE, "add", "--detach", str(base), commit]).returncode:
            sys.exit(f"BASE={commit} cannot be checked out")
        try:
            for line in table(base):
                print(line, flush=True)
        finally:
            if base:
                subprocess.run([*WORKTREE, "remove", "--force", str(base)], check=True)


if __name__ == "__main__":
    main()
