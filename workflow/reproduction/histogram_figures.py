"""Figures of real data: histograms and their releases (Figure 4, lower row), and their errors."""

import re
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from pufferflow.drawing import style
from reproduction.panels import columns_of, finish, panels_of, symmetric_log_ticks
from reproduction.paper_figures import QUALIFIED, USELESS, legend, useless
from reproduction.paper_tables import with_published
from reproduction.tables import UNDEFINED, compared_label, decimals, group_label, shown_epsilon

BAR = "#c9ccd1"
MANY_STATES = 12
"""Up to this number of states the axis is linear, beyond it logarithmic."""


@style.styled
def histograms(releases: pd.DataFrame, description: str = "") -> Figure:
    """Draw Figure 4, lower row: histograms and releases (tidy "releases") at the ε closest to 1.

    There is a panel per group and mechanism, all with one axis, which noisy releases may exceed.
    """
    style.check(releases)
    epsilon = shown_epsilon(releases["epsilon"].unique())
    table = releases[releases["epsilon"] == epsilon]
    table = table.assign(distance=(table["released_frequency"] - table["exact_frequency"]).abs())
    groups, states = list(table["group"].unique()), list(table["state"].unique())
    names, many = style.in_order(table["mechanism"]), len(states) > MANY_STATES
    panels = list(product(groups, names))
    width = min(style.TEXT_WIDTH, style.COLUMN_WIDTH * len(names))
    shape: Any = {"height": 2.1, "columns": len(names), "width": width, "share": True}
    figure, all_axes = panels_of(len(panels), **shape)
    x, step = np.arange(len(states)), 5 * -(-(len(states) - 1) // 15) if many else 1
    named = list(map(style.state_label, states))
    labels = [(re.search(r"[\d.]+", state) or [state])[0] for state in states] if many else named
    below = "lower edge of bin" + " (W)" * states[0].endswith(" W") if many else ""
    for axes, (group, name) in zip(all_axes, panels, strict=True):
        own = table[(table["group"] == group) & (table["mechanism"] == name)]
        of_state, look = own.groupby("state", sort=False), style.mechanism_style(name)
        released = of_state["released_frequency"].agg(["first", "min", "max"])
        noise = float(own["distance"].mean())
        edges = np.arange(len(states) + 1) - 0.5
        axes.stairs(of_state["exact_frequency"].first(), edges, fill=True, color=BAR)
        line: dict[str, Any] = {"color": look.color, "linewidth": 0.6, "alpha": 0.55}
        axes.vlines(x, released["min"], released["max"], **line)
        mark = style.points(look) | {"color": look.color, "markersize": 1.9, "markeredgewidth": 0.5}
        axes.plot(x, released["first"], **mark)
        for side in (-noise, noise):
            axes.axhline(side, color=look.color, linestyle=look.dashes, linewidth=0.7)
        title = f"{group_label(group)}\n" if len(groups) > 1 else ""
        title = f"{title}{look.label}: |noise| {noise:.2g}"
        axes.set_title(title, loc="left", fontsize=7.2, **style.VERBATIM)
        axes.set_xlim(-0.8, len(states) - 0.2)
        axes.set_xticks(x[::step], labels[::step], rotation=0 if many else 90, **style.VERBATIM)
        axes.tick_params(axis="x", labelbottom=group == groups[-1])
        axes.set_xlabel(below * (group == groups[-1]))
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("relative frequency" if name == names[0] else "")
    note = f"ε = {epsilon:g}; {table['release'].nunique()} releases per mechanism. "
    note += "Marks: the first release; vertical lines: minimum to maximum of all, in each bin; "
    note += "level lines and |noise|: the mean absolute noise of a bin."
    if many:
        # values closer to 0 than the mean noise of the best mechanism are drawn on a linear axis
        best = table.groupby("mechanism")["distance"].mean().min()
        threshold = float(10.0 ** np.floor(np.log10(best)))
        note += f" The axis is linear within ± {threshold:g}."
        for axes in all_axes:
            axes.set_yscale("symlog", linthresh=threshold, linscale=0.5)
            symmetric_log_ticks(axes.yaxis, threshold)
    else:
        top = 1.35 * float(table["exact_frequency"].max())
        all_axes[0].set_ylim(-0.2 * top, top)
    bars = Patch(facecolor=BAR, label="exact histogram")
    finish(figure, [bars, *legend(table, "released_frequency")], note, table, description)
    return figure


@style.styled
def errors_beside_printed(errors: pd.DataFrame) -> Figure:
    """Draw L1 errors (tidy) as marks and numbers: printed in the paper (hollow), here (filled).

    There is a panel for each setting with printed values; if the paper prints none, for those of
    the ε closest to 1.
    """
    style.check(errors)
    table, settings = with_published(errors, "Table"), ["task", "epsilon", "group"]
    table = table.sort_values("task", kind="stable").assign(
        here=table["expected_error"].map(decimals),
        theirs=pd.to_numeric(table["published"], errors="coerce"),
    )
    several = [key for key in ("group", "task", "epsilon") if len(set(table[key])) > 1]
    printed = table.groupby(settings)["published"].transform("count") > 0
    named = compared_label if printed.any() else group_label
    nearest = table["epsilon"] == shown_epsilon(table["epsilon"])
    table = table[printed if printed.any() else nearest]
    panels = list(table.groupby(settings, sort=False))
    names, guess = style.in_order(table["mechanism"]), 2 * (1 - 1 / int(errors["bins"].iloc[0]))
    columns = columns_of(len(set(table["group" if "group" in several else "epsilon"])))
    figure, all_axes = panels_of(len(panels), height=0.7 + 0.2 * len(names), columns=columns)
    values = [*table["expected_error"].dropna(), *table["theirs"].dropna(), guess]
    low, high = np.floor(np.log10(min(values)) - 0.05), np.ceil(np.log10(max(values)) + 0.05)
    for place, (axes, (_, rows)) in enumerate(zip(all_axes, panels, strict=True)):
        task, epsilon, group = rows[settings].iloc[0]
        axes.axvline(guess, **USELESS)
        _mark_errors(axes, rows.set_index("mechanism").reindex(names))
        axes.tick_params(axis="y", length=0, labelleft=place % columns == 0)
        words = {"group": named(group).replace(" · ", "\n"), "task": task}
        words["epsilon"] = f"ε = {epsilon:g}"
        title = "\n".join(words[key] for key in several or ["epsilon"])
        axes.set_title(title, loc="left", fontsize=7.2, **style.VERBATIM)
        last = place >= len(panels) - columns
        axes.set(xscale="log", xlim=(10.0**low, 10.0**high), xlabel="L1 error" if last else "")
        axes.xaxis.set_major_formatter("{x:g}" if last else "")
        axes.xaxis.set_minor_locator(NullLocator())
    mark: dict[str, Any] = {"color": style.INK, "marker": "o", "linestyle": "none"}
    handles = [
        Line2D([], [], markersize=6, markerfacecolor="none", label="printed in the paper", **mark),
        Line2D([], [], markersize=3.4, label="computed here", **mark),
        useless(),
    ]
    note = f"Constant guess: equal frequencies have error at most 2(1 − 1/k) = {guess:.3g}."
    hidden = [name for name in names if name in QUALIFIED]
    note += "".join(f" {style.mechanism_style(name).label}{QUALIFIED[name]}." for name in hidden)
    finish(figure, handles, note, errors)
    return figure


def _mark_errors(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw a line per mechanism: its marks, and both numbers right of them."""
    text: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    text |= {"ha": "right", "va": "center_baseline", "annotation_clip": False, "fontsize": 6.3}
    theirs: dict[str, Any] = {"markersize": 6, "markerfacecolor": "none"}
    # a cross cannot be filled: ours is bold, theirs is thin
    ours: dict[str, Any] = {"markersize": 3.4, "markeredgewidth": 1.4}
    looks = list(map(style.mechanism_style, rows.index))
    for offset, head, shown, value, shape in (
        (36, "printed", "published", "theirs", theirs),
        (70, "here", "here", "expected_error", ours),
    ):
        for y, words in enumerate([head, *rows[shown].fillna(UNDEFINED)], start=-1):
            ink = style.INK if y >= 0 else style.MUTED
            axes.annotate(words, (1, y), (offset, 0), color=ink, **text)
        for y, number in enumerate(rows[value]):
            mark = shape | {"color": looks[y].color, "marker": looks[y].marker, "clip_on": False}
            if not np.isnan(number):
                axes.plot(number, y, **mark)
    axes.set_yticks(range(len(looks)), [look.label for look in looks])
    axes.set_ylim(len(looks) - 0.5, -1.25)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
