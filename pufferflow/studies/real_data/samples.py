"""Samples as tables."""

from __future__ import annotations

import pandas as pd

from pufferflow.records.sample import Sample
from pufferflow.studies.tidy import frame


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
