"""Random chains for hypothesis: dense, sparse and permutation matrices, with any start."""

import numpy as np
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.errors import ChainError

WEIGHTS = st.sampled_from([0.0, 0.0, 1e-20, 1e-12, 1e-6, 0.01, 0.2, 0.5, 1.0, 1.0, 3.0])
"""Of the entries of a row, before it is divided by its sum."""


@st.composite
def distributions(draw, k, weights=WEIGHTS):
    law = np.array(draw(st.lists(weights, min_size=k, max_size=k)))
    if not law.any():
        law[draw(st.integers(0, k - 1))] = 1.0
    return law / law.sum()


@st.composite
def chains(draw, max_states=6, weights=WEIGHTS, permutations=True):
    k = draw(st.integers(1, max_states))
    if permutations and draw(st.integers(0, 5)) == 0:
        matrix = np.eye(k)[draw(st.permutations(range(k)))]
    else:
        matrix = np.array([draw(distributions(k, weights)) for _ in range(k)])
    start = draw(st.sampled_from(["any", "stationary", "given"]))
    try:
        return pf.MarkovChain(
            matrix, draw(distributions(k, weights)) if start == "given" else start
        )
    except ChainError:  # no unique stationary law
        return pf.MarkovChain(matrix, "any")
