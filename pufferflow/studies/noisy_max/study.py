"""Pufferfish checks in hidden Markov models (Noisy Max)."""

from pufferflow.studies.related import related_study

CAPTION = (
    "Noisy Max, exact results for synthetic priors. Left: law of the released index under both secrets, Example 7.1. "
    "Middle: priors p1, p2 by the smallest of the listed factors that they preserve, with exact boundaries; the "
    "supremum is below 2, so all of them preserve ln 2. "
    "Right: Example 7.2, the value is released: largest ratio for n queries under three neighbour relations."
)

NOISY_MAX = related_study("noisy_max", "Pufferfish checks in hidden Markov models (Noisy Max)", CAPTION, timed=True)
