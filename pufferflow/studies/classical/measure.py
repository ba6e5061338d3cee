"""Baselines of differential privacy: their error against ε, their exact privacy loss, and their sources' claims.

Noise is drawn from the mechanisms' own laws by a seeded generator, so that the tables are the same on every run; that
the secure samplers follow these laws is a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow.errors import ParameterError
from pufferflow.related.dp.differencing import differencing_success
from pufferflow.related.dp.domains import Domain
from pufferflow.related.dp.exponential import Exponential
from pufferflow.related.dp.finite import FiniteMechanism, composed, grouped
from pufferflow.related.dp.laplace import Laplace
from pufferflow.related.dp.randomised_response import RandomisedResponse
from pufferflow.related.dp.sensitivity import add_or_remove_one, change_one, databases, sensitivity
from pufferflow.related.dp.weighted_majority import ACCOUNTS, WeightedMajority, private_rate
from pufferflow.studies.classical.worked import SmokingStudy, exact_differencing, noisy_differencing
from pufferflow.studies.tidy import frame, mean_and_error, named_generator
from pufferflow.studies.values import Value, values_table

CURVE_COLUMNS = [
    "panel",
    "mechanism",
    "epsilon",
    "expected_error",
    "mean_error",
    "standard_error",
    "bound",
    "repetitions",
]
"""Errors are in people (counting: root mean square; choosing: expected shortfall), in loss a round (learning) or in
nats (privacy: the exact loss); of the examples, the probability that a differencing attack succeeds and that of an
illness."""

NOT_PRIVATE = "tuned, not private"
"""Name of weighted majority at the rate that minimises its regret bound."""


def measure(settings: Mapping[str, Any], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run the experiment.

    Parameters
    ----------
    settings : mapping
        ``experiments.classical`` of the configuration.
    seed : int

    Returns
    -------
    curves, claims : DataFrame
        Errors and exact privacy losses against ε, and each claim's computed value.
    """
    rows = [
        *_counting(settings, seed),
        *_choosing(settings, seed),
        *_learning(settings, seed),
        *_privacy(settings),
        *_differencing(settings, seed),
        *_smoking(settings),
    ]
    return frame(rows, CURVE_COLUMNS), values_table(_claims(settings))


def _row(panel: str, mechanism: str, epsilon: float, expected: float, **others: float) -> dict[str, Any]:
    return {"panel": panel, "mechanism": mechanism, "epsilon": epsilon, "expected_error": expected} | others


def _root_mean_square(errors: NDArray[np.float64]) -> dict[str, float]:
    mean, error = mean_and_error(errors**2)
    root = math.sqrt(mean)
    return {"mean_error": root, "standard_error": error / (2 * root) if root else 0.0, "repetitions": errors.size}


