"""Progress bars: on a terminal and in a notebook, and nowhere else."""

from __future__ import annotations

import sys
from typing import Any


def progress(iterable: Any = None, *, hidden: bool = False, **options: Any) -> Any:
    """Return tqdm's bar with these ``options``, which vanishes at its end; ``hidden`` shows none in any case."""
    if "ipykernel" in sys.modules:  # a notebook's output is no terminal, but somebody watches
        from tqdm.auto import tqdm as bar

        return bar(iterable=iterable, disable=hidden, leave=False, **options)
    from tqdm import tqdm

    return tqdm(iterable=iterable, disable=True if hidden else None, leave=False, **options)  # None: on a terminal only
