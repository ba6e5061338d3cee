"""Baselines: group differential privacy, and entry-level privacy that ignores correlation."""

from __future__ import annotations

from dataclasses import replace

from pufferflow._util.checks import Lengths
from pufferflow._util.protection import SideInformation
from pufferflow._util.rounding import divide_up
from pufferflow.mechanisms.base import Mechanism, NoiseScale, requested
from pufferflow.models.families import AnyFamily


def group_dp(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Scale M/ε, M the length of the longest independent chain (Song et al., section 5).

    Private whatever the correlation within a chain: all of the chain is protected, so windows of
    any number of its records are, also from adversaries who know some of them.

    Parameters
    ----------
    family : Family or MarkovChain
        Not used.
    length : int or sequence of int
        Segment lengths; the longest decides.
    epsilon : float
        ε > 0.
    window, side_information
        What the guarantee is stated for; the scale is the same for all.

    Raises
    ------
    ParameterError
        ε, a length, ``window`` or ``side_information`` is out of range.
    """
    asked = requested("group-dp", length, epsilon, window, side_information)
    return replace(asked, scale=divide_up(asked.length, asked.epsilon))


def entry_dp(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Scale w/ε, which protects w records among independent ones.

    **Not private for correlated data**: it protects the values of w entries, not what neighbouring
    entries reveal of them. It is here to be compared with.

    Parameters
    ----------
    family : Family or MarkovChain
        Not used.
    length : int or sequence of int
        Segment lengths.
    epsilon : float
        ε > 0.
    window : int
        w, how many consecutive records are protected together.
    side_information : {"none", "any"}
        What the guarantee is stated for: independent records reveal nothing of each other.

    Raises
    ------
    ParameterError
        ε, a length, ``window`` or ``side_information`` is out of range.
    """
    asked = requested("entry-dp", length, epsilon, window, side_information)
    return replace(asked, scale=divide_up(min(asked.window, asked.length), asked.epsilon))


GROUP_DP = Mechanism("group-dp", group_dp)
ENTRY_DP = Mechanism("entry-dp", entry_dp, private=False)
