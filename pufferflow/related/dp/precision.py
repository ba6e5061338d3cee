"""Bits and random bits of the base-2 exponential mechanism, counted exactly.

Ilvento fixes the precision of all arithmetic before the data is read: by a formula for the worst case, or by an
algorithm that doubles the precision until test sums are exact ("ComputePrecision"). Here both stand beside the number
that is needed. Utilities are counted from the smallest one, so weights are 2^(−ηk), k = 0, …, ``span``; the law of the
mechanism does not depend on the common factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from pufferflow._checks import check_whole
from pufferflow.errors import ParameterError
from pufferflow.related.dp.base2_exponential import Eta


def significant_bits(number: Fraction) -> int:
    """Bits from the first to the last 1 of a finite binary fraction (0 has none).

    Raises
    ------
    ParameterError
        The binary expansion of ``number`` does not end.
    """
    if number.denominator & (number.denominator - 1):
        raise ParameterError(f"{number} has no finite binary expansion; its denominator must be a power of two")
    numerator = abs(number.numerator)
    return numerator.bit_length() - trailing_zeros(numerator) if numerator else 0


def trailing_zeros(whole: int) -> int:
    """Zeros after the last 1 of a positive integer in binary."""
    return (whole & -whole).bit_length() - 1


def needed_precision(eta: Eta, span: int, outcomes: int) -> int:
    """Fewest bits in which every sum of at most ``outcomes`` weights 2^(−ηk), 0 ≤ k ≤ ``span``, is exact.

    With 2^−η = m / 2^s, m odd, no such sum has a 1 beyond place s·span, and none with a weight below 1 reaches
    ``outcomes``; outcomes − 1 weights of 1 and one of 2^(−η·span) need all the places between.

    Raises
    ------
    ParameterError
        ``span`` is not an integer of at least 0, or ``outcomes`` not one of at least 1.
    """
    span, outcomes = check_whole(span, "span", 0, None), check_whole(outcomes, "outcomes", most=None)
    numerator, shift = eta.odd
    if outcomes == 1:
        return int(numerator**span).bit_length()
    return shift * span + (outcomes - 1).bit_length()


def compute_precision(eta: Eta, span: int, outcomes: int, start: int = 16) -> int:
    """ComputePrecision: the first of ``start``, 2·``start``, 4·``start``, … bits in which all test sums are exact.

    Test sums are outcomes − 1 weights of 1, alone and with one of 2^(−ηk), k = 0, …, ``span``. They need as many bits
    as any sum, so nothing has to be tried: the precision is the first one that is not below :func:`needed_precision`.
    It depends on public arguments alone.

    Raises
    ------
    ParameterError
        As in :func:`needed_precision`, or ``start`` is not an integer of at least 1.
    """
    bits, needed = check_whole(start, "start", most=None), needed_precision(eta, span, outcomes)
    while bits < needed:
        bits *= 2
    return bits


def expected_bits(sums: Sequence[int], *, bitwise: bool) -> Fraction:
    """Expected number of random bits until an outcome is drawn by rejection from exact cumulative weights.

    An attempt draws s uniform on [0, 2^e), 2^e the first power of two not below the total t, and succeeds if s < t:
    2^e / t attempts are expected. Drawn at once, s takes e bits. Drawn bit by bit from the top, it takes as many as
    leave one outcome (or only s ≥ t): after j bits, s lies in one of 2^j equal cells, and a further bit is needed if a
    cumulative weight lies strictly inside that cell. By Wald's identity the product of both expectations is exact.

    Parameters
    ----------
    sums : sequence of n ≥ 1 int
        Cumulative weights, increasing, in units of their last binary place.
    bitwise : bool
        Bit by bit, or at once.

    Returns
    -------
    Fraction
        In bits. At once: e·2^e / t < 2e, which is the O(p) of the source, p = e being the precision.
    """
    total = sums[-1]
    length = (total - 1).bit_length()
    attempt = _undecided_cells(sums, length) if bitwise else Fraction(length)
    return attempt * Fraction(1 << length, total)


def _undecided_cells(sums: Sequence[int], length: int) -> Fraction:
    """Σ_j 2^−j · (cells of the 2^j equal ones of [0, 2^length) with a sum strictly inside).

    A sum with z trailing zeros lies inside its cell for j < length − z. Sums in one cell follow each other, so a cell
    counts for a sum unless the sum before lies inside it too; these are the first cells of both, as far as their
    leading bits agree.
    """
    units = 0  # of 2^-length
    for before, here in pairwise((0, *sums)):
        inside = length - trailing_zeros(here)
        same = length - (before ^ here).bit_length() + 1
        shared = min(same, length - trailing_zeros(before)) if before else 0
        if inside > shared:
            # levels j = shared, ..., inside − 1
            units += (1 << length - shared + 1) - (1 << length - inside + 1)
    return Fraction(units, 1 << length)