def _counting(settings: Mapping[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    people, repetitions = settings["people"], settings["repetitions"]
    yes = round(settings["share"] * people)
    for epsilon in settings["epsilons"]:
        response = RandomisedResponse.for_epsilon(("yes", "no"), epsilon)
        stream = named_generator(seed, f"classical/randomised-response/{epsilon}")
        answers = stream.binomial(yes, response.truth, repetitions)
        answers += stream.binomial(people - yes, 1 - response.truth, repetitions)
        errors = (answers - people * (1 - response.truth)) / (2 * response.truth - 1) - yes
        expected = response.standard_error(yes, people)
        yield _row("counting", "randomised response", epsilon, expected, **_root_mean_square(errors))
        laplace = Laplace(1.0, epsilon)
        stream = named_generator(seed, f"classical/laplace/{epsilon}")
        # the difference of two geometric counts is the discrete Laplace law
        noise = np.subtract(*stream.geometric(-math.expm1(-1 / laplace.scale), (2, repetitions))).astype(float)
        yield _row("counting", "Laplace", epsilon, laplace.standard_error(), **_root_mean_square(noise))


def _choosing(settings: Mapping[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    outcomes = settings["outcomes"]
    stream = named_generator(seed, "classical/votes")
    votes = stream.multinomial(settings["people"], np.full(outcomes, 1 / outcomes)).astype(float)
    for epsilon in settings["epsilons"]:
        mechanism = Exponential(1.0, epsilon)
        stream = named_generator(seed, f"classical/exponential/{epsilon}")
        chosen = stream.choice(outcomes, settings["repetitions"], p=mechanism.probabilities(votes))
        mean, error = mean_and_error(votes.max() - votes[chosen])
        yield _row(
            "choosing",
            "exponential",
            epsilon,
            mechanism.expected_shortfall(votes),
            mean_error=mean,
            standard_error=error,
            bound=mechanism.shortfall_bound(outcomes),
            repetitions=settings["repetitions"],
        )
        worst = mechanism.worst_shortfall(outcomes)
        yield _row("choosing", "worst utilities", epsilon, worst, bound=mechanism.shortfall_bound(outcomes))


def _learning(settings: Mapping[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    rounds, experts, delta = settings["rounds"], settings["experts"], settings["delta"]
    means = np.linspace(0.3, 0.6, experts)
    losses = (named_generator(seed, "classical/losses").random((rounds, experts)) < means).astype(float)
    tuned = WeightedMajority.tuned(experts, rounds)
    for epsilon in settings["epsilons"]:
        for account in ACCOUNTS:
            try:
                rate = private_rate(epsilon, rounds, 0.0 if account == "pure" else delta, account=account)
            except ParameterError:
                # beyond the reach of the published account there is no point to draw
                continue
            learner = WeightedMajority(experts, min(rate, tuned.rate))
            bound = learner.regret_bound(rounds)
            yield _row("learning", account, epsilon, learner.regret(losses), bound=bound)
        yield _row("learning", NOT_PRIVATE, epsilon, tuned.regret(losses), bound=tuned.regret_bound(rounds))


def _privacy(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for epsilon in settings["epsilons"]:
        for noise, factor in (("", 1.0), (", noise halved", 2.0)):
            for mechanism, loss in _losses(epsilon, factor).items():
                yield _row("privacy", mechanism + noise, epsilon, loss)


def _losses(epsilon: float, factor: float) -> dict[str, float]:
    """Exact privacy losses of mechanisms built for ε whose noise is then divided by ``factor``."""
    response = RandomisedResponse.for_epsilon(("yes", "no"), epsilon)
    lie = (1 - response.truth) / factor
    laplace = Laplace(1.0, epsilon * factor)
    # neighbours that reach the bound: an unlikely outcome gains what the likely one loses
    chooser = Exponential(1.0, epsilon * factor)
    gap = 40 * chooser.scale
    learner = WeightedMajority(2, private_rate(epsilon, 2, account="pure") * factor)
    lead = 40 / learner.rate
    return {
        "randomised response": math.log((1 - lie) / lie),
        "Laplace": math.log(laplace.probability(0) / laplace.probability(1)),
        "exponential": _log_ratio(chooser.probabilities([1.0, gap - 1]), chooser.probabilities([0.0, gap])),
        "weighted majority": _log_ratio(learner.probabilities([lead, 1.0]), learner.probabilities([lead + 1, 0.0])),
    }


def _log_ratio(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    return float(np.abs(np.log(p / q)).max())


def _differencing(settings: Mapping[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    for epsilon in settings["epsilons"]:
        stream, repetitions = named_generator(seed, f"classical/differencing/{epsilon}"), settings["repetitions"]
        expected = float(differencing_success(math.exp(-1 / Laplace(1.0, epsilon).scale)))
        yield _row(
            "differencing",
            "two noisy counts",
            epsilon,
            expected,
            mean_error=float(noisy_differencing(epsilon, stream, repetitions).mean()),
            # of the exact law: where almost every attack succeeds, so few fail that their own spread says little
            standard_error=math.sqrt(expected * (1 - expected) / repetitions),
            bound=1 / (1 + math.exp(-2 * epsilon)),
            repetitions=repetitions,
        )


def _smoking(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for epsilon in settings["epsilons"]:
        study = SmokingStudy(settings["smokers"], epsilon)
        risks = {
            "before the study": study.risk_before,
            "after it, without his record": study.risk_without(),
            "with his record": study.risk_with(ill=True),
            "with it, all others known": study.risk_known(ill=True),
        }
        for name, risk in risks.items():
            yield _row("smoking", name, epsilon, risk)


def _claims(settings: Mapping[str, Any]) -> Iterator[Value]:
    yield from _textbook(settings)
    yield from _exact_levels()
    yield from _sensitivities()
    yield from _examples()


def _exact_levels() -> Iterator[Value]:
    """(ε, δ) of finite mechanisms, alone, composed and for groups."""
    coins = _response("3/4")
    yield Value("(ε, δ)", "e^ε of the two-coin response, δ = 0", "classical/finite/factor", float(coins.level().factor))
    yield Value("(ε, δ)", "its δ at ε = 1", "classical/finite/delta", coins.delta_at(1))
    often = _response("11/21")
    yield Value(
        "composition",
        "ε of 100 uses of a ln 1.1-DP response, δ = 0",
        "classical/composition/basic",
        composed([often.level()] * 100).epsilon,
    )
    level = often.repeated(100).level("1e-6")
    yield Value("composition", "the same at δ = 1e-6, exactly", "classical/composition/exact", level.epsilon)
    each = math.log(1.1)
    advanced = each * math.sqrt(200 * math.log(1e6)) + 100 * each * math.expm1(each)
    yield Value("composition", "the same by advanced composition", "classical/composition/advanced", advanced)
    person = Domain({"answer": ["yes", "no"]})
    truth = {"yes": Fraction(3, 4), "no": Fraction(1, 4)}
    people = list(databases(person, 3))
    laws = {
        given: [
            math.prod(truth["yes" if a == b else "no"] for a, b in zip(given, said, strict=True)) for said in people
        ]
        for given in people
    }
    beside = change_one(person)
    answers = FiniteMechanism(laws, [(given, other) for given in people for other in beside(given)])
    group = answers.group(2).level()
    yield Value(
        "groups", "e^ε of three two-coin answers, one person", "classical/group/1", float(answers.level().factor)
    )
    yield Value("groups", "two people together", "classical/group/2", float(group.factor))
    bound = grouped(answers.level(), 2)
    yield Value("groups", "the bound e^(2ε)", "classical/group/bound", float(bound.factor))


def _response(truth: str) -> FiniteMechanism:
    kept = Fraction(truth)
    return FiniteMechanism({"yes": [kept, 1 - kept], "no": [1 - kept, kept]})


def _sensitivities() -> Iterator[Value]:
    """Sensitivities of queries on three records with values 0 to 4, over all neighbours."""
    values = Domain({"value": range(5)})
    queries: dict[str, Callable[[Any], Any]] = {
        "count": lambda rows: sum(value == 0 for (value,) in rows),
        "histogram": lambda rows: [sum(value == wanted for (value,) in rows) for wanted in range(5)],
        "sum": lambda rows: sum(value for (value,) in rows),
        "mean": lambda rows: Fraction(sum(value for (value,) in rows), len(rows)),
        "median": lambda rows: sorted(rows)[1][0],
    }
    for name, query in queries.items():
        largest = sensitivity(query, databases(values, 3), change_one(values))
        yield Value("sensitivity", f"{name}, one record changed", f"classical/sensitivity/{name}", float(largest.value))
    largest = sensitivity(queries["histogram"], databases(values, 3), add_or_remove_one(values))
    what = "histogram, one record more or less"
    yield Value("sensitivity", what, "classical/sensitivity/histogram-added", float(largest.value))


def _examples() -> Iterator[Value]:
    """The differencing attack and the smoker, at ε = 1."""
    given_away = exact_differencing((np.arange(100) < 30).astype(np.int64))
    yield Value("differencing", "share given away by exact counts", "classical/differencing/exact", given_away)
    success = float(differencing_success(math.exp(-1)))
    yield Value("differencing", "attack on two counts, ε = 1 each", "classical/differencing/noisy", success)
    study = SmokingStudy(100, 1.0)
    yield Value("smoker", "insurer's risk before the study", "classical/smoker/before", study.risk_before)
    yield Value("smoker", "after it, without his record", "classical/smoker/without", study.risk_without())
    yield Value("smoker", "after it, with his record (ill)", "classical/smoker/with", study.risk_with(ill=True))
    what = "with it, all other records known"
    yield Value("smoker", what, "classical/smoker/known", study.risk_known(ill=True))


def _textbook(settings: Mapping[str, Any]) -> Iterator[Value]:
    coins = RandomisedResponse(("yes", "no"), 0.75)
    ratio = max(coins.probability(a, "yes") / coins.probability(a, "no") for a in coins.categories)
    yield Value("randomised response", "loss of the two-coin response", "classical/rr/epsilon", math.log(ratio))
    unbiased = all(_expected_estimate(coins, yes, 10) == yes for yes in range(11))
    text = "unbiased" if unbiased else "biased"
    yield Value("randomised response", "estimate of the count", "classical/rr/unbiased", text)
    laplace = Laplace(1.0, 1.0)
    loss = math.log(laplace.probability(0) / laplace.probability(1))
    yield Value("Laplace", "loss of Lap(Δ/ε) at ε = 1", "classical/laplace/epsilon", loss)
    losses = {epsilon: _losses(epsilon, 1.0)["exponential"] for epsilon in settings["epsilons"]}
    private = all(loss <= epsilon * (1 + 1e-9) for epsilon, loss in losses.items())
    text = "ε-DP" if private else "not ε-DP"
    yield Value("exponential", "Pr ∝ exp(εu/(2Δ))", "classical/exponential/epsilon", text)
    yield Value("weighted majority", "bound on the regret", "classical/rwm/regret", _regret_bound())
    tuned = WeightedMajority.tuned(10, 100).regret_bound(100)
    yield Value("weighted majority", "η = √(ln k/T), k = 10, T = 100", "classical/rwm/tuned", tuned)
    epsilon, rounds, delta = 1.0, settings["rounds"], settings["delta"]
    learner = WeightedMajority(2, private_rate(epsilon, rounds, delta, account="published"))
    private = all(learner.epsilon(rounds, delta, account=account) <= epsilon for account in ("published", "zcdp"))
    text = "(ε, δ)-DP" if private else "not (ε, δ)-DP"
    yield Value("weighted majority", "η = ε/√(32 T ln(1/δ))", "classical/rwm/private", text)


def _expected_estimate(response: RandomisedResponse, yes: int, people: int) -> Fraction:
    """Exact expectation of the estimated number of "yes"."""
    truthful, lying = (response.probability("yes", truth) for truth in response.categories)
    answers = yes * truthful + (people - yes) * lying
    return (answers - people * lying) / (truthful - lying)


def _regret_bound() -> str:
    """The bound that holds on losses where the first expert is always right and all others are always wrong.

    The printed n is read as any number of records at least 1/η, as it must be for the two to differ.
    """
    experts, rounds, rate, records = 10, 1000, 0.01, 1000
    losses = np.ones((rounds, experts))
    losses[:, 0] = 0
    regret = WeightedMajority(experts, rate).regret(losses)
    if regret <= rate + math.log(experts) / (records * rounds):
        return "η + ln k/(nT)"
    return "η + ln k/(ηT)" if regret <= rate + math.log(experts) / (rate * rounds) else "neither"
