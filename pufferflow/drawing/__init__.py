"""Figures of releases and the style that all figures share."""
