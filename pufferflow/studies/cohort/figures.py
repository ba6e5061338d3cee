"""Figure of a cohort: how error and excess of noise are distributed over its participants."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pufferflow.reporting.figures.panels import check, finish, handle, panels_of, styled
from pufferflow.reporting.style import MUTED, in_order, mechanism_style
from pufferflow.studies.record import shown_epsilon

CAPTION = (
    "Share of the {participants:,} participants whose histogram has at most this expected L1 error (left), and whose "
    "noise is at most this multiple of the lower bound (right, where that is computed), at ε = {epsilon:g}. Each has a "
    "chain of their own. No Laplace noise below the lower bound is private."
)

_QUANTITIES = {"expected_error": "L1 error of a participant's histogram", "gap": "noise ÷ lower bound"}


@styled
def figure(distribution: pd.DataFrame, *, description: str = "") -> Figure:
    """Draw cumulative shares of participants, one panel a quantity, at the ε closest to 1.

    Parameters
    ----------
    distribution : DataFrame
        The counts of ``studies.cohort.measure.gather``.
    description : str
        What the data are, for the footer.
    """
    check(distribution)
    epsilon = shown_epsilon(distribution["epsilon"].unique())
    table = distribution[distribution["epsilon"] == epsilon]
    names = in_order(table["mechanism"])
    shown = [quantity for quantity in _QUANTITIES if quantity in set(table["quantity"])]
    drawn, panels = panels_of(len(shown), height=2.4, share=True)
    for axes, quantity in zip(panels, shown, strict=True):
        for name in names:
            rows = table[(table["quantity"] == quantity) & (table["mechanism"] == name)].sort_values("value")
            look = mechanism_style(name)
            if rows.empty:
                continue
            # a first step up from 0, so that even a single value shows
            shares = np.append(0, rows["participants"].cumsum()) / rows["participants"].sum()
            values = np.append(rows["value"].iloc[0], rows["value"])
            axes.step(values, shares, where="post", color=look.color, linestyle=look.dashes)
        if quantity == "gap":
            axes.axvline(1, color=MUTED, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlabel(_QUANTITIES[quantity])
        axes.set_ylim(0, 1.02)
    panels[0].set_ylabel("share of participants")
    handles = [handle(name) for name in names]
    for entry in handles:
        entry.set_marker("none")
    people = table[table["quantity"] == "expected_error"].groupby("mechanism")["participants"].sum().max()
    note = f"ε = {epsilon:g}; {people:,} participants, each with a chain of their own."
    finish(drawn, handles, note, table, description)
    return drawn
