"""Group differential privacy: hides a whole chain at once."""

from __future__ import annotations

from dataclasses import asdict

from pufferflow._util.checks import Lengths, check_epsilon, longest
from pufferflow._util.protection import SideInformation, check_protection
from pufferflow._util.rounding import divide_up
from pufferflow.mechanisms.base import Mechanism, NoiseScale
from pufferflow.models.families import AnyFamily


def group_dp(
    family: AnyFamily, length: Lengths, epsilon: float, *, window: int = 1, side_information: SideInformation = "none"
) -> NoiseScale:
    """Scale M/ε, M the length of the longest independent chain (Song et al., section 5).

    Private whatever the correlation within a chain is: all of the chain is hidden, so windows of any number of its
    records are, and whoever knows some of them learns no more of the others.

    Parameters
    ----------
    family : Family or MarkovChain
        Not used.
    length : int or sequence of int
        Segment lengths.
    epsilon : float
        ε > 0.
    window : int
        What the guarantee is stated for; the scale is the same for all.
    side_information : {"none", "any"}
        Likewise.

    Raises
    ------
    ParameterError
        ε, a length, ``window`` or ``side_information`` is out of range.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    protection = check_protection(window, side_information)
    return NoiseScale("group-dp", epsilon, records, divide_up(records, epsilon), **asdict(protection))


GROUP_DP = Mechanism("group-dp", group_dp)
