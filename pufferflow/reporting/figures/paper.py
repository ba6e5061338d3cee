"""The paper's figures: tidy tables in, matplotlib figures out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from pufferflow.errors import ParameterError
from pufferflow.reporting.figures.panels import (
    check,
    columns_of,
    finish,
    found_any,
    handle,
    panels_of,
    plain_log_ticks,
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

BAR = "#c9ccd1"
EXACT = Patch(facecolor=BAR, label="exact histogram")
TALLEST = 1.35
"""Top of a histogram's axis, as a multiple of its tallest exact bar."""
LOWEST = -0.2
"""Bottom of that axis; values beyond either are drawn at the edge."""


@styled
def synthetic_error(errors: pd.DataFrame, limits: pd.DataFrame) -> Figure:
    """Figure 4, upper row: L1 error against α, one panel per ε.

    Parameters
    ----------
    errors : DataFrame
        Table of ``experiments.synthetic.errors``.
    limits : DataFrame
        Table of ``experiments.synthetic.gk16_limits``; the row of the class is drawn.
    """
    check(errors)
    epsilons = sorted(errors["epsilon"].unique())
    names = in_order(errors["mechanism"])
    figure, panels = panels_of(len(epsilons), height=2.25)
    limit = float(limits.loc[limits["quantity"].str.startswith("class"), "alpha"].iloc[0])
    marked = "gk16" in names and errors["alpha"].min() < limit < errors["alpha"].max()
    for axes, epsilon in zip(panels, epsilons, strict=True):
        for name in names:
            look = mechanism_style(name)
            rows = errors[(errors["mechanism"] == name) & (errors["epsilon"] == epsilon)].sort_values("alpha")
            # a row without a value leaves a gap, it is never bridged
            axes.plot(rows["alpha"], rows["expected_error"], color=look.color, linestyle=look.dashes)
            axes.errorbar(
                rows["alpha"],
                rows["mean_error"],
                yerr=rows["standard_error"],
                color=look.color,
                elinewidth=0.8,
                markersize=2.4 if len(rows) > 12 else 3.2,
                **points(look),
            )
        if marked:
            axes.axvline(limit, color=MUTED, linestyle="--", linewidth=0.8)
        axes.set_yscale("log")
        plain_log_ticks(axes.yaxis)
        axes.set_title(f"ε = {epsilon:g}")
        axes.set_xlabel("α")
    for axes in panels[:: columns_of(len(panels))]:
        axes.set_ylabel("L1 error of the mean")
    handles = [handle(name, found=found_any(errors, name)) for name in names]
    if marked:
        label = f"GK16 applies right of α = {limit:.4f}"
        handles.append(Line2D([], [], color=MUTED, linestyle="--", linewidth=0.8, label=label))
    repetitions = errors["repetitions"].max()
    note = f"Lines: expected error. Points: mean of {repetitions} repetitions; bars: ± 1 standard error."
    finish(figure, handles, note, errors)
    return figure


@styled
def group_histograms(releases: pd.DataFrame, *, epsilon: float, description: str = "") -> Figure:
    """Figure 4, lower row: exact histogram of each group and noisy releases of each mechanism.

    Parameters
    ----------
    releases : DataFrame
        Table of ``experiments.histograms.releases``.
    epsilon : float
        The ε to draw.
    description : str
        What the data are, for the footer.
    """
    table = _at_epsilon(releases, epsilon)
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


@styled
def power_histogram(releases: pd.DataFrame, *, epsilon: float, description: str = "") -> Figure:
    """Exact histogram of many bins and its noisy releases on a log axis, one panel a mechanism.

    Parameters
    ----------
    releases : DataFrame
        Table of ``experiments.histograms.releases`` of one group.
    epsilon : float
        The ε to draw.
    description : str
        What the data are, for the footer.
    """
    table = _at_epsilon(releases, epsilon)
    if len(set(table["group"])) > 1:
        raise ParameterError("the figure is of one histogram, the table has several groups; select one")
    states = list(dict.fromkeys(table["state"]))
    names = in_order(table["mechanism"])
    exact = table.drop_duplicates("state").set_index("state")["exact_frequency"].reindex(states)
    positive = exact[exact > 0]
    bottom = 10.0 ** np.floor(np.log10(positive.min()))
    top = 10.0 ** np.ceil(np.log10(max(positive.max(), table["released_frequency"].max())))
    figure, panels = panels_of(len(names), height=1.45, columns=1)
    for axes, name in zip(panels, names, strict=True):
        look = mechanism_style(name)
        rows = table[table["mechanism"] == name]
        x = rows["state"].map(states.index).to_numpy(float)
        released = rows["released_frequency"].to_numpy(float)
        axes.set_yscale("log")
        axes.bar(range(len(states)), (exact - bottom).clip(lower=0), bottom=bottom, width=0.92, color=BAR)
        above = released > bottom
        axes.plot(x[above], released[above], color=look.color, alpha=0.7, markersize=2, **points(look))
        noise = float((rows["released_frequency"] - rows["exact_frequency"]).abs().mean())
        axes.axhline(noise, color=look.color, linestyle=look.dashes)
        axes.set_ylim(bottom, top)
        axes.set_xlim(-0.8, len(states) - 0.2)
        lost = 100 * np.mean(~above)
        below = f"; {lost:.0f} % of the released values lie below the axis" if lost else ""
        axes.set_title(f"{look.label}: mean |noise| of a bin {noise:#.2g}{below}", loc="left")
        axes.set_ylabel("frequency")
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=False, axis="x")
        ticks = range(0, len(states), max(1, (len(states) - 1) // 5))
        axes.set_xticks(ticks, [state_label(states[i]) for i in ticks] if axes is panels[-1] else [], **VERBATIM)
    handles = [EXACT, *(handle(name) for name in names)]
    note = (
        f"ε = {epsilon:g}; {table['release'].nunique()} releases per mechanism. "
        "Points: released values; those below the axis, negative or almost 0, are not drawn. "
        "Lines: mean absolute noise of a bin."
    )
    finish(figure, handles, note, table, description)
    return figure


def _at_epsilon(table: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    check(table)
    rows = table[np.isclose(table["epsilon"], epsilon, rtol=1e-12, atol=0)]
    if rows.empty:
        present = ", ".join(f"{e:g}" for e in sorted(table["epsilon"].unique()))
        raise ParameterError(f"epsilon = {epsilon:g} is not in the table; it has {present}")
    return rows


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
