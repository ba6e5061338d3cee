"""Noisy Max under Pufferfish privacy, Examples 7.1 and 7.2 of Liu, Wang and Zhang 2022, exactly.

Three independent counts on {0, 1, 2}: i ~ Binomial(2, p1); j = 2 with probability p2, else 0; k
uniform on {1, 2} if John has the disease C, on {0, 1} if he has not. Each gets the truncated
geometric noise of ratio 1/2. Example 7.1 releases the smallest index of the largest noisy count;
Example 7.2 the largest noisy count itself, of n counts, where neighbouring counts are secrets.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain, product
from typing import Any, get_args

from pufferflow import hmm
from pufferflow._util.numbers import Exact
from pufferflow.hmm.model import Matrix, plain
from pufferflow.hmm.noisy_max import Relation
from reproduction.related import Found, Value

ILL, HEALTHY = "John has C", "John has not"
JOHN: dict[str, tuple[Exact, ...]] = {ILL: (0, "1/2", "1/2"), HEALTHY: ("1/2", "1/2", 0)}
"""Distribution of the third count under each secret."""
P1, P2 = Fraction(1, 5), Fraction(2, 5)
"""The prior of Example 7.1."""
HALF, TWO = Fraction(1, 2), Fraction(2)
FACTORS, PRESERVED = (TWO, Fraction(8, 5)), [Fraction(x) for x in ("33/20", "5/3", "17/10", "7/4")]
"""Factors e^ε to check at that prior, and factors whose sets of priors are computed."""
QUERIES = 12
FIGURE, FREE = "Noisy Max, figure of the model", "Noisy Max, p1 and p2 free"
VALUE, SCRIPTS = "Noisy Max, the value is released", "Noisy Max, the public programs"


def measure(settings: Mapping[str, Any]) -> Iterator[Found]:
    """Yield rows of the curves (schema ``related``), and the values that the source states.

    ``settings`` is ``related.noisy_max`` of the configuration. In the panel ``region`` a prior
    (p1, p2) preserves the ``factor`` for p2 from ``lowest_p2`` to ``highest_p2``; ``output`` is
    the released index or value.
    """
    free = family()
    return chain(
        _index_released(),
        _figure_of_the_model(free),
        _every_prior(free),
        *(_preserving(free, factor, settings["grid"]) for factor in PRESERVED),
        _value_released(settings["searched_queries"]),
        _public_programs(free),
    )


def family() -> hmm.PriorFamily:
    """Return Example 7.1 with p1 and p2 free in [0, 1]."""
    i, j = ("(1 - p1)**2", "2*p1*(1 - p1)", "p1**2"), ("1 - p2", "0", "p2")
    priors = {secret: [i, j, k] for secret, k in JOHN.items()}
    return hmm.NoisyMax().family(priors, {"p1": (0, 1), "p2": (0, 1)})


def index_distributions(p1: Fraction, p2: Fraction) -> dict[str, tuple[Fraction, ...]]:
    """Return the distribution of the released index under both secrets, in product form."""
    i, j = ((1 - p1) ** 2, 2 * p1 * (1 - p1), p1**2), (1 - p2, 0, p2)
    return {secret: hmm.NoisyMax().distribution([i, j, k]) for secret, k in JOHN.items()}


def neighbour_model(queries: int, mechanism: Matrix | None = None) -> hmm.HiddenMarkovModel:
    """Return Example 7.2: lists of counts are secrets, neighbours if one count differs by one.

    ``mechanism`` is P(noisy value | count), by default the geometric one of ratio 1/2.
    """
    lists = list(product(range(3), repeat=queries))
    name = {counts: ",".join(map(str, counts)) for counts in lists}
    pairs = []
    for counts, i in product(lists, range(queries)):
        if counts[i] < 2:
            pairs.append((name[counts], name[(*counts[:i], counts[i] + 1, *counts[i + 1 :])]))
    known = {name[counts]: [[int(x == v) for v in range(3)] for x in counts] for counts in lists}
    return hmm.NoisyMax("value", mechanism=mechanism).model(known, pairs=pairs)


def _index_released() -> Iterator[Found]:
    at, distributions = {"p1": float(P1), "p2": float(P2)}, index_distributions(P1, P2)
    where = "Noisy Max, p1 = 0.2, p2 = 0.4"
    for secret, name in ((ILL, "C"), (HEALTHY, "not C")):
        for index, p in enumerate(distributions[secret]):
            shown = {"panel": "laws", "secret": secret, "output": index, "exact": str(p)}
            yield at | shown | {"probability": float(p)}
            yield Value(where, f"P({index} | {name})", f"noisy-max/law/{name}/{index}", str(p))
    # the release as a model with a state per secret
    unit, secrets = [(1, 0), (0, 1)], {ILL: (1, 0), HEALTHY: (0, 1)}
    released = hmm.HiddenMarkovModel(unit, list(distributions.values()), secrets, length=1)
    worst = hmm.largest_ratio(released)
    output, ratio = int(worst.observations[0]), plain(worst.ratio)
    shown = {"panel": "example", "secret": worst.secret, "output": output, "exact": ratio}
    yield at | shown | {"largest_ratio": float(worst.ratio)}
    yield Value(where, "largest ratio", "noisy-max/largest-ratio", ratio)
    for factor in FACTORS:
        witness = hmm.check(released, factor).witness
        answer = "holds" if witness is None else f"violated at index {witness.observations[0]}"
        key = f"noisy-max/check/{factor}, p1 = {P1}, p2 = {P2}"
        yield Value(where, f"Pufferfish with the factor {factor}", key, answer)


def _figure_of_the_model(free: hmm.PriorFamily) -> Iterator[Found]:
    """Yield the values of single nodes and edges of the source's figure."""
    rows, counts = hmm.truncated_geometric(2), ((0, 1, 1), (1, 2, 0), (2, 0, 2))
    edges = ", ".join(f"{rows[i][0]}·{rows[j][2]}·{rows[k][1]}" for i, j, k in counts)
    yield Value(FIGURE, "edges from 011, 120 and 202 into 021", "noisy-max/edges", edges)

    def start(x: Fraction, y: Fraction) -> Fraction:
        model = free.at(p1=x, p2=y)
        return model.initial_distributions[ILL][model.states.index("counts 0,2,1")]

    # of degree 2 in p1 and 1 in p2, so equal everywhere if equal at 3 × 2 points
    points = product((Fraction(0), HALF, Fraction(1)), (Fraction(0), Fraction(1)))
    agree = "holds" if all(start(x, y) == (1 - x) ** 2 * y / 2 for x, y in points) else "fails"
    yield Value(FIGURE, "π(0,2,1) = (1 − p1)²·p2·1/2", "noisy-max/start", agree)
    at = f"π(0,2,1) at p1 = {P1}, p2 = {P2}"
    yield Value(FIGURE, at, "noisy-max/start/value", str(start(P1, P2)))
    one, other = (hmm.NoisyMax().distribution(counts) for counts in ((0, 1, 1), (0, 2, 1)))
    ratio = max(max(p / q, q / p) for p, q in zip(one, other, strict=True))
    quantity = "largest ratio of the index's distributions, neighbours 011 and 021"
    yield Value(FIGURE, quantity, "noisy-max/neighbours/011-021", str(ratio))


