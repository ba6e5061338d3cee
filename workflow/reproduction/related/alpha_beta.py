"""The αβ algorithm: errors of counting queries, disclosure by its views, claims of its source."""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom

from pufferflow import dp
from pufferflow._util.types import Floats
from pufferflow.dp import AlphaBeta
from pufferflow.errors import ParameterError
from reproduction.related import Found, Row, Stated, Value
from reproduction.tidy import mean_and_error, named_generator

GAMMA, FACTOR, ROWS, TUPLES = Fraction(1, 2), 4, 1000, 10**8
"""The largest posterior γ; prior factor k, rows n and domain m if a panel does not vary them."""
FACTORS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
ROWS_GRID = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
TUPLES_GRID = (10**4, 10**5, 10**6, 10**8, 10**10, 10**12)
SHARES = (1, 0.01)
"""Shares of the data that counting queries select."""


def measure(settings: Mapping[str, Any], seed: int) -> Iterator[Found]:
    """Yield rows of the curves (schema ``related``), and the values that the source states.

    ``settings`` is ``related.alpha_beta`` of the configuration. Panels ``k``, ``n``, ``m``: errors
    over √n of queries on a share of data and domain, where d = k n/m is below γ. ``difference``:
    distance of posterior and prior of the narrowest query's answer, for an attacker who expects n
    of the m tuples. ``views``: largest posterior of a tuple that is in all of several views.
    """
    gamma, odds, repetitions = GAMMA, float(GAMMA / (1 - GAMMA)), settings["repetitions"]
    points = [("k", factor, ROWS, TUPLES) for factor in FACTORS]
    points += [("n", FACTOR, rows, TUPLES) for rows in ROWS_GRID]
    points += [("m", FACTOR, ROWS, size) for size in TUPLES_GRID]
    points += [("difference", factor, ROWS, TUPLES) for factor in FACTORS]
    for panel, factor, rows, size in points:
        d = Fraction(factor * rows, size)
        if d >= gamma:
            continue
        best = dp.choose_alpha_beta(d, gamma)
        point: Row = {"panel": panel, "prior_factor_k": factor, "rows_n": rows}
        point |= {"domain_tuples_m": size, "gamma": float(gamma), "prior_bound_d": float(d)}
        point["impossible_from_k"] = odds * math.sqrt(size)
        if panel == "difference":
            share = min(SHARES)
            belief = best, Fraction(rows, size), max(1, round(share * size))
            point |= {"query_share": share, "difference_bound": difference_bound(*belief)}
            with suppress(ParameterError):  # the distributions may be too wide to sum up
                point["statistical_difference"] = answer_difference(*belief)
            yield point
            continue
        for share in SHARES:
            count, selected = round(share * rows), round(share * size)
            stream = named_generator(seed, f"alpha-beta/{panel}/{factor}/{rows}/{size}/{share}")
            # the published count is a sum of two binomial ones, however large the domain is
            published = stream.binomial(count, float(best.keep), repetitions)
            published += stream.binomial(selected - count, float(best.beta), repetitions)
            estimates = (published - float(best.beta * selected)) / float(best.alpha)
            mean, error = mean_and_error((estimates - count) ** 2 / rows)
            errors = {
                "rho_expected": best.standard_error(count, selected) / math.sqrt(rows),
                "rho_measured": math.sqrt(mean),
                "rho_standard_error": error / (2 * math.sqrt(mean)) if mean else 0.0,
                "rho_source": math.sqrt(factor / float(gamma)),
            }
            yield point | errors | {"query_share": share, "repetitions": repetitions}
    d = Fraction(1, 10)
    for views in range(1, 6):
        point = {"panel": "views", "gamma": float(gamma), "prior_bound_d": float(d), "views": views}
        point["posterior_same"] = _posterior(views, 1, d, gamma)
        point["posterior_together"] = _posterior(views, views, d, gamma)
        yield point
    for key, quantity, computed in (*_conditions(settings, seed), *_trade_off(), *_disclosed(seed)):
        yield Value("αβ", quantity, f"alpha-beta/{key}", computed)


def _posterior(views: int, made_for: int, d: Fraction, gamma: Fraction) -> float:
    """Return the posterior of a tuple with prior d that is in all of several views."""
    parameters = dp.choose_alpha_beta(d, gamma, views=made_for)
    return float(dp.check_views([parameters] * views, d, gamma).posterior_inside)


def _conditions(settings: Mapping[str, Any], seed: int) -> Stated:
    """Yield whether the source's conditions imply privacy and its estimate is unbiased."""
    sets, checks = settings["parameter_sets"], []
    stream = named_generator(seed, "alpha-beta/conditions")
    draws = stream.integers([2, 1, 60, 60, 10], [41, 40, 104, 104, 16], (sets, 5)).tolist()
    for of_gamma, of_d, of_alpha, of_beta, more in draws:
        gamma = Fraction(of_gamma, 41)
        d = gamma * Fraction(of_d, 41)
        best = dp.choose_alpha_beta(d, gamma)
        # around the boundary, on both sides of it
        alpha = min(best.alpha * Fraction(of_alpha, 100), Fraction(1))
        beta = min(best.beta * Fraction(of_beta * more, 1000), 1 - alpha)
        check = dp.check_views([dp.AlphaBeta(alpha, beta)], d, gamma)
        # the source's conditions: of a tuple in no view they need more
        published = check.posterior_inside <= gamma and 1 - alpha - beta >= d / gamma
        checks.append((check.private, published))
    implied = all(private for private, published in checks if published)
    refused = sum(private and not published for private, published in checks)
    quantity = f"the source's conditions imply (d, γ)-privacy, {sets} cases"
    yield "sufficient", quantity, "sufficient" if implied else "not sufficient"
    yield "refused", "(d, γ)-private cases that these conditions refuse", f"{refused} of {sets}"

    domain = dp.Domain({"district": range(1, 51), "answer": ["yes", "no"]})
    data = [(district, "yes") for district in range(1, 41)]
    where = {"answer": "yes", "district": range(21, 51)}  # 20 tuples of the data, 30 of the domain
    best, publications = dp.choose_alpha_beta(".1", ".5"), settings["publications"]
    seeds = named_generator(seed, "alpha-beta/publications").integers(2**62, size=publications)
    views = (dp.publish(data, domain, best, insecure_seed=each) for each in seeds.tolist())
    error = float(np.mean([view.count(where).count - 20 for view in views]))
    bias = error / (best.standard_error(20, 30) / math.sqrt(publications))
    estimate = "unbiased" if abs(bias) <= 3 else f"off by {bias:.2f} standard errors"
    yield "unbiased", f"the estimate over {publications} publications", estimate


