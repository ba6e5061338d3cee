"""Processes that an adversary may believe in: chains, classes of chains, fits and model files."""
