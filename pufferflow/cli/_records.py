"""What the commands that read a table have in common."""

from __future__ import annotations

import argparse
import math
from fractions import Fraction

from pufferflow.errors import ParameterError
from pufferflow.records.format import MOST_STATES, READING_OPTIONS, RecordFormat
from pufferflow.records.reading import GUESSES, Reading

EDGES = "edges between numeric bins, or first:last:width"
"""What ``--edges`` is given."""

AS_FITTED = "What was given of these when the chain was fitted holds here too, unless it is given again."


def add_reading(parser: argparse.ArgumentParser, description: str | None = None) -> None:
    """Declare the options of :class:`Reading`."""
    group = parser.add_argument_group("columns and clock", description)
    for role, of, without in (
        ("time", "times", "without one a row is a step"),
        ("value", "values", "or the only one left"),
        ("participant", "participants", "or one for all"),
        ("group", "groups", "or one for all"),
    ):
        known = ", ".join(GUESSES[role])
        two = "; Date,Time where dates and times of day stand in two columns" if role == "time" else ""
        group.add_argument(
            f"--{role}", metavar="NAME", help=f"column of the {of} (default: the one called {known}; {without})" + two
        )
    group.add_argument(
        "--rows-are-steps",
        action="store_true",
        help="every row is the step after the one before, although there are columns that are not used",
    )
    group.add_argument(
        "--timezone", metavar="ZONE", help="zone of times on a local clock, such as Europe/Paris, or UTC"
    )
    group.add_argument(
        "--time-format", metavar="FORMAT", help='of times that are not ISO 8601, such as "%%d/%%m/%%Y %%H:%%M"'
    )
    group.add_argument("--separator", metavar="CHAR", help="between the fields of a CSV (default: ,)")
    group.add_argument("--decimal", metavar="CHAR", help="decimal sign of a CSV (default: .)")
    group.add_argument("--thousands", metavar="CHAR", help="sign between thousands in a CSV (default: none)")


def add_reason(group: argparse._ArgumentGroup) -> None:
    """Declare why a pause splits a record."""
    group.add_argument(
        "--split-because",
        metavar="WORDS",
        help="why what comes after such a pause does not depend on what came before; the statement says it",
    )


def reading(arguments: argparse.Namespace, form: RecordFormat | None = None) -> Reading:
    """Return the options of :func:`add_reading`; those not given are as the chain's data were read."""
    options = {name: getattr(arguments, name) for name in READING_OPTIONS}
    given = {name: value for name, value in options.items() if value not in (None, False)}
    return Reading(**(({} if form is None else dict(form.reading)) | given))


def listed(text: str | None) -> tuple[str, ...] | None:
    """Split ``a,b,c``."""
    return None if text is None else tuple(part.strip() for part in text.split(","))


def edges(text: str | None) -> tuple[float, ...] | None:
    """Read ``0,200,400`` or ``0:400:200``.

    Raises ParameterError: a part is no number, or the three are no range.
    """
    if text is None:
        return None
    try:
        if text.count(":") == 2:
            return _evenly(*map(Fraction, text.split(":")))
        return tuple(float(part) for part in text.split(","))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ParameterError(
            f"edges are {text!r}; give numbers with commas, for example 0,200,400, or first:last:width"
        ) from None


def _evenly(first: Fraction, last: Fraction, width: Fraction) -> tuple[float, ...]:
    """Edges from the first to the last one, the same width apart.

    Raises ValueError: that are none, or too many for states.
    """
    count = (last - first) / width
    if width <= 0 or not 0 <= count <= MOST_STATES:
        raise ValueError
    return tuple(float(first + i * width) for i in range(math.floor(count) + 1))