def _trade_off() -> Stated:
    """Yield the growth of the error ρ√n relative to √(k/γ), its constant, and if αβ is useful.

    Useful: at d = k n/m ≤ γ/10, k ≥ 1, errors are at most 2.5 √(k/γ)·√n in 95 %. The variance is
    at most n dγ(1−d)/(γ−d)² + k n (1−γ)(γ+d−γd)/(γ−d)² ≤ 1.5 (k/γ) n, for the whole table.
    """
    n, m, small, factors = 1000, 10**12, Fraction(1, 100), (1, 10, 100)

    def of_all(parameters: dp.AlphaBeta) -> float:
        return parameters.standard_error(n, m) / math.sqrt(n)

    over_k = [of_all(dp.choose_alpha_beta(Fraction(k * n, m), small)) for k in factors]
    over_gamma = [of_all(dp.choose_alpha_beta(Fraction(n, m), small / k)) for k in factors]
    for key, variable, rho in (("rho", "k/γ", over_k), ("rho-gamma", "1/γ", over_gamma)):
        slope = np.polyfit(np.log(factors), np.log(rho), 1)[0]
        yield key, f"growth of ρ with {variable}", f"(k/γ)^{slope:.2f}"
    sparse, unit = dp.choose_alpha_beta(Fraction(4 * n, m), "1/2"), math.sqrt(4 / 0.5)
    yield "constant", "root-mean-square ρ over √(k/γ), γ = ½, d → 0", of_all(sparse) / unit
    covered = 1 - failure(sparse, unit * math.sqrt(n), n, m)
    yield "coverage", "Pr[error ≤ √(k/γ)·√n], γ = ½, d → 0", covered
    private, useful, gammas = True, True, map(Fraction, (".1", ".5", ".9"))
    for gamma, k, densest in product(gammas, (1, 4, 100), (True, False)):
        size = math.ceil(10 * k * n / gamma) if densest else m
        d, error = Fraction(k * n, size), 2.5 * math.sqrt(k / gamma * n)
        best = dp.choose_alpha_beta(d, gamma)
        queries = [(n, size), (0, size), (n // 10, size // 10)]
        private &= dp.check_views([best], d, gamma).private
        useful &= all(failure(best, error, *query) <= 0.05 for query in queries)
    both = "private and useful" if private and useful else "not both"
    yield "both", "privacy and utility at once", both


def _disclosed(seed: int) -> Stated:
    """Yield the disclosure by several views, and by one on the impossibility line."""
    d, gamma, n, m = Fraction(1, 10), Fraction(1, 2), 1000, 10000
    alone, three = dp.choose_alpha_beta(d, gamma), dp.choose_alpha_beta(d, gamma, views=3)
    for views in (1, 2, 3):
        quantity = f"largest posterior after {views} view(s) made for one, d = .1, γ = .5"
        yield f"views/{views}", quantity, _posterior(views, 1, d, gamma)
    publisher, second = dp.Publisher([(1,), (2,)], dp.Domain({"x": range(20)}), d, gamma), "refused"
    publisher.publish(alone, insecure_seed=seed)
    with suppress(ParameterError):
        publisher.publish(alone, insecure_seed=seed)
        second = "published"
    yield "views/second", "a second such view of the same data", second
    yield "views/together", "largest posterior after 3 views made for 3", _posterior(3, 3, d, gamma)
    ratio = three.standard_error(n, m) / math.sqrt(3) / alone.standard_error(n, m)
    yield "views/price", "error of their mean over that of one view", ratio

    # the line is d = (γ/(1−γ)) n/√m, here with n = √m/10
    inserted, keep = d * (1 - gamma) / (gamma * (1 - d)), 1 - d / gamma
    source = dp.AlphaBeta(keep * (1 - inserted), keep * inserted)  # the best under its conditions
    found = {p: extreme_difference(source, 10 ** (p // 2 - 1), 10**p // 2) for p in (4, 6, 8, 12)}
    quantity = "Σ|Pr[V|Q=n] − Pr[V|Q=0]| on the impossibility line, half of the domain queried"
    yield "impossible", quantity, "below .5" if max(found.values()) < 0.5 else "not below .5"
    for power, total in found.items():
        yield f"extremes/{power}", f"that sum at m = 10^{power}", total
    quantity = "bound √(Σ φ^2j) on the difference of posterior and prior count there, m = 10^12"
    yield "difference-bound", quantity, difference_bound(alone, Fraction(1, 10**7), 10**12 // 2)
    quantity = "statistical difference of views with and without one tuple"
    yield "difference-one", f"{quantity}, our α", 2 * float(alone.alpha)
    yield "difference-source", f"{quantity}, the source's α", 2 * float(source.alpha)


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
