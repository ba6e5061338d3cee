"""Classical differential privacy: errors and exact losses against ε, and the claims of its sources.

A seeded generator draws the noise; a test shows that the secure samplers have its distribution.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from operator import eq
from typing import Any

import numpy as np
from scipy.special import lambertw
from scipy.stats import binom

from pufferflow import dp
from pufferflow._util.numbers import written_number
from pufferflow._util.types import Floats
from pufferflow.dp.classical import laplace_probability
from reproduction.related import Found, Row, Stated, Value
from reproduction.tidy import mean_and_error, named_generator

TOPICS = {"rr": "Randomised response", "rwm": "Weighted majority", "finite": "(ε, δ)"}
"""Examples by the first part of a value's key, if it is not their name."""

EPSILONS = (0.1, 0.2, 0.5, 1, 2, 5, 10)
ROUNDS, DELTA = 10_000, 1e-6
"""Of weighted majority and its privacy."""


def measure(settings: Mapping[str, Any], seed: int) -> Iterator[Found]:
    """Yield rows of the curves (schema ``related``), and the values that sources state.

    ``settings`` is ``related.classical`` of the configuration. Errors are in people (counting: root
    mean square; choosing: expected shortfall), in loss per round (learning), in nats (privacy:
    exact loss), or are the probabilities that a differencing attack succeeds and of an illness.
    """
    for key, quantity, computed in (*_textbook(), *_examples()):
        topic = key.split("/")[0]
        example = TOPICS.get(topic, topic.capitalize())
        yield Value(example, quantity, f"classical/{key}", computed)
    for epsilon in EPSILONS:
        rows = [*_releases(epsilon, settings["repetitions"], seed), *_learning(epsilon, seed)]
        for noise, factor in (("", 1.0), (", noise halved", 2.0)):
            losses = _losses(epsilon, factor).items()
            rows += [_row("privacy", name + noise, loss) for name, loss in losses]
        rows += [_row("smoking", *risk) for risk in smoker(100, epsilon).items()]
        yield from (row | {"epsilon": epsilon} for row in rows)


def _row(panel: str, mechanism: str, expected: float, **others: float) -> Row:
    return {"panel": panel, "mechanism": mechanism, "expected_error": expected} | others


def _releases(epsilon: float, repetitions: int, seed: int) -> Iterator[Row]:
    """Yield the panels counting, choosing and differencing, with drawn and exact errors."""
    people, yes, outcomes, laplace = 1000, 300, 10, dp.Laplace(1.0, epsilon)
    stop = -math.expm1(-1 / laplace.scale)  # the noise is the difference of two geometric counts
    stream = named_generator(seed, f"classical/laplace/{epsilon}")
    noise = np.subtract(*stream.geometric(stop, (2, repetitions))).astype(float)
    response = dp.RandomisedResponse.for_epsilon(("yes", "no"), epsilon)
    stream = named_generator(seed, f"classical/randomised-response/{epsilon}")
    answers = stream.binomial(yes, response.truth, repetitions)
    answers += stream.binomial(people - yes, 1 - response.truth, repetitions)
    estimates = (answers - people * (1 - response.truth)) / (2 * response.truth - 1)
    errors = np.asarray(estimates - yes, np.float64)
    for name, drawn, expected in (
        ("randomised response", errors, response.standard_error(yes, people)),
        ("Laplace", noise, laplace.standard_error()),
    ):
        mean, error = mean_and_error(drawn**2)
        root = math.sqrt(mean)
        measured = {"mean_error": root, "standard_error": error / (2 * root) if root else 0.0}
        yield _row("counting", name, expected, repetitions=repetitions, **measured)

    chances = np.full(outcomes, 1 / outcomes)
    votes = named_generator(seed, "classical/votes").multinomial(people, chances).astype(float)
    chooser = dp.Exponential(1.0, epsilon)
    stream = named_generator(seed, f"classical/exponential/{epsilon}")
    chosen = stream.choice(outcomes, repetitions, p=chooser.probabilities(votes))
    mean, error = mean_and_error(votes.max() - votes[chosen])
    measured = {"mean_error": mean, "standard_error": error, "repetitions": repetitions}
    bound = float(chooser.scale * np.log(outcomes))  # the textbook's (2Δ/ε) ln k
    yield _row("choosing", "exponential", shortfall(chooser, votes), bound=bound, **measured)
    yield _row("choosing", "worst utilities", worst_shortfall(chooser, outcomes), bound=bound)

    stream = named_generator(seed, f"classical/differencing/{epsilon}")
    bits = stream.integers(2, size=repetitions)
    everybody, without = np.subtract(*stream.geometric(stop, (2, 2, repetitions)))
    right = float(((bits + everybody - without >= 1) == bits).mean())
    expected = differencing_success(math.exp(-1 / laplace.scale))
    # exact: if almost every attack succeeds the few failures do not estimate the spread
    error = math.sqrt(expected * (1 - expected) / repetitions)
    measured = {"mean_error": right, "standard_error": error, "repetitions": repetitions}
    bound = 1 / (1 + math.exp(-2 * epsilon))
    yield _row("differencing", "two noisy counts", expected, bound=bound, **measured)


