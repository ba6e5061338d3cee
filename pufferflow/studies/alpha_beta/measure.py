"""αβ on synthetic tables: the error of counting queries against k, n and m, and the claims of its paper.

A query's published count is the sum of two binomial counts, so its error is drawn from that law at once, whatever the
size of the domain; the claim that the estimate is unbiased is checked on whole publications.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._numbers import written_number
from pufferflow.errors import ParameterError
from pufferflow.related.dp.alpha_beta import AlphaBeta, check_views, choose_alpha_beta, publish
from pufferflow.related.dp.domains import Domain
from pufferflow.related.dp.statistical_difference import answer_difference, answer_difference_bound, view_difference
from pufferflow.related.dp.views import Publisher
from pufferflow.studies.tidy import frame, mean_and_error, named_generator
from pufferflow.studies.values import Value, values_table

CURVE_COLUMNS = [
    "panel",
    "prior_factor_k",
    "rows_n",
    "domain_tuples_m",
    "gamma",
    "prior_bound_d",
    "query_share",
    "rho_expected",
    "rho_measured",
    "rho_standard_error",
    "rho_source",
    "impossible_from_k",
    "statistical_difference",
    "difference_bound",
    "views",
    "posterior_same",
    "posterior_together",
    "repetitions",
]
"""Panels ``k``, ``n``, ``m``: errors of queries. ``difference``: how far a view moves what an attacker who expects n of
the m tuples believes of the narrowest query's answer. ``views``: posterior of a tuple with the prior d in all views."""


