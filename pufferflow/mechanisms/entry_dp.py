"""Entry-level differential privacy: the baseline that ignores correlation."""

from __future__ import annotations

from pufferflow._checks import Lengths, check_epsilon, longest
from pufferflow._rounding import divide_up
from pufferflow.markov.families import AnyFamily
from pufferflow.mechanisms.base import NoiseScale


def entry_dp(family: AnyFamily, length: Lengths, epsilon: float) -> NoiseScale:
    """Scale 1/ε: hides one record among independent ones.

    **Not private for correlated data**: it protects the value of one entry, not what neighbouring
    entries reveal of it. It is here to be compared against.

    Parameters
    ----------
    family : Family or MarkovChain
        Not used.
    length : int or sequence of int
        Segment lengths.
    epsilon : float
        ε > 0.

    Raises
    ------
    ParameterError
        ε or a length is out of range.
    """
    epsilon = check_epsilon(epsilon)
    return NoiseScale("entry-dp", epsilon, longest(length), divide_up(1, epsilon))
