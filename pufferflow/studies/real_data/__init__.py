"""Samples and fitted chains of real data."""