def _every_prior(free: hmm.PriorFamily) -> Iterator[Found]:
    bracket = hmm.sup_ratio(free)
    prior = {name: float(value) for name, value in bracket.prior.items()}
    text, index = plain(bracket.lower), int(bracket.witness.observations[-1])
    shown = {"panel": "supremum", "secret": bracket.witness.secret, "output": index, "exact": text}
    yield prior | shown | {"largest_ratio": float(bracket.lower)}
    if not bracket.exact:
        text = f"{float(bracket.lower):.9g} to {float(bracket.upper):.9g}"
    yield Value(FREE, "supremum of the ratio", "noisy-max/supremum", text)
    at = ", ".join(f"{name} = {value:g}" for name, value in prior.items())
    yield Value(FREE, "prior of the supremum", "noisy-max/supremum/prior", at)
    violating = hmm.find_prior(free, 2)
    answer = "none" if violating is None else str(violating)
    yield Value(FREE, "a prior that violates the factor 2", "noisy-max/prior/2", answer)


def _preserving(free: hmm.PriorFamily, factor: Fraction, points: int) -> Iterator[Found]:
    key = f"noisy-max/preserving/{factor}"
    region = hmm.preserving_region(free, factor)
    found = hmm.find_prior(free, factor, violates=False)
    prior = "none" if found is None else ", ".join(f"{p} = {x}" for p, x in found.items())
    yield Value(FREE, f"a prior that preserves the factor {factor}", f"{key}/prior", prior)
    conditions = " and ".join(region.conditions) or "every prior"
    yield Value(FREE, f"all priors that preserve the factor {factor}", f"{key}/region", conditions)
    for p1 in (Fraction(i, points - 1) for i in range(points)):
        if (ends := region.interval("p2", p1=p1)) is not None:
            at = {"factor": float(factor), "exact": str(factor), "p1": float(p1)}
            shown = {"panel": "region", "lowest_p2": float(ends[0]), "highest_p2": float(ends[1])}
            yield at | shown


