"""Noisy Max under Pufferfish privacy (Examples 7.1 and 7.2): exact laws and ratios.

Three independent counts on {0, 1, 2}: i ~ Binomial(2, p1); j = 2 with probability p2, else 0; k uniform on {1, 2} if
John has the disease C, on {0, 1} if he has not. Each gets the truncated geometric noise of ratio 1/2. Example 7.1
releases the smallest index of the largest noisy count, Example 7.2 the largest noisy count itself, of n counts
that are known up to a neighbour. Everything is exact; no random number is drawn.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import Any, get_args

import pandas as pd

from pufferflow._numbers import written_number
from pufferflow.related import hmm
from pufferflow.related.hmm.checking import ratio_text
from pufferflow.related.hmm.maxima import Relation
from pufferflow.related.hmm.model import Exact
from pufferflow.studies.tidy import frame
from pufferflow.studies.values import Value, values_table

CURVES = [
    "panel",
    "secret",
    "p1",
    "p2",
    "output",
    "relation",
    "queries",
    "counts",
    "neighbour",
    "probability",
    "largest_ratio",
    "exact",
]
"""Columns of the curves; ``output`` is the released index or value, ``exact`` the fraction it is about."""

TIMES = ["method", "queries", "seconds", "answer", "machine"]

ILL, HEALTHY = "John has C", "John has not"
JOHN: dict[str, tuple[Exact, ...]] = {ILL: (0, "1/2", "1/2"), HEALTHY: ("1/2", "1/2", 0)}

METHODS = ("product-form", "search", "z3")


def measure(settings: Mapping[str, Any], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compute the laws of Example 7.1, the map of the largest ratio over the priors, and Example 7.2.

    Parameters
    ----------
    settings : mapping
        ``p1``, ``p2``: the prior of Example 7.1; ``factors``: values of e^ε to decide it for; ``grid``: points of each
        axis of the map; ``queries``: the largest n of Example 7.2. Probabilities and factors are read as exact numbers
        (:data:`pufferflow.related.hmm.model.Exact`).
    seed : int
        Not used: nothing is random.

    Returns
    -------
    curves, claims : DataFrame
        Columns :data:`CURVES` and those of the worked examples.
    """
    prior = written_number(settings["p1"], "p1"), written_number(settings["p2"], "p2")
    rows: list[dict[str, Any]] = []
    claims: list[Value] = []
    free = family()
    _example_1(free, prior, [written_number(f, "factor") for f in settings["factors"]], rows, claims)
    rows += _map(int(settings["grid"]))
    _supremum(free, rows, claims)
    _example_2(int(settings["queries"]), rows, claims)
    return frame(rows, CURVES), values_table(claims)


def measure_times(settings: Mapping[str, Any]) -> pd.DataFrame:
    """Time three ways to decide Example 7.2, one query changing by one, for ε = ln 2.

    The law in product form over frequencies of counts; the exact search, and z3, in the hidden Markov model of every
    pair of neighbouring counts.

    Parameters
    ----------
    settings : mapping
        ``timed_queries``: the numbers n of queries; z3 takes about 0.2, 1 and 15 s for 1, 2 and 3.
    """
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    rows = []
    for n in settings["timed_queries"]:
        model = neighbour_model(n)
        ways: dict[str, Callable[[], bool]] = {
            "product-form": lambda n=n: hmm.largest_value_ratio(n, "one-by-one").ratio <= 2,  # type: ignore[misc]
            "search": lambda model=model: hmm.check(model, 2).holds,  # type: ignore[misc]
            "z3": lambda model=model: hmm.check_by_solver(model, 2).holds,  # type: ignore[misc]
        }
        for method in METHODS:
            began = time.perf_counter()
            holds = ways[method]()
            seconds = time.perf_counter() - began
            rows.append((method, n, seconds, "holds" if holds else "violated", machine))
    return frame((dict(zip(TIMES, row, strict=True)) for row in rows), TIMES)


def priors(p1: Exact, p2: Exact) -> dict[str, list[tuple[Exact, ...]]]:
    """Return the laws of the three counts under both secrets; exact numbers, or names of parameters."""
    i = (f"(1 - {p1})**2", f"2*{p1}*(1 - {p1})", f"{p1}**2")
    j = (f"1 - {p2}", "0", f"{p2}")
    return {secret: [i, j, k] for secret, k in JOHN.items()}


def family() -> hmm.PriorFamily:
    """Return Example 7.1 with p1 and p2 free in [0, 1]."""
    return hmm.noisy_max_family(priors("p1", "p2"), {"p1": (0, 1), "p2": (0, 1)})


def neighbour_model(queries: int) -> hmm.HiddenMarkovModel:
    """Return Example 7.2 as a hidden Markov model: every list of counts a secret, one count changes by one."""
    lists = list(product(range(3), repeat=queries))
    name = {counts: ",".join(map(str, counts)) for counts in lists}
    pairs = [
        (name[counts], name[(*counts[:i], x + 1, *counts[i + 1 :])])
        for counts in lists
        for i, x in enumerate(counts)
        if x < 2
    ]
    laws = {name[counts]: [[int(x == value) for value in range(3)] for x in counts] for counts in lists}
    return hmm.noisy_max(laws, release="value", pairs=pairs)


def _laws(p1: Fraction, p2: Fraction) -> dict[str, tuple[Fraction, ...]]:
    """Laws of the released index under both secrets, in product form."""
    i, j = ((1 - p1) ** 2, 2 * p1 * (1 - p1), p1**2), (1 - p2, 0, p2)
    return {secret: hmm.index_law(hmm.noisy_laws([i, j, k])) for secret, k in JOHN.items()}


