"""Are noisy histograms worst in their tails."""

from pufferflow.studies.related import related_study

CAPTION = (
    "Largest privacy loss over all outputs, divided by that over outputs beyond the range of the data. Left: "
    "histograms of random synthetic chains at the smallest valid scale, where the tails nearly always decide. Right: a "
    "count on a chain built for it, where the ratio grows without bound: a scale calibrated on the tails is not "
    "private in general."
)

HISTOGRAM_STUDY = related_study("histogram_study", "Are noisy histograms worst in their tails?", CAPTION)
