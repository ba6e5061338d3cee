"""Output of commands: answers, tables, warnings, and messages with the shell's options."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pufferflow._util.checks import check_positive
from pufferflow._util.work import MAX_WORK

FLAGS = {"first": "--from", "last": "--to", "new_values": "--yes", "seed": "--simulate"}
FLAGS |= {"statistics": "--statistic", "figure": "--no-figure"}


def flag(name: str) -> str:
    """Return the name of a Python option in the shell."""
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def as_options(message: str) -> str:
    """Return a message whose options, in backticks, have the shell's names."""
    return re.sub(r"`(\w+)`", lambda name: flag(name[1]), message)


def actions_of(parser: argparse.ArgumentParser, about: str) -> Callable[..., Callable[..., Any]]:
    """Return a function that declares a subcommand of a file, with help ``about`` the file.

    That function returns one that declares arguments of the subcommand.
    """
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, file: str, act: Any, line: str, more: str = "") -> Callable[..., Any]:
        text = f"{line.capitalize()}. {more}"
        command = actions.add_parser(name, help=line, description=text)
        command.add_argument("file", metavar=file, help=about)
        command.set_defaults(act=act)
        return command.add_argument

    return action


def add_bounds(add: Callable[..., Any], most: float = MAX_WORK) -> None:
    """Declare ``--most-work`` and ``--json``."""

    def number(text: str) -> float:
        return check_positive(float(text), "most_work")

    work = f"most operations (default: {most:g})"
    add("--most-work", type=number, default=most, metavar="N", help=work)
    add("--json", action="store_true", help="print JSON instead of text")


def show(answer: Any, as_json: bool, lines: Iterable[str] | None = None) -> None:
    """Print an answer as JSON, or its lines."""
    if as_json or lines is None:
        lines = [json.dumps(answer, indent=2, allow_nan=False)]
    print("\n".join(lines))


def table(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> list[str]:
    """Return a header and rows as lines with aligned columns."""
    cells = [columns, *([_text(row.get(name)) for name in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return str(value)


def warn(warnings: Iterable[str]) -> None:
    """Print warnings about the guarantee to standard error."""
    for warning in warnings:
        print("pufferflow: warning:", as_options(warning), file=sys.stderr)
