"""What exactness costs, counted: bits of precision, random bits and bits of all sums. The counts never change.

Settings are those of the author's benchmarks (cilvento/b2_exponential_mechanism, python/timing_tests.py): η = 1,
n outcomes of utilities 0, 1, …, n − 1; or 1000 of utilities 0 and 999 at the far end of a range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from pufferflow.related.dp._cumulative import CumulativeWeights
from pufferflow.related.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta, Sampler, Seeded
from pufferflow.related.dp.precision import compute_precision, expected_bits, needed_precision, significant_bits
from pufferflow.studies.base2_exponential.attacks import BASE2
from pufferflow.studies.base2_exponential.stored import stored_draw, stored_sums
from pufferflow.studies.tidy import named_generator

ETA = Eta(1, 1, 1)
SAMPLERS: tuple[Sampler, ...] = ("rejection", "bitwise")
STORED, ENCLOSED = "all exact sums", "enclosed sums"
STORED_BITS = 10**8
"""Storing all exact sums is tried only where they take no more bits than this."""


def far_utilities(span: int) -> list[int]:
    """Return 0 and 999 utilities at the far end of the range from 0 to ``span``."""
    return [0, *range(span - 998, span + 1)]


def worst_case_precision(eta: Eta, utility_min: int, utility_max: int, outcomes: int) -> int:
    """Theoretical precision of the author's Python: (|u_max| + |u_min|)·z·(y + ⌈log2 x⌉) + n, factors at least 1."""
    bits_of_x = max(1, (eta.x - 1).bit_length())
    return (max(1, abs(utility_max)) + max(1, abs(utility_min))) * eta.z * (eta.y + bits_of_x) + outcomes


def precision_rows(sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Bits that utilities 0, …, n − 1 use, that any utilities up to n can use, and that are set aside for them."""
    for n in sizes:
        # 2^(n−1) + … + 2^i, the sums in units of 2^−(n−1)
        sums = accumulate(1 << n - 1 - u for u in range(n))
        for series, bits in (
            ("these utilities", max(significant_bits(Fraction(c)) for c in sums)),
            ("any utilities", needed_precision(ETA, n, n)),
            ("ComputePrecision", compute_precision(ETA, n, n)),
            ("theoretical", worst_case_precision(ETA, 0, n, n)),
        ):
            yield {"panel": "precision", "mechanism": series, "outcomes": n, "bits": bits}


def random_bit_rows(sizes: Sequence[int], draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Random bits a release takes, on average over ``draws`` and as exactly expected, beside the precision p."""
    for n in sizes:
        stream = int(named_generator(seed, f"base2/bits/{n}").integers(2**63))
        for shape, utilities in (("0, …, n − 1", list(range(n))), ("all equal", [0] * n)):
            mechanisms = {s: Base2Exponential(ETA, 0, n, n, sampler=s, insecure_seed=stream) for s in SAMPLERS}
            sums = stored_sums(mechanisms["rejection"], utilities)
            source = Seeded(stream)
            for _ in range(draws):
                stored_draw(sums, source)
            for mechanism in mechanisms.values():
                mechanism.releases(utilities, draws)
            at_once = expected_bits(sums, bitwise=False)
            width = (sums[-1] - 1).bit_length()
            taken = {STORED: source.taken} | {name: used.random_bits for name, used in mechanisms.items()}
            expected = {
                STORED: at_once,
                # as often, but so many bits that the exact sum is hardly ever needed
                "rejection": at_once / width * _enclosed(mechanisms["rejection"], utilities).width,
                "bitwise": expected_bits(sums, bitwise=True),
            }
            for sampler, total in taken.items():
                yield {
                    "panel": "random bits",
                    "mechanism": sampler,
                    "outcome": shape,
                    "outcomes": n,
                    "draws": draws,
                    "precision_bits": needed_precision(ETA, n, n),
                    "bits": total / draws,
                    "expected_bits": float(expected[sampler]),
                }


def growth_rows(sizes: Sequence[int], spans: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Bits of all cumulative weights: stored exactly, and enclosed as the mechanism does it."""
    jobs = [("outcomes", list(range(n))) for n in sizes] + [("range", far_utilities(span)) for span in spans]
    for panel, utilities in jobs:
        size, span = len(utilities), utilities[-1]
        row = {"panel": f"growth, {panel}", "outcomes": size, "utility_range": span}
        if size * span <= STORED_BITS:
            sums = stored_sums(Base2Exponential(ETA, 0, span, size), utilities)
            yield row | {"mechanism": STORED, "bits": sum(c.bit_length() for c in sums)}
        enclosed = _enclosed(Base2Exponential(ETA, 0, span, size), utilities)
        yield row | {"mechanism": ENCLOSED, "bits": enclosed.stored_bits}


def _enclosed(mechanism: Base2Exponential, utilities: Sequence[int]) -> CumulativeWeights:
    """Cumulative weights as the mechanism holds them."""
    best = min(utilities)
    return CumulativeWeights(*mechanism.eta.odd, [u - best for u in utilities], mechanism.enclosure_bits)


def laplace_grid(granularity: float, sampler: Sampler = "rejection") -> Base2Laplace:
    """Laplace-like release on the grid from −10 to 10 of the author's benchmark."""
    return Base2Laplace(ETA, -10, 10, granularity, sampler=sampler)


def grid_rows(granularities: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Outcomes of a Laplace-like release, each of which gets a weight."""
    for granularity in granularities:
        yield {"panel": "grid", "mechanism": BASE2, "outcomes": len(laplace_grid(granularity).outcomes)}


def growth_exponent(rows: Sequence[Mapping[str, Any]], x: str, y: str) -> float | None:
    """Slope of log y over log x from the least x to the largest: 1 is linear. None if there is but one x."""
    ordered = sorted(rows, key=lambda row: float(row[x]))
    if not rows or ordered[0][x] == ordered[-1][x]:
        return None
    return math.log(ordered[-1][y] / ordered[0][y]) / math.log(ordered[-1][x] / ordered[0][x])
