"""Figures of real data: histograms and their releases (Figure 4, lower row), and their errors."""

import re
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from pufferflow.drawing import style
from reproduction.labels import compared_label, group_label, shown_epsilon
from reproduction.panels import columns_of, finish, panels_of, symmetric_log_ticks
from reproduction.paper_figures import QUALIFIED, USELESS, legend, useless
from reproduction.paper_tables import with_published
from reproduction.tables import UNDEFINED, decimals

BAR = "#c9ccd1"
MANY_BINS = 12
"""More bins than these leave no room for the mechanisms' marks beside each other."""


@style.styled
def histograms(releases: pd.DataFrame, description: str = "") -> Figure:
    """Draw Figure 4, lower row: histograms and releases (tidy "releases") at the ε closest to 1."""
    style.check(releases)
    epsilon = shown_epsilon(releases["epsilon"].unique())
    table = releases[releases["epsilon"] == epsilon]
    table = table.assign(distance=table["released_frequency"] - table["exact_frequency"])
    noise = table["distance"].abs().groupby(table["mechanism"]).mean()
    # what is closer to 0 than the mean noise of the best mechanism is drawn on a linear axis
    threshold = float(10.0 ** np.floor(np.log10(noise.min())))
    many = table["state"].nunique() > MANY_BINS
    figure, note = (_many_bins if many else _few_bins)(table, threshold)
    bars = Patch(facecolor=BAR, label="exact histogram")
    handles = [bars, *legend(table, "released_frequency", line=many)]
    note = (
        f"ε = {epsilon:g}; {table['release'].nunique()} releases a mechanism. {note} "
        f"The axis of {'frequencies' if many else 'distances'} is linear within ± {threshold:g}."
    )
    finish(figure, handles, note, table, description)
    return figure


def _few_bins(table: pd.DataFrame, threshold: float) -> tuple[Figure, str]:
    """Draw a panel a group with all releases, and their distances from the exact ones below."""
    groups, states = list(table.groupby("group", sort=False)), list(table["state"].unique())
    names, columns = style.in_order(table["mechanism"]), len(groups)
    width = style.COLUMN_WIDTH if columns == 1 else max(style.TEXT_WIDTH, 2.2 * columns)
    figure, panels = panels_of(2 * columns, height=2.1, columns=columns, width=width)
    top = 1.35 * float(table["exact_frequency"].max())
    bottom = max(-0.2 * top, min(0.0, 1.1 * float(table["released_frequency"].min())))
    farthest = 1.5 * float(table["distance"].abs().max())
    slots = 0.84 * ((np.arange(len(names)) + 0.5) / len(names) - 0.5)
    ticks = [style.state_label(state).replace(" ", "\n") for state in states]
    for above, below, (group, rows) in zip(panels, panels[columns:], groups, strict=False):
        exact = rows.drop_duplicates("state")["exact_frequency"]
        above.bar(range(len(states)), exact, width=0.92, color=BAR)
        above.set_title(group_label(str(group)), **style.VERBATIM)
        above.set_ylim(bottom, top)
        below.set_yscale("symlog", linthresh=threshold, linscale=0.5)
        below.set_ylim(-farthest, farthest)
        symmetric_log_ticks(below.yaxis, threshold)
        for name, slot in zip(names, slots, strict=True):
            own, look = rows[rows["mechanism"] == name], style.mechanism_style(name)
            x = own["state"].map(states.index) + slot
            mark = style.points(look) | {"color": look.color, "alpha": 0.8, "markersize": 2.6}
            shown = own["released_frequency"].clip(bottom, top)
            above.plot(x, shown, clip_on=False, **mark)
            below.plot(x, own["distance"], **mark)
        for axes, what in ((above, "relative frequency"), (below, "released − exact")):
            axes.axhline(0, color=style.MUTED, linewidth=0.6)
            axes.set_xticks(range(len(states)), ticks, **style.VERBATIM)
            axes.set(xlim=(-0.55, len(states) - 0.45), ylabel=what if above is panels[0] else "")
            axes.tick_params(axis="x", length=0, labelsize=6.3)
            axes.tick_params(axis="y", labelleft=above is panels[0])
            axes.grid(visible=False, axis="x")
    outside = ~table["released_frequency"].between(bottom, top)
    counts = outside.groupby(table["mechanism"]).agg(["sum", "size"]).loc[names].itertuples()
    parts = [f"{n} of {of} {style.mechanism_style(name).label}" for name, n, of in counts if n]
    note = f"Values beyond the axis are drawn at its edge ({', '.join(parts)})." if parts else ""
    return figure, note