def _learning(epsilon: float, seed: int) -> Iterator[Row]:
    """Yield the regret at the largest rate of each account, none if there is no rate for this ε."""
    rounds, experts = ROUNDS, 10
    losses = named_generator(seed, "classical/losses").random((rounds, experts))
    losses = (losses < np.linspace(0.3, 0.6, experts)).astype(float)
    tuned = dp.WeightedMajority(math.sqrt(math.log(experts) / rounds))
    learners = {"tuned, not private": tuned}
    rates = {
        "pure": dp.private_rate(epsilon, rounds),
        "published": published_rate(epsilon, rounds, DELTA),
        "zcdp": dp.private_rate(epsilon, rounds, DELTA),
    }
    for account, rate in rates.items():
        if rate:
            learners[account] = dp.WeightedMajority(min(rate, tuned.rate))
    for name, learner in learners.items():
        bound = regret_bound(learner.rate, experts, rounds)
        yield _row("learning", name, regret(learner, losses), bound=bound)


def shortfall(chooser: dp.Exponential, utilities: Floats) -> float:
    """Return the expected distance from the largest utility."""
    gaps = utilities.max() / 2 - utilities / 2
    return 2 * float(chooser.probabilities(utilities) @ gaps)


def worst_shortfall(chooser: dp.Exponential, outcomes: int) -> float:
    """Return the largest expected shortfall of k outcomes, (2Δ/ε) W((k−1)/e), W Lambert's.

    The shortfall λ solves Σ (g_i − λ) exp(−g_i/τ) = λ over the gaps g_i, τ = 2Δ/ε; each term is
    largest at g_i = λ + τ, so equal gaps are worst.
    """
    return float(chooser.scale * lambertw((outcomes - 1) / np.e).real)


def regret(learner: dp.WeightedMajority, losses: Floats) -> float:
    """Return the expected loss per round minus the best expert's, for losses in [0, 1]."""
    before = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)[:-1]])
    expected = float((learner.probabilities(before) * losses).sum())
    return (expected - float(losses.sum(axis=0).min())) / len(losses)


def regret_bound(rate: float, experts: int, rounds: int) -> float:
    """Return the bound η + ln k/(ηT) on the regret, least at η = √(ln k/T)."""
    return rate + math.log(experts) / (rate * rounds)


def published_rate(epsilon: float, rounds: int, delta: float) -> float | None:
    """Return η = ε/√(32 T ln(1/δ)), or None if its ε by advanced composition is larger.

    Dwork and Roth 2014, section 11.2; rounded down.
    """
    log = math.log(1 / delta)
    rate = epsilon / math.sqrt(32 * rounds * log) / (1 + 1e-12) ** 2
    spent = 2 * rate * (math.sqrt(2 * rounds * log) + rounds * math.expm1(2 * rate))
    return rate if spent <= epsilon else None


def differencing_success(ratio: float) -> float:
    """Return how often noisy counts with and without a person disclose an even bit of that person.

    The best guess is 1 if the counts differ by at least 1. With noise Pr ∝ ratio^|z| on both, the
    difference is the bit plus noise D, symmetric and falling away from 0, so that the guess is
    right with probability ½ + ½·Pr[D = 0] = ½ + (1−r)(1+r²)/(2(1+r)³).
    """
    r = written_number(ratio, "ratio")
    return float(Fraction(1, 2) + (1 - r) * (1 + r**2) / (2 * (1 + r) ** 3))


