"""The experiments of the paper: settings in, tidy table out; no plotting."""
