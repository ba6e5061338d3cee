"""What a release tells about one entry of a chain: bounds by couplings and blocks.

The statements and their proofs are in ``docs/leakage.md``.
"""
