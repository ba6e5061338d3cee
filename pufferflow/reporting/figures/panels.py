"""What all figures share: panels, legends, axes and the footer that says what the data are.

Figures are built without pyplot, so no window system and no global state is involved.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from pufferflow.errors import DataError
from pufferflow.reporting.style import (
    COLUMN_WIDTH,
    MUTED,
    TEXT_WIDTH,
    VERBATIM,
    MechanismStyle,
    data_labels,
    figure_style,
    mechanism_style,
)

LEGEND_ENTRY = 1.5
"""Width in inches of a long entry of a legend."""

Draw = TypeVar("Draw", bound=Callable[..., Figure])


def styled(draw: Draw) -> Draw:
    """Run ``draw`` in the style of this project."""
    return figure_style()(draw)


def check(table: pd.DataFrame) -> None:
    """Raise :class:`DataError` if the table has no row."""
    if table.empty:
        raise DataError("the table to draw has no row; check the settings of the experiment that makes it")


def any_value(table: pd.DataFrame, name: str, column: str = "expected_error") -> bool:
    """Say whether a mechanism has any value in ``column``."""
    return bool(table.loc[table["mechanism"] == name, column].notna().any())


def columns_of(count: int) -> int:
    """Panels side by side: up to three, four as two rows of two."""
    return 2 if count == 4 else min(count, 3)


def panels_of(
    count: int,
    *,
    height: float,
    columns: int | None = None,
    width: float | None = None,
    share: bool | Literal["row"] = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its panels, each ``height`` inches high; one panel alone fills a column of a paper."""
    columns = columns or columns_of(count)
    rows = -(-count // columns)
    width = width or (COLUMN_WIDTH if count == 1 else TEXT_WIDTH)
    figure = Figure(figsize=(width, height * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=share)
    for spare in grid.flat[count:]:
        spare.remove()
    return figure, list(grid.flat[:count])


def points(look: MechanismStyle) -> dict[str, Any]:
    """Return how the points of a mechanism are drawn."""
    return {"linestyle": "none", "marker": look.marker, "markerfacecolor": "white", "markeredgewidth": 0.7}


def handle(name: str, *, line: bool = True, applies: bool = True) -> Line2D:
    """Return the legend's entry of a mechanism."""
    look = mechanism_style(name)
    label = look.label if applies else f"{look.label} (not applicable)"
    shown = points(look) | ({"linestyle": look.dashes} if line else {})
    return Line2D([], [], color=look.color, label=label, **shown)


def plain_log_ticks(axis: Axis, subs: Sequence[float] = (1, 2, 5)) -> None:
    """Label ``subs`` times the powers of ten in plain decimals."""
    axis.set_major_locator(LogLocator(subs=subs, numticks=15))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def symmetric_log_ticks(axis: Axis, threshold: float) -> None:
    """Label 0 and decades on both sides of it, three a side or so, on a ``symlog`` axis linear up to ``threshold``."""
    low, high = axis.get_view_interval()
    nearest, farthest = (int(np.floor(np.log10(x) + 1e-9)) for x in (threshold, max(-low, high, threshold)))
    step = 1 + (farthest - nearest) // 4
    # those next to 0 would lie over each other
    decades = 10.0 ** np.arange(farthest, nearest - 0.5 + (farthest - nearest > 1), -step)
    ticks = [tick for tick in [*-decades, 0.0, *decades[::-1]] if low <= tick <= high]
    axis.set_ticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axis.set_minor_locator(NullLocator())


def finish(figure: Figure, handles: list[Any], note: str, table: pd.DataFrame, description: str = "") -> None:
    """Add the legend above the panels and the footer that says what the data are."""
    data = data_labels(table)
    data = data[0].upper() + data[1:] + (f": {description}" if description else "")
    width = figure.get_figwidth()
    fits = sum(len(h.get_label()) + 8 for h in handles) < 15 * width
    columns = min(len(handles), 6) if fits else min(-(-len(handles) // 2), int(width / LEGEND_ENTRY))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)
    footer(figure, f"{note} {data}.")


def footer(figure: Figure, text: str) -> None:
    """Set ``text`` below the panels, in lines as wide as the figure."""
    lines = textwrap.fill(text, int(22 * figure.get_figwidth()))
    figure.supxlabel(lines, x=0.01, ha="left", fontsize=6, color=MUTED, linespacing=1.3, **VERBATIM)
