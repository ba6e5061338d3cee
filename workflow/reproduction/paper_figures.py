"""Figures of the paper from tidy tables: Figures 1 to 3, Figure 4, upper row, and longer chains."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pufferflow.drawing import style
from reproduction.panels import columns_of, finish, panels_of, plain_log_ticks

QUALIFIED = {"participant-dp": ": whole participant", "group-dp": ": whole chain"}
"""Additions to mechanisms' names in legends: the protected unit."""
ROLES = {
    "node": ("the secret record", style.INK, "o", "white"),
    "nearby": ("nearby", "#9bd3c3", "o", style.INK),
    "quilt": ("quilt", "#e69f00", "s", style.INK),
    "remote": ("remote", "white", "o", style.INK),
}
"""Label, fill, marker and text colour; fill and marker distinguish the roles in grey."""
USELESS: dict[str, Any] = {"color": style.MUTED, "linewidth": 0.6}
"""Style of the line "no better than a constant guess"."""


def legend(table: pd.DataFrame, column: str = "expected_error") -> list[Line2D]:
    """Return legend entries of the mechanisms of a table, with their protected units."""
    applies = table[column].notna().groupby(table["mechanism"]).any()
    return [
        style.handle(name, applies=applies[name], text=QUALIFIED.get(name, ""))
        for name in style.in_order(table["mechanism"])
    ]


def useless() -> Line2D:
    """Return the legend entry of the line above which a constant guess does as well."""
    return Line2D([], [], label="no better than\na constant guess", **USELESS)


def _curves(table: pd.DataFrame, x: str, line: str, points: str, quantity: str) -> Figure:
    """Draw a panel per ε with a line and points for each mechanism."""
    style.check(table)
    parts = list(table.groupby("epsilon"))
    height = 2.2 if len(parts) > 1 else 2.8  # a narrow legend is high
    figure, panels = panels_of(len(parts), height=height, share=True)
    for axes in panels[:: columns_of(len(panels))]:
        axes.set_ylabel(quantity)
    for axes, (epsilon, rows) in zip(panels, parts, strict=True):
        axes.set(title=f"ε = {epsilon:g}", yscale="log")
        for name in style.in_order(rows["mechanism"]):
            look = style.mechanism_style(name)
            own = rows[rows["mechanism"] == name].sort_values(x)
            # a row without a value leaves a gap in the line
            axes.plot(own[x], own[line], color=look.color, linestyle=look.dashes)
            mark = style.points(look) | {"color": look.color, "elinewidth": 0.8}
            mark["markersize"] = 2.4 if len(own) > 12 else 3.2
            axes.errorbar(own[x], own[points], yerr=own.get("standard_error"), **mark)
    return figure


@style.styled
def synthetic_errors(errors: pd.DataFrame, limits: pd.DataFrame) -> Figure:
    """Draw Figure 4, upper row: L1 error against α (tidy tables "errors" and "gk16_limits")."""
    figure = _curves(errors, "alpha", "expected_error", "mean_error", "L1 error of the mean")
    handles = [*legend(errors), useless()]
    limit = float(limits.loc[limits["quantity"].str.startswith("class"), "alpha"].iloc[0])
    inside = errors["alpha"].min() < limit < errors["alpha"].max()
    if inside and "gk16" in set(errors["mechanism"]):
        dashed: dict[str, Any] = {"color": style.MUTED, "linestyle": "--", "linewidth": 0.8}
        lines = [axes.axvline(limit, **dashed) for axes in figure.axes]
        lines[0].set_label(f"GK16 applies\nright of α = {limit:.4f}")
        handles.append(lines[0])
    for axes in figure.axes:
        axes.axhline(0.5, **USELESS)
        low, high = axes.get_ylim()
        plain_log_ticks(axes.yaxis, (1, 2, 5) if high < 50 * low else (1,))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.set_xlabel("α")
    note = (
        f"Lines: expected error. Points: mean of {errors['repetitions'].max()} repetitions; bars: "
        "± 1 standard error. Constant guess: the answer ½ has an error of at most ½."
    )
    finish(figure, handles, note, errors)
    return figure


@style.styled
def growth(table: pd.DataFrame) -> Figure:
    """Draw noise scales against the length of the chain, one panel per ε (tidy table "growth")."""
    figure = _curves(table, "length", "scale", "scale", "noise scale σ")
    for axes in figure.axes:
        axes.set(xscale="log", xlabel="length T")
    note = f"Class α = {table['alpha'].iloc[0]:g}, every initial distribution."
    finish(figure, legend(table, "scale"), note, table)
    return figure


