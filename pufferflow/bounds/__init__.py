"""Upper bounds of the loss of one entry of a chain; proofs: ``docs/leakage.md``."""
