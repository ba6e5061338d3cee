"""The schema of a table: public facts that turn its rows into steps of a chain.

A model file may have it under the key ``records``, so that new data are read exactly as those of
the fit::

    "records": {"states": {"edges": [200, 400, …]} or {"names": ["walking", …], "other": false},
                "step_seconds": 60 or null,
                "fitted": {"first": "2007-05-01T00:00:00", "last": …, "records": 525600} or null,
                "reading": {"time": "tstp", "decimal": ",", …},
                "fitted_privately": {"epsilon": 1.0, "confidence": 0.95, …}}
"""

import re
from dataclasses import dataclass, fields
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from pufferflow._util import checks
from pufferflow._util.json import only_keys, record
from pufferflow.errors import ModelError, ParameterError
from pufferflow.records.options import reads
from pufferflow.records.states import StateSpace

MAX_SECONDS = 2**53 - 1
ROLES = ("time", "value", "participant", "group")
SIGNS = ("separator", "decimal", "thousands")

_TIME = re.compile(r"-?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\dZ?", re.ASCII)
_STEP = re.compile(r"step \d{1,19}", re.ASCII)


@dataclass(frozen=True)
class Fitted:
    """First and last time of the readings that a chain was fitted to, and their number.

    Raises ParameterError: a time is not written as ``fit`` writes it.
    """

    first: str
    last: str
    records: int

    def __post_init__(self) -> None:
        checks.check_whole(self.records, "fitted: records")
        try:
            _ = self.period
        except (TypeError, ValueError):
            raise ParameterError("fitted has no first and last time as fit writes them") from None

    @property
    def period(self) -> tuple[int, int] | None:
        """First and last time in seconds in their time base; None for readings without times."""
        ends = self.first, self.last
        if all(map(_STEP.fullmatch, ends)):
            return None
        if not all(map(_TIME.fullmatch, ends)):
            raise ValueError
        first, last = (int(np.datetime64(end.removesuffix("Z"), "s").astype(int)) for end in ends)
        return first, last

    @property
    def is_local(self) -> bool:
        """Whether the times are local."""
        return not self.first.endswith("Z")


@dataclass(frozen=True)
class FittedPrivately:
    """Public facts of a family that was fitted with noise that protects whole participants.

    At most ``most_transitions`` of each participant were counted, with discrete Laplace noise of
    ``noise_scale``; the family contains the chain with this ``confidence``, and ``token`` is a
    random name of the fit, also in its row of a ledger.

    Raises ParameterError: one of them is out of range.
    """

    epsilon: float
    confidence: float
    participants: int
    most_transitions: int
    noise_scale: float
    token: str

    def __post_init__(self) -> None:
        checks.check_type(self.token, "token", str)
        checks.check_epsilon(self.epsilon)
        checks.check_confidence(self.confidence, "confidence")
        checks.check_whole(self.participants, "participants")
        checks.check_whole(self.most_transitions, "most_transitions")
        checks.check_positive(self.noise_scale, "noise_scale")

    @property
    def statement(self) -> str:
        """The sentence that the file is safe to publish, with the assumption."""
        return (
            "This file is safe to publish: all readings of one participant change the odds of any "
            f"content by a factor of at most e^{self.epsilon:g}. States, time step and number of "
            "participants are public. The intervals contain the chain with confidence "
            f"{self.confidence:g} if all participants are independent draws of it."
        )


