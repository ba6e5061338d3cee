"""The αβ algorithm: publish a set of tuples among random ones of its domain.

Keep each tuple of the data with probability α + β, insert each other tuple of the domain D with
probability β, and publish the result V with α, β and D (Rastogi, Suciu, Hong, "The Boundary Between
Privacy and Utility in Data Publishing", VLDB 2007).

(d, γ)-privacy: for every prior under which tuples are independent with Pr[t] ≤ d or Pr[t] = 1, and
every t with Pr[t] ≤ d: (d/γ)·Pr[t] ≤ Pr[t | V] ≤ γ. With p = Pr[t],

    t in V:      Pr[t | V] = (α+β) p / ((α+β) p + β (1−p)),  largest at p = d;
    t not in V:  Pr[t | V] / p falls to (1−α−β)/(1−β) as p → 0,

so the definition holds if and only if β/(α+β) ≥ d(1−γ)/(γ(1−d)) and (1−α−β)/(1−β) ≥ d/γ. (The
source has 1−α−β ≥ d/γ, which is sufficient but not necessary.) The error of every counting query
falls with α+β and rises with β/(α+β), so it is least if both are equalities. Several views multiply
the odds of t by one factor each; the extremes are a tuple in all views and one in none, so the same
conditions decide with products. Parameters for k views together take k-th roots.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from flint import fmpz
from numpy.typing import NDArray

from pufferflow._checks import check_choice, check_list, check_positive, check_type, check_whole
from pufferflow._types import Floats
from pufferflow.dp.domains import Domain
from pufferflow.dp.draws import bernoulli, randomness
from pufferflow.dp.finite import Exact, check_exact
from pufferflow.errors import DataError, ParameterError

Rows: TypeAlias = pd.DataFrame | Collection[tuple[Any, ...]]

MOST_TUPLES, MOST_STEPS = 10**8, 10**9
"""Tuples of a domain to publish, and steps of a sum, beyond which a call is refused."""


@dataclass(frozen=True)
class PrivacyCheck:
    """Whether views are (d, γ)-private together, and the numbers that decide.

    ``posterior_inside`` is the largest Pr[t | V] for t in every view, ``ratio_outside`` the infimum
    of Pr[t | V] / Pr[t] for t in no view, ``published_conditions`` those of the source.
    """

    private: bool
    published_conditions: bool
    posterior_inside: Fraction
    ratio_outside: Fraction


@dataclass(frozen=True)
class Estimate:
    """Unbiased estimate of a counting query and its standard error."""

    count: float
    standard_error: float


@dataclass(frozen=True)
class AlphaBeta:
    """The two probabilities, exact: α in (0, 1], β ≥ 0 and α + β ≤ 1, or ParameterError."""

    alpha: Fraction
    beta: Fraction

    def __init__(self, alpha: Exact, beta: Exact) -> None:
        object.__setattr__(self, "alpha", check_exact(alpha, "alpha", 0, 1))
        object.__setattr__(self, "beta", check_exact(beta, "beta", 0, 1))
        if self.alpha == 0 or self.keep > 1:
            raise ParameterError("alpha must be above 0, and alpha + beta at most 1")

    @property
    def keep(self) -> Fraction:
        """Probability α + β that a tuple of the data is published."""
        return self.alpha + self.beta

    def standard_error(self, count: float, domain_count: int) -> float:
        """Return the standard error for a query that so many tuples of the data, and of D, meet."""
        count = check_positive(count, "count", or_zero=True)
        others = _others(count, domain_count)
        kept, inserted = float(self.keep * (1 - self.keep)), float(self.beta * (1 - self.beta))
        return math.sqrt(count * kept + others * inserted) / float(self.alpha)

    def rho(self, n: int, m: int) -> float:
        """Return the error of the worst counting query over √n, for n of m tuples in the data."""
        return self.standard_error(check_whole(n, "n"), m) / math.sqrt(n)

    def failure(self, error: float, count: int, domain_count: int) -> float:
        """Return the probability that the estimate for such a query errs by more than ``error``."""
        error = check_positive(error, "error", or_zero=True)
        others = _others(check_whole(count, "count", 0), domain_count)
        low, chances = _sum(count, self.keep, others, self.beta)
        middle, away = self.keep * count + self.beta * others, self.alpha * Fraction(error)
        # the published tuples from which the estimate lies within the error
        first, last = math.ceil(middle - away) - low, math.floor(middle + away) - low
        missed = chances[: max(0, first)].sum() + chances[max(0, last + 1) :].sum()
        return min(1.0, float(missed))


def check_views(views: Collection[AlphaBeta], d: Exact, gamma: Exact) -> PrivacyCheck:
    """Return whether several views of the same data are (d, γ)-private together, exactly.

    Parameters
    ----------
    views : list of AlphaBeta
        Each may have been chosen after the views before it were seen.
    d, gamma : Fraction, str or float
        Bounds on prior and posterior, 0 < d ≤ γ ≤ 1, d < 1; anything else is a ParameterError.
    """
    views, (d, gamma) = check_list(views, "views"), _bounds(d, gamma)
    if not views:
        raise ParameterError("views is empty; give the parameters of at least one view")
    for view in views:
        check_type(view, "an entry of views", AlphaBeta)
    kept, inserted = math.prod(v.keep for v in views), math.prod(v.beta for v in views)
    dropped, absent = math.prod(1 - v.keep for v in views), math.prod(1 - v.beta for v in views)
    inside = kept * d / (kept * d + inserted * (1 - d))
    private = inside <= gamma and dropped / absent >= d / gamma
    published = inside <= gamma and dropped >= d / gamma
    return PrivacyCheck(private, published, inside, dropped / absent)


def choose_alpha_beta(
    d: Exact,
    gamma: Exact,
    *,
    views: int = 1,
    conditions: Literal["exact", "published"] = "exact",
) -> AlphaBeta:
    """Return the (d, γ)-private α, β with the least error of every counting query.

    Parameters
    ----------
    d, gamma : Fraction, str or float
        Bounds on prior and posterior, 0 < d < γ ≤ 1; anything else is a ParameterError.
    views : int
        Number of views, at most 1000, that are (d, γ)-private together with these parameters.
    conditions : {"exact", "published"}
        Best under the definition (default), or under the source's stronger conditions.
    """
    d, gamma = _bounds(d, gamma)
    check_choice(conditions, "conditions", ("exact", "published"))
    if d == gamma:
        raise ParameterError("d and gamma are equal, so that alpha would be 0; raise gamma")
    views = check_whole(views, "views", most=1000)
    # β/(α+β), and the factor of a tuple that is in no view
    inserted = root_up(d * (1 - gamma) / (gamma * (1 - d)), views)
    outside = root_up(d / gamma, views)
    keep = (1 - outside) / (1 - outside * inserted) if conditions == "exact" else 1 - outside
    return AlphaBeta(keep * (1 - inserted), keep * inserted)


@dataclass(frozen=True)
class Publication:
    """What αβ publishes: the tuples, in the domain's order, the domain and both probabilities."""

    table: pd.DataFrame = field(repr=False)
    domain: Domain
    parameters: AlphaBeta

    def count(self, where: Mapping[str, Any] | None = None) -> Estimate:
        """Estimate how many tuples of the data meet all conditions (see ``Domain.selected``).

        (n_V − β n_D)/α is unbiased; its standard error is that of a count between 0 and n_D.
        """
        mask, of_domain = self.domain.selected(where or {}, self.table)
        count = float((int(mask.sum()) - self.parameters.beta * of_domain) / self.parameters.alpha)
        inside = min(max(count, 0.0), float(of_domain))
        return Estimate(count, self.parameters.standard_error(inside, of_domain))


