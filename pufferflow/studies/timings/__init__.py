"""Table 2 and the benchmark of the engine."""