def _losses(epsilon: float, factor: float = 1.0) -> dict[str, float]:
    """Return exact losses of mechanisms built for ε whose noise is then divided by ``factor``."""
    lie = (1 - dp.RandomisedResponse.for_epsilon(("yes", "no"), epsilon).truth) / factor
    laplace, chooser = dp.Laplace(1.0, epsilon * factor), dp.Exponential(1.0, epsilon * factor)
    learner = dp.WeightedMajority(dp.private_rate(epsilon, 2) * factor)
    # neighbours that reach the bound: an unlikely outcome gains the loss of the likely one
    gap, lead = 40 * chooser.scale, 40 / learner.rate
    chosen = [chooser.probabilities(utilities) for utilities in ([1.0, gap - 1], [0.0, gap])]
    followed = [learner.probabilities(sums) for sums in ([lead, 1.0], [lead + 1, 0.0])]
    return {
        "randomised response": math.log((1 - lie) / lie),
        "Laplace": math.log(laplace.probability(0) / laplace.probability(1)),
        "exponential": float(np.abs(np.log(chosen[0] / chosen[1])).max()),
        "weighted majority": float(np.abs(np.log(followed[0] / followed[1])).max()),
    }


def smoker(others: int, epsilon: float, *, ill: bool = True) -> dict[str, float]:
    """Return an insurer's mean probability that a smoker is ill, before and after a study.

    The study counts the ill among ``others`` smokers, and among them the one of interest if he
    takes part, with ε-private noise; ``ill``: whether he is. The insurer's prior has equal
    probabilities for 5 % and 20 % ill smokers; the truth is 20 % (Dwork and Roth 2014, section 1).
    """
    scale = dp.Laplace(1.0, epsilon).scale
    reach = math.ceil(37 * scale) + 1  # noise beyond it has a probability below 1e-16
    outputs = np.arange(-reach, reach + 1)
    noise = laplace_probability(outputs, scale)
    risks = {"before the study": 0.5 * 0.05 + 0.5 * 0.2}
    for counted, study in enumerate(("after it, without his record", "with his record")):
        joint: Any = 0
        for rate in (0.05, 0.2):
            published = np.convolve(binom.pmf(np.arange(others + 1), others, rate), noise)
            given = np.array([np.pad(published, ends) for ends in ((0, counted), (counted, 0))])
            joint = joint + given * [[0.5 * (1 - rate)], [0.5 * rate]]
        evidence = joint.sum(axis=0)
        risks[study] = float(given[int(ill)] @ (joint[1] / np.where(evidence > 0, evidence, 1)))
    given = np.array([noise, laplace_probability(outputs - 1, scale)])
    posterior = 0.2 * given[1] / (0.2 * given[1] + 0.8 * given[0])
    return risks | {"with it, all others known": float(given[int(ill)] @ posterior)}


def _textbook() -> Stated:
    """Yield textbook claims about the mechanisms."""
    coins = dp.RandomisedResponse(("yes", "no"), 0.75)
    truthful, lying = (coins.probability("yes", truth) for truth in coins.categories)
    yield "rr/epsilon", "loss of the two-coin response", math.log(truthful / lying)
    # of 40 people, 4k of them with "yes", 10 + 2k say "yes" on average
    counts = [coins.estimate(["yes"] * (10 + 2 * k) + ["no"] * (30 - 2 * k)) for k in range(11)]
    unbiased = all(table["count"].tolist() == [4 * k, 40 - 4 * k] for k, table in enumerate(counts))
    yield "rr/unbiased", "estimate of the count", "unbiased" if unbiased else "biased"
    yield "laplace/epsilon", "loss of Lap(Δ/ε) at ε = 1", _losses(1.0)["Laplace"]
    ratios = [_losses(epsilon)["exponential"] / epsilon for epsilon in EPSILONS]
    private = "ε-DP" if max(ratios) <= 1 + 1e-9 else "not ε-DP"
    yield "exponential/epsilon", "Pr ∝ exp(εu/(2Δ))", private
    # one expert is always right; n stands for any number of records above 1/η
    found = regret(dp.WeightedMajority(0.01), np.tile(np.sign(np.arange(10.0)), (1000, 1)))
    bounds = {"η + ln k/(nT)": 1000, "η + ln k/(ηT)": 0.01}
    holds = [name for name, n in bounds.items() if found <= 0.01 + math.log(10) / (n * 1000)]
    yield "rwm/regret", "bound on the regret", [*holds, "neither"][0]
    tuned = math.sqrt(math.log(10) / 100)
    yield "rwm/tuned", "η = √(ln k/T), k = 10, T = 100", regret_bound(tuned, 10, 100)
    rate = published_rate(1.0, ROUNDS, DELTA)
    spent = dp.WeightedMajority(rate).epsilon(ROUNDS, DELTA) if rate else math.inf
    learned = "(ε, δ)-DP" if spent <= 1 else "not (ε, δ)-DP"
    yield "rwm/private", "η = ε/√(32 T ln(1/δ))", learned


