"""The Markov chain of each group: fitted, described as a table, and stored as one JSON file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from pufferflow._util.files import write_atomic
from pufferflow.errors import DataError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.estimation import fit_chain
from pufferflow.models.families import as_family
from pufferflow.models.files import parse_model
from reproduction import tidy
from reproduction.data.sample import Sample, pooled


def fit_chains(
    sample: Sample, smoothing: float, initial_distribution: str
) -> dict[str, MarkovChain]:
    """Fit a chain to the pooled transition counts of each group, in the order of the sample.

    ``smoothing`` is added to every count (0: maximum likelihood); starts are "stationary" or "any".
    """
    counts = {group: pooled(sample.group(group)).transition_counts for group in sample.groups}
    options: Any = {"smoothing": smoothing, "initial_distribution": initial_distribution}
    return {group: fit_chain(own, **options)[0] for group, own in counts.items()}


def describe_chains(sample: Sample, chains: Mapping[str, MarkovChain]) -> pd.DataFrame:
    """Return the tidy table "chains": size of each group's data, properties of its chain."""
    rows = []
    for group, chain in chains.items():
        people, irreducible = sample.group(group), chain.is_irreducible
        own = pooled(people)
        least = chain.stationary_distribution.min() if irreducible else None
        row = {
            "dataset": sample.dataset,
            "label": sample.label,
            "group": group,
            "participants": len(people),
            "observations": own.observations,
            "segments": len(own.segment_lengths),
            "longest_segment": max(own.segment_lengths),
            "states": chain.states,
            "transitions": int(own.transition_counts.sum()),
            "smallest_stationary_probability": least,
            "irreducible": irreducible,
            "period": chain.period if irreducible else None,
            "reversible": chain.is_reversible,
            "eigengap_general": chain.eigengap("general") if chain.is_aperiodic else None,
        }
        rows.append(row)
    return tidy.frame(rows, "chains")


def save_chains(chains: Mapping[str, MarkovChain], path: str | Path) -> None:
    """Write an object from group to model, in one step.

    Each value is a model for the command line: ``jq .household FILE | pufferflow scale - …``.
    """
    models = {group: as_family(chain).document() for group, chain in chains.items()}
    write_atomic(path, json.dumps(models, ensure_ascii=False) + "\n")


def load_chains(path: str | Path) -> dict[str, MarkovChain]:
    """Read the chains of :func:`save_chains`; raises DataError: the file is missing or damaged."""
    try:
        models = json.loads(Path(path).read_text(encoding="utf-8"))
        return {group: parse_model(model).family.chains[0] for group, model in models.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{path} has no fitted chains ({error}); delete it and rerun") from error
