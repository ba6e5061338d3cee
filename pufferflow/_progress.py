"""Progress bars: on a terminal and in a notebook, and nowhere else."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Any


def progress(iterable: Any = None, *, hidden: bool = False, **options: Any) -> Any:
    """Return tqdm's bar with these ``options``, which vanishes at its end; ``hidden``, or TQDM_DISABLE, shows none."""
    hidden = hidden or bool(os.environ.get("TQDM_DISABLE"))
    notebook = "ipykernel" in sys.modules  # its output is no terminal, but somebody watches
    if notebook and find_spec("ipywidgets"):
        from tqdm.auto import tqdm as bar

        return bar(iterable=iterable, disable=hidden, leave=False, **options)
    from tqdm import tqdm

    shown = False if notebook else None  # None: on a terminal only
    return tqdm(iterable=iterable, disable=True if hidden else shown, leave=False, **options)
