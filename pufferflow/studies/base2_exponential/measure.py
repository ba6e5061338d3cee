"""The exponential mechanism in floating point and in exact arithmetic: attacks, samplers, privacy loss and time.

Everything measured here is measured on both sides: the naive mechanism below, written as one would write it with
doubles, and :mod:`pufferflow.related.dp.base2_exponential`. Attacks and settings are those of Ilvento, "Implementing
the Exponential Mechanism with Base-2 Differential Privacy" (CCS 2020), and of its code and demonstration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import accumulate
from random import Random
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pufferflow.related.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta, Number, Sampler
from pufferflow.studies.tidy import frame, named_generator
from pufferflow.studies.values import Value, values_table

NAIVE, BASE2 = "naive", "base-2"
SAMPLERS: tuple[Sampler, ...] = ("rejection", "bitwise")
WITH, WITHOUT = "with Alice", "without Alice"

CURVES = [
    "panel",
    "mechanism",
    "database",
    "outcome",
    "probability",
    "frequency",
    "draws",
    "epsilon",
    "total_variation",
    "loss_nats",
    "certainty",
    "sensitivity",
    "outcomes",
    "loss_bits",
    "published_bits",
    "proved_bits",
    "chi_square_p",
]
TIMES = ["panel", "method", "outcomes", "utility_range", "precision_bits", "seconds", "repeats", "bar_seconds"]

BAR_SECONDS = {1000: 1.0, 75_000: 10.0}
"""Time one release with utilities 0, 1, …, n − 1 may take, by n; 10 s is the published one."""
STORED_BITS = 10**8
"""Storing all exact sums is timed only where they take no more bits than this."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Attack(NamedTuple):
    """Two neighbouring databases chosen by the attacker; every utility differs by at most 1.

    Attributes
    ----------
    name : str
    epsilon : float
        Privacy parameter the mechanism claims.
    utilities : dict of str to list
        By database; the first outcome is the one the attacker looks at.
    watched : int
        Its index.
    y : int
        Bits of η that come close to ``epsilon``.
    """

    name: str
    epsilon: float
    utilities: dict[str, list[Number]]
    watched: int
    y: int


# --- the naive mechanism ------------------------------------------------------------------------------------------


def naive_cumulative(utilities: Sequence[Number], epsilon: float) -> Floats:
    """Cumulative probabilities of the exponential mechanism with weights e^(−ε·u/2), in doubles from left to right."""
    sums = np.cumsum(np.exp(-(epsilon / 2) * np.array(utilities, dtype=np.float64)))
    return np.asarray(sums / sums[-1])


def naive_law(utilities: Sequence[Number], epsilon: float) -> list[float]:
    """Probability of each outcome under a uniform number compared with :func:`naive_cumulative`."""
    return list(np.diff(naive_cumulative(utilities, epsilon), prepend=0.0))


def naive_draws(utilities: Sequence[Number], epsilon: float, count: int, rng: np.random.Generator) -> list[int]:
    """Draw from the naive mechanism; reproduces the leaks, never to be used."""
    return list(np.searchsorted(naive_cumulative(utilities, epsilon), rng.random(count), side="right"))


# --- the attacks --------------------------------------------------------------------------------------------------


def zero_rounding(outcomes: int) -> Attack:
    """Utility x for all; with Alice x + 1 for all but the first, whose weights all underflow to 0.

    x is the last integer for which e^(−εx/2) is a positive double.
    """
    epsilon = 0.5
    x = next(i for i in range(1, 10_000) if np.exp(-(epsilon / 2) * i) == 0) - 1
    rest = outcomes - 1
    return Attack("zero rounding", epsilon, {WITH: [x, *[x + 1] * rest], WITHOUT: [x] * outcomes}, 0, 16)


