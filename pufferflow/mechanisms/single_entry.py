"""Entry-level differential privacy: the baseline that ignores correlation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pufferflow._checks import Lengths, check_epsilon, longest
from pufferflow._rounding import divide_up
from pufferflow.markov.families import AnyFamily
from pufferflow.mechanisms.base import Mechanism, NoiseScale

if TYPE_CHECKING:
    from pufferflow.certificates import Question


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


def _neighbours(question: Question) -> Iterator[dict[str, Any]]:
    from pufferflow.certificates.quilts import neighbours

    yield {"nodes": [neighbours(question.length) for _ in question.chains]}


ENTRY_DP = Mechanism("entry-dp", entry_dp, _neighbours, private=False)
