"""From a sample to one chain a group."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from pufferflow.errors import DataError
from pufferflow.markov import ChainFamily, MarkovChain, fit_chain
from pufferflow.models import read_model, write_model
from pufferflow.records.sample import Sample, pooled_segment_lengths, pooled_transition_counts
from pufferflow.studies.tidy import frame


def fit_chains(sample: Sample, smoothing: float, initial_distribution: str) -> dict[str, MarkovChain]:
    """Fit one chain to each group of ``sample``."""
    return {
        group: fit_chain(
            pooled_transition_counts(sample.group(group)),
            smoothing=smoothing,
            initial_distribution=initial_distribution,
        )[0]
        for group in sample.groups
    }


def describe_chains(sample: Sample, chains: dict[str, MarkovChain]) -> pd.DataFrame:
    """One row a group: the size of its data and the properties of its chain that the mechanisms depend on."""
    rows: list[dict[str, Any]] = []
    for group, chain in chains.items():
        people = sample.group(group)
        lengths = pooled_segment_lengths(people)
        rows.append(
            {
                "dataset": sample.dataset,
                "label": sample.label,
                "group": group,
                "participants": len(people),
                "observations": sum(p.observations for p in people),
                "segments": len(lengths),
                "longest_segment": max(lengths),
                "states": chain.states,
                "transitions": int(pooled_transition_counts(people).sum()),
                "smallest_stationary_probability": chain.stationary_distribution.min()
                if chain.is_irreducible
                else None,
                "irreducible": chain.is_irreducible,
                "period": chain.period if chain.is_irreducible else None,
                "reversible": chain.is_reversible,
                "eigengap_general": chain.eigengap("general") if chain.is_aperiodic else None,
            }
        )
    return frame(rows)


def save_chains(chains: Mapping[str, MarkovChain], folder: str | Path) -> None:
    """Write each group's chain as a model file ``<group>.json`` that `pufferflow scale` reads."""
    for group, chain in chains.items():
        if "/" in group or group.startswith("."):
            raise DataError(f"group {group!r} cannot name a file; use letters, digits, - and _ in group names")
        write_model(Path(folder) / f"{group}.json", ChainFamily([chain]))


def load_chains(folder: str | Path) -> dict[str, MarkovChain]:
    """Read the chains that :func:`save_chains` wrote, by group."""
    return {path.stem: read_model(path).chains[0] for path in sorted(Path(folder).glob("*.json"))}
