"""What studies of histograms of real data share."""
