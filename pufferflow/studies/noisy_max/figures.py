"""Figures of Noisy Max: exact laws, the priors that preserve privacy, the largest ratio by the number of queries."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from pufferflow.errors import DataError
from pufferflow.reporting.figures.panels import styled
from pufferflow.reporting.style import COLUMN_WIDTH, INK, TEXT_WIDTH, Dashes

# label, colour, marker, dashes, place of the label in points from the last marker; grey copies stay readable
RELATIONS: dict[str, tuple[str, str, str, Dashes, tuple[float, float]]] = {
    "all-by-one": ("all counts by one", "#b34f00", "^", (0, (5, 2)), (-16, 0)),
    "one-anywhere": ("one count to any value", "#0072b2", "s", (0, (4, 1.5, 1, 1.5)), (2, 8)),
    "one-by-one": ("one count by one", "#00785a", "o", (0, ()), (2, -8)),
}
METHODS: dict[str, tuple[str, str, str, Dashes]] = {
    "z3": ("z3", "#d55e00", "^", (0, (5, 2))),
    "search": ("exact search", "#0072b2", "s", (0, (4, 1.5, 1, 1.5))),
    "product-form": ("product form", "#009e73", "o", (0, ())),
}


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Laws, priors and neighbours side by side.

    Parameters
    ----------
    curves : DataFrame
        First table of ``studies.noisy_max.measure.measure``.

    Raises
    ------
    DataError
        A panel has no rows.
    """
    drawing = Figure(figsize=(TEXT_WIDTH, 2.55), layout="constrained")
    panels = drawing.subplots(1, 3, width_ratios=[1, 1.3, 1.15])
    _laws(panels[0], _panel(curves, "laws"), _panel(curves, "example").iloc[0])
    _priors(drawing, panels[1], curves)
    _neighbours(panels[2], _panel(curves, "neighbours"))
    return drawing


@styled
def time_figure(times: pd.DataFrame) -> Figure:
    """Seconds of each way to decide Example 7.2 against the number of queries.

    Parameters
    ----------
    times : DataFrame
        Table of ``studies.noisy_max.measure.measure_times``.

    Raises
    ------
    DataError
        The table has no rows.
    """
    if times.empty:
        raise DataError("the table of times has no row; check the setting timed_queries")
    drawing = Figure(figsize=(COLUMN_WIDTH, 2.4), layout="constrained")
    axes = drawing.subplots()
    for method, (label, color, marker, dashes) in METHODS.items():
        rows = times[times["method"] == method].sort_values("queries")
        axes.plot(
            rows["queries"], rows["seconds"], color=color, linestyle=dashes, marker=marker, mfc="white", label=label
        )
    axes.set_yscale("log")
    axes.set_xlim(0.5, times["queries"].max() + 0.5)
    axes.set_xticks(sorted(times["queries"].unique()))
    axes.set_xlabel("queries n")
    axes.set_ylabel("seconds to decide")
    axes.set_title("Noisy Max, value released, factor 2")
    axes.legend()
    return drawing


def _panel(curves: pd.DataFrame, name: str) -> pd.DataFrame:
    rows = curves[curves["panel"] == name]
    if rows.empty:
        raise DataError(f"the table of Noisy Max has no row of the panel {name}; run its experiment again")
    return rows


def _laws(axes: Axes, laws: pd.DataFrame, example: pd.Series) -> None:
    secrets = list(dict.fromkeys(laws["secret"]))
    looks = (("#0072b2", ""), ("#e3b778", "////"))
    for at, (secret, (color, hatch)) in enumerate(zip(secrets, looks, strict=True)):
        rows = laws[laws["secret"] == secret].sort_values("output")
        x = rows["output"].to_numpy(float) + 0.4 * (at - 0.5)
        axes.bar(
            x, rows["probability"], width=0.4, color=color, hatch=hatch, edgecolor="white", linewidth=0.5, label=secret
        )
    worst = laws[laws["output"] == example["output"]]["probability"].max()
    axes.annotate(
        f"ratio\n{example['exact']}",
        (float(example["output"]), worst),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=6.5,
    )
    axes.set_xticks(range(laws["output"].astype(int).max() + 1))
    axes.set_ylim(0, 1.42 * laws["probability"].max())
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("released index")
    axes.set_ylabel("probability")
    axes.set_title(f"index, p1 = {example['p1']:g}, p2 = {example['p2']:g}")
    axes.legend(loc="upper right", handlelength=1.4)


def _priors(drawing: Figure, axes: Axes, curves: pd.DataFrame) -> None:
    """Priors by the smallest factor that they preserve of those asked for, the darkest the smallest."""
    regions = curves[curves["panel"] == "region"].sort_values("factor")  # none where no prior preserves any
    factors = list(dict.fromkeys(zip(regions["factor"], regions["exact"], strict=True)))
    colors = ListedColormap(colormaps["cividis"](np.linspace(0.15, 1, len(factors) + 1)))
    axes.fill_between([0, 1], 0, 1, color=colors(len(factors)), linewidth=0)
    for at, (factor, _) in reversed(list(enumerate(factors))):
        rows = regions[regions["factor"] == factor].sort_values("p1")
        ends = rows["lowest_p2"].to_numpy(float), rows["highest_p2"].to_numpy(float)
        axes.fill_between(rows["p1"].to_numpy(float), *ends, color=colors(at), linewidth=0)
    bar = drawing.colorbar(
        ScalarMappable(BoundaryNorm(np.arange(len(factors) + 2), colors.N), colors),
        ax=axes,
        pad=0.02,
        aspect=28,
        ticks=np.arange(1, len(factors) + 1),
    )
    bar.ax.set_yticklabels([exact for _, exact in factors])
    bar.outline.set_linewidth(0.4)
    bar.set_label("smallest factor preserved")
    for panel, marker, label in (("example", "o", "example"), ("supremum", "*", "supremum")):
        row = _panel(curves, panel).iloc[0]
        text = f"{label}: {row['exact']}"
        axes.plot(row["p1"], row["p2"], marker, markersize=7, color="white", mec=INK, label=text, clip_on=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, handletextpad=0.1, columnspacing=1)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.grid(visible=False)
    axes.set_xlabel("p1")
    axes.set_ylabel("p2")
    axes.set_title("index, every prior")


def _neighbours(axes: Axes, table: pd.DataFrame) -> None:
    for relation, (label, color, marker, dashes, offset) in RELATIONS.items():
        rows = table[table["relation"] == relation].sort_values("queries")
        axes.plot(
            rows["queries"],
            rows["largest_ratio"],
            color=color,
            linestyle=dashes,
            marker=marker,
            markerfacecolor="white",
        )
        last = rows.iloc[-1]
        axes.annotate(
            label,
            (last["queries"], last["largest_ratio"]),
            xytext=offset,
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=6.5,
            color=color,
        )
    axes.set_yscale("log", base=2)
    top = int(np.ceil(np.log2(table["largest_ratio"].max())))
    axes.yaxis.set_major_locator(FixedLocator([float(2**power) for power in range(0, top + 1, 2 if top > 6 else 1)]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_ylim(0.7, 2.0 ** (top + 0.5))
    axes.set_xlabel("queries n")
    axes.set_ylabel("largest ratio")
    axes.set_title("value released, neighbours")
