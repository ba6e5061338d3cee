"""Figure 4, upper row."""
