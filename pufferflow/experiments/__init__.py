"""The experiments of the paper and the studies beyond it: settings in, tidy table out; no plotting."""
