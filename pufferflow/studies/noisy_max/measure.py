"""Noisy Max under Pufferfish privacy (Examples 7.1 and 7.2): exact laws and ratios.

Three independent counts on {0, 1, 2}: i ~ Binomial(2, p1); j = 2 with probability p2, else 0; k uniform on {1, 2} if
John has the disease C, on {0, 1} if he has not. Each gets the truncated geometric noise of ratio 1/2. Example 7.1
releases the smallest index of the largest noisy count, Example 7.2 the largest noisy count itself, of n counts
that are known up to a neighbour. Everything is exact; no random number is drawn.

Two diagnoses say why the source's answers may be others: its public programs (repository fmlab-iis/dp-pomdp) ask
Example 7.1 with the factor 1/2 (simple.py), and Example 7.2 with prior vectors that were set to 0 (noisymax-bad.py).
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, get_args

import pandas as pd

from pufferflow._numbers import written_number
from pufferflow.related import hmm
from pufferflow.related.hmm.checking import ratio_text
from pufferflow.related.hmm.maxima import Relation
from pufferflow.related.hmm.model import Exact, Vector, step
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
    "factor",
    "lowest_p2",
    "highest_p2",
]
"""Columns of the curves; ``output`` is the released index or value, ``exact`` the fraction it is about.

In the panel ``region`` a prior (p1, p2) preserves the ``factor`` for p2 from ``lowest_p2`` to ``highest_p2``."""

TIMES = ["method", "queries", "seconds", "answer", "machine"]

ILL, HEALTHY = "John has C", "John has not"
JOHN: dict[str, tuple[Exact, ...]] = {ILL: (0, "1/2", "1/2"), HEALTHY: ("1/2", "1/2", 0)}

METHODS = ("product-form", "search", "z3")

SHORT = {ILL: "C", HEALTHY: "not C"}

FIGURE_COUNTS, FIGURE_NOISY = ((0, 1, 1), (1, 2, 0), (2, 0, 2)), (0, 2, 1)
"""Counts of the source's figure, and the noisy counts into which its three edges go."""


