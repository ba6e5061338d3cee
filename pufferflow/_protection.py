"""What a guarantee hides, and from whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, cast, get_args

from pufferflow._checks import check_choice, check_whole

Knowledge: TypeAlias = Literal["nothing", "any records"]


@dataclass(frozen=True)
class Protection:
    """Secrets and adversaries of a Pufferfish guarantee.

    Attributes
    ----------
    window : int
        Secrets are what happened during so many consecutive records of one segment.
    knows : {"nothing", "any records"}
        What an adversary may know beside Θ: nothing, or the values of any other records of the participant.
    """

    window: int = 1
    knows: Knowledge = "nothing"


NARROWEST = Protection()
"""One record is hidden, from an adversary who knows no other one."""

PROTECTION = tuple(field.name for field in fields(Protection))
"""The options that ask for it."""


def check_protection(window: Any = 1, knows: Any = "nothing") -> Protection:
    """Return what the two options ask for.

    Raises ParameterError: ``window`` is not an integer of at least 1, or ``knows`` none of the two.
    """
    check_choice(knows, "knows", get_args(Knowledge))
    return Protection(check_whole(window, "window"), cast(Knowledge, knows))


def asked_for(options: Mapping[str, Any]) -> Protection:
    """Return what the options of a mechanism ask for, among others perhaps; as :func:`check_protection`."""
    return check_protection(**{key: value for key, value in options.items() if key in PROTECTION})
