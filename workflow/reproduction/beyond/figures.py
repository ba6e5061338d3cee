"""Figures of the studies beyond the paper."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pufferflow.drawing import style
from reproduction.beyond.shown import FORMATS, NOTES, WORDS, duration
from reproduction.panels import columns_of, finish, panels_of, plain_log_ticks
from reproduction.tables import group_label, shown_epsilon

IN_FIGURES = {
    "certainty": " Dashed: the record at that time alone.",
    "least_noise": " Not private: below the lower bound.",
    "wider_guarantees": " Hollow points: with side information.",
}
RATIO = "noise ÷ noise of MQMExact"


@style.styled
def drawn(table: pd.DataFrame, study: str) -> Figure:
    """Return the figure of a study, one panel per group."""
    values = {"composition": "total_epsilon", "certainty": "certainty"}
    value = values.get(study, "relative_noise")
    shown = table[table[value].notna()]
    style.check(shown)
    groups = list(shown["group"].unique())
    if study == "related_bounds":
        return _related(shown[shown["bound"] != "leakage"], groups)
    width = 1.5 * style.COLUMN_WIDTH if len(groups) == 1 else None
    figure, axes = panels_of(len(groups), height=2.2, width=width, share=True)
    drawing = {"least_noise": _noise, "composition": _total, "certainty": _certainty}
    drawing.get(study, _wider)(shown, dict(zip(groups, axes, strict=True)))
    for number, (group, panel) in enumerate(zip(groups, axes, strict=True)):
        panel.set_title(group_label(group), **style.VERBATIM)
        if number % columns_of(len(groups)):
            panel.set_ylabel("")
    note = NOTES[study].format(epsilon=shown_epsilon(table["epsilon"])) + IN_FIGURES.get(study, "")
    finish(figure, axes[0].get_legend_handles_labels()[0], note, table, table["data"].iloc[0])
    return figure


def _noise(table: pd.DataFrame, panels: dict[Any, Axes]) -> None:
    """Draw each mechanism's scale ÷ MQMExact's against ε, and the region that is not private."""
    table = table.assign(least=table["relative_noise"] / table["gap"])
    low, high = table["least"].min() / 1.6, table["relative_noise"].max() * 1.6
    for group, axes in panels.items():
        rows = table[table["group"] == group]
        for name in style.in_order(table["mechanism"]):
            curve, look = rows[rows["mechanism"] == name], style.mechanism_style(name)
            shape = style.points(look) | {"linestyle": look.dashes, "color": look.color}
            axes.plot(curve["epsilon"], curve["relative_noise"], label=look.label, **shape)
        least = rows.groupby("epsilon")["least"].first()
        x, widened = least.index, 1.2 if len(least) == 1 else 1  # a band that can be seen
        ends, edge = [x[0] / widened, *x, x[-1] * widened], np.pad(least, 1, "edge")
        axes.fill_between(ends, edge, low, color="#e3e3e3", linewidth=0, label="not private")
        axes.set(xscale="log", yscale="log", xlabel="ε", ylabel=RATIO, ylim=(low, high))
        axes.set_xticks(x, [f"{epsilon:g}" for epsilon in x])
        axes.set_xticks([], minor=True)
        plain_log_ticks(axes.yaxis, (1, 2, 5) if high < 50 * low else (1,))


def _total(table: pd.DataFrame, panels: dict[Any, Axes]) -> None:
    """Draw the total ε of 1, 2, … releases by each bound."""
    for (group, bound), rows in table.groupby(["group", "bound"], sort=False):
        look = style.mechanism_style("mqm-exact" if bound == "quilts" else str(bound))
        (line,) = panels[group].plot(rows["releases"], rows["total_epsilon"], color=look.color)
        line.set(linestyle=look.dashes, label=WORDS[str(bound)])
        panels[group].set(xlabel="releases", ylabel="total ε")


def _wider(table: pd.DataFrame, panels: dict[Any, Axes]) -> None:
    """Draw the noise of wider guarantees ÷ MQMExact's, at the ε closest to 1."""
    shown = table[table["epsilon"] == shown_epsilon(table["epsilon"])]
    models, windows = list(shown["model"].unique()), sorted(shown["window"].unique())
    for axes in panels.values():
        axes.axvline(1, color=style.MUTED, linewidth=0.8, zorder=1)
        axes.set(xscale="log", xlabel=RATIO, ylim=(len(models) - 0.4, -0.6))
        axes.set_yticks(range(len(models)), [WORDS[model] for model in models])
        axes.set_yticks([], minor=True)
    for (group, window, side_information), rows in shown.groupby(
        ["group", "window", "side_information"], sort=False
    ):
        i, informed = windows.index(window), side_information != "none"
        color, marker = style.SPARE_COLORS[i % 4], "osD^v"[i % 5]
        shift = 0.3 * (i - (len(windows) - 1) / 2) + 0.1 * informed - 0.05
        label = f"protects {duration(int(window * rows['step_seconds'].iloc[0]))}"
        look: dict[str, Any] = {"color": color, "markersize": 4}
        look |= {"markerfacecolor": "white", "label": f"_{label}"} if informed else {"label": label}
        height = rows["model"].map(models.index) + shift
        panels[group].plot(rows["relative_noise"], height, marker, **look)
        plain_log_ticks(panels[group].xaxis, (1,))


