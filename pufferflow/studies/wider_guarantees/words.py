"""What the models, windows and adversaries of this study are called."""

from __future__ import annotations

MODELS = {
    "fitted": "one chain, known exactly",
    "order 2": "two records remembered",
    "hourly": "a chain for every hour",
    "intervals": "known by intervals",
    "forgetting": "only that it forgets",
}
KNOWS = {"nothing": "no record", "any records": "any others"}
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def duration(seconds: int) -> str:
    """Say how long a window is, in the largest unit that divides it.

    >>> duration(60), duration(7200), duration(90)
    ('a minute', '2 hours', '90 seconds')
    """
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    count = seconds // size
    if count == 1:
        return f"{'an' if unit == 'hour' else 'a'} {unit}"
    return f"{count} {unit}s"
