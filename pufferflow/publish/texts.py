"""Strings of a page and of its tables: escaped names, numbers rounded to their error, durations."""

import math
from html import escape
from typing import Any

import pandas as pd

from pufferflow.records.units import SECONDS

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
KEPT = "\u200c\u200d\u00a0"
"""Invisible letters that some scripts and our own sentences need."""
MARKUP = "\\`*_[]{}<>#|$~&!@^"
WORDS = {"s": "second", "min": "minute", "h": "hour", "d": "day"}


def visible(text: str) -> str:
    r"""Return a string whose control, direction and other invisible letters are written out.

    >>> visible("a\u202eb")
    'a⟨U+202E⟩b'
    """
    return "".join(c if c.isprintable() or c in KEPT else f"⟨U+{ord(c):04X}⟩" for c in text)


def html(text: str) -> str:
    """Return a string for HTML, in elements and attributes."""
    return escape(visible(text))


def markdown(text: str) -> str:
    """Return a string that Markdown shows literally, without markup and addresses."""
    plain = "".join(f"\\{c}" if c in MARKUP else c for c in visible(text))
    return plain.replace("://", ":\\//").replace("www.", "www\\.")


def spreadsheet_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV; cells that spreadsheets read as formulas get an apostrophe."""

    def plain(cell: Any) -> Any:
        is_formula = isinstance(cell, str) and cell.startswith(FORMULA_STARTS)
        return f"'{cell}" if is_formula else cell

    return str(table.map(plain).to_csv(index=False, lineterminator="\n"))


def number(value: float, error: float | None = None) -> str:
    """Return a number with three digits, or those that its error allows; "" for NaN."""
    if math.isnan(value):
        return ""
    size = abs(value if error is None else error)
    text = f"{value:.3g}"
    if 1e-7 < size < math.inf and abs(value) < 1e12:
        digits = 2 - math.floor(math.log10(size))
        text = f"{round(value, digits):,.{max(digits, 0)}f}"
    return text.replace("-", "−")


def duration(seconds: int) -> str:
    """Return seconds in the largest unit that divides them, such as "90 minutes"."""
    unit = next(u for u in reversed(WORDS) if seconds % SECONDS[u] == 0)
    return plural(seconds // SECONDS[unit], WORDS[unit])


def plural(count: int, thing: str) -> str:
    """Return a number with its noun, singular or plural."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def factor(epsilon: float) -> str:
    """Return e^ε."""
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else "a number beyond all bounds"
