"""The αβ algorithm."""
