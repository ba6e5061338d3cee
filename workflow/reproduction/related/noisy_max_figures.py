"""The figure of Noisy Max: one prior, every prior, and neighbours by the number of queries."""

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pufferflow.drawing.style import INK, TEXT_WIDTH, check, styled
from reproduction.panels import LOOKS


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Draw all panels, of which the region may be empty; no row is a DataError."""
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
    _every_prior(every_prior, panels.get("region", curves.iloc[:0]), example, supremum)
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
    """Priors by the smallest of the factors that they preserve, the darkest the smallest."""
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
