"""Classical mechanisms: differential privacy of independent records, the ground the rest stands on."""