def measure(settings: Mapping[str, Any], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compute the laws of Example 7.1, the priors that preserve privacy, and Example 7.2.

    Parameters
    ----------
    settings : mapping
        ``p1``, ``p2``: the prior of Example 7.1; ``factors``: values of e^ε to decide it for; ``preserved``: those for
        which the priors that preserve them are found; ``grid``: values of p1 there; ``queries``: the largest n of
        Example 7.2; ``searched_queries``: the n for which it is decided in the hidden Markov model too, as the source
        does. Probabilities and factors are read as exact numbers (:data:`pufferflow.related.hmm.model.Exact`).
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
    _figure(free, prior, claims)
    _supremum(free, rows, claims)
    for factor in settings["preserved"]:
        _preserving(free, written_number(factor, "preserved"), int(settings["grid"]), rows, claims)
    _example_2(int(settings["queries"]), rows, claims)
    _searched(int(settings["searched_queries"]), claims)
    _diagnoses(prior, claims)
    return frame(rows, CURVES), values_table(claims)


def measure_times(settings: Mapping[str, Any]) -> pd.DataFrame:
    """Time three ways to decide Example 7.2, one query changing by one, for ε = ln 2.

    The law in product form over frequencies of counts; the exact search, and z3, in the hidden Markov model of every
    pair of neighbouring counts.

    Parameters
    ----------
    settings : mapping
        ``timed_queries``: the numbers n of queries; ``solver_queries``: those for which z3 is asked too, which takes
        it about 1, 3, 15 and 200 s for n = 2 to 5.
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
            if method == "z3" and n not in settings["solver_queries"]:
                continue
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
    for secret, law in laws.items():
        for index, p in enumerate(law):
            exact = str(p)
            rows.append(
                {"panel": "laws", "secret": secret, "output": index, "p1": float(p1), "p2": float(p2)}
                | {"probability": float(p), "exact": exact}
            )
            claims.append(
                Value(where, f"P({index} | {SHORT[secret]})", f"noisy-max/law/{SHORT[secret]}/{index}", exact)
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


def _figure(free: hmm.PriorFamily, prior: tuple[Fraction, Fraction], claims: list[Value]) -> None:
    """What the source says of single nodes and edges of its figure of the hidden Markov model."""
    p1, p2 = prior
    where, rows, model = "Noisy Max, figure of the model", hmm.truncated_geometric(2), free.at(p1=p1, p2=p2)
    into = model.states.index(_named("noisy", FIGURE_NOISY))
    for counts in FIGURE_COUNTS:
        factors = [rows[x][z] for x, z in zip(counts, FIGURE_NOISY, strict=True)]
        assert model.transition_matrix[model.states.index(_named("counts", counts))][into] == prod(factors)
        edge = "".join(map(str, counts))
        claims.append(Value(where, f"edge from {edge} into 021", f"noisy-max/edge/{edge}", "·".join(map(str, factors))))
    node = model.states.index(_named("counts", FIGURE_NOISY))

    def start(x: Fraction, y: Fraction) -> Fraction:
        return free.at(p1=x, p2=y).initial_distributions[ILL][node]

    # of degree 2 in p1 and 1 in p2, so equal everywhere if equal at 3 × 2 points
    points = product((Fraction(0), Fraction(1, 2), Fraction(1)), (Fraction(0), Fraction(1)))
    agree = all(start(x, y) == (1 - x) ** 2 * y / 2 for x, y in points)
    claims.append(Value(where, "π(0,2,1) = (1 − p1)²·p2·1/2", "noisy-max/start", "holds" if agree else "fails"))
    claims.append(Value(where, f"π(0,2,1) at p1 = {p1}, p2 = {p2}", "noisy-max/start/value", str(start(p1, p2))))
    one, other = (hmm.NoisyMax().law(counts) for counts in ((0, 1, 1), (0, 2, 1)))
    ratio = max(max(p / q, q / p) for p, q in zip(one, other, strict=True))
    quantity = "largest ratio of the index's laws, neighbours 011 and 021"
    claims.append(Value(where, quantity, "noisy-max/neighbours/011-021", str(ratio)))


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


def _preserving(
    free: hmm.PriorFamily, factor: Fraction, points: int, rows: list[dict[str, Any]], claims: list[Value]
) -> None:
    where, key = "Noisy Max, p1 and p2 free", f"noisy-max/preserving/{factor}"
    region, preserving = hmm.preserving_region(free, factor), hmm.find_prior(free, factor, violates=False)
    prior = "none" if preserving is None else ", ".join(f"{name} = {value}" for name, value in preserving.prior.items())
    claims.append(Value(where, f"a prior that preserves the factor {factor}", f"{key}/prior", prior))
    conditions = " and ".join(region.conditions) or "every prior"
    claims.append(Value(where, f"all priors that preserve the factor {factor}", f"{key}/region", conditions))
    for p1 in (Fraction(i, points - 1) for i in range(points)):
        ends = region.interval("p2", p1=p1)
        if ends is not None:
            lowest, highest = map(float, ends)
            rows.append(
                {"panel": "region", "factor": float(factor), "p1": float(p1), "exact": str(factor)}
                | {"lowest_p2": lowest, "highest_p2": highest}
            )


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


def _searched(queries: int, claims: list[Value]) -> None:
    verdict = hmm.check(neighbour_model(queries), 2)
    quantity = f"ln 2-DP, n = {queries}, exact search in the hidden Markov model"
    answer = "holds" if verdict.holds else "violated"
    claims.append(Value("Noisy Max, the value is released", quantity, f"noisy-max/search/{queries}", answer))


def _diagnoses(prior: tuple[Fraction, Fraction], claims: list[Value]) -> None:
    """Compute what the source's public programs ask instead of what they mean to ask."""
    where, half = "Noisy Max, the public programs", Fraction(1, 2)
    laws = _laws(*prior)
    both = [i for i, (p, q) in enumerate(zip(laws[ILL], laws[HEALTHY], strict=True)) if p > half * q and q > half * p]
    quantity = "indices that violate the factor 1/2, in both directions"
    claims.append(Value(where, quantity, "noisy-max/diagnosis/half", ", ".join(map(str, both)) or "none"))
    model, factors = neighbour_model(3), (Fraction(2), half, Fraction(1, 1000))
    intended = [model.initial_distributions[name] for name in model.pairs[0]]
    zeroed = [(Fraction(0),) * len(model.states)] * 2
    chances = {
        name: ", ".join(str(c) for c in factors if _some_ratio_above(model, vectors, c)) or "none"
        for name, vectors in (("zeroed", zeroed), ("intended", intended))
    }
    quantity = f"violated of the factors {', '.join(map(str, factors))}, prior vectors of 0 (as intended)"
    answer = f"{chances['zeroed']} ({chances['intended']})"
    claims.append(Value(where, quantity, "noisy-max/diagnosis/zeroed", answer))


def _some_ratio_above(model: hmm.HiddenMarkovModel, vectors: Sequence[Vector], factor: Fraction) -> bool:
    """Whether a released value has more weight under the first vector than ``factor`` times that under the second.

    The vectors are weights of the counts, which need not be laws.
    """
    first, second = (step(step(vector, model.transition_matrix), model.observation_matrix) for vector in vectors)
    return any(p > factor * q for p, q in zip(first, second, strict=True))


def _named(what: str, values: Sequence[int]) -> str:
    return f"{what} {','.join(map(str, values))}"


def _listed(counts: tuple[int, ...]) -> str:
    return " ".join(map(str, counts))
