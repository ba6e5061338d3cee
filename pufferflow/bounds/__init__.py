"""Bounds of what a release reveals of one entry of a chain; proofs: ``docs/leakage.md``."""
