"""Compiled inner loops: pure functions of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pufferflow._jit import kernel

QUOTE, FEED, RETURN = 34, 10, 13


@kernel(steps=lambda text, separator, first: len(text) // 100 if first else len(text))
def line_end(text: NDArray[np.uint8], separator: int, first: bool) -> int:
    r"""Where the first or the last whole line of ``text`` ends, line break included; 0 where none does.

    A field that begins with a quote holds separators and line breaks until a quote that is not doubled, as pandas'
    C parser has it; elsewhere a quote is a letter. A line ends with \n, \r\n or \r; a \r at the very end may yet be
    followed by a \n, so it ends no line.
    """
    end, fresh, quoted = 0, True, False
    i, size = 0, len(text)
    while i < size:
        letter = text[i]
        i += 1
        if quoted:
            if letter != QUOTE:
                continue
            if i < size and text[i] == QUOTE:
                i += 1
            else:
                quoted = False
        elif letter == QUOTE and fresh:
            quoted, fresh = True, False
        elif letter == FEED or (letter == RETURN and i < size):
            if letter == RETURN and text[i] == FEED:
                i += 1
            end, fresh = i, True
            if first:
                break
        else:
            fresh = letter == separator
    return end
