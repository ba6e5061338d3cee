"""Whether noisy histograms are worst in their tails."""
