"""Data in, sample out: where the data come from, how they become chains, and what is bundled.

``ingest_electricity`` and ``ingest_activity`` turn a bundled data set, a file or a download into a
:class:`Sample`, the counts that every later stage works on.
"""

from pufferflow.datasets.activity import ingest_activity
from pufferflow.datasets.electricity import ingest_electricity
from pufferflow.datasets.uci import fetch_uci
from pufferflow.records.sample import (
    Participant,
    Sample,
    load_sample,
    pooled_segment_lengths,
    pooled_state_counts,
    pooled_transition_counts,
)

__all__ = [
    "Participant",
    "Sample",
    "fetch_uci",
    "ingest_activity",
    "ingest_electricity",
    "load_sample",
    "pooled_segment_lengths",
    "pooled_state_counts",
    "pooled_transition_counts",
]
