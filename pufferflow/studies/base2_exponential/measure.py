"""The exponential mechanism in floating point and in exact arithmetic: attacks, samplers, privacy loss and costs.

Everything measured here is measured on both sides: the naive mechanisms, written as one would write them with doubles,
and :mod:`pufferflow.related.dp.base2_exponential`. Attacks and settings are those of Ilvento, "Implementing
the Exponential Mechanism with Base-2 Differential Privacy" (CCS 2020), and of its code and demonstration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from pufferflow.related.dp.base2_exponential import Base2Laplace, Eta
from pufferflow.related.dp.laplace import Laplace
from pufferflow.related.dp.precision import needed_precision
from pufferflow.studies.base2_exponential.attacks import (
    BASE2,
    NAIVE,
    WITH,
    WITHOUT,
    Attack,
    exact_mechanism,
    laws,
    naive_draws,
    privacy_loss,
    rounding_loss,
    swapped_zero_rounding,
    truncated_addition,
    zero_rounding,
)
from pufferflow.studies.base2_exponential.counts import (
    ENCLOSED,
    ETA,
    SAMPLERS,
    STORED,
    grid_rows,
    growth_exponent,
    growth_rows,
    precision_rows,
    random_bit_rows,
)
from pufferflow.studies.base2_exponential.floating_noise import naive_outputs, possible
from pufferflow.studies.base2_exponential.rounding import rounding_rows
from pufferflow.studies.base2_exponential.times import measure_times
from pufferflow.studies.tidy import frame, named_generator
from pufferflow.studies.values import Value, values_table

__all__ = ["measure", "measure_times"]

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
    "share",
    "utility_range",
    "precision_bits",
    "bits",
    "expected_bits",
    "granularity",
]

DISCRETE = "discrete"


def measure(settings: Mapping[str, Any], seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run the attacks, the samplers against their exact law, the loss of randomised rounding, and count the costs.

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
    attacks = {
        "zero": zero_rounding(settings["attack_outcomes"]),
        "swapped": swapped_zero_rounding(),
        "truncated": truncated_addition(),
        "last": truncated_addition(watched_first=False),
    }
    rows: list[dict[str, Any]] = []
    for attack in attacks.values():
        for mechanism in (NAIVE, BASE2):
            rows += _attack_rows(attack, mechanism, settings["attack_draws"], seed)
    for epsilon in settings["noise_epsilons"]:
        rows += _noise_rows(epsilon, settings["noise_draws"], seed)
    rows += _sampler_rows(settings["sampler_draws"], seed)
    rows += _loss_rows(settings["loss_outcomes"], settings["loss_eta"])
    rows += rounding_rows(settings["rounding_granularities"])
    rows += precision_rows(settings["precision_outcomes"])
    rows += random_bit_rows(settings["precision_outcomes"], settings["attack_draws"], seed)
    rows += growth_rows(settings["time_outcomes"], settings["time_ranges"])
    rows += grid_rows(settings["time_granularities"])
    claims = [*_attack_claims(rows, attacks), *_noise_claims(rows), *_loss_claims(rows), *_rounding_claims(rows)]
    claims += _cost_claims(rows)
    return frame(rows, CURVES), values_table(claims)


def _attack_rows(attack: Attack, mechanism: str, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    by_database = laws(attack, mechanism)
    there, absent = by_database[WITH], by_database[WITHOUT]
    seen = [float(1 - law[attack.watched]) for law in (absent, there)]
    summary = {
        "panel": attack.name,
        "mechanism": mechanism,
        "draws": draws,
        "epsilon": attack.epsilon if mechanism == NAIVE else exact_mechanism(attack).epsilon,
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
            drawn = exact_mechanism(attack, source).releases(attack.utilities[database], draws)
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


def _noise_rows(epsilon: float, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Share of releases of 0 and of 1, with noise of scale 1/ε, that are impossible for the other of the two."""
    rng, scale = named_generator(seed, f"base2/noise/{epsilon:g}"), 1 / epsilon
    base2, discrete = Base2Laplace(Eta.for_epsilon(epsilon, y=24), -20, 21, 1), Laplace(1, epsilon)
    told: dict[str, list[float]] = {NAIVE: [], BASE2: [], DISCRETE: []}
    for value, other in ((0, 1), (1, 0)):
        outputs = naive_outputs(value, scale, draws, rng)
        told[NAIVE].append(sum(not possible(output, other, scale) for output in outputs) / draws)
        # the laws themselves: the probability of what is impossible for the other value
        exact = zip(base2.probabilities(value), base2.probabilities(other), strict=True)
        told[BASE2].append(float(sum(p for p, q in exact if q == 0)))
        whole = range(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
        both = ((discrete.probability(z - value), discrete.probability(z - other)) for z in whole)
        told[DISCRETE].append(math.fsum(p for p, q in both if q == 0))
    for mechanism, shares in told.items():
        yield {
            "panel": "floating noise",
            "mechanism": mechanism,
            "epsilon": epsilon,
            "draws": 2 * draws,
            "share": math.fsum(shares) / 2,
        }


def _sampler_rows(draws: int, seed: int) -> Iterator[dict[str, Any]]:
    from scipy.special import chdtrc

    for sampler in SAMPLERS:
        source = int(named_generator(seed, f"base2/sampler/{sampler}").integers(2**63))
        laplace = Base2Laplace(Eta(3, 2), -8, 8, 1, sampler=sampler, insecure_seed=source)
        law = laplace.probabilities(2)
        drawn = laplace.mechanism.releases(laplace.utilities(2), draws)
        counts = np.bincount(drawn, minlength=len(law))
        expected = np.array([float(p) for p in law]) * draws
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        for outcome, p, count in zip(laplace.outcomes, law, counts, strict=True):
            yield {
                "panel": "samplers",
                "mechanism": sampler,
                "outcome": str(outcome),
                "probability": float(p),
                "frequency": int(count) / draws,
                "draws": draws,
                "epsilon": laplace.epsilon,
                "chi_square_p": float(chdtrc(len(law) - 1, chi_square)),
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


EXAMPLE = "base-2 exponential"


def _attack_claims(rows: Sequence[Mapping[str, Any]], attacks: Mapping[str, Attack]) -> Iterator[Value]:
    keyed = {tuple(row.get(name) for name in ("panel", "mechanism", "database", "outcome")): row for row in rows}
    zero, truncated = attacks["zero"], attacks["truncated"]
    x = float(zero.utilities[WITHOUT][0])
    yield Value(EXAMPLE, "last utility with a positive naive weight, ε = 0.5", "base2/zero/x", x)
    light = float(truncated.utilities[WITH][1])
    yield Value(EXAMPLE, "first utility whose naive weight is lost in the sum, ε = 30", "base2/truncated/x", light)
    for name in ("zero", "swapped", "truncated"):
        attack = attacks[name]
        hidden = keyed[attack.name, NAIVE, WITH, "any other"]
        never = "never produced" if hidden["probability"] == 0 and hidden["frequency"] == 0 else "produced"
        yield Value(EXAMPLE, f"naive, {attack.name}: outputs other than o1 with Alice", f"base2/{name}/never", never)
        ours = keyed[attack.name, BASE2, WITH, "any other"]
        holds = ours["probability"] > 0 and ours["loss_nats"] <= ours["epsilon"]
        yield Value(EXAMPLE, f"base-2, {attack.name}", f"base2/{name}/private", "private" if holds else "not private")
    for name, key in (("zero", f"base2/zero/advantage/{len(zero.utilities[WITH])}"), ("swapped", "base2/swapped/told")):
        quantity = f"naive, {attacks[name].name}: distinguishing probability"
        yield Value(EXAMPLE, quantity, key, keyed[attacks[name].name, NAIVE, WITH, "watched"]["total_variation"])
    certainty = keyed[zero.name, NAIVE, WITH, "watched"]["certainty"]
    quantity = "naive, zero rounding: probability that Alice is absent after an output other than o1"
    yield Value(EXAMPLE, quantity, "base2/zero/certainty", certainty)
    half = keyed[truncated.name, NAIVE, WITHOUT, "watched"]["probability"]
    yield Value(EXAMPLE, "naive, truncated addition: P(o1) without Alice", "base2/truncated/half", f"{half:.3f}")
    heavy, near = truncated.utilities[WITHOUT][:2]
    half = round(1 + math.exp(truncated.epsilon / 2 * float(near - heavy)))
    quantity = "outcomes at which the probability of o1 without Alice is nearest to one half"
    yield Value(EXAMPLE, quantity, "base2/truncated/half/outcomes", str(half))
    # the demonstration numbers its outcomes 1, …, k, and 0, …, k − 1 with 1 the heavy one
    numbers = {
        "zero": range(1, len(zero.utilities[WITH]) + 1),
        "truncated": [1, 0, *range(2, len(truncated.utilities[WITH]))],
    }
    for name, labels in numbers.items():
        for database, law in laws(attacks[name], NAIVE).items():
            mean = math.fsum(p * label for p, label in zip(law, labels, strict=True))
            quantity = f"naive, {attacks[name].name}: mean output {database}"
            yield Value(EXAMPLE, quantity, f"base2/{name}/mean/{database.split()[0]}", mean)
    scale = 1 / (2 * math.log(2))
    yield Value(EXAMPLE, "scale Δ/ε of Laplace noise for Δ = 1, ε = 2 ln 2", "base2/noise/scale", f"{scale:.4f}")
    # at η = 1 the nearest double, as printed; Eta.loss would round up
    yield Value(EXAMPLE, "ε of η = 1", "base2/epsilon", 2 * math.log(2) * Eta(1, 1, 1).value)


def _loss_claims(rows: Sequence[Mapping[str, Any]]) -> Iterator[Value]:
    for sensitivity, name in ((1.0, "integer"), (0.5, "half")):
        losses = [row for row in rows if row["panel"] == "loss" and row["sensitivity"] == sensitivity]
        worst = max(losses, key=lambda row: float(row["loss_bits"] / row["published_bits"]))
        computed = "holds"
        if worst["loss_bits"] > worst["published_bits"]:
            computed = f"{worst['loss_bits']:.3f} > {worst['published_bits']:g} bits with {worst['outcomes']} outcomes"
        yield Value(EXAMPLE, f"loss at most 2αη, α = {sensitivity:g}", f"base2/loss/{name}", computed)


def _rounding_claims(rows: Sequence[Mapping[str, Any]]) -> Iterator[Value]:
    rounding = [row for row in rows if row["panel"] == "rounding"]
    far: dict[str, dict[float, float]] = {name: {} for name in ("width", "bound", "error", "outside")}
    for row in rounding:
        far[row["mechanism"]][row["granularity"]] = row["share"]
    for name in ("width", "bound"):
        for granularity, share in far[name].items():
            quantity = f"{'width of the bounds on' if name == 'width' else 'bound of the error of'} the law"
            key = f"base2/rounding/{name}/{granularity:g}"
            yield Value(EXAMPLE, f"{quantity} with utilities rounded at random, γ = {granularity:g}", key, share)
    ordered = [error for _, error in sorted(far["error"].items())]
    if len(ordered) > 1:
        falls = all(fine < coarse for fine, coarse in pairwise(ordered))
        quantity = "largest error of a probability through rounding, as the grid gets finer"
        yield Value(EXAMPLE, quantity, "base2/rounding/error", "falls" if falls else "does not fall")
    holds = max(far["outside"].values()) <= 1e-12  # the law is summed in doubles
    yield Value(EXAMPLE, "bounds on the law hold", "base2/rounding/holds", "holds" if holds else "fails")


def _noise_claims(rows: Sequence[Mapping[str, Any]]) -> Iterator[Value]:
    for mechanism, key in ((NAIVE, "naive"), (BASE2, "base2"), (DISCRETE, "discrete")):
        shares = [row["share"] for row in rows if row["panel"] == "floating noise" and row["mechanism"] == mechanism]
        quantity = f"{mechanism} Laplace noise: outputs possible for one of two neighbouring values alone"
        told = f"{min(shares):.0%} to {max(shares):.0%}" if max(shares) else "none"
        yield Value(EXAMPLE, quantity, f"base2/noise/{key}/share", told)
        yield Value(EXAMPLE, f"{mechanism} Laplace noise", f"base2/noise/{key}", "gaps" if max(shares) else "no gap")


def _cost_claims(rows: Sequence[Mapping[str, Any]]) -> Iterator[Value]:
    def series(panel: str, mechanism: str) -> list[Mapping[str, Any]]:
        return [row for row in rows if row["panel"] == panel and row["mechanism"] == mechanism]

    computed, worst = series("precision", "ComputePrecision"), series("precision", "theoretical")
    for row, most in zip(computed, worst, strict=True):
        quantity = f"bits of ComputePrecision over theoretical bits, n = {row['outcomes']}"
        yield Value(EXAMPLE, quantity, f"base2/precision/{row['outcomes']}", f"{row['bits']} of {most['bits']}")
    edge = float(needed_precision(ETA, 1024, 2))
    yield Value(EXAMPLE, "bits needed by two utilities of 0 to 1024, η = 1", "base2/precision/edge", edge)
    fewer = all(row["bits"] <= most["bits"] for row, most in zip(computed, worst, strict=True))
    quantity = "ComputePrecision needs no more bits than the theoretical precision"
    yield Value(EXAMPLE, quantity, "base2/precision", "holds" if fewer else "fails")
    for mechanism in (STORED, *SAMPLERS):
        ratio = max(row["expected_bits"] / row["precision_bits"] for row in series("random bits", mechanism))
        quantity = f"expected random bits of a release at most 2p, {mechanism}"
        yield Value(EXAMPLE, quantity, f"base2/bits/{mechanism}", "holds" if ratio <= 2 else f"{ratio:.3g}·p")
    for mechanism in (STORED, ENCLOSED):
        growth = growth_exponent(series("growth, range", mechanism), "utility_range", "bits")
        if growth is None:
            continue
        named = "linear" if abs(growth - 1) < 0.05 else f"range^{growth:.2f}"
        yield Value(EXAMPLE, f"growth of all sums with the range, {mechanism}", f"base2/range/{mechanism}", named)
    for row in series("growth, outcomes", ENCLOSED):
        each = row["bits"] / (2 * row["outcomes"])
        quantity = f"bits of each end of an enclosed sum, {row['outcomes']} outcomes"
        yield Value(EXAMPLE, quantity, f"base2/outcomes/{row['outcomes']}", f"{each:.0f} bits a sum")
    finest = max(row["outcomes"] for row in rows if row["panel"] == "grid")
    quantity = "work of a Laplace-like release on the finest grid, beside floating-point Laplace noise"
    yield Value(EXAMPLE, quantity, "base2/laplace/work", f"{finest} weights instead of 1 logarithm")
