"""Raw data: how they become counts of states."""

from reproduction.data.people import fitbit
from reproduction.data.samples import count_runs, describe_sample, discretise

__all__ = ["count_runs", "describe_sample", "discretise", "fitbit"]