def _examples() -> Stated:
    """Yield (ε, δ) of finite mechanisms, sensitivities over all neighbours, and two attacks."""
    coins = dp.FiniteMechanism({"yes": ["3/4", "1/4"], "no": ["1/4", "3/4"]})
    yield "finite/factor", "least e^ε of the two-coin response, δ = 0", float(coins.level().factor)
    yield "finite/delta", "its least δ at ε = 1", coins.delta_at(1)
    often = dp.FiniteMechanism({"yes": ["11/21", "10/21"], "no": ["10/21", "11/21"]})
    what, each = "ε of 100 uses of a ln 1.1-DP response", math.log(1.1)
    advanced = each * math.sqrt(200 * math.log(1e6)) + 100 * each * math.expm1(each)
    basic = dp.PrivacyLevel(Fraction("1.1") ** 100, Fraction(0))
    yield "composition/basic", f"{what}, δ = 0", basic.epsilon
    yield "composition/exact", f"{what}, δ = 1e-6", often.repeated(100).level("1e-6").epsilon
    yield "composition/advanced", "the same by advanced composition", advanced
    people, neighbours = list(product((0, 1), repeat=3)), dp.change_one((0, 1))
    chances = {a: [Fraction(3 ** sum(map(eq, a, b)), 64) for b in people] for a in people}
    answers = dp.FiniteMechanism(chances, [(a, b) for a in people for b in neighbours(a)])
    what, one = "least e^ε of three two-coin answers", answers.level()
    yield "group/1", f"{what}, one person changed", float(one.factor)
    yield "group/2", f"{what}, two people changed", float(answers.group(2).level().factor)
    yield "group/bound", "the bound e^(2ε) for groups of two", float(one.factor**2)

    values = range(5)
    queries: dict[str, Callable[[Any], Any]] = {
        "count": lambda rows: rows.count(0),
        "histogram": lambda rows: [rows.count(value) for value in values],
        "sum": sum,
        "mean": lambda rows: Fraction(sum(rows), len(rows)),
        "median": lambda rows: sorted(rows)[1],
    }
    for name, query in queries.items():
        found = dp.sensitivity(query, product(values, repeat=3), dp.change_one(values))
        what = f"{name} of three values 0 to 4, one record changed"
        yield f"sensitivity/{name}", what, float(found)
    added = dp.add_or_remove_one(values)
    found = dp.sensitivity(queries["histogram"], product(values, repeat=3), added)
    yield "sensitivity/histogram-added", "histogram, one record more or less", float(found)

    bits = np.arange(100) < 30
    given_away = float(np.mean((bits.sum() - (bits.sum() - bits) >= 1) == bits))
    what = "share of people whom exact counts with and without them disclose"
    yield "differencing/exact", what, given_away
    success = differencing_success(math.exp(-1))
    yield "differencing/noisy", "attack on two counts, ε = 1 each", success
    keys = ("before", "without", "with", "known")
    for key, (when, risk) in zip(keys, smoker(100, 1.0).items(), strict=True):
        yield f"smoker/{key}", f"insurer's risk {when}, ε = 1", risk
