"""The base-2 exponential mechanism."""
