"""From the settings of a data set to its sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from pufferflow.datasets import Sample, ingest_activity, ingest_electricity
from pufferflow.studies.tidy import frame

_INGEST: dict[str, Callable[..., Sample]] = {"electricity": ingest_electricity, "activity": ingest_activity}


def ingest(dataset: str, settings: Mapping[str, Any], downloads: str | Path) -> tuple[Sample, pd.DataFrame]:
    """Ingest ``dataset`` ("electricity" or "activity") as its section of the configuration says, and describe it.

    ``downloads`` is the folder that keeps what ``source: download`` fetches.
    """
    options = {key: value for key, value in settings.items() if key not in ("source", "path")}
    if settings["source"] == "download":
        options["cache_dir"] = downloads
    sample = _INGEST[dataset](settings["source"], settings["path"], **options)
    return sample, describe_sample(sample)


def describe_sample(sample: Sample) -> pd.DataFrame:
    """One row a participant."""
    return frame(
        (
            {
                "dataset": sample.dataset,
                "label": sample.label,
                "group": p.group,
                "participant": p.name,
                "observations": p.observations,
                "segments": len(p.segment_lengths),
                "longest_segment": max(p.segment_lengths),
                "transitions": int(p.transition_counts.sum()),
            }
            for p in sample.participants
        ),
    )
