"""The figures of the related systems from their curves; without any row they raise DataError."""

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pufferflow.drawing.style import INK, MUTED, TEXT_WIDTH, check, footer, styled
from reproduction.panels import LOOKS, curve, panels_of, plain_log_ticks


@styled
def noisy_max(curves: pd.DataFrame) -> Figure:
    """Draw Noisy Max: one prior, every prior, and neighbours by the number of queries."""
    check(curves)
    panels = dict(iter(curves.groupby("panel")))
    drawing = Figure(figsize=(TEXT_WIDTH, 2.8), layout="constrained")
    one_prior, every_prior, neighbours = drawing.subplots(1, 3, width_ratios=[1, 1.3, 1.15])
    bars, example, supremum = panels["laws"], panels["example"].iloc[0], panels["supremum"].iloc[0]
    looks = {"John has C": (-0.2, "#0072b2", ""), "John has not": (0.2, "#e3b778", "////")}
    for secret, (shift, color, hatch) in looks.items():
        of = bars[bars["secret"] == secret]
        x, y = of["output"] + shift, of["probability"]
        one_prior.bar(x, y, 0.4, color=color, hatch=hatch, edgecolor="white", label=secret)
    index, text = example["output"], f"ratio\n{example['exact']}"
    worst = bars.loc[bars["output"] == index, "probability"].max()
    one_prior.text(index, worst, text, ha="center", va="bottom", fontsize=6.5)
    one_prior.grid(visible=False, axis="x")
    one_prior.set(xlabel="released index", ylabel="probability", xticks=bars["output"].unique())
    one_prior.set_ylim(0, 1.42 * bars["probability"].max())
    one_prior.set_title(f"index, p1 = {example['p1']:g}, p2 = {example['p2']:g}")
    one_prior.legend(loc="upper right", handlelength=1.4)
    _every_prior(every_prior, panels["region"], example, supremum)
    for (relation, of), look in zip(panels["neighbours"].groupby("relation"), LOOKS, strict=False):
        label = str(relation).replace("-", " ")
        x, y = of["queries"], of["largest_ratio"]
        neighbours.plot(x, y, label=label, markerfacecolor="white", **look)
    neighbours.set_yscale("log", base=2)
    neighbours.yaxis.set_major_formatter("{x:g}")
    neighbours.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    neighbours.set(xlabel="queries n", ylabel="largest ratio", title="value released, neighbours")
    neighbours.legend(title="counts that differ", loc="upper center", bbox_to_anchor=(0.4, -0.2))
    return drawing


def _every_prior(axes: Axes, regions: pd.DataFrame, example: pd.Series, top: pd.Series) -> None:
    """Draw priors by the smallest factor that they preserve; the darkest has the smallest."""
    factors = regions.drop_duplicates("factor").sort_values("factor")
    count = len(factors)
    colors = ListedColormap(colormaps["cividis"](np.linspace(0.15, 1, count + 1)))
    axes.fill_between([0, 1], 0, 1, color=colors(count), linewidth=0)
    for at, factor in reversed(list(enumerate(factors["factor"]))):
        of = regions[regions["factor"] == factor].sort_values("p1")
        ends = (of[name].to_numpy(float) for name in ("p1", "lowest_p2", "highest_p2"))
        axes.fill_between(*ends, color=colors(at), linewidth=0)
    shades = ScalarMappable(BoundaryNorm(np.arange(count + 2), colors.N), colors)
    bar = axes.figure.colorbar(shades, ax=axes, pad=0.02, aspect=28, ticks=range(1, count + 1))
    bar.ax.set_yticklabels(factors["exact"])
    bar.set_label("smallest factor preserved")
    for row, marker, name in ((example, "o", "example"), (top, "*", "supremum")):
        (dot,) = axes.plot(row["p1"], row["p2"], marker, label=f"{name}: {row['exact']}")
        dot.set(markersize=7, color="white", markeredgecolor=INK, clip_on=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), handletextpad=0.1)
    axes.grid(visible=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="p1", ylabel="p2", title="index, every prior")


BAND = "#dfe3e8"
COLORS = {"naive": "#d55e00", "base-2": "#0072b2"}
LOSSES = {1.0: "α = 1", 0.5: "α = ½, utilities rounded at random"}
LIMITS = {"proved_bits": "2⌈α⌉η of both", "published_bits": "2αη of α = ½"}
ERRORS = {"error": "largest error", "bound": "bound of the error", "width": "width of the bounds"}


