"""The paper's figures: tidy tables in, matplotlib figures out."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pufferflow.reporting.figures.panels import (
    any_value,
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
    MUTED,
    in_order,
    mechanism_style,
)


@styled
def synthetic_error(errors: pd.DataFrame, limits: pd.DataFrame) -> Figure:
    """Figure 4, upper row: L1 error against α, one panel per ε.

    Parameters
    ----------
    errors : DataFrame
        Table of ``studies.synthetic.measure.errors``.
    limits : DataFrame
        Table of ``studies.synthetic.measure.gk16_limits``; the row of the class is drawn.
    """
    check(errors)
    epsilons = sorted(errors["epsilon"].unique())
    names = in_order(errors["mechanism"])
    figure, panels = panels_of(len(epsilons), height=2.25, share=True)
    drawn = errors[["expected_error", "mean_error"]]
    narrow = drawn.max().max() < 50 * drawn.min().min()
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
        plain_log_ticks(axes.yaxis, (1, 2, 5) if narrow else (1,))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.set_title(f"ε = {epsilon:g}")
        axes.set_xlabel("α")
    for axes in panels[:: columns_of(len(panels))]:
        axes.set_ylabel("L1 error of the mean")
    handles = [handle(name, applies=any_value(errors, name)) for name in names]
    if marked:
        label = f"GK16 applies right of α = {limit:.4f}"
        handles.append(Line2D([], [], color=MUTED, linestyle="--", linewidth=0.8, label=label))
    repetitions = errors["repetitions"].max()
    note = f"Lines: expected error. Points: mean of {repetitions} repetitions; bars: ± 1 standard error."
    finish(figure, handles, note, errors)
    return figure


@styled
def growth(table: pd.DataFrame) -> Figure:
    """Noise scale against the length of the chain, one panel per ε.

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.synthetic.measure.growth``.
    """
    check(table)
    epsilons = sorted(table["epsilon"].unique())
    names = in_order(table["mechanism"])
    figure, panels = panels_of(len(epsilons), height=2.0, share=True)
    for axes, epsilon in zip(panels, epsilons, strict=True):
        for name in names:
            look = mechanism_style(name)
            rows = table[(table["mechanism"] == name) & (table["epsilon"] == epsilon)].sort_values("length")
            axes.plot(rows["length"], rows["scale"], color=look.color, **points(look) | {"linestyle": look.dashes})
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(f"ε = {epsilon:g}")
        axes.set_xlabel("length T")
    for axes in panels[:: columns_of(len(panels))]:
        axes.set_ylabel("noise scale σ")
    alpha = table["alpha"].iloc[0]
    handles = [handle(name, applies=any_value(table, name, "scale")) for name in names]
    finish(figure, handles, f"Class α = {alpha:g}, every initial distribution.", table)
    return figure
