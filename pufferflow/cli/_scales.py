"""What the commands that compute scales of chains have in common."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from pufferflow.influence.tables import Convention
from pufferflow.markov.families import Family
from pufferflow.mechanisms import KNOWN, NoiseScale, compute_scale, find_mechanism


def add_mechanisms(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare which mechanisms, and the convention of max-influence."""
    parser.add_argument(
        "--mechanism",
        action="append",
        metavar="NAME",
        help=f"one of {', '.join(KNOWN)}; repeat for several (default: {default})",
    )
    parser.add_argument(
        "--convention",
        choices=get_args(Convention),
        default="exact",
        help="max-influence of mqm-exact: by its definition, or by the paper's formula as printed (default: exact)",
    )


def add_count(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Declare the states of a count."""
    parser.add_argument("--count", type=int, action="append", metavar="STATE", help=purpose)


def scales_of(
    asked: list[str] | None, family: Family, lengths: list[int], epsilons: list[float], options: dict[str, Any]
) -> list[NoiseScale]:
    """Return the scale of each mechanism at each ε, "not applicable" where it cannot work.

    Those asked for by name are called as they are: such a one may raise where its chains rule it out.
    """
    scales = []
    for epsilon in epsilons:
        for name in asked or KNOWN:
            mechanism = find_mechanism(name)
            own = {key: value for key, value in options.items() if key in mechanism.options}
            if asked:
                scales.append(mechanism.scale(family, lengths, epsilon, **own))
            else:
                scales.append(compute_scale(name, family, lengths, epsilon, **own))
    return scales


def status_text(status: str, reason: str) -> str:
    """Return what a table says of the status of a result."""
    return f"{status}: {reason}" if reason else status
