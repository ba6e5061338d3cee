"""What other people, time steps and windows change in Tables 1 and 3."""
