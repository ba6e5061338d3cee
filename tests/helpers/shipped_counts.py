"""Counts of the data that the project ships."""

from functools import cache

import numpy as np

from pufferflow.data.household import BUNDLED
from reproduction.data.discretise import discretise


@cache
def electricity_transitions() -> np.ndarray:
    """Transition counts of the household, two years of minutes in 51 bins."""
    sample = discretise(BUNDLED, {"kind": "power"}, "electricity", "bundled")
    return sample.participants[0].transition_counts
