"""The histogram of electric power and its releases."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from pufferflow.errors import ParameterError
from pufferflow.reporting.figures.panels import (
    finish,
    handle,
    panels_of,
    points,
    styled,
)
from pufferflow.reporting.style import (
    VERBATIM,
    in_order,
    mechanism_style,
    state_label,
)
from pufferflow.studies.histograms.figures import BAR, EXACT, at_epsilon


@styled
def power_histogram(releases: pd.DataFrame, *, epsilon: float, description: str = "") -> Figure:
    """Exact histogram of many bins and its noisy releases on a log axis, one panel a mechanism.

    Parameters
    ----------
    releases : DataFrame
        Table of ``studies.histograms.measure.releases`` of one group.
    epsilon : float
        The ε to draw.
    description : str
        What the data are, for the footer.
    """
    table = at_epsilon(releases, epsilon)
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