def truncated_addition(*, watched_first: bool = True) -> Attack:
    """One heavy outcome and 999 light ones whose positive weights vanish when added to the heavy one.

    Without Alice the utilities are 1 closer, and nothing vanishes. Added up in the other order, the light ones first,
    nothing vanishes either. A light outcome must weigh 2^−53 of the heavy one to vanish, and k = 2^53·e^−ε outcomes e^ε
    closer are needed to be seen: with few outcomes the attack needs a large ε.
    """
    epsilon, heavy, outcomes = 30.0, -0.5, 1000
    weight = np.exp(-(epsilon / 2) * heavy)
    light = next(x for x in range(10_000) if weight + np.exp(-(epsilon / 2) * x) == weight)
    there: list[Number] = [heavy, *[light] * (outcomes - 1)]
    absent: list[Number] = [heavy + 1, *[light - 1] * (outcomes - 1)]
    if watched_first:
        return Attack("truncated addition", epsilon, {WITH: there, WITHOUT: absent}, 0, 40)
    return Attack(
        "truncated addition, heavy outcome last", epsilon, {WITH: there[::-1], WITHOUT: absent[::-1]}, outcomes - 1, 40
    )


def laws(attack: Attack, mechanism: str) -> dict[str, list[Any]]:
    """Law of the output by database: doubles as the naive mechanism has them, exact fractions for base 2."""
    if mechanism == NAIVE:
        return {name: naive_law(utilities, attack.epsilon) for name, utilities in attack.utilities.items()}
    return {name: _mechanism(attack).probabilities(utilities) for name, utilities in attack.utilities.items()}


