"""Baselines: group differential privacy, and entry-level privacy that ignores correlation."""

from __future__ import annotations

from dataclasses import replace

from pufferflow._util.checks import Lengths
from pufferflow._util.protection import SideInformation
from pufferflow._util.rounding import divide_up
from pufferflow.mechanisms.base import NoiseScale, requested
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
    any number of its records are, also from adversaries who know some of them. ``family`` is not
    used; the other parameters are those of :func:`pufferflow.mqm_exact`.
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
    entries reveal of them. It is here to be compared with. ``family`` is not used; the other
    parameters are those of :func:`pufferflow.mqm_exact`, w is ``window``.
    """
    asked = requested("entry-dp", length, epsilon, window, side_information)
    return replace(asked, scale=divide_up(min(asked.window, asked.length), asked.epsilon))
