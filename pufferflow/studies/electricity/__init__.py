"""Power use of one household: Table 3."""
