"""Classical differential privacy."""

from pufferflow.studies.related import related_study

CAPTION = (
    "Classical mechanisms of differential privacy on synthetic data, against ε: error of a released count, shortfall "
    "of a chosen outcome, regret of randomised weighted majority at the largest rate each privacy account allows, and "
    "the exact privacy loss of every mechanism, which is the declared ε and exceeds it when the noise is halved. Two "
    "examples: how often the difference of two noisy counts gives a person away; and how likely an insurer thinks the "
    "illness of a smoker: a study raises that without his record, and with it little more unless all else is known."
)

CLASSICAL = related_study("classical", "Classical differential privacy", CAPTION)
