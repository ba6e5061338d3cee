"""What a guarantee hides, and from whom."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, cast, get_args

from pufferflow._checks import check_choice, check_whole, shown
from pufferflow.errors import ParameterError

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


class ProtectionOptions(TypedDict, total=False):
    """The fields of :class:`Protection` as options."""

    window: Annotated[int, "int", "Secrets are what happened during so many consecutive records (1: single records)."]
    knows: Annotated[
        Knowledge,
        '{"nothing", "any records"}',
        "What an adversary may know beside Θ: nothing, or any other records of the participant.",
    ]


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


Protect: TypeAlias = Literal["record", "participant"] | str | int
"""What is to be hidden: one record, so many in a row (a number, or a time such as ``"1h"``), or a whole participant."""


class LevelOptions(ProtectionOptions, total=False):
    """What is to be hidden, and from whom, for :func:`check_level`."""

    protect: Annotated[
        Protect | None,
        '"record", "participant", str or int, optional',
        "What is hidden: any one record (the default), so many consecutive ones (a number, the same as ``window``, or "
        'a time such as ``"1h"`` where the step is known), or all that one participant did, by group privacy over the '
        "longest record.",
    ]


RECORD, PARTICIPANT = "record", "participant"
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
"""Units of a window given as a time."""

_WINDOW = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)(s|min|h|d)?", re.ASCII)


@dataclass(frozen=True)
class Level:
    """What is asked to be hidden, before it is known how many records there are.

    Attributes
    ----------
    window : int or None
        So many consecutive records of one segment; None for all records of one participant.
    knows : {"nothing", "any records"}
        As of :class:`Protection`.
    """

    window: int | None = 1
    knows: Knowledge = "nothing"

    @property
    def whole(self) -> bool:
        """Whether all of a participant is to be hidden."""
        return self.window is None

    def over(self, records: int) -> Protection:
        """Secrets and adversaries where no participant has more than so many records.

        All records of a participant are a window of as many; then there are no others that somebody could know.
        """
        return Protection(records, "any records") if self.window is None else Protection(self.window, self.knows)


def check_level(
    protect: Any = None, window: Any = 1, knows: Any = "nothing", step_seconds: int | None = None, name: str = "protect"
) -> Level:
    """Return what is asked for by ``protect``, or by ``window``, which is the same for numbers of records.

    A time is rounded up to whole steps.

    Raises ParameterError: both are given, one of them is out of range, or ``protect`` is a time and no step is known.
    """
    asked = check_protection(window, knows)
    if protect is None:
        return Level(asked.window, asked.knows)
    if asked.window != 1:
        raise ParameterError(f"{name} and window say the same thing; give one of them")
    if protect == PARTICIPANT:
        return Level(None, asked.knows)
    if protect == RECORD:
        return Level(1, asked.knows)
    given = _WINDOW.fullmatch(protect.strip()) if isinstance(protect, str) else None
    if isinstance(protect, str) and (given is None or (given[2] is None and "." in given[1])):
        raise ParameterError(
            f"{name} is {shown(protect)}; give record, participant, a number of records, or a time such as 90min or 1h"
        )
    if given is None or given[2] is None:
        return Level(check_whole(protect if given is None else int(given[1]), name), asked.knows)
    if step_seconds is None:
        raise ParameterError(
            f"{name} is {protect}, but no time step is known; give the seconds of one too, or a number of records"
        )
    steps = math.ceil(Fraction(given[1]) * SECONDS[given[2]] / step_seconds)
    return Level(check_whole(steps, name), asked.knows)
