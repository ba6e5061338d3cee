"""Figures of releases of one's own data, and of planning them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from pufferflow.reporting.figures.panels import check, footer, handle, points, styled
from pufferflow.reporting.style import COLUMN_WIDTH, MUTED, TEXT_WIDTH, VERBATIM, in_order, mechanism_style, state_label

BAR = "#0072b2"
NAMED_STATES = 30


@styled
def histogram(table: pd.DataFrame, caption: str) -> Figure:
    """Released frequencies with their 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        :meth:`pufferflow.publishing.release.PrivateHistogram.to_frame`.
    caption : str
        For the footer.
    """
    check(table)
    figure = Figure(figsize=(TEXT_WIDTH if len(table) > 8 else COLUMN_WIDTH, 2.8), layout="constrained")
    draw_bars(figure.subplots(), table)
    footer(figure, f"Bars: released; lines: 95 % intervals of the exact frequency of each state alone. {caption}.")
    return figure


def draw_bars(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the bars and intervals of :func:`histogram`; of a simulation the title says what it is."""
    k = len(table)
    x = np.arange(k)
    private = not str(table["privacy"].iloc[0]).startswith("NOT")
    axes.bar(x, table["frequency"], width=0.8, color=BAR if private else "#c9ccd1", alpha=0.45)
    axes.vlines(
        x, table["low_95"], table["high_95"], color=BAR if private else MUTED, linewidth=1.1 if k < 100 else 0.5
    )
    axes.axhline(0, color=MUTED, linewidth=0.6)
    step = -(-k // NAMED_STATES)
    names = [state_label(str(name)) for name in table["state"][::step]]
    axes.set_xticks(x[::step], names, rotation=90 if k > 5 else 0, **VERBATIM)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("relative frequency")
    if not private:
        axes.set_title("NOT PRIVATE: a simulation for planning")


@styled
def error_against_epsilon(table: pd.DataFrame, wanted: float | None, quantity: str, caption: str) -> Figure:
    """Error of each mechanism against ε.

    Parameters
    ----------
    table : DataFrame
        :func:`pufferflow.publishing.planning.error_curves`.
    wanted : float or None
        The error to reach, as a line.
    quantity, caption : str
        What the error is, and for which data.
    """
    check(table)
    figure = Figure(figsize=(COLUMN_WIDTH * 1.4, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    names = in_order(table["mechanism"])
    for name in names:
        look = mechanism_style(name)
        curve = table[(table["mechanism"] == name) & (table["error"] > 0)].sort_values("epsilon")
        axes.plot(curve["epsilon"], curve["error"], color=look.color, linestyle=look.dashes)
        axes.plot(curve["epsilon"], curve["error"], color=look.color, **points(look))
    if wanted is not None:
        axes.axhline(wanted, color=MUTED, linewidth=0.8, linestyle=(0, (1, 1)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("ε")
    axes.set_ylabel(quantity)
    handles = []
    for name in names:
        applies = bool((table.loc[table["mechanism"] == name, "error"] >= 0).any())
        entry = handle(name, applies=applies)
        if name == "entry-dp":
            entry.set_label(f"{entry.get_label()} (not private here)")
        handles.append(entry)
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    footer(figure, caption)
    return figure
