"""The histogram of electric power and its releases."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pufferflow.errors import ParameterError
from pufferflow.reporting.figures.panels import check, finish, handle, panels_of, points, styled, symmetric_log_ticks
from pufferflow.reporting.style import VERBATIM, in_order, mechanism_style
from pufferflow.studies.histograms.figures import BAR, EXACT

LABELLED_BINS = 5
"""Bins between labels are a multiple of so many."""


@styled
def power_histogram(releases: pd.DataFrame, *, description: str = "") -> Figure:
    """Exact histogram of many bins and its noisy releases: a row of panels a mechanism, a column an ε.

    The axis is symmetric and logarithmic, for a fifth to a half of the released values are negative; it is shared in a
    row, and linear where the noise of the best mechanism hides everything anyway.

    Parameters
    ----------
    releases : DataFrame
        Table of ``studies.histograms.measure.releases`` of one group.
    description : str
        What the data are, for the footer.
    """
    check(releases)
    if len(set(releases["group"])) > 1:
        raise ParameterError("the figure is of one histogram, the table has several groups; select one")
    states = list(dict.fromkeys(releases["state"]))
    names, epsilons = in_order(releases["mechanism"]), sorted(releases["epsilon"].unique())
    noise = (releases["released_frequency"] - releases["exact_frequency"]).abs()
    means = noise.groupby([releases["mechanism"], releases["epsilon"]]).mean()
    threshold = 10.0 ** np.floor(np.log10(means.min()))
    figure, panels = panels_of(len(names) * len(epsilons), height=1.45, columns=len(epsilons), share="row")
    for place, axes in enumerate(panels):
        name, epsilon = names[place // len(epsilons)], epsilons[place % len(epsilons)]
        axes.set_yscale("symlog", linthresh=threshold, linscale=0.5)
        of_panel = (releases["mechanism"] == name) & (releases["epsilon"] == epsilon)
        _releases(axes, releases[of_panel], states, name, float(means[name, epsilon]))
        title = f"{mechanism_style(name).label}, ε = {epsilon:g}: |noise| {means[name, epsilon]:.2g}"
        axes.set_title(title, loc="left", fontsize=7.2)
        if place % len(epsilons) == 0:
            axes.set_ylabel("relative frequency")
        if place >= len(panels) - len(epsilons):
            axes.set_xlabel(_unit(states))
        else:
            axes.tick_params(axis="x", labelbottom=False)
    for axes in panels:
        symmetric_log_ticks(axes.yaxis, threshold)
    handles = [EXACT, *(handle(name) for name in names)]
    handles.append(Line2D([], [], color="#777777", linewidth=1.4, label="least to most released"))
    note = (
        f"{releases['release'].nunique()} releases per mechanism. Marks: the first of them; thin lines: the least to "
        "the most of all, in each bin; level lines and |noise|: the mean absolute noise of a bin. "
        f"The axis is linear within ± {threshold:g}."
    )
    finish(figure, handles, note, releases, description)
    return figure


def _releases(axes: Axes, rows: pd.DataFrame, states: list[str], name: str, noise: float) -> None:
    """Bars of the exact histogram, one release as marks, and the range of all of them."""
    look, x = mechanism_style(name), np.arange(len(states))
    exact = rows.drop_duplicates("state").set_index("state")["exact_frequency"].reindex(states)
    released = rows.pivot_table(index="state", columns="release", values="released_frequency").reindex(states)
    axes.stairs(exact, np.arange(len(states) + 1) - 0.5, fill=True, color=BAR)
    axes.vlines(x, released.min(axis=1), released.max(axis=1), color=look.color, linewidth=0.6, alpha=0.55)
    axes.plot(x, released.iloc[:, 0], color=look.color, markersize=1.9, **points(look) | {"markeredgewidth": 0.5})
    for side in (-noise, noise):
        axes.axhline(side, color=look.color, linestyle=look.dashes, linewidth=0.7)
    axes.set_xlim(-0.8, len(states) - 0.2)
    axes.grid(visible=False, axis="x")
    step = LABELLED_BINS * max(1, -(-(len(states) - 1) // (3 * LABELLED_BINS))) if len(states) > 8 else 1
    axes.set_xticks(x[::step], [_edge(state) for state in states[::step]], **VERBATIM)


def _edge(state: str) -> str:
    """Lower edge of a bin, the state itself where it names none."""
    number = re.search(r"\d+", state)
    return number[0] if number else state


def _unit(states: list[str]) -> str:
    """Say what the edges of the bins are."""
    return "power (W), lower edge of a bin" if all(state.endswith(" W") for state in states) else "state"
