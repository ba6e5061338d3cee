"""Faults of this program, where their text could quote the data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pufferflow.errors import PufferflowError


@contextmanager
def nothing_quoted() -> Iterator[None]:
    """Turn whatever is raised but was not meant to be into one sentence without any of the data."""
    try:
        yield
    except (PufferflowError, OSError):
        raise
    except Exception as error:
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        place = "" if at is None else f" ({at.tb_frame.f_code.co_name}, line {at.tb_lineno})"
        raise PufferflowError(
            f"a fault of this program: {type(error).__name__}{place}; nothing of the data is shown, please report it"
        ) from None
