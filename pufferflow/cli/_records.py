"""What the commands that read a table have in common."""

from __future__ import annotations

import argparse

from pufferflow.errors import ParameterError
from pufferflow.publishing.records import Reading


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare the options of :class:`Reading`."""
    group = parser.add_argument_group("columns and clock")
    group.add_argument(
        "--time", metavar="NAME", help="column of the times (default: by name; without one a row is a step)"
    )
    group.add_argument("--value", metavar="NAME", help="column of the values (default: by name, or the only one left)")
    group.add_argument(
        "--participant", metavar="NAME", help="column of the participants (default: by name, or one for all)"
    )
    group.add_argument("--group", metavar="NAME", help="column of the groups (default: by name, or one for all)")
    group.add_argument(
        "--timezone", metavar="ZONE", help="zone of times on a local clock, such as Europe/Paris, or UTC"
    )
    group.add_argument(
        "--time-format", metavar="FORMAT", help='of times that are not ISO 8601, such as "%%d/%%m/%%Y %%H:%%M"'
    )
    group.add_argument("--separator", default=",", metavar="CHAR", help="between the fields of a CSV (default: ,)")
    group.add_argument("--decimal", default=".", metavar="CHAR", help="decimal sign of a CSV (default: .)")


def reading(arguments: argparse.Namespace) -> Reading:
    """Return the options of :func:`add_reading`."""
    names = ("time", "value", "participant", "group", "timezone", "time_format", "separator", "decimal")
    return Reading(**{name: getattr(arguments, name) for name in names})


def listed(text: str | None) -> tuple[str, ...] | None:
    """Split ``a,b,c``."""
    return None if text is None else tuple(part.strip() for part in text.split(","))


def edges(text: str | None) -> tuple[float, ...] | None:
    """Read ``0,200,400``.

    Raises
    ------
    ParameterError
        A part is no number.
    """
    try:
        return None if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"edges are {text!r}; give numbers with commas, for example 0,200,400") from None