@styled
def base2_exponential(curves: pd.DataFrame) -> Figure:
    """Draw attacks, exact loss and error of rounding of the base-2 exponential mechanism."""
    check(curves)
    drawing, (zero, truncated, loss, error) = panels_of(4, height=2.4)
    _attacks(zero, curves, "zero rounding")
    _attacks(truncated, curves, "truncated addition")
    truncated.set_xscale("symlog", linthresh=1e-16)
    truncated.set_xticks([0, 1e-15, 1e-10, 1e-5, 1], ["0", "10⁻¹⁵", "10⁻¹⁰", "10⁻⁵", "1"])
    for (alpha, label), look in zip(LOSSES.items(), LOOKS, strict=False):
        of = curves[curves["sensitivity"] == alpha]
        loss.plot(of["outcomes"], of["loss_bits"], label=label, markerfacecolor="white", **look)
    for (name, label), look in zip(ERRORS.items(), LOOKS, strict=False):
        of = curves[curves["mechanism"] == name]
        error.plot(of["granularity"], of["share"], label=label, markerfacecolor="white", **look)
    for axes in (loss, error):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.legend(loc="upper left", handlelength=2.4)
    for name, label in LIMITS.items():
        limit = curves.loc[curves["sensitivity"] == 0.5, name].iloc[0]
        loss.axhline(limit, color=MUTED, linestyle=":", linewidth=0.9)
        loss.text(loss.get_xlim()[1], limit + 0.1, label, ha="right", fontsize=6.3)
    loss.set(ylim=(0, 1.5 * curves["proved_bits"].max()), xlabel="number of outcomes")
    loss.set(title="exact privacy loss on bad neighbours", ylabel="loss (bits)")
    error.set(yscale="log", title="error of rounding at random", xlabel="granularity γ")
    error.set_ylabel("difference of probabilities")
    plain_log_ticks(error.yaxis)
    names = dict(zip(*reversed(zero.get_legend_handles_labels()), strict=True))
    drawing.legend(names.values(), names.keys(), loc="outside upper center", ncols=3)
    footer(drawing, "o1: the outcome that the attacker looks at. Synthetic data.")
    return drawing


def _attacks(axes: Axes, curves: pd.DataFrame, name: str) -> None:
    """Draw the probability of outputs other than the watched one, and the band that ε allows."""
    rows = curves[curves["panel"].str.startswith(name)]
    rows = rows.sort_values("mechanism", ascending=False, kind="stable")
    labels: list[str] = []
    for y, ((mechanism, attack), of) in enumerate(rows.groupby(["mechanism", "panel"], sort=False)):
        labels.append(f"{mechanism}{str(attack).removeprefix(name)}".replace(", ", ",\n"))
        seen, absent = of["probability"]  # with and without Alice
        loss, epsilon = of[["loss_nats", "epsilon"]].iloc[0]
        # both the output and its complement change by a factor of at most e^±ε
        low = max(absent * math.exp(-epsilon), 1 - (1 - absent) * math.exp(epsilon))
        high = min(absent * math.exp(epsilon), 1 - (1 - absent) * math.exp(-epsilon))
        axes.barh(y, high - low, 0.56, low, color=BAND, zorder=0.5, label="allowed with Alice by ε")
        look: dict[str, Any] = {"color": COLORS[str(mechanism)], "clip_on": False, "zorder": 3}
        axes.plot([seen, absent], [y, y], linewidth=1, linestyle="-" if seen else ":", **look)
        # a ring around a dot, so that both are visible if they coincide
        ring = look | {"markersize": 6.4, "markerfacecolor": "none"}
        axes.plot(absent, y, "o", label="without Alice", **ring)
        axes.plot(seen, y, "o", label="with Alice", markersize=3.4, **look)
        text = f"loss {loss:.3g}, ε = {epsilon:.3g}".replace("inf", "∞")
        look = {"fontsize": 6.3, "color": MUTED, "transform": axes.get_yaxis_transform()}
        axes.text(0.09, y - 0.32, text, **look)
    axes.set_yticks(range(len(labels)), labels)
    axes.set(ylim=(len(labels) - 0.5, -0.8), title=name, xlabel="probability of outputs but o1")
    axes.grid(visible=False, axis="y")


ALPHA_BETA = {
    "k": ("prior_factor_k", "k (prior ≤ k n/m)", "n = {rows_n:g}, m = {domain_tuples_m:,.0f}"),
    "n": ("rows_n", "tuples in the data, n", "k = {prior_factor_k:g}, m = {domain_tuples_m:,.0f}"),
    "m": ("domain_tuples_m", "tuples in the domain, m", "k = {prior_factor_k:g}, n = {rows_n:g}"),
    "difference": ("prior_factor_k", "k (prior ≤ k n/m)", "belief before and after a view"),
    "views": ("views", "views of the same data", "prior d = {prior_bound_d:g}; shaded: above γ"),
}
"""Column and label of the horizontal axis, and title."""
VIEWS = {"posterior_same": "made for one view each", "posterior_together": "made for all of them"}
SHADE = "#e9e9e9"