def _value_released(searched: int) -> Iterator[Found]:
    for relation in get_args(Relation):
        ratios = [hmm.largest_value_ratio(n, relation) for n in range(1, QUERIES + 1)]
        for n, largest in enumerate(ratios, 1):
            shown = {"panel": "neighbours", "relation": relation, "queries": n}
            shown |= {"output": int(largest.observations[0]), "exact": plain(largest.ratio)}
            shown |= {"counts": largest.secret, "neighbour": largest.other}
            yield shown | {"largest_ratio": float(largest.ratio)}
        failing = [n for n, largest in enumerate(ratios, 1) if largest.ratio > TWO]
        answer = f"fails from n = {failing[0]}" if failing else f"holds for n = 1 to {QUERIES}"
        quantity, key = f"ln 2-DP, neighbours {relation}", f"noisy-max/value/{relation}"
        yield Value(VALUE, quantity, key, answer)
        answer = "holds" if ratios[0].ratio <= TWO else "fails"
        yield Value(VALUE, f"{quantity}, some small n", f"{key}/small", answer)
        quantity = f"largest ratio, neighbours {relation}, n = {QUERIES}"
        yield Value(VALUE, quantity, f"{key}/ratio", plain(max(of.ratio for of in ratios)))
    answer = "holds" if hmm.check(neighbour_model(searched), TWO).holds else "violated"
    quantity = f"ln 2-DP, n = {searched}, exact search in the hidden Markov model"
    yield Value(VALUE, quantity, f"noisy-max/search/{searched}", answer)


def _public_programs(free: hmm.PriorFamily) -> Iterator[Value]:
    """Repeat the queries of the authors' programs (repository fmlab-iis/dp-pomdp)."""
    # simple.py, Example 7.1: the factor 1/2 instead of 2
    pairs = enumerate(zip(*index_distributions(P1, P2).values(), strict=True))
    both = ", ".join(str(index) for index, (p, q) in pairs if p > HALF * q and q > HALF * p)
    yield Value(SCRIPTS, "indices that violate 1/2", "noisy-max/diagnosis/half", both or "none")
    answers = [hmm.check_by_solver(free.at(p1=P1, p2=P2), factor).holds for factor in (HALF, TWO)]
    half, two = ("unsat" if holds else "sat" for holds in answers)
    first = ", also at index 0" if "0" in both else ""
    key = f"noisy-max/script/index, p1 = {P1}, p2 = {P2}"
    yield Value(SCRIPTS, "z3 on the factors 1/2 and 2", key, f"1/2: {half}{first}; 2: {two}")
    # noisymax-bad.py, Example 7.2, without its erroneous prior vectors of 0
    model = neighbour_model(3, hmm.truncated_geometric(2, "3/4"))
    answer = "unsat" if hmm.check(model, "4/3").holds else "sat"
    quantity = f"violations of 4/3, n = 3, ¾-geometric, {len(model.pairs)} pairs"
    yield Value(SCRIPTS, quantity, "noisy-max/script/value", answer)
