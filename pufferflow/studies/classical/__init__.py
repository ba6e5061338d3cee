"""Classical differential privacy."""
