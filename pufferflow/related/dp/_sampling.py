"""Exact sampling from random bits: every law here is the one it is named after, not a float approximation.

Bits come from the operating system. The seeded twin is for experiments and tests; whoever knows the seed
knows the noise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import check_whole
from pufferflow._randomness import GeneratorRandomness, SystemRandomness
from pufferflow._randomness import Randomness as Randomness
from pufferflow._randomness import integer_below as integer_below

WORD = 64


def randomness(insecure_seed: int | None = None) -> Randomness:
    """Return the system's source, or the seeded twin where a seed is given by name."""
    if insecure_seed is None:
        return SystemRandomness()
    return GeneratorRandomness(np.random.default_rng(check_whole(insecure_seed, "insecure_seed", 0, None)))


def words(source: Randomness, count: int) -> NDArray[np.uint64]:
    """``count`` uniform 64-bit words."""
    return np.frombuffer(source.take(8 * count), dtype="<u8").astype(np.uint64)


def integers_below(source: Randomness, bound: int, count: int) -> NDArray[np.int64]:
    """``count`` uniform integers in [0, bound), bound at most 2^63, by rejection."""
    mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
    parts: list[NDArray[np.uint64]] = []
    missing = count
    while missing > 0:
        # at least every second word is accepted
        drawn = words(source, missing) & mask
        accepted = drawn[drawn < np.uint64(bound)]
        parts.append(accepted)
        missing -= accepted.size
    # each part was asked for no more than was missing, so none is cut off
    return np.concatenate([np.empty(0, np.uint64), *parts]).astype(np.int64)


def bernoulli(source: Randomness, probability: Fraction, count: int) -> NDArray[np.bool_]:
    """``count`` independent events of a rational probability.

    A word decides unless it equals the first 64 bits of the probability; then the bits after them do.
    """
    if probability >= 1:
        return np.ones(count, bool)
    leading, rest = divmod(probability.numerator << WORD, probability.denominator)
    drawn = words(source, count)
    events: NDArray[Any] = drawn < np.uint64(leading)
    if rest:
        for i in np.flatnonzero(drawn == np.uint64(leading)):
            events[i] = bernoulli(source, Fraction(rest, probability.denominator), 1)[0]
    return events


def bernoulli_exp(source: Randomness, exponent: Fraction) -> bool:
    """Event of probability exp(−exponent), exponent ≥ 0 rational.

    Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020), Algorithm 1:
    for x ≤ 1 the first failure among events of probability x, x/2, x/3, ... comes at an odd place with
    probability exp(−x); exp(−n − x) is a product.
    """
    whole, rest = divmod(exponent, 1)
    for _ in range(whole):
        if not _bernoulli_exp_below_one(source, Fraction(1)):
            return False
    return _bernoulli_exp_below_one(source, rest)


def _bernoulli_exp_below_one(source: Randomness, exponent: Fraction) -> bool:
    place = 1
    while exponent and bernoulli(source, exponent / place, 1)[0]:
        place += 1
    return place % 2 == 1


def binomial(source: Randomness, trials: int, probability: Fraction) -> int:
    """Binomial(trials, probability) count, exact, in time of the order of its standard deviation.

    Inversion outwards from the mode: the first outcome whose cumulative probability exceeds a uniform number.
    The probabilities are balls of interval arithmetic and the uniform number an interval of its leading bits;
    where they cannot be told apart both get more bits. So no rounding enters the law, and nothing of size
    ``trials`` is ever made.
    """
    from flint import arb, ctx

    if trials == 0 or probability == 0:
        return 0
    if probability == 1:
        return trials
    up, down = probability.numerator, probability.denominator - probability.numerator
    mode = (trials + 1) * up // (up + down)
    precision, bits, uniform = 2 * WORD + 2 * trials.bit_length(), 0, 0
    while True:
        extra = precision - WORD - bits
        uniform = (uniform << extra) | integer_below(source, 1 << extra)
        bits += extra
        with ctx.workprec(precision):
            low, high = arb(uniform) / (arb(2) ** bits), arb(uniform + 1) / (arb(2) ** bits)
            log_mode = arb(trials + 1).lgamma() - arb(mode + 1).lgamma() - arb(trials - mode + 1).lgamma()
            log_mode += mode * (arb(up) / (up + down)).log() + (trials - mode) * (arb(down) / (up + down)).log()
            right = left = log_mode.exp()
            above, below = mode, mode
            total = right
            outcome = mode
            while True:
                if high <= total or (above == trials and below == 0):
                    return outcome
                if not low >= total:
                    break
                # the side whose turn it is; a side that is used up leaves its turns to the other
                if above < trials and (above - mode <= mode - below or below == 0):
                    right = right * ((trials - above) * up) / ((above + 1) * down)
                    above += 1
                    outcome, total = above, total + right
                else:
                    left = left * (below * down) / ((trials - below + 1) * up)
                    below -= 1
                    outcome, total = below, total + left
        precision *= 2
