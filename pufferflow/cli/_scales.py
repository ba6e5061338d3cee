"""What the commands that compute scales of chains have in common."""

from __future__ import annotations

import argparse
import inspect
from typing import Any, get_args

from pufferflow._checks import longest
from pufferflow.errors import ChainError
from pufferflow.influence.tables import Convention
from pufferflow.markov.families import Family
from pufferflow.mechanisms import MECHANISMS, NoiseScale, find_mechanism


def add_mechanisms(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare which mechanisms, and the convention of max-influence."""
    parser.add_argument(
        "--mechanism",
        action="append",
        metavar="NAME",
        help=f"one of {', '.join(MECHANISMS)}; repeat for several (default: {default})",
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


def compute_scale(
    name: str, family: Family, lengths: list[int], epsilon: float, options: dict[str, Any], asked: bool
) -> NoiseScale:
    """Return the scale of a mechanism; "not applicable" where it cannot work, unless it was asked for by name."""
    mechanism = find_mechanism(name)
    known = inspect.signature(mechanism).parameters
    try:
        return mechanism(family, lengths, epsilon, **{key: options[key] for key in options if key in known})
    except ChainError as error:
        if asked:
            raise
        return NoiseScale(name, epsilon, longest(lengths), None, "not applicable", str(error))


def status_text(status: str, reason: str) -> str:
    """Return what a table says of the status of a result."""
    return f"{status}: {reason}" if reason else status