def publish(
    data: Rows, domain: Domain, parameters: AlphaBeta, *, insecure_seed: int | None = None
) -> Publication:
    """Publish a set of tuples by αβ: an exact Bernoulli bit for every tuple of the domain.

    Parameters
    ----------
    data : DataFrame, or collection of tuples in the order of the domain's columns
        A set of tuples of the domain; anything else is a DataError.
    domain : Domain
        Of at most 10^8 tuples; a larger one is a ParameterError.
    parameters : AlphaBeta
        See :func:`choose_alpha_beta`.
    insecure_seed : int, optional
        Draw from a seeded generator instead of the operating system's. Not private.
    """
    check_type(parameters, "parameters", AlphaBeta)
    codes, chosen, step = np.sort(_encoded(data, domain)), [], 2**20
    if domain.size > MOST_TUPLES:
        raise ParameterError(
            f"the domain has more than {MOST_TUPLES} tuples; declare a smaller one"
        )
    source = randomness(insecure_seed)
    for start in range(0, domain.size, step):
        own = codes[(codes >= start) & (codes < start + step)] - start
        published = bernoulli(source, parameters.beta, min(step, domain.size - start))
        published[own] = bernoulli(source, parameters.keep, len(own))
        chosen.append(start + np.flatnonzero(published))
    return Publication(domain.decode(np.concatenate(chosen)), domain, parameters)


