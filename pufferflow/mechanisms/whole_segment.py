"""Group differential privacy: hides a whole chain at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pufferflow._checks import Lengths, check_epsilon, longest
from pufferflow._rounding import divide_up
from pufferflow.markov.families import AnyFamily
from pufferflow.mechanisms.base import Mechanism, NoiseScale

if TYPE_CHECKING:
    from pufferflow.certificates import Question


def group_dp(family: AnyFamily, length: Lengths, epsilon: float) -> NoiseScale:
    """Scale M/ε, M the length of the longest independent chain (Song et al., section 5).

    Private whatever the correlation within a chain is.

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
    records = longest(length)
    return NoiseScale("group-dp", epsilon, records, divide_up(records, epsilon))


def _length_alone(question: Question) -> Iterator[dict[str, Any]]:
    yield {}


GROUP_DP = Mechanism("group-dp", group_dp, _length_alone)
