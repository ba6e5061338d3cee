"""Figures of how little noise would do, and of what several releases cost together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from pufferflow.reporting.figures.panels import (
    check,
    columns_of,
    finish,
    handle,
    panels_of,
    plain_log_ticks,
    points,
    styled,
)
from pufferflow.reporting.style import (
    COLUMN_WIDTH,
    MUTED,
    SPARE_COLORS,
    VERBATIM,
    MechanismStyle,
    group_label,
    in_order,
    mechanism_style,
)

BOUNDS: dict[str, MechanismStyle] = {
    "theorem_4_4": MechanismStyle("Theorem 4.4", SPARE_COLORS[0], "", (0, (2, 1))),
    "quilts": replace(mechanism_style("mqm-exact"), label="Markov quilts, one for all"),
    "leakage": mechanism_style("leakage"),
}
"""Bounds on several releases; those of a mechanism look as it does everywhere."""


@styled
def relative_noise(table: pd.DataFrame, *, description: str = "") -> Figure:
    """Scale of each mechanism over MQMExact's against ε, one panel a chain; below the line no scale is private.

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.least_noise.measure.least_noise``.
    description : str
        What the data are, for the footer.
    """
    check(table)
    shown = table[table["relative_noise"].notna()]
    names = in_order(shown["mechanism"])
    figure, chains = _chains(shown)
    for axes, rows in chains:
        paper = rows.drop_duplicates("epsilon").set_index("epsilon").sort_index()
        least = paper["lower_bound"] * paper["relative_noise"] / paper["scale"]
        axes.set_xscale("log")
        axes.set_yscale("log")
        for name in names:
            look = mechanism_style(name)
            curve = rows[rows["mechanism"] == name].sort_values("epsilon")
            axes.plot(curve["epsilon"], curve["relative_noise"], color=look.color, linestyle=look.dashes)
            axes.plot(curve["epsilon"], curve["relative_noise"], color=look.color, **points(look))
        if len(least) == 1:  # a band to be seen
            least = pd.Series(float(least.iloc[0]), index=[least.index[0] / 1.2, least.index[0] * 1.2])
        axes.fill_between(least.index, least, least.min() / 3, color="#e3e3e3", linewidth=0)
        axes.plot(least.index, least, color=MUTED, linewidth=0.8, zorder=1.5)
        axes.set_xticks(paper.index.tolist(), [f"{epsilon:g}" for epsilon in paper.index])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("ε")
    bottom = float(shown["relative_noise"].div(shown["gap"]).min()) / 1.6
    decade = 10.0 ** np.floor(np.log10(bottom))
    if bottom < 2 * decade:  # down to its label
        bottom = 0.98 * decade
    top = float(shown["relative_noise"].max()) * 1.6
    for axes, _ in chains:
        axes.set_ylim(bottom, top)
        plain_log_ticks(axes.yaxis, (1, 2, 5) if top < 50 * bottom else (1,))
    for axes, _ in chains[:: columns_of(len(chains))]:
        axes.set_ylabel("noise ÷ noise of MQMExact")
    handles = [handle(name) for name in names]
    handles.append(Line2D([], [], color="#e3e3e3", linewidth=6, label="not private"))
    note = "Laplace scales over that of MQMExact at the same ε; not private: below the lower bound."
    if "wasserstein" in names:
        note += " Wasserstein: for the one count that leaks most; the others for every query."
    finish(figure, handles, note, table, description)
    return figure


@styled
def composition(table: pd.DataFrame, *, description: str = "") -> Figure:
    """Total ε of 1, 2, … releases by each bound, one panel a chain.

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.least_noise.measure.composition``.
    description : str
        What the data are, for the footer.
    """
    figure, chains = _chains(table)
    for axes, rows in chains:
        for name, look in BOUNDS.items():
            curve = rows[rows["bound"] == name].sort_values("releases")
            axes.plot(curve["releases"], curve["total_epsilon"], color=look.color, linestyle=look.dashes)
        axes.set_xlabel("releases")
    for axes, _ in chains[:: columns_of(len(chains))]:
        axes.set_ylabel("total ε")
    handles = [Line2D([], [], color=look.color, linestyle=look.dashes, label=look.label) for look in BOUNDS.values()]
    note = f"Each release at MQMExact's scale for ε = {table['epsilon'].iloc[0]:g}."
    finish(figure, handles, note, table, description)
    return figure


def _chains(table: pd.DataFrame) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """Return a figure with a titled panel for the rows of each chain."""
    check(table)
    groups = list(dict.fromkeys(table["group"]))
    width = 1.4 * COLUMN_WIDTH if len(groups) == 1 else None
    figure, panels = panels_of(len(groups), height=2.3, width=width, share=True)
    chains = []
    for axes, group in zip(panels, groups, strict=True):
        rows = table[table["group"] == group]
        axes.set_title(group_label(group) if group else str(rows["dataset"].iloc[0]), **VERBATIM)
        chains.append((axes, rows))
    return figure, chains
