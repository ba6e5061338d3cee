"""What commands print: answers, tables, warnings, and messages in the shell's words."""

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pufferflow._work import MOST_WORK


def flags(*records: type) -> dict[str, str]:
    """Return what each option of Python is called in the shell."""
    from pufferflow._options import options_of
    from pufferflow.publish.request import RECORDS

    fields = [field for record in records or RECORDS for field in options_of(record)]
    return {f.name: f"--{f.metadata['flag'] or f.name.replace('_', '-')}" for f in fields}


def as_options(said: str) -> str:
    """Return a message with the shell's names of options where advice or brackets name them."""
    names = {"most_work": "--most-work", "most_transitions": "--most-transitions"}
    if "pufferflow.publish.request" in sys.modules:
        names |= flags()
    one = rf"(?:{'|'.join(names)})\b"
    marked = "|".join(name for name in names if "_" in name)
    listed = rf"\((?:{one}|from, to)\)|\b(?:give|leave|needs) {one}(?:(?:, | and ){one})*"
    free = rf"(?<![\w'\"/.-])(?:{one} and {one}(?! \()|{marked})(?![\w'\"/.-]*['\"/])"
    spans, name = rf"{listed}|{free}", rf"\b(?:{one}|from|to)\b"
    flag = {"from": "--from", "to": "--to"} | names
    return re.sub(spans, lambda span: re.sub(name, lambda m: flag[m[0]], span[0]), said)


def add_bounds(parser: argparse.ArgumentParser, most: float = MOST_WORK) -> None:
    """Declare ``--most-work`` and ``--json``."""

    def number(text: str) -> float:
        if not 0 < float(text) < math.inf:
            raise ValueError
        return float(text)

    work = f"operations that it may take, estimated beforehand (default: {most:g})"
    parser.add_argument("--most-work", type=number, default=most, metavar="N", help=work)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def show(answer: Any, as_json: bool, lines: Iterable[str] | None = None) -> None:
    """Print an answer as JSON, or the lines that say it to people."""
    if as_json or lines is None:
        lines = [json.dumps(answer, indent=2, allow_nan=False)]
    print("\n".join(lines))


def table(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> list[str]:
    """Return rows as lines with aligned columns, the first line with their names."""
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
    """Print what weakens the guarantee, beside the results."""
    for warning in warnings:
        print("pufferflow: warning:", as_options(warning), file=sys.stderr)
