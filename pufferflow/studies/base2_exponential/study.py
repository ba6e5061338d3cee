"""The base-2 exponential mechanism."""

from pufferflow.studies.related import related_study

CAPTION = (
    "Floating point tells what it should hide; exact base-2 arithmetic does not. Top: three attacks on the exponential "
    "mechanism; the probability of any output but the watched one on two neighbouring databases, and the band in which "
    "ε-differential privacy allows it with Alice. The naive mechanism makes it 0, so one such output proves that Alice "
    "is absent; the exact mechanism stays in the band. Bottom left: Laplace noise in doubles around 0 and around 1; "
    "more than half of all outputs are possible for one of the two values alone. Bottom right: the exact privacy loss "
    "on bad neighbours; 2αη is approached for α = 1 and exceeded for α = ½ with utilities rounded at random, where "
    "2⌈α⌉η holds."
)
EXACTNESS = (
    "What exactness does and costs, counted. Top: both exact samplers against the exact law; and bits that the sums of "
    "n outcomes need, beside those set aside for them before the data is read, by doubling (ComputePrecision) and by "
    "the theoretical worst case of the author's code. Middle: random bits of one release against the needed precision "
    "p, for utilities 0, …, n − 1 and for equal ones, expected (lines) and on average over some hundred releases "
    "(points), where s drawn at once takes p to 2p of them (grey); and bits of all cumulative weights over the range "
    "of the utilities of 1000 outcomes, linear if stored exactly, nearly constant as enclosed here. Bottom: the exact "
    "law with utilities rounded at random, the bounds of the author's code, and the largest error of a probability, "
    "which falls with the granularity of the grid."
)

BASE2_EXPONENTIAL = related_study(
    "base2_exponential",
    "The base-2 exponential mechanism",
    CAPTION,
    timed=True,
    further={"exactness": EXACTNESS},
)