class Publisher:
    """Publish views of one table that stay (d, γ)-private together.

    A view is counted before it is drawn, and refused if the bound would not hold. Not covered are
    views of a table that changes, and views that others publish. Arguments as in :func:`publish`.
    """

    def __init__(self, data: Rows, domain: Domain, d: Exact, gamma: Exact) -> None:
        _encoded(data, domain)
        self._data, self.domain = data, domain
        self.d, self.gamma = _bounds(d, gamma)
        self.views: tuple[AlphaBeta, ...] = ()

    def __repr__(self) -> str:
        return f"Publisher({self.domain}, d={self.d}, gamma={self.gamma})"

    def publish(self, parameters: AlphaBeta, *, insecure_seed: int | None = None) -> Publication:
        """Publish one more view; raises ParameterError if it is refused."""
        views = (*self.views, parameters)
        if not check_views(views, self.d, self.gamma).private:
            raise ParameterError(
                f"view {len(views)} is refused: all views together would not be (d, γ)-private; "
                "choose parameters for all of them"
            )
        self.views = views
        return publish(self._data, self.domain, parameters, insecure_seed=insecure_seed)


def view_difference(parameters: AlphaBeta, tuples: int) -> Fraction:
    """Return the statistical difference of views with and without ``tuples`` tuples, exactly.

    That of two distributions is Σ |p − q| (source, Definition 3.1): 0 if they are equal, 2 if one
    event distinguishes them for certain. At most 10^4 tuples.
    """
    check_type(parameters, "parameters", AlphaBeta)
    n, (a, b) = check_whole(tuples, "tuples", 0, 10**4), (parameters.keep, parameters.beta)
    pairs = ((a**x * (1 - a) ** (n - x), b**x * (1 - b) ** (n - x)) for x in range(n + 1))
    return sum((math.comb(n, x) * abs(p - q) for x, (p, q) in enumerate(pairs)), Fraction(0))


def answer_difference(parameters: AlphaBeta, prior: Exact, tuples: int) -> float:
    """Return the mean statistical difference of posterior and prior distribution of a count.

    The attacker holds each of the ``tuples`` tuples that the query selects for present with
    probability ``prior``, independently; the mean is over all views. Within 1e-9 of the exact
    number. Raises ParameterError if that takes more than 10^9 steps.
    """
    check_type(parameters, "parameters", AlphaBeta)
    p, tuples = float(check_exact(prior, "prior", 0, 1)), check_whole(tuples, "tuples")
    keep, beta = float(parameters.keep), float(parameters.beta)
    sizes = (len(window(tuples, rate)) for rate in (p, beta + (keep - beta) * p))
    if math.prod(sizes) > MOST_STEPS:
        raise ParameterError("this takes too many steps; use answer_difference_bound")
    first, priors = binomial(tuples, p)
    start, evidence = binomial(tuples, beta + (keep - beta) * p)
    answers = range(first, first + len(priors))
    ends = [_sum(answer, keep, tuples - answer, beta) for answer in (answers[0], answers[-1])]
    low = min(start, *(begin for begin, _ in ends))
    high = max(start + len(evidence), *(begin + len(law) for begin, law in ends))
    # Neighbouring answers differ in one tuple: its factor in the generating function is replaced.
    # Taking out the one further from ½, nowhere smaller on the unit circle, enlarges no rounding.
    upwards = abs(beta - 0.5) >= abs(keep - 0.5)
    out, into = (beta, keep) if upwards else (keep, beta)
    begin, law = ends[0] if upwards else ends[1]
    size = 1 << (high - low).bit_length()
    shift = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    step = (1 - into + into * shift) / (1 - out + out * shift)
    spectrum = np.fft.rfft(np.pad(law, (begin - low, 0)), size)
    unconditional, total = np.pad(evidence, (start - low, high - start - len(evidence))), 0.0
    for answer in answers if upwards else reversed(answers):
        given = np.fft.irfft(spectrum, size)[: high - low]
        total += float(priors[answer - first]) * float(np.abs(given - unconditional).sum())
        spectrum = spectrum * step
    return total


def answer_difference_bound(parameters: AlphaBeta, prior: Exact, tuples: int) -> float:
    """Return an upper bound of :func:`answer_difference` for any number of tuples.

    Tuple and view have correlation φ = α √(p(1−p)/(q(1−q))), q = β + αp. The singular values of
    the conditional expectation are φ^j, j ≤ N, so the χ² distance of the joint distribution from
    the product is Σ φ^(2j), and its root bounds the difference (Cauchy and Schwarz).
    """
    check_type(parameters, "parameters", AlphaBeta)
    p, tuples = check_exact(prior, "prior", 0, 1), check_whole(tuples, "tuples")
    q = parameters.beta + parameters.alpha * p
    if p in (0, 1) or q in (0, 1):
        return 0.0
    square, total = float(parameters.alpha**2 * p * (1 - p) / (q * (1 - q))), float(tuples)
    if square < 1:
        total = square * -math.expm1(tuples * math.log(square)) / (1 - square)
    return min(2.0, math.sqrt(total))


