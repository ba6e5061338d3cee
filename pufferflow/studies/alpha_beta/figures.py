"""Figure of the αβ experiment: error of counting queries against k, n and m."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from pufferflow.reporting.figures.panels import check, footer, panels_of, styled
from pufferflow.reporting.style import MUTED, SPARE_COLORS

_AXES = {
    "k": ("prior_factor_k", "k (prior at most k n/m)"),
    "n": ("rows_n", "tuples in the data, n"),
    "m": ("domain_tuples_m", "tuples in the domain, m"),
}
# colour, marker, dashes of the queries, largest first
_QUERIES = [
    ("#0072b2", "o", (0, ())),
    ("#d55e00", "s", (0, (4, 1.5, 1, 1.5))),
    ("#009e73", "^", (0, (1, 1))),
    *((color, "D", (0, (6, 1))) for color in SPARE_COLORS),
]
_SOURCE: dict[str, Any] = {"color": "#000000", "linestyle": (0, (5, 2)), "linewidth": 1.0}
_ZERO: dict[str, Any] = {"color": MUTED, "linestyle": (0, (1, 1.5)), "linewidth": 1.0}
_SHADE = "#e9e9e9"
_REFUSED = "#f6e3ec"


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Draw the ``curves`` of :func:`pufferflow.studies.alpha_beta.measure.measure`, one panel a parameter."""
    check(curves)
    shares = sorted(curves["query_share"].dropna().unique(), reverse=True)
    present = [panel for panel in (*_AXES, *_OTHERS) if panel in set(curves["panel"])]
    drawn, panels = panels_of(len(present), height=2.5)
    errors = [axes for axes, panel in zip(panels, present, strict=True) if panel in _AXES]
    for axes in errors[1:]:
        axes.sharey(errors[0])
        axes.tick_params(labelleft=False)
    for axes, panel in zip(panels, present, strict=True):
        rows = curves[curves["panel"] == panel]
        if panel in _OTHERS:
            _OTHERS[panel](axes, rows)
            continue
        column, label = _AXES[panel]
        for share, (color, marker, dashes) in zip(shares, _QUERIES, strict=False):
            query = rows[rows["query_share"] == share].sort_values(column)
            axes.plot(query[column], query["rho_expected"], color=color, linestyle=dashes)
            axes.errorbar(
                query[column],
                query["rho_measured"],
                yerr=query["rho_standard_error"],
                color=color,
                linestyle="none",
                marker=marker,
                markerfacecolor="white",
                elinewidth=0.8,
            )
        once = rows.drop_duplicates(column).sort_values(column)
        axes.plot(once[column], once["rho_source"], **_SOURCE)
        axes.plot(once[column], np.sqrt(once["rows_n"]), **_ZERO)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.set_title(_fixed(panel, once))
        axes.xaxis.set_major_locator(LogLocator(numticks=8))
        axes.xaxis.set_minor_formatter(NullFormatter())
        if panel == "k":
            _impossible(axes, once)
    for axes in errors[:1]:
        axes.set_ylabel("root-mean-square error / √n")
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=color, linestyle=dashes, marker=marker, markerfacecolor="white", label=_query(share))
        for share, (color, marker, dashes) in zip(shares, _QUERIES, strict=False)
    ]
    handles.append(Line2D([], [], label="ρ = √(k/γ)", **_SOURCE))
    handles.append(Line2D([], [], label="answer 0 (whole table)", **_ZERO))
    handles.append(Patch(facecolor=_SHADE, edgecolor=MUTED, linewidth=0.6, label="no useful algorithm"))
    drawn.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 5))
    note = (
        f"γ = {curves['gamma'].iloc[0]:g}. Lines: exact; points: {curves['repetitions'].max():.0f} simulated "
        "publications, bars: ± 1 standard error. Shaded: k ≥ √m γ/(1−γ), the impossibility result with constant c = 1. "
        "Belief: of someone who expects n of the m tuples to be real, on the narrowest query. Synthetic data."
    )
    footer(drawn, note)
    return drawn


def _difference(axes: Axes, rows: pd.DataFrame) -> None:
    """How far a view moves the belief about an answer."""
    rows = rows.sort_values("prior_factor_k")
    color, _, dashes = _QUERIES[1]
    axes.plot(rows["prior_factor_k"], rows["difference_bound"], label="upper bound", color=MUTED, linewidth=1.0)
    axes.plot(
        rows["prior_factor_k"],
        rows["statistical_difference"],
        color=color,
        linestyle=dashes,
        label=_query(float(rows["query_share"].iloc[0])),
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(_AXES["k"][1])
    axes.set_ylabel("statistical difference")
    axes.set_title("belief after a view and before")
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="lower left")
    _impossible(axes, rows)


def _views(axes: Axes, rows: pd.DataFrame) -> None:
    """What a tuple in all of several views is worth."""
    rows = rows.sort_values("views")
    gamma = float(rows["gamma"].iloc[0])
    axes.axhspan(gamma, 1.02, facecolor=_REFUSED, zorder=0)
    axes.plot(rows["views"], rows["posterior_same"], color="#cc79a7", marker="v", label="made for one view each")
    axes.plot(
        rows["views"],
        rows["posterior_together"],
        color="#0072b2",
        marker="o",
        linestyle=(0, (5, 2)),
        markerfacecolor="white",
        label="made for all of them",
    )
    axes.set_xticks(rows["views"])
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("views of the same data")
    axes.set_ylabel("posterior of a tuple in all of them")
    axes.set_title(f"prior d = {float(rows['prior_bound_d'].iloc[0]):g}; shaded: above γ")
    axes.legend(loc="lower right")


_OTHERS = {"difference": _difference, "views": _views}


def _impossible(axes: Axes, rows: pd.DataFrame) -> None:
    line = float(rows["impossible_from_k"].iloc[0])
    low, high = axes.get_xlim()
    if low < line < high:
        axes.axvspan(line, high, facecolor=_SHADE, zorder=0)
        axes.axvline(line, color=MUTED, linewidth=0.6)
        axes.set_xlim(low, high)


def _query(share: float) -> str:
    return "whole table" if share == 1 else f"query on {100 * share:g} %"


def _fixed(panel: str, rows: pd.DataFrame) -> str:
    names = {"k": "prior_factor_k", "n": "rows_n", "m": "domain_tuples_m"}
    return ", ".join(
        f"{name} = {_number(float(rows[column].iloc[0]))}" for name, column in names.items() if name != panel
    )


def _number(value: float) -> str:
    power = round(np.log10(value)) if value >= 1000 else 0
    return f"$10^{{{power}}}$" if power and value == 10.0**power else f"{value:,.6g}".replace(",", " ")
