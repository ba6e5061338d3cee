"""Baselines: group differential privacy, and entry-level privacy that ignores correlation."""

from dataclasses import replace

from pufferflow._util.checks import Lengths
from pufferflow._util.grids import of_epsilons
from pufferflow._util.rounding import divide_up
from pufferflow.mechanisms.base import NoiseScale, requested
from pufferflow.models.families import AnyFamily
from pufferflow.models.protection import SideInformation


@of_epsilons
def group_dp(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Return the scale M/ε, M the length of the longest independent chain (Song et al., section 5).

    It protects all records of a chain together under any correlation, so it holds for windows of
    any length and with side information. ``family`` is not used; the other parameters are those of
    :func:`pufferflow.mqm_exact`.
    """
    asked = requested("group-dp", length, epsilon, window, side_information)
    return replace(asked, scale=divide_up(asked.length, asked.epsilon))


@of_epsilons
def entry_dp(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Return the scale w/ε, which protects w records if all records are independent.

    **Not private for correlated data**: neighbouring records reveal the protected ones. It is a
    baseline. ``family`` is not used; the other parameters are those of
    :func:`pufferflow.mqm_exact`, w is ``window``.
    """
    asked = requested("entry-dp", length, epsilon, window, side_information)
    return replace(asked, scale=divide_up(min(asked.window, asked.length), asked.epsilon))
