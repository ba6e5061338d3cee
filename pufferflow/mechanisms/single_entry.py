"""Entry-level differential privacy: the baseline that ignores correlation."""

from __future__ import annotations

from dataclasses import asdict

from pufferflow._util.checks import Lengths, check_epsilon, longest
from pufferflow._util.protection import SideInformation, check_protection
from pufferflow._util.rounding import divide_up
from pufferflow.mechanisms.base import Mechanism, NoiseScale
from pufferflow.models.families import AnyFamily


def entry_dp(
    family: AnyFamily, length: Lengths, epsilon: float, *, window: int = 1, side_information: SideInformation = "none"
) -> NoiseScale:
    """Scale w/ε: hides w records among independent ones, of which an adversary may know the others.

    **Not private for correlated data**: it protects the values of w entries, not what neighbouring
    entries reveal of them. It is here to be compared against.

    Parameters
    ----------
    family : Family or MarkovChain
        Not used.
    length : int or sequence of int
        Segment lengths.
    epsilon : float
        ε > 0.
    window : int
        w, how many consecutive records are hidden together.
    side_information : {"none", "any"}
        What the guarantee is stated for: independent records tell nothing of each other.

    Raises
    ------
    ParameterError
        ε, a length, ``window`` or ``side_information`` is out of range.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    protection = check_protection(window, side_information)
    scale = divide_up(min(protection.window, records), epsilon)
    return NoiseScale("entry-dp", epsilon, records, scale, **asdict(protection))


ENTRY_DP = Mechanism("entry-dp", entry_dp, private=False)
