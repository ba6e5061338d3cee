"""Runs of records as a tidy table: what the richer models of this study are fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pufferflow.datasets.activity import activity_runs
from pufferflow.datasets.electricity import electricity_runs
from pufferflow.records.runs import HOURS, Runs
from pufferflow.records.sample import Sample

WINDOWED = ("source", "path", "window_start", "window_minutes")
"""Settings of the household that say which records are counted; its bins are this study's own."""


def household(sample: Sample, settings: Mapping[str, Any], edges_watts: Sequence[float]) -> pd.DataFrame:
    """Runs of the records of a ``sample``, counted again between the ``edges_watts``."""
    taken = {name: settings[name] for name in WINDOWED}
    return as_table({"household": electricity_runs(**taken, edges_watts=edges_watts)})


def people(sample: Sample, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Runs of each group of a ``sample``, counted again."""
    return as_table(activity_runs(**settings))


def as_table(runs: Mapping[str, Runs]) -> pd.DataFrame:
    """One row a run that occurs: three states, or two and the hour in which the step between them begins."""
    parts = []
    for group, of in runs.items():
        for counts, names in ((of.triples, ("earlier", "before", "after")), (of.hourly, ("hour", "before", "after"))):
            places = np.argwhere(counts)
            part = pd.DataFrame(places, columns=list(names)).assign(group=group, count=counts[tuple(places.T)])
            parts.append(part)
    columns = ["group", "hour", "earlier", "before", "after", "count"]
    return pd.concat(parts).reindex(columns=columns).astype({"hour": "Int64", "earlier": "Int64"})


def of_table(table: pd.DataFrame, states: int) -> dict[str, Runs]:
    """Inverse of :func:`as_table`."""
    runs = {}
    for group, rows in table.groupby("group", sort=False):
        triples = np.zeros((states,) * 3, dtype=np.int64)
        hourly = np.zeros((HOURS, states, states), dtype=np.int64)
        for counts, first in ((triples, "earlier"), (hourly, "hour")):
            known = rows[rows[first].notna()]
            counts[tuple(known[[first, "before", "after"]].to_numpy(dtype=np.int64).T)] = known["count"]
        runs[str(group)] = Runs(triples, hourly)
    return runs
