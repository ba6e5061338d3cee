"""Figure of the study of histograms: the largest loss over all outputs beside that of the tails."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from pufferflow.reporting.figures.panels import check, panels_of, plain_log_ticks, styled
from pufferflow.reporting.style import MUTED

KINDS = {
    "dense": ("#0072b2", "o"),
    "sticky": ("#009e73", "s"),
    "cyclic": ("#d55e00", "^"),
    "moving": ("#cc79a7", "D"),
}

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
    epsilons = sorted(random["epsilon"].unique())
    for shift, (kind, (color, marker)) in enumerate(KINDS.items()):
        rows = random[random["kind"] == kind]
        x = rows["epsilon"].map(epsilons.index) + 0.16 * (shift - 1.5)
        excess = 100 * (rows["loss_over_tail"] - 1).clip(lower=0)
        left.plot(x, excess, color=color, marker=marker, linestyle="none", markerfacecolor="white", label=kind)
    left.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
    left.set_xlabel("ε")
    left.set_ylabel("loss beyond the tails (%)")
    if left.get_ylim()[1] < ROUNDING_PERCENT:
        left.set_ylim(-0.05, 1)
    left.set_title("random chains")
    left.legend()
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
    return drawn
