"""Helpers: checks, files, kernels, exact numbers, rounding, noise."""
