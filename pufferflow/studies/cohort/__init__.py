"""Many participants with a chain each."""
