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
from pufferflow.related.dp.alpha_beta import AlphaBeta, choose_alpha_beta, publish
from pufferflow.related.dp.domains import Domain
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
    "repetitions",
]


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
    return frame(_curves(settings, seed), CURVE_COLUMNS), values_table(_claims(settings, seed))


def _curves(settings: Mapping[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    k, n, m = settings["prior_factor"], settings["rows"], settings["domain_tuples"]
    grids = {
        "k": [(value, n, m) for value in settings["prior_factors"]],
        "n": [(k, value, m) for value in settings["rows_grid"]],
        "m": [(k, n, value) for value in settings["domain_tuples_grid"]],
    }
    gamma = written_number(settings["gamma"], "gamma")
    for panel, points in grids.items():
        for factor, rows, size in points:
            d = written_number(factor, "a factor of d") * rows / size
            if d >= gamma:
                continue
            parameters = choose_alpha_beta(d, gamma)
            for share in settings["query_shares"]:
                stream = named_generator(seed, f"alpha-beta/{panel}/{factor}/{rows}/{size}/{share}")
                count, selected = round(share * rows), round(share * size)
                errors = _errors(stream, parameters, count, selected, settings["repetitions"])
                mean, error = mean_and_error(errors**2 / rows)
                yield {
                    "panel": panel,
                    "prior_factor_k": factor,
                    "rows_n": rows,
                    "domain_tuples_m": size,
                    "gamma": float(gamma),
                    "prior_bound_d": float(d),
                    "query_share": share,
                    "rho_expected": parameters.standard_error(count, selected) / math.sqrt(rows),
                    "rho_measured": math.sqrt(mean),
                    "rho_standard_error": error / (2 * math.sqrt(mean)) if mean else 0.0,
                    "rho_source": math.sqrt(factor / gamma),
                    "impossible_from_k": float(gamma / (1 - gamma)) * math.sqrt(size) if gamma < 1 else math.inf,
                    "repetitions": settings["repetitions"],
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
    n, m, gamma = 1000, 10**12, Fraction(1, 100)
    factors = [1, 10, 100]
    rho = [choose_alpha_beta(Fraction(k * n, m), gamma).rho(n, m) for k in factors]
    yield Value("αβ", "growth of ρ with k/γ", "alpha-beta/rho", f"(k/γ)^{_slope(factors, rho):.2f}")
    rho = [choose_alpha_beta(Fraction(n, m), 1 / Fraction(100 * k)).rho(n, m) for k in factors]
    yield Value("αβ", "growth of ρ with 1/γ", "alpha-beta/rho-gamma", f"(k/γ)^{_slope(factors, rho):.2f}")
    # on the line d = (γ/(1−γ)) n/√m, at n = √m/10 so that d stays below γ
    half = Fraction(1, 2)
    roots = [10**3, 10**5, 10**7]
    rho = [choose_alpha_beta(Fraction(root // 10, root), half).rho(root // 10, root**2) for root in roots]
    useful = "not useful" if _slope([root**2 for root in roots], rho) > 0.2 else "useful"
    yield Value("αβ", "αβ on the impossibility line, as m grows", "alpha-beta/impossible", useful)


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