@styled
def alpha_beta(curves: pd.DataFrame) -> Figure:
    """Draw the errors of αβ against k, n and m, and the disclosure by views, in a panel each."""
    check(curves)
    panels, shares = curves["panel"].unique(), curves["query_share"].dropna().unique()
    drawn, all_axes = panels_of(len(panels), height=2.5)
    for axes, panel in zip(all_axes, panels, strict=True):
        column, label, title = ALPHA_BETA[panel]
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
            columns = (column, exact, "rho_measured", "rho_standard_error")
            if len(of := rows[rows["query_share"] == share]):
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


# title, y axis, its lowest value (errors of 0 are drawn on it), and the name of a bound
CLASSICAL = {
    "counting": ("Releasing a count", "root-mean-square error (people)", 5e-3, ""),
    "choosing": ("Choosing an outcome", "expected shortfall (people)", 1e-2, "bound (2Δ/ε) ln k"),
    "learning": ("Following experts", "regret per round", None, ""),
    "privacy": ("Exact privacy loss", "exact loss / declared ε", None, ""),
    "differencing": ("Differencing attack", "Pr[it succeeds]", 0.48, "bound of 2ε-DP"),
    "smoking": ("An ill smoker's risk, to his insurer", "mean probability of illness", 0.0, ""),
}
NAMES = {
    "pure": "pure ε",
    "published": "(ε, δ), as published",
    "zcdp": "(ε, δ), by bounded range",
    "worst utilities": "worst utilities (exact)",
}
LOOK_OF = dict.fromkeys(("Laplace", "published", "two noisy counts", "before the study"), 0)
LOOK_OF |= dict.fromkeys(("randomised response", "pure", "with it, all others known"), 1)
LOOK_OF |= dict.fromkeys(("exponential", "zcdp", "with his record"), 2)
COLUMNS = ("epsilon", "expected_error", "mean_error", "standard_error")


@styled
def classical(curves: pd.DataFrame) -> Figure:
    """Draw errors and exact privacy losses of classical mechanisms against ε."""
    check(curves)
    drawn, panels = panels_of(len(CLASSICAL), height=2.35, columns=2)
    for axes, (panel, shown) in zip(panels, CLASSICAL.items(), strict=True):
        rows, (title, label, floor, bound) = curves[curves["panel"] == panel], shown
        axes.set(title=title, xlabel="ε", ylabel=label, xscale="log")
        plain_log_ticks(axes.xaxis)
        linear = panel in ("differencing", "smoking")
        if not linear:
            axes.set_yscale("log")
            plain_log_ticks(axes.yaxis, (1,) if floor else (1, 2, 5))
        if panel == "privacy":
            axes.axhline(1, color=MUTED, linewidth=0.8)
        for name, of in rows.groupby("mechanism", sort=False):
            plain, _, halved = str(name).partition(", noise")
            index = LOOK_OF.get(plain, 3)
            look = LOOKS[index] | {"label": "_" if halved else NAMES.get(plain, plain)}
            if panel == "privacy":  # side by side around each ε
                look |= {"linestyle": "none", "markerfacecolor": "white" if halved else None}
                shift, ratio = 1.11 ** (index - 1.5), of["expected_error"] / of["epsilon"]
                axes.plot(of["epsilon"] * shift, ratio, **look)
                continue
            curve(axes, of, COLUMNS, look)
            none = of.loc[of["mean_error"] == 0, "epsilon"]
            look |= {"linestyle": "none", "label": "_", "clip_on": False, "zorder": 3}
            axes.plot(none, 0 * none + (floor or 0.0), in_layout=False, **look)
        if bound:
            once = rows.drop_duplicates("epsilon").sort_values("epsilon")
            axes.plot(once["epsilon"], once["bound"], color=MUTED, label=bound)
        axes.set_ylim(bottom=floor, top=1.02 if linear else None)
        axes.legend(handlelength=2.6, labelspacing=0.3)
    note = (
        f"Lines: exact; points with bars: {curves['repetitions'].max()} draws, ± 1 standard error. "
        "Filled points on the bottom line: none of these draws had an error. Privacy: filled, as "
        "declared; hollow, with the noise halved. Synthetic data."
    )
    footer(drawn, note)
    return drawn


FIGURES = {of.__name__: of for of in (noisy_max, base2_exponential, alpha_beta, classical)}
