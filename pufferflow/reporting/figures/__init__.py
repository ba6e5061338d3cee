"""The figures, one module an experiment; ``panels`` holds what they share."""
