"""Figure 4, lower row: histograms of the groups and their releases."""

from __future__ import annotations

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
)
from pufferflow.reporting.style import (
    MUTED,
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
    """Figure 4, lower row: exact histogram of each group and noisy releases of each mechanism.

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
    figure, panels = panels_of(len(groups), height=2.2, share=True)
    top = TALLEST * float(table["exact_frequency"].max())
    bottom = max(LOWEST * top, min(0.0, 1.1 * float(table["released_frequency"].min())))
    slots = 0.84 * ((np.arange(len(names)) + 0.5) / len(names) - 0.5)
    for axes, group in zip(panels, groups, strict=True):
        of_group = table[table["group"] == group]
        exact = of_group.drop_duplicates("state").set_index("state")["exact_frequency"].reindex(states)
        axes.bar(range(len(states)), exact, width=0.92, color=BAR)
        axes.axhline(0, color=MUTED, linewidth=0.6)
        for name, slot in zip(names, slots, strict=True):
            rows = of_group[of_group["mechanism"] == name]
            x = rows["state"].map(states.index).to_numpy(float) + slot
            _clipped(axes, x, rows["released_frequency"].to_numpy(float), bottom, top, mechanism_style(name))
        axes.set_ylim(bottom, top)
        axes.set_title(group_label(group), **VERBATIM)
        axes.set_xticks(range(len(states)), [state_label(s).replace(" ", "\n") for s in states], **VERBATIM)
        axes.tick_params(axis="x", length=0, labelsize=6.3)
        axes.grid(visible=False, axis="x")
    for axes in panels[:: columns_of(len(panels))]:
        axes.set_ylabel("relative frequency")
    note = f"ε = {epsilon:g}; {table['release'].nunique()} releases per mechanism.{_beyond(table, bottom, top)}"
    finish(figure, [EXACT, *(handle(name, line=False) for name in names)], note, table, description)
    return figure


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