@dataclass(frozen=True)
class Reading:
    """The columns to read, and their format.

    Participants and groups are never guessed: with wrong participants the noise is too small.

    Raises ParameterError: one of them is out of range.
    """

    time: str | None = reads(None, "Column of times.", "COLUMN")
    value: str | None = reads(None, "Column of values.", "COLUMN")
    participant: str | None = reads(
        None, "Column of participants; without it all rows belong to one.", "COLUMN"
    )
    group: str | None = reads(None, "Column of a public fact of each participant.", "COLUMN")
    timezone: str | None = reads(None, "Zone of local times, such as Europe/Berlin.", "ZONE")
    time_format: str | None = reads(None, "How times are written, as in %d/%m/%Y %H:%M.", "FORMAT")
    separator: str | None = reads(None, "Sign between fields.", "SIGN")
    decimal: str | None = reads(None, "Decimal sign.", "SIGN")
    thousands: str | None = reads(None, "Sign of thousands.", "SIGN")
    rows_are_steps: bool = reads(False, "Every row is one step, regardless of times.")

    def __post_init__(self) -> None:
        checks.check_type(self.rows_are_steps, "rows_are_steps", bool)
        given = self.given()
        for name, text in given.items():
            if name != "rows_are_steps":
                checks.check_text(text, name)
        if self.rows_are_steps and self.time is not None:
            raise ParameterError("`rows_are_steps` and `time` contradict each other; give one")
        for name in SIGNS:
            sign = str(given.get(name, ";"))
            wide = name == "separator" and not sign.isascii()
            if len(sign) != 1 or sign.isalnum() or sign in '+-\r\n"' or wide:
                what = f"{name} is {checks.shown(sign)}; it must be one character"
                raise ParameterError(f"{what}, and none of which numbers are made")
        if self.thousands == (self.decimal or "."):
            raise ParameterError("`thousands` and `decimal` are the same; correct either")
        try:
            ZoneInfo("UTC" if self.timezone is None else self.timezone)
        except (ValueError, OSError, KeyError):  # KeyError: there is no such zone
            what = f"timezone {checks.shown(self.timezone)} is unknown"
            raise ParameterError(f"{what}; give a name such as Europe/Paris") from None

    def given(self) -> dict[str, str | bool]:
        """Return the read options that differ from the default."""
        options = {field.name: getattr(self, field.name) for field in fields(Reading)}
        return {k: v for k, v in options.items() if v is not None and v is not False}


@dataclass(frozen=True)
class Schema(Reading):
    """The columns to read, their format, and the meaning of their values.

    Attributes
    ----------
    step_seconds : int or None
        Time between two steps; None: the most common difference of the times.
    states : StateSpace or None
        The public states; None: values are numbers.
    fitted, fitted_privately : Fitted and FittedPrivately, or None
        Data of the chain's fit, and its noise; in model files only.
    """

    step_seconds: int | None = None
    states: StateSpace | None = None
    fitted: Fitted | None = None
    fitted_privately: FittedPrivately | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.states is not None:
            checks.check_type(self.states, "states", StateSpace)
        if self.step_seconds is not None:
            step = checks.check_whole(self.step_seconds, "step_seconds", 1, MAX_SECONDS)
            object.__setattr__(self, "step_seconds", step)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON types that :func:`parse_schema` reads."""
        private = self.fitted_privately
        document = {
            "states": None if self.states is None else self.states.to_dict(),
            "step_seconds": self.step_seconds,
            "fitted": None if self.fitted is None else vars(self.fitted).copy(),
            "reading": self.given(),
            "fitted_privately": private and vars(private) | {"statement": private.statement},
        }
        return {k: v for k, v in document.items() if v or k not in ("reading", "fitted_privately")}


def parse_schema(value: object) -> Schema:
    """Return the schema that a model file has under ``records``.

    Raises ModelError: a key is unknown, missing or of the wrong type.
    """
    keys = ("states", "step_seconds", "fitted", "reading", "fitted_privately")
    found = only_keys(value, keys, "records")
    names = tuple(field.name for field in fields(Reading))
    options = only_keys(found.get("reading", {}), names, "records: reading")
    states, where = found.get("states"), "records: states"
    try:
        if isinstance(states, dict) and "edges" in states:
            space = StateSpace.numeric(**only_keys(states, ("edges",), where))
        else:
            states = {"names": (), "other": False} | only_keys(states, ("names", "other"), where)
            checks.check_type(states["other"], "other", bool)
            space = StateSpace.categories(**states)
        fits: dict[str, Any] = {}
        if found.get("fitted") is not None:
            fits["fitted"] = record(Fitted, found["fitted"], "records: fitted")
        if (private := found.get("fitted_privately")) is not None:
            where = "records: fitted_privately"
            fits["fitted_privately"] = record(FittedPrivately, private, where, "statement")
        return Schema(**options, **fits, step_seconds=found.get("step_seconds"), states=space)
    except (ParameterError, OverflowError) as error:
        raise ModelError(f"records: {error}") from error
