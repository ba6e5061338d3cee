"""Publish statistics of a table with noise, and what was promised for it."""