def extreme_difference(parameters: AlphaBeta, rows: int, half: int) -> float:
    """Return Σ_V |Pr[V | Q = n] − Pr[V | Q = 0]| of a query that selects half of the domain.

    Let x published tuples be among the ``half`` that the query selects, and y among as many
    others. Given Q = n they have the distributions f and g, given Q = 0 they change places. f/g
    increases, so f(x)g(y) − g(x)f(y) has the sign of x − y, and the sum is
    2 (Pr[x > y] − Pr[x < y]). ``rows`` is n; the result is within 1e-8 of the exact number.
    """
    check_type(parameters, "parameters", AlphaBeta)
    others = _others(check_whole(rows, "rows"), half)
    (begin, kept), (above, inserted) = (
        binomial(rows, parameters.keep),
        binomial(others, parameters.beta),
    )
    size = len(kept) + len(inserted) - 1
    padded = 1 << (size - 1).bit_length()
    spectrum = np.fft.rfft(kept, padded) * np.fft.rfft(inserted, padded)
    given = np.fft.irfft(spectrum, padded)[:size]
    low, none = binomial(half, parameters.beta)
    at_most = np.concatenate([[0.0], np.cumsum(none)])
    counts = begin + above - low + np.arange(size)
    below, not_above = (at_most[np.clip(counts + more, 0, len(none))] for more in (0, 1))
    return float(2 * (given @ (below - (1 - not_above))))


def window(trials: int, probability: float) -> range:
    """Return the counts of a binomial distribution but for ends below e^−30 each (Bernstein)."""
    mean, tail = trials * probability, 30.0
    variance = mean * (1 - probability)
    away = tail / 3 + math.sqrt(tail**2 / 9 + 2 * variance * tail) if variance else 0
    return range(max(0, math.floor(mean - away)), min(trials, math.ceil(mean + away)) + 1)


def binomial(trials: int, probability: Fraction | float) -> tuple[int, Floats]:
    """Return the first count of :func:`window` and the probabilities of all, shape (counts,)."""
    p = float(probability)
    counts = window(trials, p)
    if p in (0, 1):
        return counts[0], np.ones(1)
    x = np.arange(counts[0], counts[-1], dtype=np.float64)
    logs = np.cumsum(np.log((trials - x) / (x + 1)) + np.log(p) - np.log1p(-p))
    weights = np.exp(np.append(0.0, logs) - logs.max(initial=0.0))
    return counts[0], np.asarray(weights / weights.sum())


def _sum(first: int, p: Fraction | float, second: int, q: Fraction | float) -> tuple[int, Floats]:
    """Return :func:`binomial` of the sum of two counts."""
    (low, one), (other_low, other) = binomial(first, p), binomial(second, q)
    return low + other_low, np.convolve(one, other)


def root_up(number: Fraction, degree: int) -> Fraction:
    """Return a fraction of at least the root of a number in [0, 1], exact if that is rational.

    The error is below 2^-64 of the root and of its distance from 1: a root of a/b is at least 1/b
    and differs from 1 by at least 1/(b · degree), so as many more bits are taken as these have.
    """
    whole = (number.numerator, number.denominator)
    roots = tuple(int(fmpz(part).root(degree)) for part in whole)
    if tuple(root**degree for root in roots) == whole:
        return Fraction(*roots)
    bits = 64 + number.denominator.bit_length() + degree.bit_length()
    scaled = fmpz((number.numerator << bits * degree) // number.denominator)
    return Fraction(int(scaled.root(degree)) + 1, 1 << bits)


def _others(count: float, domain_count: int) -> Any:
    others = check_whole(domain_count, "domain_count", 0) - count
    if others < 0:
        raise ParameterError("more tuples of the data than of the domain meet the query; lower one")
    return others


def _bounds(d: Exact, gamma: Exact) -> tuple[Fraction, Fraction]:
    d, gamma = check_exact(d, "d", 0, 1), check_exact(gamma, "gamma", 0, 1)
    if not 0 < d <= gamma or d == 1:
        raise ParameterError("0 < d ≤ gamma ≤ 1 and d < 1 must hold; correct d or gamma")
    return d, gamma


def _encoded(data: Rows, domain: Domain) -> NDArray[np.int64]:
    check_type(domain, "domain", Domain)
    if not isinstance(data, pd.DataFrame):
        rows, width = check_list(data, "data"), len(domain.columns)
        if not all(isinstance(row, tuple) and len(row) == width for row in rows):
            raise DataError(f"every entry of data must be a tuple of {width} values")
        data = pd.DataFrame(rows, columns=pd.Index(domain.columns), dtype=object)
    return domain.encode(data)
