"""Studies beyond the paper's, and the systems related to it: one module of this package each, all run alike.

Such a module offers ``measure(settings, seed)``, which returns a tidy table of all that its figure shows and
a table of the values its source states (as ``experiments.worked_examples`` does); some also
``measure_times(settings)``. ``experiments.by_name`` returns it; its figures are in ``reporting.figures.<name>``.
"""

from __future__ import annotations

RELATED = {
    "histogram_study": "Are noisy histograms worst in their tails?",
    "noisy_max": "Pufferfish checks in hidden Markov models (Noisy Max)",
    "base2_exponential": "The base-2 exponential mechanism",
    "alpha_beta": "Publishing tables with the αβ algorithm",
    "classical": "Classical differential privacy",
}
"""Titles by name of the experiment."""

TIMED = ("noisy_max", "base2_exponential")
"""Those that measure times too."""
