"""Classical differential privacy."""

from pufferflow.studies.related import related_study

CAPTION = (
    "Classical mechanisms of differential privacy on synthetic data, against ε: error of a released count, shortfall "
    "of a chosen outcome, regret of randomised weighted majority at the largest rate each privacy account allows, and "
    "the exact privacy loss of every mechanism, which is the declared ε and exceeds it when the noise is halved."
)

CLASSICAL = related_study("classical", "Classical differential privacy", CAPTION)
