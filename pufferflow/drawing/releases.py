"""Figures of releases of one's own data, and of planning them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from pufferflow.drawing.style import (
    COLUMN_WIDTH,
    MUTED,
    TEXT_WIDTH,
    VERBATIM,
    check,
    footer,
    handle,
    in_order,
    mechanism_style,
    points,
    state_label,
    styled,
)

BAR = "#0072b2"
NAMED_STATES = 30
NOT_PRIVATE = "NOT PRIVATE: a simulation for planning"
AXES = {"all": "all records", "hour": "hour of day", "weekday": "weekday", "month": "month", "group": "group"}
"""What cells are called."""


@styled
def histogram(table: pd.DataFrame, caption: str, edges: Sequence[float] | None = None) -> Figure:
    """Released frequencies with their 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        :meth:`pufferflow.publishing.histogram.PrivateHistogram.to_frame`.
    caption : str
        For the footer.
    edges : sequence of float, optional
        Between bins of numbers; bins of different widths are drawn so, their area being the frequency.
    """
    check(table)
    figure = Figure(figsize=(TEXT_WIDTH if len(table) > 8 else COLUMN_WIDTH, 2.8), layout="constrained")
    axes = figure.subplots()
    draw_bars(axes, table, edges)
    footer(figure, f"Bars: released; lines: 95 % intervals of the exact frequency of each state alone. {caption}.")
    return figure


def draw_bars(axes: Axes, table: pd.DataFrame, edges: Sequence[float] | None = None) -> None:
    """Draw the bars and intervals of :func:`histogram`; of a simulation the title says what it is."""
    private = _is_private(table)
    _bars(axes, table["state"], table[["frequency", "low_95", "high_95"]], edges, private)
    axes.set_xlabel("state" if edges is None else "value")
    axes.set_title("Histogram" if private else NOT_PRIVATE)


@styled
def statistic(table: pd.DataFrame, title: str, quantity: str, caption: str) -> Figure:
    """A released statistic with 95 % intervals: bars for one cell, points for one number a cell, shades for many.

    Parameters
    ----------
    table : DataFrame
        The rows of one statistic of :meth:`pufferflow.publishing.released.PrivateRelease.to_frame`.
    title, quantity, caption : str
        What it is, what its values are, and for the footer.
    """
    check(table)
    private = _is_private(table)
    by, name = str(table["by"].iloc[0]), str(table["statistic"].iloc[0])
    cells, bins = (list(dict.fromkeys(table[column])) for column in ("cell", "bin"))
    figure = Figure(figsize=(TEXT_WIDTH, 3.0), layout="constrained")
    axes = figure.subplots()
    if name == "transitions" and len(cells) == 1:
        states = round(len(bins) ** 0.5)
        names = [label.partition(" → ")[2] for label in bins[:states]]
        _shades(figure, axes, table["value"].to_numpy().reshape(states, states), names, names, quantity)
        axes.set_xlabel("next state")
        axes.set_ylabel("state")
        note = "Shades: released."
    elif len(cells) == 1:
        inner = table["low"].dropna().unique().tolist() if name == "histogram" else []
        _bars(axes, table["bin"], table[["value", "low_95", "high_95"]], inner or None, private, quantity)
        axes.set_xlabel({"histogram": "value" if inner else "state", "runs": "duration"}.get(name, "all records"))
        note = "Bars: released; lines: 95 % intervals of each exact number alone."
    elif len(bins) == 1:
        x = np.arange(len(cells))
        axes.vlines(x, table["low_95"], table["high_95"], color=BAR if private else MUTED, linewidth=1.1)
        axes.plot(x, table["value"], marker="o", markersize=3, linewidth=0.8, color=BAR if private else MUTED)
        _name(axes, x, cells)
        axes.set_xlabel(AXES[by])
        axes.set_ylabel(quantity)
        note = "Points: released; lines: 95 % intervals of each exact number alone."
    else:
        _shades(figure, axes, table["value"].to_numpy().reshape(len(cells), -1).T, cells, bins, quantity)
        axes.set_xlabel(AXES[by])
        axes.set_ylabel("duration" if name == "runs" else "value" if table["low"].notna().any() else "state")
        widest = (table["high_95"] - table["low_95"]).max() / 2
        note = f"Shades: released, each within {widest:.2g} of the exact number with probability 95 %."
    axes.set_title(f"{title}{'' if by == 'all' else f' by {AXES[by]}'}" if private else NOT_PRIVATE)
    footer(figure, f"{note} {caption}.")
    return figure


@styled
def running_count(table: pd.DataFrame, what: str, caption: str) -> Figure:
    """A running count with its 95 % half widths.

    Parameters
    ----------
    table : DataFrame
        Columns time, noisy_count and half_width_95: lines of ``pufferflow count``, or some of them.
    what, caption : str
        What is counted, and for the footer.
    """
    check(table)
    figure = Figure(figsize=(TEXT_WIDTH, 3.0), layout="constrained")
    axes = figure.subplots()
    numbered = pd.api.types.is_numeric_dtype(table["time"])
    x = (table["time"] if numbered else pd.to_datetime(table["time"])).to_numpy()
    count, width = table["noisy_count"].to_numpy(), table["half_width_95"].to_numpy()
    axes.fill_between(x, count - width, count + width, color=BAR, alpha=0.25, linewidth=0)
    axes.plot(x, count, color=BAR, linewidth=1.1, marker="o" if len(table) == 1 else None, markersize=3)
    axes.axhline(0, color=MUTED, linewidth=0.6)
    axes.set_xlabel("record" if numbered else "time")
    axes.set_ylabel(f"{what}, so far" if len(what) < 40 else "counted so far")
    axes.set_title("Running count")
    footer(figure, f"Line: released; shade: 95 % intervals of each exact count alone. {caption}.")
    return figure


def _is_private(table: pd.DataFrame) -> bool:
    return not str(table["privacy"].iloc[0]).startswith("NOT")


def _bars(
    axes: Axes,
    names: pd.Series[Any],
    values: pd.DataFrame,
    edges: Sequence[float] | None,
    private: bool,
    quantity: str = "share of records",
) -> None:
    """Bars with intervals; ``values`` has the columns value, low and high; open bins are as wide as those beside."""
    k, (value, low, high) = len(values), (values[column].to_numpy() for column in values)
    x, width = np.arange(k, dtype=float), np.ones(k)
    if edges is not None and len(edges) > 1:
        inner = np.diff(edges)
        if not np.allclose(inner, inner[0], rtol=1e-6):
            width = np.concatenate((inner[:1], inner, inner[-1:]))
            x = np.concatenate(([edges[0] - inner[0]], edges)) + width / 2
            value, low, high = value / width, low / width, high / width
            quantity += " per unit of value"
    gap = 0.8 if (width == 1).all() else 0.96
    axes.bar(x, value, width=gap * width, color=BAR if private else "#c9ccd1", alpha=0.45)
    axes.vlines(x, low, high, color=BAR if private else MUTED, linewidth=1.1 if k < 100 else 0.5)
    axes.axhline(0, color=MUTED, linewidth=0.6)
    if gap == 0.8:
        _name(axes, x, [str(name) for name in names])
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(quantity)


def _name(axes: Axes, x: Any, names: Sequence[str]) -> None:
    """Set the names of places on the x axis, every so many of them."""
    step = -(-len(names) // NAMED_STATES)
    shown = [state_label(name) for name in names[::step]]
    axes.set_xticks(x[::step], shown, rotation=90 if len(names) > 5 else 0, **VERBATIM)


def _shades(figure: Figure, axes: Axes, values: Any, across: Sequence[str], up: Sequence[str], quantity: str) -> None:
    """Shades of ``values`` of shape (up, across), with their key."""
    largest = float(np.abs(values).max()) or 1.0
    mesh = axes.pcolormesh(values, cmap="RdBu_r", vmin=-largest, vmax=largest, rasterized=True)
    figure.colorbar(mesh, ax=axes, label=quantity)
    _name(axes, np.arange(len(across)) + 0.5, across)
    step = -(-len(up) // NAMED_STATES)
    shown = [state_label(name) for name in up[::step]]
    axes.set_yticks(np.arange(len(up))[::step] + 0.5, shown, **VERBATIM)
    axes.grid(visible=False)


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
