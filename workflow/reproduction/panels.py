"""Common parts of the workflow's figures: panels, axes, legend and footer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from pufferflow.drawing.style import COLUMN_WIDTH, TEXT_WIDTH, footer, save_figure
from reproduction.tables import data_labels

LOOKS: list[dict[str, Any]] = [
    {"color": "#0072b2", "marker": "o", "linestyle": (0, ())},
    {"color": "#d55e00", "marker": "s", "linestyle": (0, (4, 1.5, 1, 1.5))},
    {"color": "#009e73", "marker": "^", "linestyle": (0, (5, 2))},
    {"color": "#000000", "marker": "D", "linestyle": (0, (1, 1))},
]
"""Marker and dashes alone distinguish the lines in grey."""


def columns_of(count: int) -> int:
    """Return the number of panels per row: up to three, two for four."""
    return 2 if count == 4 else min(count, 3)


def panels_of(
    count: int,
    *,
    height: float,
    columns: int | None = None,
    width: float | None = None,
    share: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, each ``height`` inches high; a single one is narrow."""
    columns = columns or columns_of(count)
    rows = -(-count // columns)
    width = width or (COLUMN_WIDTH if count == 1 else TEXT_WIDTH)
    # without pyplot: no window system, no global state
    figure = Figure(figsize=(width, height * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=share)
    for spare in grid.flat[count:]:
        spare.remove()
    return figure, list(grid.flat[:count])


def plain_log_ticks(axis: Axis, subs: Sequence[float] = (1, 2, 5)) -> None:
    """Label ``subs`` times the powers of ten in plain decimals."""
    axis.set_major_locator(LogLocator(subs=subs, numticks=15))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def symmetric_log_ticks(axis: Axis, threshold: float) -> None:
    """Label 0 and about three decades on each side of a ``symlog`` axis linear to ``threshold``."""
    low, high = axis.get_view_interval()
    nearest, farthest = (
        int(np.floor(np.log10(x) + 1e-9)) for x in (threshold, max(-low, high, threshold))
    )
    step = 1 + (farthest - nearest) // 4
    # labels next to 0 would overlap
    decades = 10.0 ** np.arange(farthest, nearest - 0.5 + (farthest - nearest > 1), -step)
    ticks = [tick for tick in [*-decades, 0.0, *decades[::-1]] if low <= tick <= high]
    axis.set_ticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axis.set_minor_locator(NullLocator())


def finish(
    figure: Figure, handles: list[Any], note: str, table: pd.DataFrame, description: str = ""
) -> None:
    """Add the legend above the panels and the footer, which describes the data."""
    data = data_labels(table) + (f": {description}" if description else "")
    width = figure.get_figwidth()
    fits = sum(len(h.get_label()) + 8 for h in handles) < 15 * width
    # in one row, or in two with up to 1.5 inches per entry
    columns = 6 if fits else min(-(-len(handles) // 2), int(width / 1.5))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)
    footer(figure, f"{note} {data[0].upper()}{data[1:]}.")


def save(figure: Figure, svg: str) -> None:
    """Write a figure to ``svg`` and as PDF."""
    save_figure(figure, svg.removesuffix(".svg"), ("svg", "pdf"))


def curve(
    axes: Axes, rows: pd.DataFrame, columns: tuple[str, str, str, str], look: dict[str, Any]
) -> None:
    """Draw exact values as a line, and simulated ones as points with error bars.

    ``columns`` are those of x, the exact value, the simulated one and its standard error; if no
    simulated value is above 0 the line gets the markers.
    """
    x, exact, measured, error = columns
    rows, look = rows.sort_values(x), look | {"markerfacecolor": "white"}
    points = rows[rows[measured] > 0]
    axes.plot(rows[x], rows[exact], markevery=[] if len(points) else None, **look)
    if len(points):
        look |= {"linestyle": "none", "elinewidth": 0.8, "label": "_"}
        axes.errorbar(points[x], points[measured], points[error], **look)
