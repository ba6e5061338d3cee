"""Noisy Max."""
