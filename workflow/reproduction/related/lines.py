"""Exact lines with simulated points, as the figures of αβ and of classical privacy draw them."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

LOOKS: list[dict[str, Any]] = [
    {"color": "#0072b2", "marker": "o", "linestyle": (0, ())},
    {"color": "#d55e00", "marker": "s", "linestyle": (0, (4, 1.5, 1, 1.5))},
    {"color": "#009e73", "marker": "^", "linestyle": (0, (5, 2))},
    {"color": "#000000", "marker": "D", "linestyle": (0, (1, 1))},
]
"""Marker and dashes alone distinguish the lines in grey."""


def curve(
    axes: Axes, rows: pd.DataFrame, columns: tuple[str, str, str, str], look: dict[str, Any]
) -> None:
    """Draw exact values as a line, and simulated ones as points with bars of one standard error.

    ``columns`` are those of x, the exact value, the simulated one and its standard error; without
    any simulated one above 0 the line gets the markers.
    """
    x, exact, measured, error = columns
    rows, look = rows.sort_values(x), look | {"markerfacecolor": "white"}
    points = rows[rows[measured] > 0]
    axes.plot(rows[x], rows[exact], markevery=[] if len(points) else None, **look)
    if len(points):
        look |= {"linestyle": "none", "elinewidth": 0.8, "label": "_"}
        axes.errorbar(points[x], points[measured], points[error], **look)
