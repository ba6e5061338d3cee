"""The exponential mechanism in doubles and in exact base-2 arithmetic: attacks, loss and costs.

Attacks and settings are those of Ilvento, "Implementing the Exponential Mechanism with Base-2
Differential Privacy" (CCS 2020), and of its code, cilvento/b2_exponential_mechanism.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, chain, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from flint import fmpz_poly

from pufferflow._util.types import Floats
from pufferflow.dp.base2 import Base2Exponential, Eta
from reproduction.related import Found, Value
from reproduction.tidy import named_generator

NAIVE, BASE2 = "naive", "base-2"
WITH, WITHOUT = "with Alice", "without Alice"
STORED, ENCLOSED = "all exact sums", "enclosed sums"
ETA, ROUNDED_ETA = Eta(1, 1), Eta(1, 2)
"""η of the author's benchmarks and of the comparison of accuracies: weights are 4^−u."""
LOSS_OUTCOMES = [2**power for power in range(1, 10)]
RANGE_OUTCOMES = 1000
"""Numbers of outcomes for exact losses, and for sums as the range grows."""
BITS = 53
"""Bits of a uniform double."""
EXAMPLE = "base-2 exponential"


def measure(settings: Mapping[str, Any], seed: int) -> Iterator[Found]:
    """Yield rows of the curves (schema ``related``), and the values that the source states.

    ``settings`` is ``related.base2_exponential`` of the configuration; ``seed`` is for the noise in
    doubles. Losses are in nats or bits, as their columns state.
    """
    return chain(
        _attacks(),
        _noise(settings["noise_epsilons"], settings["noise_draws"], seed),
        _losses(),
        _rounding(settings["rounding_granularities"]),
        _bits(settings["precision_outcomes"]),
        _ranges(settings["ranges"]),
    )


class Attack(NamedTuple):
    """Two neighbouring databases; ``y`` bits of η come close to ``epsilon``."""

    name: str
    epsilon: float
    utilities: Mapping[str, Sequence[float]]
    watched: int = 0  # index of the outcome that the attacker observes, the source's o1
    y: int = 16

    def exact(self) -> Base2Exponential:
        """Return the exact mechanism of at most this ε, with the smallest public range."""
        values = [u for utilities in self.utilities.values() for u in utilities]
        eta, outcomes = Eta.for_epsilon(self.epsilon, y=self.y), len(self.utilities[WITH])
        return Base2Exponential(eta, math.floor(min(values)), math.ceil(max(values)), outcomes)


def all_attacks(outcomes: int = 100) -> dict[str, Attack]:
    """Return the attacks of the article and of its demonstration, by short names.

    Zero rounding: with Alice all weights but the first underflow to 0; with two outcomes, each
    database has one possible output. Truncated addition: 999 positive weights vanish when added to
    a heavy one, but not if they are added first, nor without Alice, with utilities 1 closer. They
    vanish at 2^−53 of the heavy one, so the attack needs 2^53·e^−ε outcomes: with few, a large ε.
    """
    x = next(u for u in range(1, 10_000) if np.exp(-0.25 * (u + 1)) == 0)
    heavy, weight = -0.5, np.exp(15 * 0.5)
    light = next(u for u in range(10_000) if weight + np.exp(-15.0 * u) == weight)
    zero = {WITH: [x, *[x + 1] * (outcomes - 1)], WITHOUT: [x] * outcomes}
    swapped = {WITH: [x, x + 1], WITHOUT: [x + 1, x]}
    first = {WITH: [heavy, *[light] * 999], WITHOUT: [heavy + 1, *[light - 1] * 999]}
    last = {database: utilities[::-1] for database, utilities in first.items()}
    return {
        "zero": Attack("zero rounding", 0.5, zero),
        "swapped": Attack("zero rounding, two outcomes", 0.5, swapped),
        "truncated": Attack("truncated addition", 30.0, first, y=40),
        "last": Attack("truncated addition, heavy outcome last", 30.0, last, 999, 40),
    }


def distributions(attack: Attack, mechanism: str) -> dict[str, list[Any]]:
    """Return the distribution of the output by database: exact fractions, or doubles if naive.

    Naive: weights e^(−ε·u/2) in doubles, their cumulative sums from left to right.
    """
    if mechanism == BASE2:
        return {name: attack.exact().probabilities(of) for name, of in attack.utilities.items()}
    sums = {
        name: np.cumsum(np.exp(-(attack.epsilon / 2) * np.array(of, float)))
        for name, of in attack.utilities.items()
    }
    return {name: list(np.diff(of / of[-1], prepend=0.0)) for name, of in sums.items()}


