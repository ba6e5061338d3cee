"""Plain, slow and obviously right: every sequence of observations, every path of hidden states."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from pufferflow.hmm import HiddenMarkovModel


def path_probability(model: HiddenMarkovModel, secret: str, sequence: tuple[str, ...]) -> Fraction:
    """Return P(sequence | secret) as the sum over all paths of hidden states."""
    total = Fraction(0)
    for path in product(range(len(model.states)), repeat=len(sequence)):
        weight = model.initial_distributions[secret][path[0]]
        for t, observation in enumerate(sequence):
            weight *= model.observation_matrix[path[t]][model.observations.index(observation)]
            if t + 1 < len(path):
                weight *= model.transition_matrix[path[t]][path[t + 1]]
        total += weight
    return total


def all_ratios(
    model: HiddenMarkovModel, length: int
) -> Iterator[tuple[Fraction | float, tuple[str, ...]]]:
    """Yield the ratio of every possible sequence of up to ``length`` observations, both ways."""
    for t in range(1, length + 1):
        for sequence in product(model.observations, repeat=t):
            p = {
                secret: path_probability(model, secret, sequence)
                for secret in model.initial_distributions
            }
            for pair in model.pairs:
                for secret, other in (pair, pair[::-1]):
                    if p[secret]:
                        yield p[secret] / p[other] if p[other] else math.inf, sequence
