"""Cumulative weights of many outcomes, exact on demand.

The weights are powers of a rational base, so exact sums of n of them need up to n times the range of the
exponents bits: 75,000 outcomes with utilities 0, 1, …, 74,999 fill 700 MB. A draw needs almost none of these bits.
Here every sum is enclosed between two integers at a fixed number of fractional bits; a comparison the enclosure
cannot decide is decided by the exact sum, which is made for it alone. So nothing is ever approximated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate

Bracket = tuple[int, int]


class CumulativeWeights:
    """The sums c_i = Σ_{j ≤ i} q^{k_j} with q = numerator / 2^shift < 1 and min k = 0.

    Parameters
    ----------
    numerator, shift : int
        The base q; the numerator is odd, so 2^-shift is the last binary place of q.
    exponents : sequence of int
        k_j ≥ 0 of every outcome, at least one of them 0.
    bits : int
        Fractional bits of the enclosures. They decide speed only: any number gives the same answers.
    """

    def __init__(self, numerator: int, shift: int, exponents: Sequence[int], bits: int) -> None:
        self._numerator, self._shift, self._exponents = numerator, shift, exponents
        self._largest = max(exponents)
        self.bits = bits
        powers = self._powers(sorted(set(exponents)))
        self._lower = list(accumulate(powers[k][0] for k in exponents))
        self._upper = list(accumulate(powers[k][1] for k in exponents))

    def __len__(self) -> int:
        return len(self._exponents)

    @property
    def depth(self) -> int:
        """Fractional bits at which every c_i is an integer."""
        return self._shift * self._largest

    @cached_property
    def exponent(self) -> int:
        """⌈log2 t⌉ of the total weight t (t ≥ 1)."""
        lowest, highest = ((total[-1] - 1).bit_length() - self.bits for total in (self._lower, self._upper))
        return lowest if lowest == highest else (self.exact(len(self)) - 1).bit_length() - self.depth

    @cached_property
    def width(self) -> int:
        """Bits of s: ``bits`` fractional ones, and ``exponent`` before them."""
        return self.bits + self.exponent

    @property
    def stored_bits(self) -> int:
        """Bits of all enclosures."""
        return sum(end.bit_length() for ends in (self._lower, self._upper) for end in ends)

    def exact(self, count: int) -> int:
        """Return 2^depth · (sum of the first ``count`` weights), an integer.

        Equal weights are added as one; halves of the list of distinct weights are summed apart, so that most of the
        work is on short numbers.
        """
        return self._sum(sorted(Counter(self._exponents[:count]).items()), 0, self._largest)

    def locate(self, low: int, high: int) -> Bracket:
        """Enclose the first i with c_i > s, for any s in [low, high) in units of 2^-bits; i = n means s ≥ t.

        Returns
        -------
        (first, last)
            Equal where the enclosures decide. c_i ≤ s is sure where upper_i ≤ low, c_i > s where lower_i ≥ high. If the
            weights fit into ``bits`` places and high = low + 1, s = low and one of the two always holds.
        """
        return bisect_right(self._upper, low), bisect_left(self._lower, high)

    def locate_exactly(self, s: int, first: int, last: int) -> int:
        """Return the first i in [first, last] with c_i > s, s in units of 2^-depth, from exact sums."""
        while first < last:
            middle = (first + last) // 2
            if self.exact(middle + 1) > s:
                last = middle
            else:
                first = middle + 1
        return first

    def _powers(self, exponents: Iterable[int]) -> dict[int, Bracket]:
        """Enclose 2^bits · q^k for ascending k, each from the one before it."""
        lower = upper = 1 << self.bits
        powers, steps, previous = {}, {0: (lower, upper)}, 0
        for k in exponents:
            gap = k - previous
            if gap not in steps:
                steps[gap] = self._power(gap)
            lower, upper = self._times((lower, upper), steps[gap])
            powers[k], previous = (lower, upper), k
        return powers

    def _power(self, k: int) -> Bracket:
        """Enclose 2^bits · q^k, k ≥ 1, by repeated squaring from the highest bit of k down."""
        scaled = self._numerator << self.bits
        base = power = (scaled >> self._shift, -(-scaled >> self._shift))
        for bit in bin(k)[3:]:
            power = self._times(power, power)
            if bit == "1":
                power = self._times(power, base)
        return power

    def _times(self, a: Bracket, b: Bracket) -> Bracket:
        """Multiply two enclosures, downwards and upwards; exact where the product fits into ``bits`` places."""
        return a[0] * b[0] >> self.bits, -(-a[1] * b[1] >> self.bits)

    def _sum(self, counts: list[tuple[int, int]], start: int, stop: int) -> int:
        """Return Σ m · numerator^(k − start) · 2^(shift · (stop − k)) over the pairs (k, m) in ``counts``."""
        if not counts:
            return 0
        if len(counts) == 1:
            k, m = counts[0]
            return m * self._raised(k - start) << self._shift * (stop - k)
        half = len(counts) // 2
        middle = counts[half][0]
        left = self._sum(counts[:half], start, middle)
        right = self._sum(counts[half:], middle, stop)
        return (left << self._shift * (stop - middle)) + right * self._raised(middle - start)

    def _raised(self, k: int) -> int:
        return int(self._numerator**k)
