"""Data that come with the package: the power of one household by the minute."""
