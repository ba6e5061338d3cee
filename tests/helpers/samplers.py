"""Chi-square of draws; a test that passes must fail when the noise is halved."""

import numpy as np
from scipy.stats import binomtest, chisquare

RARE = 1e-9
"""Level of tests of the operating system's generator, which has no seed."""


def p_value(counts, probabilities):
    """The least of chi-square over cells with five expected, and of an exact test of the others."""
    counts, probabilities = np.asarray(counts, float), np.asarray(probabilities, float)
    large = counts.sum() * probabilities >= 5
    observed, expected = counts[large], probabilities[large]
    rest = int(counts.sum() - observed.sum()), int(counts.sum()), max(1 - expected.sum(), 0)
    pvalue = chisquare(observed, expected * observed.sum() / expected.sum()).pvalue
    return np.fmin(pvalue, binomtest(*rest).pvalue)  # a single cell has NaN
