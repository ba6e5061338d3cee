"""How far αβ views of different databases differ, and how far a view moves an attacker's belief about a count.

The statistical difference of two distributions is Σ |p − q|, without ½, as in Definition 3.1 of the source: 0 where
they are the same, 2 where one event distinguishes them for certain. Half of it is the total variation distance.

*Of views.* Each tuple is published independently, so only the tuples in which two databases differ matter, and of them
only how many are published: a view with x of the h tuples of the first database alone and y of the h' of the second
alone. One tuple more or less gives α.

*Of a counting query's answer.* An attacker holds each of the N tuples that the query selects for real with probability
p, independent of the others. A view moves the law of the answer Q from this prior to the posterior. The mean
statistical difference of the two, over all views, is that of the joint law of Q and the number V of published tuples
from the product of their laws. Where it is 0 nothing is learned of the answer.

*Of the views given two answers.* The source calls an algorithm meaningless if Σ_V |Pr[V | Q = n] − Pr[V | Q = 0]| < ½
for two thirds of the queries. The instance is any set of n tuples, equally likely, so V depends on Q through the
published tuples that the query selects and those that it does not (see :func:`extreme_difference`).

Tuple by tuple the two have correlation φ = α √(p(1−p)/(q(1−q))), q = β + αp. The singular values of the conditional
expectation given V are φ^j, j ≤ N (Krawtchouk's polynomials in Q and V are its eigenfunctions), so the χ² distance of
the joint law from the product is Σ φ^(2j), and by Cauchy and Schwarz the difference is at most √(Σ φ^(2j)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import check_type, check_whole
from pufferflow.errors import ParameterError
from pufferflow.related.dp._binomials import binomial_law, sum_law, sum_window, window, window_law
from pufferflow.related.dp.alpha_beta import AlphaBeta, Probability, check_probability

MOST_COUNTS = 10**6
"""Pairs of counts beyond which an exact sum is refused."""

MOST_STEPS = 10**9
"""Answers times counts beyond which :func:`answer_difference` is refused."""


def view_difference(parameters: AlphaBeta, first_only: int, second_only: int = 0) -> Fraction:
    """Statistical difference of the views of two databases, exact.

    Parameters
    ----------
    parameters : AlphaBeta
    first_only, second_only : int
        Numbers of tuples that one of the databases has and the other has not.

    Raises
    ------
    ParameterError
        A number below 0, or more than ``MOST_COUNTS`` pairs of counts.
    """
    check_type(parameters, "parameters", AlphaBeta)
    sizes = tuple(check_whole(n, name, 0) for n, name in ((first_only, "first_only"), (second_only, "second_only")))
    if math.prod(size + 1 for size in sizes) > MOST_COUNTS:
        raise ParameterError(
            f"{sizes[0]} and {sizes[1]} tuples make more than {MOST_COUNTS} pairs of counts; give fewer"
        )
    own, other = ([binomial_law(size, p) for size in sizes] for p in (parameters.keep, parameters.beta))
    pairs = ((x, y) for x in range(sizes[0] + 1) for y in range(sizes[1] + 1))
    return sum((abs(own[0][x] * other[1][y] - other[0][x] * own[1][y]) for x, y in pairs), Fraction(0))


def answer_difference(parameters: AlphaBeta, prior: Probability, tuples: int) -> float:
    """Mean statistical difference of an attacker's posterior and prior law of a counting query's answer.

    Parameters
    ----------
    parameters : AlphaBeta
    prior : Fraction, str or float
        The attacker's probability of each tuple.
    tuples : int
        Tuples of the domain that the query selects.

    Returns
    -------
    float
        Within 1e-9 of the exact number: ends of both laws of less than 1e-15 are left out.

    Raises
    ------
    ParameterError
        An argument out of range.
    """
    check_type(parameters, "parameters", AlphaBeta)
    p, tuples = float(check_probability("prior", prior)), check_whole(tuples, "tuples")
    keep, beta = float(parameters.keep), float(parameters.beta)
    answers, published = range(*window(tuples, p)), beta + (keep - beta) * p
    ends = [sum_window(answer, keep, tuples - answer, beta) for answer in (answers[0], answers[-1])]
    low, high = window(tuples, published)
    places = range(min(low, *(start for start, _ in ends)), max(high, *(stop for _, stop in ends)))
    if len(answers) * len(places) > MOST_STEPS:
        raise ParameterError(f"{tuples} tuples take more than {MOST_STEPS} steps; use answer_difference_bound")
    evidence = np.zeros(len(places))
    evidence[low - places[0] : high - places[0]] = window_law(tuples, published)
    priors, total = window_law(tuples, p), 0.0
    for answer, law in _published_laws(answers, places, tuples, keep, beta):
        total += float(priors[answer - answers[0]]) * float(np.abs(law - evidence).sum())
    return total


def answer_difference_bound(parameters: AlphaBeta, prior: Probability, tuples: int) -> float:
    """Upper bound √(Σ_{j ≤ N} φ^(2j)) on :func:`answer_difference`, at any size; rounded to nearest, at most 2."""
    check_type(parameters, "parameters", AlphaBeta)
    p, tuples = check_probability("prior", prior), check_whole(tuples, "tuples")
    q = parameters.beta + parameters.alpha * p
    if p in (0, 1) or q in (0, 1):
        return 0.0
    square = float(parameters.alpha**2 * p * (1 - p) / (q * (1 - q)))
    total = square * -math.expm1(tuples * math.log(square)) / (1 - square) if square < 1 else float(tuples)
    return min(2.0, math.sqrt(total))


def extreme_difference(parameters: AlphaBeta, rows: int, half: int) -> float:
    """Σ_V |Pr[V | Q = n] − Pr[V | Q = 0]| of a query that selects half of the domain.

    Let x published tuples be among those that the query selects and y among the others. Given
    Q = n they have the distributions f and g, given Q = 0 they change places. f/g increases
    (f replaces n factors of g, a log-concave distribution, by likelier ones), so the difference
    f(x)g(y) − g(x)f(y) has the sign of x − y, and the sum is 2 (Pr[x > y] − Pr[x < y]).

    Parameters
    ----------
    parameters : AlphaBeta
    rows : int
        Tuples of the data, n.
    half : int
        Tuples of the domain that the query selects; as many others are in the domain.

    Returns
    -------
    float
        Within 1e-8 of the exact number.

    Raises
    ------
    ParameterError
        More rows than tuples that the query selects.
    """
    check_type(parameters, "parameters", AlphaBeta)
    rows, half = check_whole(rows, "rows"), check_whole(half, "half")
    if rows > half:
        raise ParameterError(f"rows is {rows}, above half, {half}; lower it")
    keep, beta = float(parameters.keep), float(parameters.beta)
    kept, made_up = window_law(rows, keep), window_law(half - rows, beta)
    size = len(kept) + len(made_up) - 1
    padded = 1 << (size - 1).bit_length()
    spectrum = np.fft.rfft(kept, padded) * np.fft.rfft(made_up, padded)
    given_all = np.fft.irfft(spectrum, padded)[:size]
    first, _ = sum_window(rows, keep, half - rows, beta)
    low, high = window(half, beta)
    at_most = np.concatenate([[0.0], np.cumsum(window_law(half, beta))])
    counts = first - low + np.arange(size)
    below, not_above = (at_most[np.clip(counts + more, 0, high - low)] for more in (0, 1))
    return float(2 * (given_all @ (below - (1 - not_above))))


def _published_laws(
    answers: range, places: range, tuples: int, keep: float, beta: float
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield each answer with the law, at ``places``, of the published tuples given that answer.

    Neighbouring answers differ in one tuple, so the step from one to the next takes one Bernoulli factor out of the
    generating function and puts another in. It goes in the direction that takes out the factor further from ½, which is
    nowhere smaller on the unit circle: so no step enlarges a rounding error.
    """
    upwards = abs(beta - 0.5) >= abs(keep - 0.5)
    out, into = (beta, keep) if upwards else (keep, beta)
    order = answers if upwards else answers[::-1]
    low, high = sum_window(order[0], keep, tuples - order[0], beta)
    law = np.zeros(len(places))
    law[low - places[0] : high - places[0]] = sum_law(order[0], keep, tuples - order[0], beta)
    size = 1 << len(places).bit_length()  # a power of two, for speed, and room for one more place
    shift = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    step = (1 - into + into * shift) / (1 - out + out * shift)
    spectrum = np.fft.rfft(law, size)
    for answer in order:
        yield answer, np.fft.irfft(spectrum, size)[: len(places)]
        spectrum = spectrum * step
