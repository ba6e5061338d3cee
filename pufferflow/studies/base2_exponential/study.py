"""The base-2 exponential mechanism."""

from pufferflow.studies.related import related_study

CAPTION = (
    "The exponential mechanism in floating point (naive) and in exact base-2 arithmetic. Top: two attacks; the "
    "probability of any output but the watched one on two neighbouring databases, and the band in which ε-differential "
    "privacy allows it with Alice: the naive mechanism makes it 0, so one such output proves that Alice is absent; "
    "the exact mechanism stays in the band. Bottom: both exact samplers against the exact law, and the exact privacy "
    "loss on bad neighbours: 2αη is approached for α = 1 and exceeded for α = ½ with utilities rounded at random, "
    "where 2⌈α⌉η holds."
)

BASE2_EXPONENTIAL = related_study("base2_exponential", "The base-2 exponential mechanism", CAPTION, timed=True)
