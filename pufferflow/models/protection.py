"""The secrets and the adversary of a guarantee."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict, get_args

from pufferflow._util.checks import check_choice, check_whole

SideInformation: TypeAlias = Literal["none", "any"]
"""Side information: none, or any other records of the participant."""

PROTECTION = ("window", "side_information")
"""The fields of :class:`Protection`, which are options of mechanisms."""


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
