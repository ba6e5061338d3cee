"""Numbers as text: what counts as one, and the one text that stands for all ways of writing it."""

from __future__ import annotations

import math
import re
from decimal import Decimal

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def shortest(text: str) -> str | None:
    """Return the one short text of the same number, exactly: "0" for "0.0"; None where the text is no finite number."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    if zeros == len(digits):
        return "0"
    number = Decimal((sign, digits[: len(digits) - zeros], exponent + zeros))  # normalize() would round
    return f"{number:f}" if -7 < number.adjusted() < 21 else str(number)
