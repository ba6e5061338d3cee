"""What a release tells about one entry of a chain: bounds by couplings and blocks, and from below by counts.

The statements and their proofs are in ``docs/leakage.md``.
"""

from pufferflow.coupling.lower_bound import LowerBound, lower_bound

__all__ = ["LowerBound", "lower_bound"]
