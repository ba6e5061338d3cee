"""Raw data: how they become counts of states."""
