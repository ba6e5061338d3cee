"""How little noise would do."""
