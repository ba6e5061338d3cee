"""The base-2 mechanism as its source describes it: every cumulative weight is an exact integer.

:mod:`pufferflow.related.dp.base2_exponential` forms such a sum only where it decides.
"""

from bisect import bisect_right
from itertools import accumulate


def stored_sums(mechanism, utilities):
    """All cumulative weights in units of the last place that the public range allows."""
    return list(accumulate(mechanism.weights(utilities)))


def stored_draw(sums, source):
    """Draw s below a power of two until it is below the total; the first whose sum exceeds it."""
    while (s := source.getrandbits((sums[-1] - 1).bit_length())) >= sums[-1]:
        pass
    return bisect_right(sums, s)
