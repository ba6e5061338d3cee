"""From raw data to counts of states."""
