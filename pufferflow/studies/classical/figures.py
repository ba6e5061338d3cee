"""Figure of the classical mechanisms: error and exact privacy loss against ε."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pufferflow.reporting.figures.panels import check, footer, panels_of, plain_log_ticks, styled
from pufferflow.reporting.style import MUTED, TEXT_WIDTH

_TITLES = {
    "counting": ("Releasing a count", "root-mean-square error (people)"),
    "choosing": ("Choosing an outcome", "expected shortfall (people)"),
    "learning": ("Following experts", "regret a round"),
    "privacy": ("Exact privacy loss", "exact loss / declared ε"),
    "differencing": ("Differencing attack", "probability that it succeeds"),
    "smoking": ("An ill smoker's risk, to his insurer", "mean probability of illness"),
}
_LOOKS: dict[str, tuple[str, str, Any]] = {
    "randomised response": ("#d55e00", "s", (0, (4, 1.5, 1, 1.5))),
    "Laplace": ("#0072b2", "o", (0, ())),
    "exponential": ("#009e73", "^", (0, (5, 2))),
    "worst utilities": ("#000000", "", (0, (1, 1))),
    "weighted majority": ("#000000", "D", (0, (8, 2, 2, 2))),
    "pure": ("#d55e00", "s", (0, (4, 1.5, 1, 1.5))),
    "published": ("#0072b2", "o", (0, (5, 2))),
    "zcdp": ("#009e73", "^", (0, ())),
    "tuned, not private": ("#000000", "", (0, (1, 1))),
    "two noisy counts": ("#0072b2", "o", (0, ())),
    "before the study": (MUTED, "", (0, (1, 1))),
    "after it, without his record": ("#0072b2", "o", (0, (5, 2))),
    "with his record": ("#009e73", "^", (0, ())),
    "with it, all others known": ("#d55e00", "s", (0, (4, 1.5, 1, 1.5))),
}
_NAMES = {
    "pure": "pure ε",
    "published": "(ε, δ), as published",
    "zcdp": "(ε, δ), by bounded range",
    "worst utilities": "worst utilities (exact)",
}
_HALVED = ", noise halved"
_LEAST_SHOWN = {"counting": 5e-3, "choosing": 1e-2}
"""Bottom of an axis; an error below it is 0 for all purposes, and no error at all is drawn on it."""

_BOUNDS = {"choosing": "bound (2Δ/ε) ln k", "differencing": "bound of 2ε-DP"}
_LINEAR = {"differencing": (0.48, 1.02), "smoking": (0, 1.02)}
"""Panels of probabilities."""

_STEP = 1.11
"""Ratio of neighbouring places of markers that stand side by side on a logarithmic axis."""


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Draw the ``curves`` of :func:`pufferflow.studies.classical.measure.measure`, two panels a row."""
    check(curves)
    present = [panel for panel in _TITLES if panel in set(curves["panel"])]
    drawn, panels = panels_of(len(present), height=2.35, width=TEXT_WIDTH, columns=min(len(present), 2))
    for axes, panel in zip(panels, present, strict=True):
        rows = curves[curves["panel"] == panel]
        if panel == "privacy":
            _privacy(axes, rows)
        for name in dict.fromkeys(rows["mechanism"]) if panel != "privacy" else ():
            _line(axes, name, rows[rows["mechanism"] == name].sort_values("epsilon"), _LEAST_SHOWN.get(panel))
        if panel in _BOUNDS:
            bound = rows.drop_duplicates("epsilon").sort_values("epsilon")
            axes.plot(bound["epsilon"], bound["bound"], color=MUTED, linewidth=0.8, label=_BOUNDS[panel])
        _axes(axes, panel)
    repetitions = int(curves["repetitions"].max())
    note = (
        f"Lines: exact; points with bars: {repetitions} draws, ± 1 standard error. Filled points on the bottom line: "
        "none of these draws had an error. Privacy: filled, as declared; hollow, noise halved. Synthetic data."
    )
    footer(drawn, note)
    return drawn


def _axes(axes: Axes, panel: str) -> None:
    title, label = _TITLES[panel]
    axes.set_title(title)
    axes.set_xlabel("ε")
    axes.set_ylabel(label)
    axes.set_xscale("log")
    plain_log_ticks(axes.xaxis)
    if panel in _LINEAR:
        axes.set_ylim(_LINEAR[panel])
    else:
        axes.set_yscale("log")
        plain_log_ticks(axes.yaxis, (1, 2, 5) if panel in ("learning", "privacy") else (1,))
    if panel in _LEAST_SHOWN:
        axes.set_ylim(bottom=_LEAST_SHOWN[panel])
    axes.legend(loc="best", handlelength=2.6, labelspacing=0.3)


def _privacy(axes: Axes, rows: pd.DataFrame) -> None:
    """Markers side by side around each ε, filled as declared and hollow with the noise halved."""
    axes.axhline(1, color=MUTED, linewidth=0.8)
    plain = [name for name in dict.fromkeys(rows["mechanism"]) if not name.endswith(_HALVED)]
    for place, name in enumerate(plain):
        color, marker, _ = _LOOKS.get(name, (MUTED, "x", (0, ())))
        beside = _STEP ** (place - (len(plain) - 1) / 2)
        for which, fill in ((name, color), (name + _HALVED, "white")):
            points = rows[rows["mechanism"] == which]
            axes.plot(
                points["epsilon"] * beside,
                points["expected_error"] / points["epsilon"],
                color=color,
                marker=marker,
                linestyle="none",
                markerfacecolor=fill,
                label=name if which == name else "_",
            )


def _line(axes: Axes, name: str, rows: pd.DataFrame, floor: float | None) -> None:
    """Exact line and measured points; those of no error at all, which a logarithm has no place for, on the floor."""
    color, marker, dashes = _LOOKS.get(name, (MUTED, "x", (0, ())))
    measured = rows["mean_error"].notna() & (rows["mean_error"] > 0)
    axes.plot(
        rows["epsilon"],
        rows["expected_error"],
        color=color,
        linestyle=dashes,
        marker=marker if not measured.any() else "",
        markerfacecolor="white",
        label=_NAMES.get(name, name),
    )
    if measured.any():
        axes.errorbar(
            rows.loc[measured, "epsilon"],
            rows.loc[measured, "mean_error"],
            yerr=rows.loc[measured, "standard_error"],
            color=color,
            linestyle="none",
            marker=marker,
            markerfacecolor="white",
            elinewidth=0.8,
        )
    if floor is not None:
        none = rows.loc[rows["mean_error"] == 0, "epsilon"]
        (points,) = axes.plot(none, [floor] * len(none), color=color, linestyle="none", marker=marker, zorder=3)
        points.set_clip_on(False)
        points.set_in_layout(False)
