"""Table 2: seconds to compute each noise scale on this machine."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd
from tqdm import tqdm

from pufferflow.markov import BinaryInterval, MarkovChain
from pufferflow.markov.families import Family
from pufferflow.mechanisms import compute_scale
from pufferflow.records.sample import Sample, pooled_segment_lengths
from pufferflow.studies.tidy import frame


def timings(
    samples: Sequence[Sample],
    chains: Sequence[Mapping[str, MarkovChain]],
    alpha: float,
    length: int,
    epsilon: float,
    mechanisms: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    repeats: int,
) -> pd.DataFrame:
    """Median seconds from a transition matrix to a scale, compiled code warm, tables of the chain cold.

    Certificates are left out: the paper's seconds have none. Every repeat builds the chain anew, so
    nothing computed for an earlier repeat is used again. The
    synthetic row is the class [α, 1 − α].
    """
    work: list[tuple[str, str, str, Callable[[], Family | MarkovChain], tuple[int, ...]]] = [
        ("synthetic", "synthetic", f"alpha = {alpha:g}", lambda: BinaryInterval(alpha, 1 - alpha), (length,))
    ]
    for sample, fitted in zip(samples, chains, strict=True):
        for group, chain in fitted.items():
            start = chain.start if chain.start != "given" else chain.initial_distribution
            matrix = chain.transition_matrix

            def build(matrix: Any = matrix, start: Any = start) -> MarkovChain:
                return MarkovChain(matrix, start)

            work.append((sample.dataset, sample.label, group, build, pooled_segment_lengths(sample.group(group))))
    options = {name: {k: v for k, v in own.items() if k != "certified"} for name, own in options.items()}
    rows = []
    jobs = [(place, mechanism) for place in work for mechanism in mechanisms]
    for (dataset, label, group, make, lengths), mechanism in tqdm(jobs, desc="timing", disable=None, leave=False):
        own = options.get(mechanism, {})
        result = compute_scale(mechanism, make(), lengths, epsilon, **own)  # compiles
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            compute_scale(mechanism, make(), lengths, epsilon, **own)
            seconds.append(time.perf_counter() - began)
        rows.append(
            {
                "dataset": dataset,
                "label": label,
                "group": group,
                "mechanism": mechanism,
                "epsilon": epsilon,
                "status": result.status,
                "median_seconds": median(seconds),
                "least_seconds": min(seconds),
                "most_seconds": max(seconds),
                "repeats": repeats,
                "machine": f"{platform.machine()}, Python {platform.python_version()}",
            }
        )
    return frame(rows)