def _released(laws: Mapping[str, tuple[Fraction, ...]]) -> hmm.HiddenMarkovModel:
    """The release alone as a model of two states, one a secret."""
    return hmm.mechanism_model(list(laws.values()), dict(zip(laws, ((1, 0), (0, 1)), strict=True)))


def _example_1(
    free: hmm.PriorFamily,
    prior: tuple[Fraction, Fraction],
    factors: list[Fraction],
    rows: list[dict[str, Any]],
    claims: list[Value],
) -> None:
    p1, p2 = prior
    laws = _laws(p1, p2)
    model = free.at(p1=p1, p2=p2)
    in_model = {secret: tuple(model.observation_law(secret).values()) for secret in JOHN}
    assert in_model == laws, "the hidden Markov model and the product form disagree"
    where = f"Noisy Max, p1 = {float(p1):g}, p2 = {float(p2):g}"
    short = {ILL: "C", HEALTHY: "not C"}
    for secret, law in laws.items():
        for index, p in enumerate(law):
            exact = str(p)
            rows.append(
                {"panel": "laws", "secret": secret, "output": index, "p1": float(p1), "p2": float(p2)}
                | {"probability": float(p), "exact": exact}
            )
            claims.append(
                Value(where, f"P({index} | {short[secret]})", f"noisy-max/law/{short[secret]}/{index}", exact)
            )
    released = _released(laws)
    worst = hmm.largest_ratio(released)
    assert worst.ratio == hmm.largest_ratio(model).ratio
    rows.append(
        {"panel": "example", "p1": float(p1), "p2": float(p2), "output": int(worst.observations[0])}
        | {"largest_ratio": float(worst.ratio), "exact": ratio_text(worst.ratio), "secret": worst.secret}
    )
    claims.append(Value(where, "largest ratio", "noisy-max/largest-ratio", ratio_text(worst.ratio)))
    claims.append(Value(where, "index of the largest ratio", "noisy-max/largest-ratio/index", worst.observations[0]))
    for factor in factors:
        verdict = hmm.check(released, factor)
        assert verdict.holds == hmm.check(model, factor).holds
        answer = "holds" if verdict.witness is None else f"violated at index {verdict.witness.observations[0]}"
        claims.append(Value(where, f"Pufferfish with the factor {factor}", f"noisy-max/check/{factor}", answer))


def _map(points: int) -> Iterator[dict[str, Any]]:
    grid = [Fraction(i, points - 1) for i in range(points)]
    for p1, p2 in product(grid, repeat=2):
        laws = _laws(p1, p2)
        ratio, output, secret = max(
            (p / q, index, secret)
            for secret, other in ((ILL, HEALTHY), (HEALTHY, ILL))
            for index, (p, q) in enumerate(zip(laws[secret], laws[other], strict=True))
        )
        yield (
            {"panel": "map", "p1": float(p1), "p2": float(p2), "output": output, "secret": secret}
            | {"largest_ratio": float(ratio), "exact": str(ratio)}
        )


def _supremum(free: hmm.PriorFamily, rows: list[dict[str, Any]], claims: list[Value]) -> None:
    bracket = hmm.sup_ratio(free)
    where = "Noisy Max, p1 and p2 free"
    values = {name: float(value) for name, value in bracket.prior.items()}
    rows.append(
        {"panel": "supremum", "output": int(bracket.witness.observations[-1]), "secret": bracket.witness.secret}
        | {"largest_ratio": float(bracket.lower), "exact": ratio_text(bracket.lower)}
        | values
    )
    text = ratio_text(bracket.lower) if bracket.exact else f"{float(bracket.lower):.9g} to {float(bracket.upper):.9g}"
    claims.append(Value(where, "supremum of the ratio", "noisy-max/supremum", text))
    at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
    claims.append(Value(where, "prior of the supremum", "noisy-max/supremum/prior", at))
    violating = hmm.find_prior(free, 2)
    answer = "none" if violating is None else str(violating.prior)
    claims.append(Value(where, "a prior that violates the factor 2", "noisy-max/prior/2", answer))


def _example_2(queries: int, rows: list[dict[str, Any]], claims: list[Value]) -> None:
    where = "Noisy Max, the value is released"
    for relation in get_args(Relation):
        ratios = []
        for n in range(1, queries + 1):
            largest = hmm.largest_value_ratio(n, relation)
            ratios.append(largest.ratio)
            rows.append(
                {"panel": "neighbours", "relation": relation, "queries": n, "largest_ratio": float(largest.ratio)}
                | {"output": largest.value, "exact": ratio_text(largest.ratio)}
                | {"counts": _listed(largest.counts), "neighbour": _listed(largest.neighbour)}
            )
        failing = [n for n, ratio in enumerate(ratios, 1) if ratio > 2]
        answer = f"holds for n = 1 to {queries}" if not failing else f"fails from n = {failing[0]}"
        assert failing == list(range(failing[0], queries + 1)) if failing else True
        claims.append(Value(where, f"ln 2-DP, neighbours {relation}", f"noisy-max/value/{relation}", answer))
        of = ratio_text(max(ratios))
        claims.append(
            Value(
                where, f"largest ratio, neighbours {relation}, n = {queries}", f"noisy-max/value/{relation}/ratio", of
            )
        )


def _listed(counts: tuple[int, ...]) -> str:
    return " ".join(map(str, counts))
