"""What people did: Table 1 and Figure 4, lower row."""
