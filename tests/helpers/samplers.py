"""Chi-square of draws; a test that passes must fail when the noise is halved."""

import numpy as np
from scipy.stats import chisquare

RARE = 1e-9
"""Level of tests of the operating system's generator, which has no seed."""


def p_value(counts, probabilities):
    """Chi-square over cells with at least five expected, the others together."""
    counts, probabilities = np.asarray(counts, float), np.asarray(probabilities, float)
    expected = counts.sum() * probabilities
    small = expected < 5
    observed = np.append(counts[~small], counts[small].sum())
    expected = np.append(expected[~small], counts.sum() - expected[~small].sum())
    if expected[-1] < 1e-6:
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1]
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue
