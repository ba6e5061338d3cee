"""The level of a release: which readings of a participant it protects, and from whom."""

from dataclasses import dataclass
from typing import cast

from pufferflow.models.protection import Protection, SideInformation
from pufferflow.records.units import steps_of, text_of


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

    def description(self, step_seconds: int | None = None) -> str:
        """Return the value of ``protect``, as a time if the step is known, and from whom."""
        if self.window is None:
            return "participant"
        text = "reading" if self.window == 1 else f"{self.window} readings"
        if self.window > 1 and step_seconds is not None:
            text = text_of(self.window * step_seconds)
        return text + " with side information any" * (self.side_information == "any")


def level_of(
    protect: object, side_information: str = "none", step_seconds: int | None = None
) -> Level:
    """Return the level of "reading", "participant", a time, or a number of readings.

    Raises ParameterError: it is none of them, or a time without a known step.
    """
    side = cast(SideInformation, side_information)
    if protect == "participant":
        return Level(None, side)
    known = "reading, participant, a time such as 1h or 7d, or a whole number of readings"
    steps = 1 if protect == "reading" else steps_of(protect, step_seconds, "protect", known)
    return Level(steps, side)
