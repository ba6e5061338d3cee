"""The errors of Tables 1 and 3 on other people, in longer time steps and over shorter windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from pufferflow.datasets import Sample, ingest_activity, ingest_electricity
from pufferflow.datasets.elsewhere import other_activity
from pufferflow.studies.histograms.measure import errors, scales
from pufferflow.studies.real_data.chains import fit_chains
from pufferflow.studies.scaling import without_proofs
from pufferflow.studies.tidy import frame

YEARS = ("2007-05-01T00:00", "2008-04-30T00:00")
"""Starts of windows of one year each in the bundled two years."""
YEAR_MINUTES = 525600

COLUMNS = ["group", "task", "mechanism", "epsilon", "status", "reason", "expected_error"]
"""What is taken of the errors."""


def other_data(
    epsilons: Sequence[float],
    mechanisms: Sequence[str],
    step_minutes: Sequence[int],
    options: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Expected L1 errors of histograms of all bundled samples, one row a group, task, mechanism and ε.

    A chain of maximum likelihood is fitted to each group, with a stationary start. Scales come without proof: they
    explain a difference and release nothing. ``step_minutes`` are the time steps of the household.
    """
    rows: list[dict[str, Any]] = []
    plain = without_proofs(options)
    for sample in _samples(step_minutes):
        scale_table = scales(sample, fit_chains(sample, 0.0, "stationary"), epsilons, mechanisms, plain)
        for row in errors(scale_table, 1, 0).to_dict("records"):
            people = sample.group(str(row["group"]))
            place = {
                "dataset": sample.dataset,
                "label": sample.label,
                "data": sample.description,
                "step_seconds": sample.step_seconds,
                "participants": len(people),
                "records": sum(p.observations for p in people),
            }
            rows.append(place | {name: row[name] for name in COLUMNS})
    return frame(rows)


def _samples(step_minutes: Sequence[int]) -> Iterator[Sample]:
    yield ingest_activity("bundled")
    yield from other_activity()
    for minutes in step_minutes:
        yield ingest_electricity("bundled", step_minutes=minutes)
    for start in YEARS:
        yield ingest_electricity("bundled", window_start=start, window_minutes=YEAR_MINUTES)
