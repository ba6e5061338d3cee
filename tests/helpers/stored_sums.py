"""The base-2 mechanism as its source describes it: every cumulative weight stored as an exact integer.

The plain reference implementation of :mod:`pufferflow.related.dp.base2_exponential`, which forms such a sum only where
it decides.
"""

from bisect import bisect_right
from itertools import accumulate


def stored_sums(mechanism, utilities):
    """All cumulative weights in units of the last place that the public range allows."""
    return list(accumulate(mechanism.weights(utilities)))


def stored_draw(sums, source):
    """Draw s below the next power of two until it is below the total; the first outcome whose sum exceeds it."""
    while True:
        s = source.getrandbits((sums[-1] - 1).bit_length())
        if s < sums[-1]:
            return bisect_right(sums, s)
