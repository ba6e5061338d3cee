"""The figure of wider guarantees: the noise they cost, and what noise made for a narrow one gives away."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from pufferflow.reporting.figures.panels import check, finish, panels_of, plain_log_ticks, styled
from pufferflow.reporting.style import COLUMN_WIDTH, MUTED, SPARE_COLORS, VERBATIM, group_label
from pufferflow.studies.histograms.figures import at_epsilon
from pufferflow.studies.wider_guarantees.words import KNOWS, MODELS, duration

MARKERS = ("o", "s", "D", "^", "v")
SHADE = "#f3dcd6"
GRID = "#e3e3e3"


@styled
def wider_guarantees(table: pd.DataFrame, *, epsilon: float, description: str = "") -> Figure:
    """Noise of wider guarantees over the paper's (upper row), and the loss at the paper's noise (lower row).

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.wider_guarantees.measure``.
    epsilon : float
        The ε to draw.
    description : str
        What the data are, for the footer.
    """
    check(table)
    shown = at_epsilon(table, epsilon)
    groups = list(dict.fromkeys(shown["group"]))
    width = 1.5 * COLUMN_WIDTH if len(groups) == 1 else None
    figure, panels = panels_of(2 * len(groups), height=2.1, columns=len(groups), width=width, share=True)
    upper, lower = panels[: len(groups)], panels[len(groups) :]
    for row, column in ((upper, "relative_noise"), (lower, "paper_loss")):
        limits = float(shown[column].min()) / 1.5, float(shown[column].max()) * 1.5
        for axes, group in zip(row, groups, strict=True):
            _cells(axes, shown[shown["group"] == group], column)
            axes.set_xlim(limits)
    for axes, group in zip(upper, groups, strict=True):
        axes.set_title(group_label(str(group)), **VERBATIM)
        axes.axvline(1, color=MUTED, linewidth=0.8, zorder=1)
        axes.set_xlabel("noise ÷ noise of MQMExact")
    for axes in lower:
        axes.axvspan(epsilon, axes.get_xlim()[1], color=SHADE, linewidth=0, zorder=0)
        axes.set_xlabel(f"loss at MQMExact's noise, ε = {epsilon:g}")
    windows = sorted(shown["window"].unique())
    seconds = int(shown["step_seconds"].iloc[0])
    handles: list[Any] = [
        Line2D([], [], linestyle="none", label=f"hides {duration(int(window) * seconds)}", **_look(i, filled=True))
        for i, window in enumerate(windows)
    ]
    for knows, text in KNOWS.items():
        handles.append(
            Line2D([], [], linestyle="none", label=f"adversary knows {text}", **_look(None, filled=knows == "nothing"))
        )
    note = (
        "Upper row: noise of leakage calibration over that of MQMExact for one record of the fitted chain. "
        "Lower row: what that noise of MQMExact gives away at most; shaded: more than ε."
    )
    finish(figure, handles, note, table, description)
    return figure


def _cells(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    """Marks of one panel: a line for each model, in it one for each window."""
    axes.set_xscale("log")
    models = list(dict.fromkeys(rows["model"]))
    windows = sorted(rows["window"].unique())
    for row in rows.to_dict("records"):
        i = windows.index(row["window"])
        place = models.index(row["model"]) + (i - (len(windows) - 1) / 2) * 0.26
        axes.plot([row[column]], [place], linestyle="none", **_look(i, filled=row["knows"] == "nothing"))
    axes.set_ylim(len(models) - 0.5, -0.5)
    axes.set_yticks(range(len(models)), [MODELS[str(model)] for model in models])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", visible=False)
    for between in range(1, len(models)):
        axes.axhline(between - 0.5, color=GRID, linewidth=0.6, zorder=0)
    plain_log_ticks(axes.xaxis, (1,) if rows[column].max() > 20 * rows[column].min() else (1, 2, 5))


def _look(window: int | None, *, filled: bool) -> dict[str, Any]:
    """How the mark of a window looks; None: any of them."""
    color = MUTED if window is None else SPARE_COLORS[window % len(SPARE_COLORS)]
    return {
        "marker": "o" if window is None else MARKERS[window % len(MARKERS)],
        "color": color,
        "markerfacecolor": color if filled else "white",
        "markersize": 4.5,
        "markeredgewidth": 0.9,
    }
