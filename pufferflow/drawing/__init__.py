"""The style that all figures of studies share."""
