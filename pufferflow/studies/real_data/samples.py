"""From the settings of a data set to its sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from pufferflow.records.sample import Sample
from pufferflow.studies.tidy import frame


def ingest(work: Callable[..., Sample], settings: Mapping[str, Any], downloads: str | Path) -> Sample:
    """Ingest a data set as its section of the configuration says.

    ``downloads`` is the folder that keeps what ``source: download`` fetches.
    """
    options = {key: value for key, value in settings.items() if key not in ("source", "path")}
    if settings["source"] == "download":
        options["cache_dir"] = downloads
    return work(settings["source"], settings["path"], **options)


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