def _certainty(table: pd.DataFrame, panels: dict[Any, Axes]) -> None:
    """Draw the certainty against the time since the secret, a marker per ε, a line per bound."""
    dashes = {"all-later": (0, ()), "one-record": (0, (4, 2))}
    for (group, epsilon, bound), rows in table.groupby(["group", "epsilon", "bound"], sort=False):
        number = list(table["epsilon"].unique()).index(epsilon) % 4
        label = f"{'_' * (bound == 'one-record')}ε = {epsilon:g} per record"
        look: dict[str, Any] = {"color": style.SPARE_COLORS[number], "marker": "osD^"[number]}
        look |= {"markersize": 3, "linestyle": dashes[str(bound)], "label": label}
        panels[group].plot(rows["records"], rows["certainty"], **look)
        panels[group].set(xscale="log", xlabel="records since the secret", ylabel="certainty")
        panels[group].set_ylim(0.49, 1.01)
        plain_log_ticks(panels[group].xaxis, (1,))


def _related(table: pd.DataFrame, groups: list[str]) -> Figure:
    """Draw the noise of each related bound ÷ leakage's, a point per chain, a marker per group."""
    figure, (axes,) = panels_of(1, height=2.6, width=1.5 * style.COLUMN_WIDTH)
    table = table[table["epsilon"] == shown_epsilon(table["epsilon"])]
    bounds = ["lower-bound", "tpl", "mqm-exact", "mqm-approx", "group-dp", "bdp"]
    axes.axvline(1, color=style.MUTED, linewidth=0.8, zorder=1)
    for number, group in enumerate(groups):
        rows = table[table["group"] == group]
        shift = 0.7 * ((number + 0.5) / len(groups) - 0.5)
        height = rows["bound"].map(bounds.index) + shift
        color, marker = [*style.SPARE_COLORS, "#000000"][number % 5], "osD^v"[number % 5]
        axes.plot(rows["relative_noise"], height, marker, markersize=3, color=color, alpha=0.6)
        axes.plot([], [], marker, label=group_label(group), color=color)
    axes.set(xscale="log", xlabel="noise ÷ noise of leakage", ylim=(len(bounds) - 0.5, -0.5))
    axes.set_yticks(range(len(bounds)), [FORMATS["bound"](bound) for bound in bounds])
    axes.set_yticks([], minor=True)
    plain_log_ticks(axes.xaxis, (1,))
    note = NOTES["related_bounds"].format(epsilon=shown_epsilon(table["epsilon"]))
    finish(figure, axes.get_legend_handles_labels()[0], note, table, table["data"].iloc[0])
    return figure
