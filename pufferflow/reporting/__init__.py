"""Tables, figures, the comparison with the paper, and the report; reads tidy tables only."""