def _many_bins(table: pd.DataFrame, threshold: float) -> tuple[Figure, str]:
    """Draw a panel a group and mechanism, on one symmetric and logarithmic axis."""
    groups, states = list(table["group"].unique()), list(table["state"].unique())
    names = style.in_order(table["mechanism"])
    panels = [(group, name) for group in groups for name in names]
    figure, all_axes = panels_of(len(panels), height=2.1, columns=len(names), share=True)
    x, step = np.arange(len(states)), 5 * max(1, -(-(len(states) - 1) // 15))
    watts = all(state.endswith(" W") for state in states)
    # lower edges of bins, or states that have none
    edges = [(re.search(r"\d+", state) or [state])[0] for state in states]
    for axes, (group, name) in zip(all_axes, panels, strict=True):
        own = table[(table["group"] == group) & (table["mechanism"] == name)]
        of_state, look = own.groupby("state", sort=False), style.mechanism_style(name)
        released = of_state["released_frequency"].agg(["first", "min", "max"])
        noise = float(own["distance"].abs().mean())
        exact = of_state["exact_frequency"].first()
        axes.set_yscale("symlog", linthresh=threshold, linscale=0.5)
        axes.stairs(exact, np.arange(len(states) + 1) - 0.5, fill=True, color=BAR)
        line: dict[str, Any] = {"color": look.color, "linewidth": 0.6, "alpha": 0.55}
        axes.vlines(x, released["min"], released["max"], **line)
        mark = style.points(look) | {"color": look.color, "markersize": 1.9, "markeredgewidth": 0.5}
        axes.plot(x, released["first"], **mark)
        for side in (-noise, noise):
            axes.axhline(side, color=look.color, linestyle=look.dashes, linewidth=0.7)
        title = f"{group_label(group)}, " if len(groups) > 1 else ""
        title += f"{look.label}: |noise| {noise:.2g}"
        axes.set_title(title, loc="left", fontsize=7.2, **style.VERBATIM)
        axes.set_xlim(-0.8, len(states) - 0.2)
        axes.set_xticks(x[::step], edges[::step], **style.VERBATIM)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("relative frequency" if name == names[0] else "")
        if group == groups[-1]:
            axes.set_xlabel("power (W), lower edge of a bin" if watts else "state")
    for axes in all_axes:
        symmetric_log_ticks(axes.yaxis, threshold)
    note = (
        "Marks: the first of them; vertical lines: the least to the most of all, in each bin; "
        "level lines and |noise|: the mean absolute noise of a bin."
    )
    return figure, note


@style.styled
def errors_beside_printed(errors: pd.DataFrame) -> Figure:
    """Draw L1 errors (tidy) as marks and numbers: printed in the paper (hollow), here (filled).

    A panel each for the settings of which the paper prints anything; where it prints nothing, those
    of the ε closest to 1. Nothing connects numbers of different people.
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
    figure, all_axes = panels_of(len(panels), height=0.5 + 0.18 * len(names), columns=columns)
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
    note = f"Constant guess: equal frequencies are at most 2(1 − 1/k) = {guess:.3g} off."
    hidden = [name for name in names if name in QUALIFIED]
    note += "".join(f" {style.mechanism_style(name).label}{QUALIFIED[name]}." for name in hidden)
    finish(figure, handles, note, errors)
    return figure


def _mark_errors(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw a line a mechanism: its marks, and both numbers right of them."""
    text: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    text |= {"ha": "right", "va": "center_baseline", "annotation_clip": False, "fontsize": 6.3}
    theirs: dict[str, Any] = {"markersize": 6, "markerfacecolor": "none"}
    # a cross cannot be filled: bold is ours, thin is theirs
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
