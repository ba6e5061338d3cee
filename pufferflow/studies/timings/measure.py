"""Table 2: seconds to compute each noise scale on this machine."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pandas as pd
from tqdm import tqdm

from pufferflow._jit import compile_at_once
from pufferflow.markov import BinaryInterval, MarkovChain
from pufferflow.markov.families import Family
from pufferflow.mechanisms import compute_scale
from pufferflow.records.sample import Sample, pooled_segment_lengths
from pufferflow.studies.scaling import without_proofs
from pufferflow.studies.synthetic.measure import alpha_grid
from pufferflow.studies.tidy import frame

LEAST_REPEATS = 3

Make = Callable[[], Family | MarkovChain]


@dataclass(frozen=True)
class _Column:
    """One column of the paper's table: families whose seconds are averaged, each built anew for every repeat."""

    dataset: str
    label: str
    group: str
    families: Sequence[Make]
    lengths: tuple[int, ...]


def timings(
    samples: Sequence[Sample],
    chains: Sequence[Mapping[str, MarkovChain]],
    alphas: Mapping[str, float],
    length: int,
    epsilon: float,
    mechanisms: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    repeats: int,
) -> pd.DataFrame:
    """Median seconds from a transition matrix to a scale, compiled code warm, tables of the chain cold.

    Certificates are left out: the paper's seconds have none. Every repeat builds the chain anew, so nothing computed
    for an earlier repeat is used again. The synthetic rows are means over the classes [α, 1 − α] of the grid
    ``alphas`` (start, stop, step) to which the mechanism applies, as in the paper, in
    fewer repeats.
    """
    compile_at_once()
    options = without_proofs(options)
    columns = [_synthetic(alpha_grid(**alphas), length), *_real(samples, chains)]
    jobs = [(column, mechanism) for column in columns for mechanism in mechanisms]
    rows = []
    for column, mechanism in tqdm(jobs, desc="timing", disable=None, leave=False):

        def compute(make: Make, column: _Column = column, mechanism: str = mechanism) -> bool:
            own = options.get(mechanism, {})
            return compute_scale(mechanism, make(), column.lengths, epsilon, **own).status == "ok"

        applicable = [make for make in column.families if compute(make)]  # compiles, too
        # a mean over many needs fewer repeats to be as steady
        rounds = min(repeats, max(LEAST_REPEATS, repeats // len(column.families)))
        seconds = [_mean_seconds(compute, applicable or column.families) for _ in range(rounds)]
        rows.append(
            {
                "dataset": column.dataset,
                "label": column.label,
                "group": column.group,
                "mechanism": mechanism,
                "epsilon": epsilon,
                "status": "ok" if applicable else "not applicable",
                "families": len(column.families),
                "applicable": len(applicable),
                "median_seconds": median(seconds),
                "least_seconds": min(seconds),
                "most_seconds": max(seconds),
                "repeats": rounds,
                "machine": f"{platform.machine()}, Python {platform.python_version()}",
            }
        )
    return frame(rows)


def _mean_seconds(compute: Callable[[Make], bool], families: Sequence[Make]) -> float:
    began = time.perf_counter()
    for make in families:
        compute(make)
    return (time.perf_counter() - began) / len(families)


def _synthetic(alphas: Sequence[float], length: int) -> _Column:
    classes = [lambda alpha=alpha: BinaryInterval(alpha, 1 - alpha) for alpha in alphas]
    return _Column("synthetic", "synthetic", f"mean over {len(alphas)} alpha", classes, (length,))


def _real(samples: Sequence[Sample], chains: Sequence[Mapping[str, MarkovChain]]) -> Iterator[_Column]:
    for sample, fitted in zip(samples, chains, strict=True):
        for group, chain in fitted.items():
            start = chain.start if chain.start != "given" else chain.initial_distribution

            def build(matrix: Any = chain.transition_matrix, start: Any = start) -> MarkovChain:
                return MarkovChain(matrix, start)

            lengths = pooled_segment_lengths(sample.group(group))
            yield _Column(sample.dataset, sample.label, group, [build], lengths)
