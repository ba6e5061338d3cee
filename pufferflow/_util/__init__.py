"""What every room uses: checks, files, kernels, exact numbers, rounding, noise."""