def measure(settings: Mapping[str, Any], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run the experiment.

    Parameters
    ----------
    settings : mapping
        ``experiments.alpha_beta`` of the configuration. A query of share c selects c·n tuples of the data and c·m of
        the domain; d = k n/m, settings where d would reach γ are left out.
    seed : int

    Returns
    -------
    curves, claims : DataFrame
        Errors over √n, and each claim's computed value.
    """
    rows = [*_curves(settings, seed), *_differences(settings), *_views(settings)]
    return frame(rows, CURVE_COLUMNS), values_table(_claims(settings, seed))


def _curves(settings: Mapping[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    k, n, m = settings["prior_factor"], settings["rows"], settings["domain_tuples"]
    grids = {
        "k": [(value, n, m) for value in settings["prior_factors"]],
        "n": [(k, value, m) for value in settings["rows_grid"]],
        "m": [(k, n, value) for value in settings["domain_tuples_grid"]],
    }
    for panel, points in grids.items():
        for factor, rows, size in points:
            for point, parameters in _point(settings, factor, rows, size):
                for share in settings["query_shares"]:
                    stream = named_generator(seed, f"alpha-beta/{panel}/{factor}/{rows}/{size}/{share}")
                    count, selected = round(share * rows), round(share * size)
                    errors = _errors(stream, parameters, count, selected, settings["repetitions"])
                    mean, error = mean_and_error(errors**2 / rows)
                    yield point | {
                        "panel": panel,
                        "query_share": share,
                        "rho_expected": parameters.standard_error(count, selected) / math.sqrt(rows),
                        "rho_measured": math.sqrt(mean),
                        "rho_standard_error": error / (2 * math.sqrt(mean)) if mean else 0.0,
                        "rho_source": math.sqrt(factor / point["gamma"]),
                        "repetitions": settings["repetitions"],
                    }


def _point(
    settings: Mapping[str, Any], factor: float, rows: int, size: int
) -> Iterator[tuple[dict[str, Any], AlphaBeta]]:
    """Settings of a point and the best parameters there; nothing where d reaches γ."""
    gamma = written_number(settings["gamma"], "gamma")
    d = written_number(factor, "a factor of d") * rows / size
    if d < gamma:
        point = {
            "prior_factor_k": factor,
            "rows_n": rows,
            "domain_tuples_m": size,
            "gamma": float(gamma),
            "prior_bound_d": float(d),
            "impossible_from_k": float(gamma / (1 - gamma)) * math.sqrt(size) if gamma < 1 else math.inf,
        }
        yield point, choose_alpha_beta(d, gamma)


def _differences(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a view tells of an answer to someone who holds each of m tuples for real with probability n/m."""
    n, m, share = settings["rows"], settings["domain_tuples"], min(settings["query_shares"])
    prior, selected = Fraction(min(n, m), m), max(1, round(share * m))
    for factor in settings["prior_factors"]:
        for point, parameters in _point(settings, factor, n, m):
            try:
                difference = answer_difference(parameters, prior, selected)
            except ParameterError:  # the laws are too wide to add up
                difference = math.nan
            yield point | {
                "panel": "difference",
                "query_share": share,
                "statistical_difference": difference,
                "difference_bound": answer_difference_bound(parameters, prior, selected),
            }


def _views(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    d, gamma = (written_number(settings[name], name) for name in ("views_prior", "gamma"))
    if not d < gamma < 1:
        return
    alone = choose_alpha_beta(d, gamma)
    for views in range(1, settings["views"] + 1):
        same, together = ([parameters] * views for parameters in (alone, choose_alpha_beta(d, gamma, views=views)))
        yield {
            "panel": "views",
            "gamma": float(gamma),
            "prior_bound_d": float(d),
            "views": views,
            "posterior_same": float(check_views(same, d, gamma).posterior_inside),
            "posterior_together": float(check_views(together, d, gamma).posterior_inside),
        }


def _errors(
    stream: np.random.Generator, parameters: AlphaBeta, count: int, selected: int, repetitions: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Errors of the estimate of a query over independent publications."""
    published = stream.binomial(count, float(parameters.keep), repetitions)
    published += stream.binomial(selected - count, float(parameters.beta), repetitions)
    estimates = (published - float(parameters.beta * selected)) / float(parameters.alpha)
    return np.asarray(estimates - count, np.float64)


def _claims(settings: Mapping[str, Any], seed: int) -> Iterator[Value]:
    sets = settings["parameter_sets"]
    sufficient, needed = _conditions(sets, named_generator(seed, "alpha-beta/conditions"))
    what = f"the paper's conditions imply (d, γ)-privacy, {sets} rational parameter sets"
    yield Value("αβ", what, "alpha-beta/sufficient", "sufficient" if sufficient else "not sufficient")
    what = "(d, γ)-private parameter sets that the paper's conditions refuse"
    yield Value("αβ", what, "alpha-beta/refused", f"{needed} of {sets}")
    bias = _bias(settings["publications"], seed)
    yield Value(
        "αβ",
        f"the estimate over {settings['publications']} publications",
        "alpha-beta/unbiased",
        "unbiased" if abs(bias) <= 3 else f"off by {bias:.2f} standard errors",
    )
    yield from _trade_off()
    yield from _several_views(seed)
    yield from _impossibility()


def _trade_off() -> Iterator[Value]:
    """The error ρ√n against √(k/γ): how it grows, with which constant, and what may be said with which probability."""
    n, m, gamma = 1000, 10**12, Fraction(1, 100)
    factors = [1, 10, 100]
    rho = [choose_alpha_beta(Fraction(k * n, m), gamma).rho(n, m) for k in factors]
    yield Value("αβ", "growth of ρ with k/γ", "alpha-beta/rho", f"(k/γ)^{_slope(factors, rho):.2f}")
    rho = [choose_alpha_beta(Fraction(n, m), 1 / Fraction(100 * k)).rho(n, m) for k in factors]
    yield Value("αβ", "growth of ρ with 1/γ", "alpha-beta/rho-gamma", f"(k/γ)^{_slope(factors, rho):.2f}")
    half, k = Fraction(1, 2), 4
    parameters = choose_alpha_beta(Fraction(k * n, m), half)
    unit = math.sqrt(k / half)
    what = "root-mean-square ρ over √(k/γ), γ = 1/2, d → 0"
    yield Value("αβ", what, "alpha-beta/constant", parameters.rho(n, m) / unit)
    what = "probability that the error is at most √(k/γ)·√n, γ = 1/2"
    yield Value("αβ", what, "alpha-beta/coverage", 1 - parameters.failure(unit * math.sqrt(n), n, m))
    yield Value("αβ", "privacy and utility at once", "alpha-beta/both", _private_and_useful([1, 4, 100], n))


def _private_and_useful(factors: list[int], n: int) -> str:
    """Check (d, γ)-privacy at d = k n/m ≤ γ/10, and errors of at most 2.5 √(k/γ)·√n but for one in 20, both exactly.

    One constant serves all: the error's variance is at most n dγ(1−d)/(γ−d)² for the tuples of the data and
    m β/α² = k n (1−γ)(γ+d−γd)/(γ−d)² for the others, together (.124 + 1.36 (1−γ) k/γ) n for d ≤ γ/10, hence 1.5 (k/γ) n
    for k ≥ 1. The whole table is the worst query; two smaller ones are checked too.
    """
    for gamma in (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)):
        for k in factors:
            for m in (math.ceil(10 * k * n / gamma), 10**12):
                d = Fraction(k * n, m)
                parameters = choose_alpha_beta(d, gamma)
                if not parameters.check(d, gamma).private:
                    return "not private"
                error = 2.5 * math.sqrt(k / gamma * n)
                if any(parameters.failure(error, *query) > 0.05 for query in [(n, m), (0, m), (n // 10, m // 10)]):
                    return "not useful"
    return "private and useful"


def _several_views(seed: int) -> Iterator[Value]:
    """What three views tell, made with the parameters of one each and with parameters for three."""
    d, gamma = Fraction(1, 10), Fraction(1, 2)
    alone = choose_alpha_beta(d, gamma)
    for views in (1, 2, 3):
        posterior = float(check_views([alone] * views, d, gamma).posterior_inside)
        what = f"largest posterior after {views} view{'s' * (views > 1)} made for one, d = .1, γ = .5"
        yield Value("αβ", what, f"alpha-beta/views/{views}", posterior)
    publisher = Publisher([(1,), (2,)], Domain({"place": range(20)}), d, gamma)
    publisher.publish(alone, insecure_seed=seed)
    try:
        publisher.publish(alone, insecure_seed=seed)
        answer = "published"
    except ParameterError:
        answer = "refused"
    yield Value("αβ", "a second such view of the same data", "alpha-beta/views/second", answer)
    three = choose_alpha_beta(d, gamma, views=3)
    posterior = float(check_views([three] * 3, d, gamma).posterior_inside)
    yield Value("αβ", "largest posterior after 3 views made for 3", "alpha-beta/views/together", posterior)
    n, m = 1000, 10000
    ratio = three.standard_error(n, m) / math.sqrt(3) / alone.standard_error(n, m)
    yield Value("αβ", "error of their mean over that of one view", "alpha-beta/views/price", ratio)


def _impossibility() -> Iterator[Value]:
    """αβ on the line d = (γ/(1−γ)) n/√m, at γ = 1/2 and n = √m/10 so that d = .1 stays below γ."""
    parameters = choose_alpha_beta(Fraction(1, 10), Fraction(1, 2))
    sizes = [10**4, 10**5, 10**6]
    # someone who holds every tuple for real with probability n/m asks about half of the domain
    differences = [answer_difference(parameters, Fraction(math.isqrt(m) // 10, m), m // 2) for m in sizes]
    slope = _slope(sizes, differences)
    useful = "useful" if slope > -0.2 else f"not useful: {differences[-1]:.2g} at m = 10^6, falling as m^{slope:.2f}"
    what = "statistical difference of posterior and prior answer on the impossibility line"
    yield Value("αβ", what, "alpha-beta/impossible", useful)
    m = 10**12
    bound = answer_difference_bound(parameters, Fraction(math.isqrt(m) // 10, m), m // 2)
    yield Value("αβ", "its bound ½ √(Σ φ^2j) at m = 10^12", "alpha-beta/difference-bound", bound)
    one = float(view_difference(parameters, 1))
    yield Value("αβ", "statistical difference of views with and without one tuple", "alpha-beta/difference-one", one)


def _slope(x: list[int], y: list[float]) -> float:
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(y), 1)[0])


def _conditions(sets: int, stream: np.random.Generator) -> tuple[bool, int]:
    """Compare the paper's conditions with the definition, by exact posteriors over priors down to almost 0."""
    sufficient, refused = True, 0
    for _ in range(sets):
        gamma = Fraction(int(stream.integers(2, 41)), 41)
        d = gamma * Fraction(int(stream.integers(1, 40)), 41)
        best = choose_alpha_beta(d, gamma)
        # around the boundary, on both sides of it
        alpha, beta = (p * Fraction(int(stream.integers(60, 104)), 100) for p in (best.alpha, best.beta))
        parameters = AlphaBeta(alpha, min(beta * Fraction(int(stream.integers(10, 16)), 10), 1 - alpha))
        priors = [*(d * j / 4 for j in range(1, 5)), d / 10**9]
        private = all(
            parameters.posterior(p, published=True) <= gamma
            and parameters.posterior(p, published=False) >= p * d / gamma
            for p in priors
        )
        published = parameters.check(d, gamma).published_conditions
        sufficient &= private or not published
        refused += private and not published
    return sufficient, refused


def _bias(publications: int, seed: int) -> float:
    """Mean error of a count over whole publications, in standard errors of that mean."""
    domain = Domain({"district": range(1, 51), "age": range(0, 100, 10), "answer": ["yes", "no"]})
    stream = named_generator(seed, "alpha-beta/table")
    rows = stream.choice(domain.size, size=120, replace=False)
    places = np.stack(np.unravel_index(rows, domain.sizes), axis=1)
    table = domain.decode(places.astype(np.int64))
    parameters = choose_alpha_beta("0.1", "0.5")
    where = {"answer": "yes", "district": range(1, 21)}
    truth = int(((table["answer"] == "yes") & (table["district"] < 21)).sum())
    seeds = named_generator(seed, "alpha-beta/publications").integers(2**62, size=publications)
    errors = [publish(table, domain, parameters, insecure_seed=int(s)).count(where).count - truth for s in seeds]
    expected = parameters.standard_error(truth, 20 * 10)
    return float(np.mean(errors)) / (expected / math.sqrt(publications))
