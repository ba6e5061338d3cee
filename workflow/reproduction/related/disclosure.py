"""Disclosure by a view that αβ publishes: distributions of counts, without negligible tails."""

import math
from fractions import Fraction

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom

from pufferflow._util.types import Floats
from pufferflow.dp import AlphaBeta
from pufferflow.errors import ParameterError

MAX_STEPS, TAIL = 10**9, 1e-13
"""The largest number of terms of a sum; probability of each tail that is left out."""


def binomial(trials: int, probability: Fraction | float) -> tuple[int, Floats]:
    """Return the first count above the lower tail, and the probabilities from it on."""
    of = binom(trials, float(probability))
    first, last = int(of.ppf(TAIL)), int(of.isf(TAIL))
    return first, np.asarray(of.pmf(np.arange(first, last + 1)))


def published(parameters: AlphaBeta, count: int, others: int) -> tuple[int, Floats]:
    """Return the same for the published number of ``count`` tuples of the data and ``others``."""
    low, kept = binomial(count, parameters.keep)
    lowest, inserted = binomial(others, parameters.beta)
    return low + lowest, np.convolve(kept, inserted)


def failure(parameters: AlphaBeta, error: float, count: int, domain_count: int) -> float:
    """Return the probability that the estimate of such a query errs by more than ``error``."""
    others = domain_count - count
    low, chances = published(parameters, count, others)
    middle = parameters.keep * count + parameters.beta * others
    away = parameters.alpha * Fraction(error)
    # the published tuples from which the estimate lies within the error
    first, last = math.ceil(middle - away) - low, math.floor(middle + away) - low
    missed = chances[: max(0, first)].sum() + chances[max(0, last + 1) :].sum()
    return min(1.0, float(missed))


def answer_difference(parameters: AlphaBeta, prior: Fraction, tuples: int) -> float:
    """Return the mean statistical difference of posterior and prior distribution of a count.

    For the attacker each of the ``tuples`` tuples that the query selects is present with
    probability ``prior``, independently; the mean is over all views. The error is at most 1e-9.
    Raises ParameterError if it takes more than 10^9 steps.
    """
    p, keep, beta = float(prior), float(parameters.keep), float(parameters.beta)
    seen = beta + (keep - beta) * p
    (first, priors), (start, evidence) = binomial(tuples, p), binomial(tuples, seen)
    if len(priors) * len(evidence) > MAX_STEPS:
        raise ParameterError("this takes too many steps; use difference_bound")
    answers = range(first, first + len(priors))
    ends = [published(parameters, answer, tuples - answer) for answer in (answers[0], answers[-1])]
    low = min(start, *(begin for begin, _ in ends))
    high = max(start + len(evidence), *(begin + len(given) for begin, given in ends))
    # Neighbouring answers differ in one tuple: its factor in the generating function is replaced.
    # The one further from ½ is the larger one on the unit circle, so dividing by it is stable.
    upwards = abs(beta - 0.5) >= abs(keep - 0.5)
    out, into = (beta, keep) if upwards else (keep, beta)
    begin, given = ends[0] if upwards else ends[1]
    size = 1 << (high - low).bit_length()
    shift = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    step = (1 - into + into * shift) / (1 - out + out * shift)
    spectrum = np.fft.rfft(np.pad(given, (begin - low, 0)), size)
    unconditional, total = np.pad(evidence, (start - low, high - start - len(evidence))), 0.0
    for answer in answers if upwards else reversed(answers):
        given = np.fft.irfft(spectrum, size)[: high - low]
        total += float(priors[answer - first]) * float(np.abs(given - unconditional).sum())
        spectrum = spectrum * step
    return total


def difference_bound(parameters: AlphaBeta, prior: Fraction, tuples: int) -> float:
    """Return an upper bound of :func:`answer_difference` for any number of tuples.

    Tuple and view have correlation φ = α √(p(1−p)/(q(1−q))), q = β + αp. The singular values of
    the conditional expectation are φ^j, j ≤ N, so the χ² distance of the joint distribution from
    the product is Σ φ^(2j), and its root bounds the difference (Cauchy and Schwarz).
    """
    p, q = prior, parameters.beta + parameters.alpha * prior
    if p in (0, 1) or q in (0, 1):
        return 0.0
    square, total = float(parameters.alpha**2 * p * (1 - p) / (q * (1 - q))), float(tuples)
    if square < 1:
        total = square * -math.expm1(tuples * math.log(square)) / (1 - square)
    return min(2.0, math.sqrt(total))


def extreme_difference(parameters: AlphaBeta, rows: int, half: int) -> float:
    """Return Σ_V |Pr[V | Q = n] − Pr[V | Q = 0]| of a query that selects half of the domain.

    Let x published tuples be among the ``half`` that the query selects, and y among as many
    others. Given Q = n they have the distributions f and g, given Q = 0 vice versa. f/g increases,
    so f(x)g(y) − g(x)f(y) has the sign of x − y, and the sum is 2 (Pr[x > y] − Pr[x < y]).
    ``rows`` is n; the result is within 1e-8 of the exact number.
    """
    begin, kept = binomial(rows, parameters.keep)
    above, inserted = binomial(half - rows, parameters.beta)
    given = fftconvolve(kept, inserted)
    low, none = binomial(half, parameters.beta)
    at_most = np.concatenate([[0.0], np.cumsum(none)])
    counts = begin + above - low + np.arange(len(given))
    below, not_above = (at_most[np.clip(counts + more, 0, len(none))] for more in (0, 1))
    return float(2 * (given @ (below - (1 - not_above))))
