"""Figure of αβ: error of counting queries against k, n and m, and what views reveal."""

import pandas as pd
from matplotlib.figure import Figure

from pufferflow.drawing.style import MUTED, check, footer, styled
from reproduction.panels import LOOKS, curve, panels_of

PANELS = {
    "k": ("prior_factor_k", "k (prior ≤ k n/m)", "n = {rows_n:g}, m = {domain_tuples_m:,.0f}"),
    "n": ("rows_n", "tuples in the data, n", "k = {prior_factor_k:g}, m = {domain_tuples_m:,.0f}"),
    "m": ("domain_tuples_m", "tuples in the domain, m", "k = {prior_factor_k:g}, n = {rows_n:g}"),
    "difference": ("prior_factor_k", "k (prior ≤ k n/m)", "belief after a view and before"),
    "views": ("views", "views of the same data", "prior d = {prior_bound_d:g}; shaded: above γ"),
}
"""Column and label of the horizontal axis, and title."""
VIEWS = {"posterior_same": "made for one view each", "posterior_together": "made for all of them"}
SHADE = "#e9e9e9"


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Draw the curves of :func:`reproduction.related.alpha_beta.measure`, one panel a parameter."""
    check(curves)
    panels, shares = curves["panel"].unique(), curves["query_share"].dropna().unique()
    drawn, all_axes = panels_of(len(panels), height=2.5)
    for axes, panel in zip(all_axes, panels, strict=True):
        column, label, title = PANELS[panel]
        rows = curves[curves["panel"] == panel].sort_values(column)
        once = rows.drop_duplicates(column)
        axes.set(xlabel=label, title=title.format_map(once.iloc[0]))
        if panel == "views":
            axes.axhspan(once["gamma"].iloc[0], 1.02, facecolor=SHADE, zorder=0)
            for (posterior, name), look in zip(VIEWS.items(), LOOKS[1::-1], strict=True):
                axes.plot(once[column], once[posterior], label=name, mfc="white", **look)
            axes.set(ylim=(0, 1.02), xticks=once["views"], ylabel="posterior, tuple in all views")
            axes.legend(loc="lower right")
            continue
        exact = "statistical_difference" if panel == "difference" else "rho_expected"
        for share, look in zip(shares, LOOKS * len(shares), strict=False):
            name = "whole table" if share == 1 else f"query on {100 * share:g} %"
            of = rows[rows["query_share"] == share]
            if len(of):
                columns = (column, exact, "rho_measured", "rho_standard_error")
                curve(axes, of, columns, look | {"label": name})
        axes.set(xscale="log", yscale="log")
        limit, high = once["impossible_from_k"].iloc[0], once[column].max()
        if column == "prior_factor_k" and limit < high:
            axes.axvspan(limit, high, color=SHADE, zorder=0, label="no useful algorithm")
        if panel == "difference":
            axes.plot(once[column], once["difference_bound"], color=MUTED, label="upper bound")
            axes.set_ylabel("statistical difference Σ|p − q|")
            axes.legend()
            continue
        axes.plot(once[column], once["rho_source"], color="black", ls="--", label="ρ = √(k/γ)")
        zero = once["rows_n"] ** 0.5
        axes.plot(once[column], zero, color=MUTED, ls=":", label="answer 0 (whole table)")
        if axes is all_axes[0]:
            axes.set_ylabel("root-mean-square error / √n")
            drawn.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5)
        else:
            axes.sharey(all_axes[0])
            axes.tick_params(labelleft=False)
    note = (
        f"γ = {curves['gamma'].iloc[0]:g}. Lines: exact; points: {curves['repetitions'].max()} "
        "simulated publications, bars: ± 1 standard error. Shaded: k ≥ √m γ/(1−γ), where no useful "
        "algorithm is private (with constant c = 1). Belief: of someone who expects n of the m "
        "tuples to be real, about the narrowest query. Synthetic data."
    )
    footer(drawn, note)
    return drawn
