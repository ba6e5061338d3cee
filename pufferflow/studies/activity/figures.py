"""Figure 4, lower row: histograms of the groups and their releases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pufferflow.reporting.figures.panels import (
    columns_of,
    finish,
    handle,
    panels_of,
    points,
    styled,
    symmetric_log_ticks,
)
from pufferflow.reporting.style import (
    COLUMN_WIDTH,
    MUTED,
    TEXT_WIDTH,
    VERBATIM,
    MechanismStyle,
    group_label,
    in_order,
    mechanism_style,
    state_label,
)
from pufferflow.studies.histograms.figures import BAR, EXACT, at_epsilon

TALLEST = 1.35
"""Top of a histogram's axis, as a multiple of its tallest exact bar."""
LOWEST = -0.2
"""Bottom of that axis; values beyond either are drawn at the edge."""


@styled
def group_histograms(releases: pd.DataFrame, *, epsilon: float, description: str = "") -> Figure:
    """Figure 4, lower row: exact histogram of each group and noisy releases of each mechanism, and their distance.

    Parameters
    ----------
    releases : DataFrame
        Table of ``studies.histograms.measure.releases``.
    epsilon : float
        The ε to draw.
    description : str
        What the data are, for the footer.
    """
    table = at_epsilon(releases, epsilon)
    groups = list(dict.fromkeys(table["group"]))
    states = list(dict.fromkeys(table["state"]))
    names = in_order(table["mechanism"])
    columns = columns_of(len(groups))
    figure, pairs = _pairs(len(groups), columns)
    top = TALLEST * float(table["exact_frequency"].max())
    bottom = max(LOWEST * top, min(0.0, 1.1 * float(table["released_frequency"].min())))
    threshold = _threshold(table)
    farthest = 1.5 * float((table["released_frequency"] - table["exact_frequency"]).abs().max())
    for place, (group, (above, below)) in enumerate(zip(groups, pairs, strict=True)):
        rows = table[table["group"] == group]
        _histogram(above, rows, states, names, (bottom, top))
        _distances(below, rows, states, names, threshold)
        below.set_ylim(-farthest, farthest)
        symmetric_log_ticks(below.yaxis, threshold)
        above.set_title(group_label(group), **VERBATIM)
        for axes in (above, below):
            axes.set_xticks(range(len(states)), [state_label(s).replace(" ", "\n") for s in states], **VERBATIM)
            axes.set_xlim(-0.55, len(states) - 0.45)
            axes.tick_params(axis="x", length=0, labelsize=6.3)
            axes.grid(visible=False, axis="x")
            axes.tick_params(axis="y", labelleft=place % columns == 0)
        if place % columns == 0:
            above.set_ylabel("relative frequency")
            below.set_ylabel("released − exact")
    note = (
        f"ε = {epsilon:g}; {table['release'].nunique()} releases per mechanism.{_beyond(table, bottom, top)} "
        f"Distances: the axis is linear within ± {threshold:g}."
    )
    finish(figure, [EXACT, *(handle(name, line=False) for name in names)], note, table, description)
    return figure


def _pairs(count: int, columns: int) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """Return a figure and, for each of ``count`` groups, a panel above another."""
    rows = -(-count // columns)
    width = COLUMN_WIDTH if count == 1 else TEXT_WIDTH
    figure, panels = panels_of(2 * rows * columns, height=2.1, columns=columns, width=width)
    above = [panels[2 * row * columns + column] for row in range(rows) for column in range(columns)]
    below = [panels[(2 * row + 1) * columns + column] for row in range(rows) for column in range(columns)]
    for spare in (*above[count:], *below[count:]):
        spare.remove()
    return figure, list(zip(above[:count], below[:count], strict=True))


def _slots(names: Sequence[str]) -> dict[str, float]:
    """Places of the mechanisms beside each other above a state."""
    return dict(zip(names, 0.84 * ((np.arange(len(names)) + 0.5) / len(names) - 0.5), strict=True))


def _histogram(
    axes: Axes, rows: pd.DataFrame, states: list[str], names: Sequence[str], limits: tuple[float, float]
) -> None:
    """Bars of the exact histogram and every release of each mechanism."""
    exact = rows.drop_duplicates("state").set_index("state")["exact_frequency"].reindex(states)
    axes.bar(range(len(states)), exact, width=0.92, color=BAR)
    axes.axhline(0, color=MUTED, linewidth=0.6)
    for name, slot in _slots(names).items():
        own = rows[rows["mechanism"] == name]
        x = own["state"].map(states.index).to_numpy(float) + slot
        _clipped(axes, x, own["released_frequency"].to_numpy(float), *limits, mechanism_style(name))
    axes.set_ylim(*limits)


def _distances(axes: Axes, rows: pd.DataFrame, states: list[str], names: Sequence[str], threshold: float) -> None:
    """Every release as its distance from the exact frequency."""
    axes.set_yscale("symlog", linthresh=threshold, linscale=0.5)
    axes.axhline(0, color=MUTED, linewidth=0.6)
    for name, slot in _slots(names).items():
        own = rows[rows["mechanism"] == name]
        x = own["state"].map(states.index).to_numpy(float) + slot
        look = mechanism_style(name)
        distances = own["released_frequency"] - own["exact_frequency"]
        axes.plot(x, distances, color=look.color, alpha=0.8, markersize=2.6, **points(look))


def _threshold(table: pd.DataFrame) -> float:
    """Power of ten below the mean noise of the best mechanism: what is nearer to 0 is drawn on a linear axis."""
    noise = (table["released_frequency"] - table["exact_frequency"]).abs().groupby(table["mechanism"]).mean()
    return float(10.0 ** np.floor(np.log10(noise.min())))


def _clipped(axes: Axes, x: Any, y: Any, bottom: float, top: float, look: MechanismStyle) -> None:
    """Draw points; those beyond the axis as triangles at its edge."""
    inside = (y >= bottom) & (y <= top)
    axes.plot(x[inside], y[inside], color=look.color, alpha=0.8, markersize=2.6, **points(look))
    for beyond, edge, marker in ((y > top, top, 6), (y < bottom, bottom, 7)):
        if beyond.any():
            edges = np.full(int(beyond.sum()), edge)
            axes.plot(x[beyond], edges, linestyle="none", marker=marker, markersize=4, color=look.color, clip_on=False)


def _beyond(table: pd.DataFrame, bottom: float, top: float) -> str:
    """Count the values drawn at the edge."""
    outside = table[(table["released_frequency"] > top) | (table["released_frequency"] < bottom)]
    counts = outside["mechanism"].value_counts()
    total = table["mechanism"].value_counts()
    parts = [f"{counts[name]} of {total[name]} {mechanism_style(name).label}" for name in in_order(counts.index)]
    return f" Values beyond the axis are drawn at its edge ({', '.join(parts)})." if parts else ""