def privacy_loss(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Largest |log of the ratio| of two laws, in nats; infinite if an outcome is possible under one alone."""
    worst = 0.0
    for p, q in zip(first, second, strict=True):
        if (p == 0) != (q == 0):
            return math.inf
        if p != 0:
            worst = max(worst, abs(_log(p) - _log(q)))
    return worst


def rounding_loss(eta: Eta, outcomes: int, sensitivity: Fraction) -> float:
    """Exact base-2 loss, in bits, on a bad pair of neighbours with utilities rounded at random.

    The first outcome has utility 1 against 1 − α, all others 1 − α against 1, α = ``sensitivity`` in (0, 1].
    """
    q, alpha, rest = eta.base, Fraction(sensitivity), outcomes - 1
    worse = sum(
        (
            math.comb(rest, ups) * (1 - alpha) ** ups * alpha ** (rest - ups) * q / (q + ups * q + rest - ups)
            for ups in range(rest + 1)
        ),
        Fraction(0),
    )
    better = (1 - alpha) / outcomes + alpha / (1 + rest * q)
    return (_log(better) - _log(worse)) / math.log(2)


# --- the tables ---------------------------------------------------------------------------------------------------


def measure(settings: Mapping[str, Any], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run the attacks, the samplers against their exact law, and the loss of randomised rounding.

    Parameters
    ----------
    settings : mapping
        ``experiments.base2_exponential`` of the configuration.
    seed : int
        The mechanisms run on seeded generators, switched on by name: same seed, same tables.

    Returns
    -------
    (curves, claims)
        Columns ``CURVES``; and one row a value that the source states too.
    """
    attacks = [
        zero_rounding(settings["attack_outcomes"]),
        truncated_addition(),
        truncated_addition(watched_first=False),
    ]
    rows: list[dict[str, Any]] = []
    for attack in attacks:
        for mechanism in (NAIVE, BASE2):
            rows += _attack_rows(attack, mechanism, settings["attack_draws"], seed)
    rows += _sampler_rows(settings["sampler_draws"], seed)
    rows += _loss_rows(settings["loss_outcomes"], settings["loss_eta"])
    curves = frame(rows, CURVES)
    return curves, values_table(_claims(rows, attacks))


def _attack_rows(attack: Attack, mechanism: str, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    by_database = laws(attack, mechanism)
    there, absent = by_database[WITH], by_database[WITHOUT]
    seen = [float(1 - law[attack.watched]) for law in (absent, there)]
    summary = {
        "panel": attack.name,
        "mechanism": mechanism,
        "draws": draws,
        "epsilon": attack.epsilon if mechanism == NAIVE else _mechanism(attack).epsilon,
        "total_variation": float(sum(abs(p - q) for p, q in zip(there, absent, strict=True))) / 2,
        "loss_nats": privacy_loss(there, absent),
        # of the databases, each as likely before, how sure one is of "without" after an output other than the watched
        "certainty": seen[0] / sum(seen),
    }
    for database, law in by_database.items():
        name = f"base2/{attack.name}/{mechanism}/{database}"
        if mechanism == NAIVE:
            drawn = naive_draws(attack.utilities[database], attack.epsilon, draws, named_generator(seed, name))
        else:
            source = int(named_generator(seed, name).integers(2**63))
            drawn = _mechanism(attack, source).releases(attack.utilities[database], draws)
        hits = drawn.count(attack.watched)
        # the probability of the others is summed, not 1 minus: it may be too small for that
        rest = math.fsum(float(p) for i, p in enumerate(law) if i != attack.watched)
        for outcome, probability, count in (
            ("watched", float(law[attack.watched]), hits),
            ("any other", rest, draws - hits),
        ):
            yield summary | {
                "database": database,
                "outcome": outcome,
                "probability": probability,
                "frequency": count / draws,
            }


def _sampler_rows(draws: int, seed: int) -> Iterator[dict[str, Any]]:
    from scipy.stats import chisquare

    for sampler in SAMPLERS:
        source = int(named_generator(seed, f"base2/sampler/{sampler}").integers(2**63))
        laplace = Base2Laplace(Eta(3, 2), -8, 8, 1, sampler=sampler, insecure_seed=source)
        law = laplace.probabilities(2)
        drawn = laplace.mechanism.releases(laplace.utilities(2), draws)
        counts = np.bincount(drawn, minlength=len(law))
        test = chisquare(counts, np.array([float(p) for p in law]) * draws)
        for outcome, p, count in zip(laplace.outcomes, law, counts, strict=True):
            yield {
                "panel": "samplers",
                "mechanism": sampler,
                "outcome": str(outcome),
                "probability": float(p),
                "frequency": int(count) / draws,
                "draws": draws,
                "epsilon": laplace.epsilon,
                "chi_square_p": float(test.pvalue),
            }


def _loss_rows(sizes: Sequence[int], bits: int) -> Iterator[dict[str, Any]]:
    eta = Eta(1, bits)
    for sensitivity in (Fraction(1), Fraction(1, 2)):
        for outcomes in sizes:
            yield {
                "panel": "loss",
                "mechanism": BASE2,
                "sensitivity": float(sensitivity),
                "outcomes": outcomes,
                "loss_bits": rounding_loss(eta, outcomes, sensitivity),
                "published_bits": float(2 * sensitivity * bits),
                "proved_bits": float(2 * math.ceil(sensitivity) * bits),
            }


def _claims(rows: Sequence[Mapping[str, Any]], attacks: Sequence[Attack]) -> Iterator[Value]:
    zero, truncated = attacks[:2]
    keyed = {tuple(row.get(name) for name in ("panel", "mechanism", "database", "outcome")): row for row in rows}
    example = "base-2 exponential"
    x = float(zero.utilities[WITHOUT][0])
    yield Value(example, "last utility with a positive naive weight, ε = 0.5", "base2/zero/x", x)
    light = float(truncated.utilities[WITH][1])
    yield Value(example, "first utility whose naive weight is lost in the sum, ε = 30", "base2/truncated/x", light)
    for name, attack in (("zero", zero), ("truncated", truncated)):
        hidden = keyed[attack.name, NAIVE, WITH, "any other"]
        never = "never produced" if hidden["probability"] == 0 and hidden["frequency"] == 0 else "produced"
        yield Value(example, f"naive, {attack.name}: outputs other than o1 with Alice", f"base2/{name}/never", never)
        ours = keyed[attack.name, BASE2, WITH, "any other"]
        holds = ours["probability"] > 0 and ours["loss_nats"] <= ours["epsilon"]
        yield Value(example, f"base-2, {attack.name}", f"base2/{name}/private", "private" if holds else "not private")
    outcomes = len(zero.utilities[WITH])
    advantage = keyed[zero.name, NAIVE, WITH, "watched"]["total_variation"]
    quantity = f"naive, zero rounding: distinguishing probability, k = {outcomes}"
    yield Value(example, quantity, f"base2/zero/advantage/{outcomes}", advantage)
    certainty = keyed[zero.name, NAIVE, WITH, "watched"]["certainty"]
    quantity = "naive, zero rounding: probability that Alice is absent after an output other than o1"
    yield Value(example, quantity, "base2/zero/certainty", certainty)
    half = keyed[truncated.name, NAIVE, WITHOUT, "watched"]["probability"]
    yield Value(example, "naive, truncated addition: P(o1) without Alice", "base2/truncated/half", f"{half:.3f}")
    # at η = 1 the nearest double, as printed; Eta.loss would round up
    yield Value(example, "ε of η = 1", "base2/epsilon", 2 * math.log(2) * Eta(1, 1, 1).value)
    for sensitivity, name in ((1.0, "integer"), (0.5, "half")):
        losses = [row for row in rows if row["panel"] == "loss" and row["sensitivity"] == sensitivity]
        worst = max(losses, key=lambda row: float(row["loss_bits"] / row["published_bits"]))
        computed = "holds"
        if worst["loss_bits"] > worst["published_bits"]:
            computed = f"{worst['loss_bits']:.3f} > {worst['published_bits']:g} bits with {worst['outcomes']} outcomes"
        yield Value(example, f"loss at most 2αη, α = {sensitivity:g}", f"base2/loss/{name}", computed)


def _mechanism(attack: Attack, insecure_seed: int | None = None) -> Base2Exponential:
    """The exact mechanism with the attack's privacy parameter (or a little less) and the smallest public range."""
    values = [u for utilities in attack.utilities.values() for u in utilities]
    eta = Eta.for_epsilon(attack.epsilon, y=attack.y)
    low, high = math.floor(min(values)), math.ceil(max(values))
    return Base2Exponential(eta, low, high, len(attack.utilities[WITH]), insecure_seed=insecure_seed)


def _log(value: Any) -> float:
    """Logarithm of a positive double or fraction, of any size."""
    if isinstance(value, Fraction):
        return math.log(value.numerator) - math.log(value.denominator)
    return math.log(value)


# --- time ---------------------------------------------------------------------------------------------------------


def measure_times(settings: Mapping[str, Any]) -> pd.DataFrame:
    """Seconds of one release (median of ``time_repeats``) against the number of outcomes and the range of utilities.

    Utilities are 0, 1, …, n − 1; or 0 and 999 values at the far end of the range, as in the source's benchmark.
    Besides both samplers: all cumulative sums stored as exact integers, which is what the source describes, as far as
    they fit into ``STORED_BITS``; and the naive floats.
    """
    jobs: list[tuple[str, list[int]]] = [("outcomes", list(range(n))) for n in settings["time_outcomes"]]
    jobs += [("range", [0, *range(span - 998, span + 1)]) for span in settings["time_ranges"]]
    return frame(
        (row for panel, utilities in jobs for row in _time_rows(panel, utilities, settings["time_repeats"])), TIMES
    )


def _time_rows(panel: str, utilities: list[int], repeats: int) -> Iterator[dict[str, Any]]:
    eta, span, size = Eta(1, 1, 1), utilities[-1], len(utilities)
    methods: dict[str, Callable[[], object]] = {}
    mechanisms = {sampler: Base2Exponential(eta, 0, span, size, sampler=sampler) for sampler in SAMPLERS}
    for sampler, mechanism in mechanisms.items():
        methods[sampler] = partial(mechanism.release, utilities)
    if span * size <= STORED_BITS:
        methods["all exact sums"] = lambda: stored_release(mechanisms["rejection"], utilities, Random())
    methods[NAIVE] = lambda: naive_draws(utilities, mechanisms["rejection"].epsilon, 1, np.random.default_rng())
    for name, release in methods.items():
        seconds = []
        for _ in range(repeats):
            began = perf_counter()
            release()
            seconds.append(perf_counter() - began)
        yield {
            "panel": panel,
            "method": name,
            "outcomes": size,
            "utility_range": span,
            "precision_bits": mechanisms["rejection"].precision,
            "seconds": median(seconds),
            "repeats": repeats,
            "bar_seconds": BAR_SECONDS.get(size) if panel == "outcomes" and name in SAMPLERS else None,
        }


def stored_release(mechanism: Base2Exponential, utilities: Sequence[Any], source: Random) -> int:
    """Plain twin of the rejection sampler: all cumulative weights as exact integers, s drawn below a power of two."""
    sums = list(accumulate(mechanism.weights(utilities)))
    while True:
        s = source.getrandbits((sums[-1] - 1).bit_length())
        if s < sums[-1]:
            return next(i for i, c in enumerate(sums) if c > s)
