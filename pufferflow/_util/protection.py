"""The secrets and the adversary of a guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict, cast, get_args

from pufferflow._util.checks import check_choice, check_whole, shown
from pufferflow._util.units import exact_seconds, steps_of, text_of
from pufferflow.errors import ParameterError

SideInformation: TypeAlias = Literal["none", "any"]
"""Side information: none, or any other records of the participant."""


@dataclass(frozen=True)
class Protection:
    """Secrets and adversaries of a Pufferfish guarantee.

    Attributes
    ----------
    window : int
        Number of consecutive records of one segment whose values are the secret.
    side_information : {"none", "any"}

    Raises ParameterError: one is out of range.
    """

    window: int = 1
    side_information: SideInformation = "none"

    def __post_init__(self) -> None:
        check_choice(self.side_information, "side_information", get_args(SideInformation))
        object.__setattr__(self, "window", check_whole(self.window, "window"))


class ProtectionOptions(TypedDict, total=False):
    """The fields of :class:`Protection` as options."""

    window: int
    side_information: SideInformation


NARROWEST = Protection()
"""One record is protected, from an adversary without side information."""

PROTECTION = ("window", "side_information")
"""The options for it."""


@dataclass(frozen=True)
class Level:
    """The secrets and the adversary of a release.

    Attributes
    ----------
    window : int or None
        Number of consecutive readings of one participant; None for all readings of one.
    side_information : {"none", "any"}
        "none" for a participant, who has no other readings.
    """

    window: int | None = 1
    side_information: SideInformation = "none"

    def __post_init__(self) -> None:
        Protection(1 if self.window is None else self.window, self.side_information)
        if self.window is None:
            object.__setattr__(self, "side_information", "none")

    @property
    def whole(self) -> bool:
        """Whether all readings of a participant are protected."""
        return self.window is None

    def words(self, step_seconds: int | None = None) -> str:
        """Return the value of ``protect``, as a time if the step is known."""
        if self.window is None:
            return "participant"
        if self.window == 1:
            return "reading"
        if step_seconds is None:
            return f"{self.window} readings"
        return text_of(self.window * step_seconds)

    @property
    def protection(self) -> Protection:
        """The same for mechanisms; for a window only."""
        assert self.window is not None
        return Protection(self.window, self.side_information)


def level_of(
    protect: object, side_information: str = "none", step_seconds: int | None = None
) -> Level:
    """Return the level of "reading", "participant", a time, or a number of readings.

    Raises ParameterError: it is none of them, or a time without a known step.
    """
    side = cast(SideInformation, side_information)
    if protect in ("reading", "participant"):
        return Level(1 if protect == "reading" else None, side)
    timed = isinstance(protect, str) and exact_seconds(protect, "protect") is not None
    if isinstance(protect, str) and not timed and not protect.isdecimal():
        known = "reading, participant, a time such as 1h or 7d, or a whole number of readings"
        raise ParameterError(f"protect is {shown(protect)}; give {known}")
    return Level(steps_of(protect, step_seconds, "protect"), side)
