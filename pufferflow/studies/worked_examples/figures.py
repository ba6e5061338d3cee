"""Markov quilts, drawn (Figures 1–3)."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pufferflow.reporting.figures.panels import check, footer, styled
from pufferflow.reporting.style import INK, MUTED, TEXT_WIDTH, VERBATIM

ROLES = {
    "node": ("X_i, the secret", INK, "o", "white"),
    "nearby": ("nearby", "#9bd3c3", "o", INK),
    "quilt": ("quilt", "#e69f00", "s", INK),
    "remote": ("remote", "white", "o", INK),
}
"""Label, fill, marker and colour of the text; fill and marker tell the roles apart in grey."""


@styled
def quilts(table: pd.DataFrame) -> Figure:
    """Quilts of a chain, of the running example and of a network, one panel each.

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.worked_examples.quilts``.
    """
    check(table)
    panels = list(dict.fromkeys(table["panel"]))
    lines = [table.loc[table["panel"] == panel, "y"].nunique() for panel in panels]
    figure = Figure(figsize=(TEXT_WIDTH, 0.32 * sum(lines) + 1.6), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=lines)[:, 0]
    for one, panel in zip(axes, panels, strict=True):
        _draw(one, table[table["panel"] == panel], panel)
    handles = [
        Line2D([], [], linestyle="none", marker=marker, markersize=6, label=label, markerfacecolor=fill,
               markeredgecolor=MUTED)
        for label, fill, marker, _ in ROLES.values()
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    footer(figure, "As the library finds them; arrows run from a record to those that depend on it.")
    return figure


def _draw(axes: Axes, table: pd.DataFrame, title: str) -> None:
    rows = table.fillna({"line": "", "parents": ""}).to_dict("records")
    places = {(row["line"], row["variable"]): (float(row["x"]), float(row["y"])) for row in rows}
    for row in rows:
        end = places[row["line"], row["variable"]]
        for parent in row["parents"].split():
            start = places[row["line"], parent]
            arrow = {"arrowstyle": "-|>", "color": MUTED, "linewidth": 0.6, "shrinkA": 7, "shrinkB": 7}
            axes.annotate("", xy=end, xytext=start, arrowprops=arrow)
        _, fill, marker, ink = ROLES[row["role"]]
        axes.plot(*end, marker=marker, markersize=13, markerfacecolor=fill, markeredgecolor=MUTED, zorder=2)
        axes.text(*end, row["variable"], ha="center", va="center", fontsize=5.5, color=ink, **VERBATIM)
    right = float(table["x"].max()) + 0.7
    for line, y in {line: y for (line, _), (_, y) in places.items()}.items():
        axes.text(right, y, line, va="center", fontsize=6.5, **VERBATIM)
    axes.set_xlim(table["x"].min() - 0.7, right + 0.28 * (right - table["x"].min()))
    axes.set_ylim(table["y"].min() - 0.6, table["y"].max() + 0.6)
    axes.set_title(title, loc="left", **VERBATIM)
    axes.set_axis_off()