def privacy_loss(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Return the largest |log ratio| in nats; ∞ if an outcome is possible under one alone."""

    def log(value: Any) -> float:
        if isinstance(value, Fraction):  # of any size
            return math.log(value.numerator) - math.log(value.denominator)
        return math.log(value)

    pairs = [(p, q) for p, q in zip(first, second, strict=True) if p or q]
    possible_under_both = all(p and q for p, q in pairs)
    return max(abs(log(p) - log(q)) for p, q in pairs) if possible_under_both else math.inf


def _attacks() -> Iterator[Found]:
    attacks = all_attacks()
    x, light = attacks["zero"].utilities[WITHOUT][0], attacks["truncated"].utilities[WITH][1]
    yield Value(EXAMPLE, "last utility with a positive naive weight", "base2/zero/x", x)
    yield Value(EXAMPLE, "first utility with a lost weight", "base2/truncated/x", light)
    for (short, attack), mechanism in product(attacks.items(), (NAIVE, BASE2)):
        exact = distributions(attack, mechanism)
        loss, pairs = privacy_loss(*exact.values()), zip(*exact.values(), strict=True)
        distance = float(sum(abs(p - q) for p, q in pairs)) / 2
        epsilon = attack.epsilon if mechanism == NAIVE else attack.exact().epsilon
        summary = {"panel": attack.name, "mechanism": mechanism, "epsilon": epsilon}
        summary |= {"total_variation": distance, "loss_nats": loss}
        others = {}
        for database, of in exact.items():
            # summed, not 1 minus that of the watched outcome: it may be too small for that
            others[database] = math.fsum(float(p) for i, p in enumerate(of) if i != attack.watched)
            shown = {"database": database, "outcome": "any other"}
            yield summary | shown | {"probability": others[database]}
        if short == "last":
            continue  # the source has no value
        example, key, k = f"{EXAMPLE}, {attack.name}", f"base2/{short}", len(exact[WITH])
        if mechanism == BASE2:
            answer = "private" if others[WITH] and loss <= epsilon else "not private"
            yield Value(example, "base-2", f"{key}/private", answer)
            continue
        never = "produced" if others[WITH] else "never produced"
        yield Value(example, "naive: outputs other than o1 with Alice", f"{key}/never", never)
        yield Value(example, "naive: distinguishing probability", f"{key}/advantage/{k}", distance)
        # the demonstration numbers its outcomes 1 … k, and 0 … k − 1 with 1 the heavy one
        labels = (1, 0, *range(2, k)) if short == "truncated" else range(1, k + 1)
        for database, of in exact.items():
            mean = math.fsum(p * label for p, label in zip(of, labels, strict=True))
            means = f"{key}/mean/{database.split()[0]}/{k}"
            yield Value(example, f"naive: mean output {database}", means, mean)
        if short == "truncated":
            half = f"{exact[WITHOUT][attack.watched]:.3f}"
            yield Value(example, "naive: P(o1) without Alice", f"{key}/half", half)


def naive_laplace(value: float, scale: float, sign: int, uniform: int, bits: int = BITS) -> float:
    """Return ``value`` with Laplace noise by inversion of a uniform integer in [1, 2^bits]."""
    return value + sign * (scale * -math.log(uniform / 2**bits))


def possible(output: float, value: float, scale: float, bits: int = BITS) -> bool:
    """Return whether :func:`naive_laplace` can give ``output``, trying all candidate integers.

    An integer k gives about value ± scale·ln(2^bits/k). The sum, the product, the logarithm and the
    estimate of k are each rounded by at most 2^−52 of their size; four times that is searched.
    """
    noise = output - value
    near = 2**bits * math.exp(-abs(noise) / scale)
    roundings = 2**-50 * (abs(output) + abs(value) + abs(noise) + scale)
    margin = near * math.expm1(roundings / scale) + 2
    signs = (-1, 1) if abs(noise) <= roundings else (1 if noise > 0 else -1,)
    first, last = max(1, math.floor(near - margin)), min(2**bits, math.ceil(near + margin))
    tried = product(range(first, last + 1), signs)
    return any(naive_laplace(value, scale, sign, k, bits) == output for k, sign in tried)


def _noise(epsilons: Sequence[float], draws: int, seed: int) -> Iterator[Found]:
    """Yield the share of releases of 0 and 1 that are impossible for the other (Mironov 2012)."""
    shares = []
    for epsilon in epsilons:
        rng, scale, share = named_generator(seed, f"base2/noise/{epsilon:g}"), 1 / epsilon, 0.0
        for value, other in ((0, 1), (1, 0)):
            signs = rng.choice([-1, 1], draws).tolist()
            uniform = rng.integers(1, 2**BITS, draws, endpoint=True).tolist()
            drawn = (naive_laplace(value, scale, *of) for of in zip(signs, uniform, strict=True))
            share += sum(not possible(x, other, scale) for x in drawn) / draws / 2
        shares.append(share)
        shown = {"panel": "floating noise", "mechanism": NAIVE, "epsilon": epsilon}
        yield shown | {"draws": 2 * draws, "share": share}
    gaps = "gaps" if max(shares) else "no gap"
    yield Value(EXAMPLE, "naive Laplace noise", "base2/noise/naive", gaps)
    scale = 1 / (2 * math.log(2))
    yield Value(EXAMPLE, "scale Δ/ε for Δ = 1, ε = 2 ln 2", "base2/noise/scale", f"{scale:.4f}")


def rounding_loss(eta: Eta, outcomes: int, sensitivity: Fraction) -> float:
    """Return the exact loss, in bits, on bad neighbours with utilities rounded at random.

    The first outcome has utility 1 against 1 − α, all others 1 − α against 1, α = ``sensitivity``
    in (0, 1].
    """
    q, alpha, rest = eta.base, Fraction(sensitivity), outcomes - 1
    chances = (math.comb(rest, k) * (1 - alpha) ** k * alpha ** (rest - k) for k in range(outcomes))
    worse = sum((p * q / (q + k * q + rest - k) for k, p in enumerate(chances)), Fraction(0))
    better = (1 - alpha) / outcomes + alpha / (1 + rest * q)
    return privacy_loss([better], [worse]) / math.log(2)


def _losses() -> Iterator[Found]:
    nearest = 2 * math.log(2) * -math.log2(ETA.base)  # as printed; Eta.loss would round up
    yield Value(EXAMPLE, "ε of η = 1", "base2/epsilon", f"ε = {nearest!r}")
    bits = 2  # of η
    for alpha, published in ((1.0, 2 * bits), (0.5, bits)):  # 2αη
        row = {"panel": "loss", "mechanism": BASE2, "sensitivity": alpha}
        row |= {"published_bits": published, "proved_bits": 2 * math.ceil(alpha) * bits}
        losses = {n: rounding_loss(Eta(1, bits), n, Fraction(alpha)) for n in LOSS_OUTCOMES}
        yield from (row | {"outcomes": n, "loss_bits": loss} for n, loss in losses.items())
        n, loss = max(losses.items(), key=lambda item: item[1])
        worse = f"{loss:.3f} > {published} bits with {n} outcomes"
        answer = "holds" if loss <= published else worse
        yield Value(EXAMPLE, f"loss at most 2αη, α = {alpha:g}", f"base2/loss/{alpha:g}", answer)


def _chances(eta: Eta, utilities: Sequence[Fraction]) -> list[dict[Fraction, Fraction]]:
    """Return the probabilities of the weights 2^(−ηu) of each utility u after random rounding."""
    return [  # of an integer both are the same weight, of probability 1
        {eta.base ** math.ceil(u): u % 1, eta.base ** math.floor(u): 1 - u % 1} for u in utilities
    ]


def rounding_bounds(eta: Eta, utilities: Sequence[Fraction]) -> tuple[list[Fraction], Fraction]:
    """Return the author's lower bounds of the probabilities, and the distance to upper bounds.

    w/(w + s) is convex in the sum s of the other weights, so its mean is at least its value at the
    mean of s (Jensen); no probability exceeds its bound by more than 1 minus the sum of all bounds.
    """
    weights = _chances(eta, utilities)
    means = [sum(w * p for w, p in of.items()) for of in weights]
    lower, total = [], sum(means)
    for of, mean in zip(weights, means, strict=True):
        lower.append(Fraction(sum(p * w / (w + total - mean) for w, p in of.items())))
    return lower, Fraction(1 - sum(lower))


def unrounded_distribution(eta: Eta, utilities: Sequence[Fraction]) -> Floats:
    """Return Pr ∝ 2^(−ηu) of the utilities as they are, in doubles."""
    weights = np.exp2(math.log2(eta.base) * np.array(utilities, float))
    return np.asarray(weights / weights.sum())


def rounded_distribution(eta: Eta, utilities: Sequence[Fraction]) -> Floats:
    """Return the distribution with utilities rounded at random, exact sums added up in doubles.

    In units of the smallest weight's last bit all weights are integers. Their sum has a
    generating polynomial, one factor per outcome; divided by the own factor it is that of the
    others. The time grows with outcomes times sum, not with the 2^n ways to round.
    """
    weights = _chances(eta, utilities)
    unit = max(w.denominator for of in weights for w in of)
    whole = math.lcm(*(p.denominator for of in weights for p in of.values()))
    ways = [{int(w * unit): int(p * whole) for w, p in of.items()} for of in weights]
    factors = [fmpz_poly([of.get(power, 0) for power in range(max(of) + 1)]) for of in ways]
    every, every_way, found = math.prod(factors), whole ** (len(ways) - 1), []
    for own, factor in zip(ways, factors, strict=True):
        others = [int(c) / every_way for c in (every // factor).coeffs()]
        sums = np.arange(len(others))
        found.append(
            math.fsum(p / whole * math.fsum(others * (w / (w + sums))) for w, p in own.items())
        )
    return np.array(found)


def _rounding(granularities: Sequence[float]) -> Iterator[Found]:
    """Yield a Laplace-like release of 0: bounds on outcomes to ±10, the distribution to ±3."""
    errors, inside = [], True
    for granularity in sorted(granularities, reverse=True):
        step = Fraction(granularity)
        steps = (range(-int(o / step), int(o / step) + 1) for o in (10, 3))
        far, near = ([abs(i) * step for i in of] for of in steps)
        bounds, width = rounding_bounds(ROUNDED_ETA, far)
        lower, plain = np.array(bounds, float), unrounded_distribution(ROUNDED_ETA, far)
        bound = max(abs(lower - plain).max(), abs(lower + float(width) - plain).max())
        rounded = rounded_distribution(ROUNDED_ETA, near)
        bounds, between = rounding_bounds(ROUNDED_ETA, near)
        above = rounded - np.array(bounds, float)  # summed in doubles
        inside &= bool(above.min() >= -1e-12 and above.max() <= float(between) + 1e-12)
        errors.append(abs(rounded - unrounded_distribution(ROUNDED_ETA, near)).max())
        for name, share in (("width", width), ("bound", bound), ("error", errors[-1])):
            shown = {"panel": "rounding", "mechanism": name, "granularity": granularity}
            yield shown | {"share": float(share)}
            if name != "error":
                quantity = f"rounding at random, {name}, γ = {granularity:g}"
                key = f"base2/rounding/{name}/{granularity:g}"
                yield Value(EXAMPLE, quantity, key, float(share))
    answer = "falls" if errors == sorted(set(errors), reverse=True) else "does not fall"
    yield Value(EXAMPLE, "largest error as γ falls", "base2/rounding/error", answer)
    yield Value(EXAMPLE, "rounding: bounds", "base2/rounding/holds", "holds" if inside else "fails")


def needed_precision(eta: Eta, span: int, outcomes: int) -> int:
    """Return the fewest bits for exact sums of up to ``outcomes`` weights 2^(−ηk), k ≤ span.

    With 2^−η = m / 2^s, m odd, no such sum has a 1 beyond bit s·span, and none with a weight
    below 1 reaches ``outcomes``; outcomes − 1 weights of 1 and one of 2^(−η·span) need all bits.
    """
    numerator, shift = eta.odd
    if outcomes == 1:
        return int(numerator**span).bit_length()
    return shift * span + (outcomes - 1).bit_length()


def compute_precision(eta: Eta, span: int, outcomes: int, start: int = 16) -> int:
    """Return the source's ComputePrecision: ``start`` bits, doubled until its test sums are exact.

    They are outcomes − 1 weights of 1, alone and with one of 2^(−ηk), and need as many as any sum.
    """
    return start << (-(-needed_precision(eta, span, outcomes) // start) - 1).bit_length()


def expected_bits(sums: Sequence[int], *, bitwise: bool) -> Fraction:
    """Return the expected number of random bits of a draw by rejection from exact sums.

    An attempt draws s uniform on [0, 2^e), 2^e the first power of two not below the total t, and
    succeeds if s < t: 2^e / t attempts are expected. At once, s takes e bits. Bit by bit, after j
    bits s lies in one of 2^j equal cells, and a further bit is needed if a sum lies strictly inside
    the cell. By Wald's identity the product of both expectations is exact. ``sums`` are increasing
    integers.
    """
    e, units = (sums[-1] - 1).bit_length(), 0  # of 2^-e
    for before, here in pairwise((0, *sums)):
        # A sum with z trailing zeros lies inside its cell for j < e − z. It counts unless the sum
        # before lies inside the same cell, that is, if their leading bits agree.
        inside, last = (e + 1 - (end & -end).bit_length() for end in (here, before))
        shared = min(e - (before ^ here).bit_length() + 1, last) if before else 0
        if inside > shared:
            units += (2 << e - shared) - (2 << e - inside)
    return (Fraction(units, 1 << e) if bitwise else e) * Fraction(1 << e, sums[-1])


def _bits(sizes: Sequence[int]) -> Iterator[Found]:
    """Yield reserved bits for sums of n weights, and expected random bits of a release."""
    few = True
    for n in sizes:
        needed = needed_precision(ETA, n, n)
        # (|u_max| + |u_min|)·z·(y + ⌈log2 x⌉) + n of the author's Python, factors at least 1
        answer = f"{compute_precision(ETA, n, n)} of {2 * (n + 1) + n}"
        yield Value(EXAMPLE, f"bits set aside, of theory, n = {n}", f"base2/precision/{n}", answer)
        for shape, utilities in (("0, …, n − 1", list(range(n))), ("all equal", [0] * n)):
            mechanism = Base2Exponential(ETA, 0, n, n)
            sums = list(accumulate(mechanism.weights(utilities)))
            # as in the source: s of p bits at once, and again while it is not below the total
            at_once = expected_bits(sums, bitwise=False)
            attempts = at_once / (sums[-1] - 1).bit_length()
            expected = {
                STORED: at_once,
                # here as often, with enough bits that exact sums are rarely needed
                "rejection": attempts * mechanism.cumulative(utilities).width,
                "bitwise": expected_bits(sums, bitwise=True),
            }
            few &= max(expected[STORED], expected["bitwise"]) <= 2 * needed
            for name, bits in expected.items():
                shown = {"panel": "random bits", "mechanism": name, "outcome": shape, "outcomes": n}
                yield shown | {"expected_bits": float(bits), "precision_bits": needed}
    edge = needed_precision(ETA, 1024, 2)
    yield Value(EXAMPLE, "bits of two utilities of 0 to 1024", "base2/precision/edge", edge)
    yield Value(EXAMPLE, "expected random bits ≤ 2p", "base2/bits", "holds" if few else "fails")


def _ranges(spans: Sequence[int]) -> Iterator[Found]:
    """Yield bits of all cumulative weights, of 0 and utilities at the far end of a range."""
    stored, outcomes = {}, RANGE_OUTCOMES
    for span in spans:
        utilities = [0, *range(span - outcomes + 2, span + 1)]
        mechanism = Base2Exponential(ETA, 0, span, outcomes)
        weights = mechanism.cumulative(utilities)
        bits = {ENCLOSED: sum(end.bit_length() for end in weights.lower + weights.upper)}
        if outcomes * span <= 10**8:  # bits of all exact sums
            stored[span] = sum(c.bit_length() for c in accumulate(mechanism.weights(utilities)))
            bits[STORED] = stored[span]
        for name, count in bits.items():
            shown = {"panel": "growth, range", "mechanism": name, "outcomes": outcomes}
            yield shown | {"utility_range": span, "bits": count}
    if len(stored) > 1:
        growth = np.polyfit(np.log(list(stored)), np.log(list(stored.values())), 1)[0]
        answer = "linear" if abs(growth - 1) < 0.05 else f"range^{growth:.2f}"
        yield Value(EXAMPLE, f"growth with the range, {STORED}", f"base2/range/{STORED}", answer)