@style.styled
def wasserstein(values: pd.DataFrame) -> Figure:
    """Draw Figure 1, W∞ of the number of ill people in the clique of four ("values")."""
    style.check(values)
    computed, numbers = values.set_index("key")["computed"], range(5)
    well, ill = (np.array([float(computed[f"flu/{x}/{n}"]) for n in numbers]) for x in (0, 1))
    # Mass between neighbouring cumulative probabilities has one origin and one destination.
    cuts = np.unique(np.round([0, *well.cumsum(), *ill.cumsum()], 12))
    middles = (cuts[1:] + cuts[:-1]) / 2
    origins, goals = (np.searchsorted(each.cumsum(), middles) for each in (well, ill))
    W = int(abs(goals - origins).max())
    figure = Figure(figsize=(1.3 * style.COLUMN_WIDTH, 2.9), layout="constrained")
    axes = figure.subplots()
    bar: dict[str, Any] = {"width": 0.34, "edgecolor": style.INK, "linewidth": 0.8}
    above = axes.bar(numbers, well, bottom=1, color="white", label="P(N | a person is well)", **bar)
    below = axes.bar(numbers, -ill, color="#8a8f98", label="P(N | a person is ill)", **bar)
    for bars, masses in ((above, well), (below, ill)):
        axes.bar_label(bars, [f"{p:g}" for p in masses], fontsize=6, padding=1)
    moved, kept = "#d55e00", "#b9c4cf"
    for origin, goal, mass in zip(origins, goals, np.diff(cuts), strict=True):
        steps = abs(goal - origin)
        band = {"linewidth": 1 + 14 * mass, "color": moved if steps == W else kept}
        axes.plot([origin, goal], [1, 0], zorder=2 + (steps == W), **band)
        # labels of bands that cross stand at different heights
        down = {0: 0.45, 1: 0.62}.get(int(steps), 0.3)
        box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
        x, label = origin + (goal - origin) * down, f"{mass:.3f}".rstrip("0")
        axes.text(x, 1 - down, label, fontsize=6, zorder=4, bbox=box, ha="center", va="center")
    axes.set(ylim=(-0.65, 1.65), yticks=[], xlabel="N, how many of four are ill")
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    far, near = Patch(color=moved, label=f"moves by W = {W}"), Patch(color=kept, label="by less")
    figure.legend(handles=[above, below, far, near], loc="outside upper center", ncols=2)
    style.footer(figure, "Bands: how much mass moves, and how far, as the person's state changes.")
    return figure


@style.styled
def quilts(table: pd.DataFrame) -> Figure:
    """Draw Figures 2 and 3: quilts of chains and of a network (tidy table "quilts")."""
    style.check(table)
    parts = list(table.groupby("panel", sort=False))
    lines = [rows["y"].nunique() for _, rows in parts]
    figure = Figure(figsize=(style.TEXT_WIDTH, 0.32 * sum(lines) + 1.6), layout="constrained")
    panels = figure.subplots(len(parts), 1, squeeze=False, height_ratios=lines)[:, 0]
    mark: dict[str, Any] = {"linestyle": "none", "markeredgecolor": style.MUTED}
    arrow = {"arrowstyle": "-|>", "color": style.MUTED, "lw": 0.6, "shrinkA": 7, "shrinkB": 7}
    for axes, (title, own) in zip(panels, parts, strict=True):
        positions = {(row.line, row.variable): (row.x, row.y) for row in own.itertuples()}
        for row in own.itertuples():
            end = positions[row.line, row.variable]
            for parent in str(row.parents).split():
                axes.annotate("", end, positions[row.line, parent], arrowprops=arrow)
            _, fill, marker, ink = ROLES[str(row.role)]
            axes.plot(*end, marker=marker, markersize=13, markerfacecolor=fill, zorder=2, **mark)
            text: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 5.5, "color": ink}
            axes.text(*end, row.variable, **text, **style.VERBATIM)
        left, right = own["x"].min() - 0.7, own["x"].max() + 0.7
        for line, y in own.groupby("line")["y"].first().items():
            axes.text(right, y, line, va="center", fontsize=6.5, **style.VERBATIM)
        axes.set_xlim(left, right + 0.28 * (right - left))
        axes.set_ylim(own["y"].min() - 0.6, own["y"].max() + 0.6)
        axes.set_title(title, loc="left", **style.VERBATIM)
        axes.set_axis_off()
    handles = [
        Line2D([], [], label=label, markerfacecolor=fill, marker=marker, markersize=6, **mark)
        for label, fill, marker, _ in ROLES.values()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    style.footer(figure, "From the library; arrows run from a record to those that depend on it.")
    return figure
