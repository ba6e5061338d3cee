"""Figure of the study of histograms: the largest loss over all outputs beside that of the tails."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from pufferflow.reporting.figures.panels import check, footer, panels_of, plain_log_ticks, styled
from pufferflow.reporting.style import MUTED, SPARE_COLORS

KINDS = dict(zip(("dense", "sticky", "cyclic", "moving"), zip(SPARE_COLORS, "v<>*", strict=True), strict=True))
"""Colours and marks of no mechanism."""

ROUNDING_PERCENT = 1e-6
"""What is not above it is 0: losses are rounded up."""


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Two panels: random chains, and the family without bound.

    Parameters
    ----------
    curves : DataFrame
        First table of ``studies.histogram_study.measure.measure``.
    """
    check(curves)
    drawn, (left, right) = panels_of(2, height=2.5)
    random = curves[curves["panel"] == "random chains"]
    _excess(left, random)
    growth = curves[curves["panel"] == "two regimes"].sort_values("length")
    right.plot(growth["length"], growth["limit"], color=MUTED, linestyle=(0, (5, 2)), label="limit for large scales")
    right.plot(
        growth["length"],
        growth["loss_over_tail"],
        color="#000000",
        marker="o",
        linestyle="none",
        markerfacecolor="white",
        label="scale = T",
    )
    right.set_xscale("log")
    right.set_yscale("log")
    plain_log_ticks(right.yaxis)
    right.set_xticks(growth["length"].tolist(), [f"{length:g}" for length in growth["length"]])
    right.xaxis.set_minor_locator(NullLocator())
    right.set_xlabel("records T")
    right.set_ylabel("loss ÷ loss in the tails")
    right.set_title("two regimes")
    right.legend()
    chains = int(random.groupby(["kind", "epsilon"]).size().max())
    note = (
        f"Left: marks at 0 stand for as many chains as written below them, of {chains} of a kind; the others for one."
    )
    footer(drawn, f"{note} Synthetic data.")
    return drawn


def _excess(axes: Axes, random: pd.DataFrame) -> None:
    """One mark a chain whose loss is above that of the tails, and one, with their number, for those at 0."""
    epsilons = sorted(random["epsilon"].unique())
    excess = 100 * (random["loss_over_tail"] - 1)
    top = max(1.25 * float(excess.max()), 100 * ROUNDING_PERCENT)
    for shift, (kind, (color, marker)) in enumerate(KINDS.items()):
        look: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none", "markerfacecolor": "white"}
        axes.plot([], [], label=kind, **look)
        for place, epsilon in enumerate(epsilons):
            values = excess[(random["kind"] == kind) & (random["epsilon"] == epsilon)]
            x, above = place + 0.19 * (shift - 1.5), values[values > ROUNDING_PERCENT]
            axes.plot([x] * len(above), above, **look)
            if at_0 := len(values) - len(above):
                axes.plot(x, 0, **look)
                axes.text(x, -0.045 * top, f"{at_0}", ha="center", va="top", fontsize=6.3, color=color)
    axes.set_ylim(-0.14 * top, top)
    axes.set_xlim(-0.5, len(epsilons) - 0.5)
    axes.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("ε")
    axes.set_ylabel("loss beyond the tails (%)")
    axes.set_title("random chains")
    axes.legend(ncols=2, loc="upper right")
