"""Max-influence on Markov chains and the search for the best quilts."""
