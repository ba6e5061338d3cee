"""Figures of the base-2 exponential mechanism: tidy tables of its experiment in, matplotlib figures out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from pufferflow.reporting.figures.panels import check, styled
from pufferflow.reporting.style import INK, MUTED, TEXT_WIDTH, Dashes

BAND = "#dfe3e8"
BAR = "#c9ccd1"
NAIVE, BASE2 = "#d55e00", "#0072b2"
METHODS: dict[str, tuple[str, str, str, Dashes]] = {
    "rejection": ("exact, rejection", "#0072b2", "o", (0, ())),
    "bitwise": ("exact, bit by bit", "#009e73", "s", (0, (4, 1.5))),
    "all exact sums": ("exact, all sums stored", "#cc79a7", "D", (0, (1, 1.5))),
    "naive": ("naive floats", "#d55e00", "^", (0, (6, 1.5, 1, 1.5))),
}
ZERO, TRUNCATED = "zero rounding", "truncated addition"
_Place = Callable[[float], float]
LOWEST = -16.0
"""log10 of the smallest probability drawn; 0 is drawn at the left edge, beyond a gap."""


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Attacks, samplers and privacy loss in four panels.

    Parameters
    ----------
    curves : DataFrame
        First table of ``studies.base2_exponential.measure.measure``.
    """
    check(curves)
    drawn = Figure(figsize=(TEXT_WIDTH, 4.6), layout="constrained")
    panels = drawn.subplots(2, 2, height_ratios=[1, 1.25])
    _attack(panels[0, 0], curves, [(ZERO, "naive", NAIVE, ""), (ZERO, "base-2", BASE2, "")], float)
    panels[0, 0].set_xlim(-0.03, 1.03)
    shown = [
        (TRUNCATED, "naive", NAIVE, ""),
        (f"{TRUNCATED}, heavy outcome last", "naive", NAIVE, ",\nheavy last"),
        (TRUNCATED, "base-2", BASE2, ""),  # whose exact sums know no order
    ]
    _attack(panels[0, 1], curves, shown, _log_place)
    _log_axis(panels[0, 1])
    _samplers(panels[1, 0], curves[curves["panel"] == "samplers"])
    _loss(panels[1, 1], curves[curves["panel"] == "loss"])
    points: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": INK, "markersize": 4.5}
    handles = [
        Line2D([], [], label="with Alice", **points),
        Line2D([], [], label="without Alice", markerfacecolor="white", **points),
        Patch(facecolor=BAND, label="allowed with Alice by ε"),
    ]
    drawn.legend(handles=handles, loc="outside upper center", ncols=3)
    return drawn


@styled
def time_figure(times: pd.DataFrame) -> Figure:
    """Median seconds of one release: against the number of outcomes n, their utilities 0 … n − 1, and against a range.

    Both exact samplers compare the leading words of the cumulative weights and form an exact sum only where these do
    not decide; storing all exact sums gives the same law and ends where they outgrow memory. Crosses are bars to stay
    under.

    Parameters
    ----------
    times : DataFrame
        Table of ``studies.base2_exponential.measure.measure_times``.
    """
    check(times)
    drawn = Figure(figsize=(TEXT_WIDTH, 2.7), layout="constrained")
    panels = drawn.subplots(1, 2, sharey=True)
    for axes, panel, x, label in (
        (panels[0], "outcomes", "outcomes", "number of outcomes"),
        (panels[1], "range", "utility_range", "range of the utilities of 1000 outcomes"),
    ):
        rows = times[times["panel"] == panel]
        for method, (_, color, marker, dashes) in METHODS.items():
            of_method = rows[rows["method"] == method].sort_values(x)
            axes.plot(of_method[x], of_method["seconds"], color=color, linestyle=dashes, **_hollow(marker))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    bars = times.dropna(subset="bar_seconds").drop_duplicates("outcomes")
    panels[0].plot(bars["outcomes"], bars["bar_seconds"], "x", color=INK, markersize=6)
    panels[0].set_ylabel("seconds of one release")
    handles = [
        Line2D([], [], color=color, linestyle=dashes, label=name, **_hollow(marker))
        for method, (name, color, marker, dashes) in METHODS.items()
        if method in set(times["method"])
    ]
    if len(bars):
        handles.append(Line2D([], [], linestyle="none", marker="x", markersize=6, color=INK, label="bar"))
    drawn.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return drawn


def _attack(axes: Axes, curves: pd.DataFrame, shown: Sequence[tuple[str, str, str, str]], place: _Place) -> None:
    """One row a mechanism: the probability of the other outputs on both databases, and the band ε allows."""
    for y, (attack, mechanism, color, _) in zip(range(0, -len(shown), -1), shown, strict=True):
        rows = curves[(curves["panel"] == attack) & (curves["mechanism"] == mechanism)]
        other = rows[rows["outcome"] == "any other"].set_index("database")["probability"]
        there, absent = other["with Alice"], other["without Alice"]
        epsilon, loss = float(rows["epsilon"].iloc[0]), float(rows["loss_nats"].iloc[0])
        # both the output and its complement change by a factor of at most e^±ε
        low = max(absent * math.exp(-epsilon), 1 - (1 - absent) * math.exp(epsilon))
        high = min(absent * math.exp(epsilon), 1 - (1 - absent) * math.exp(-epsilon))
        axes.barh(y, place(high) - place(low), left=place(low), height=0.56, color=BAND, zorder=0.5)
        ends = [place(there), place(absent)]
        points: dict[str, Any] = {"marker": "o", "color": color, "markersize": 4.5, "clip_on": False, "zorder": 3}
        axes.plot(ends, [y + 0.11, y - 0.11], color=color, linestyle="-" if there else (0, (2, 2)), linewidth=1)
        axes.plot(ends[1], y - 0.11, markerfacecolor="white", **points)
        axes.plot(ends[0], y + 0.11, **points)
        text = f"loss {'∞' if math.isinf(loss) else f'{loss:.3g}'}, ε = {epsilon:.3g}"
        axes.text(0.09, y + 0.31, text, fontsize=6.3, color=MUTED, va="bottom", transform=axes.get_yaxis_transform())
    axes.set_yticks([-float(i) for i in range(len(shown))], [f"{row[1]}{row[3]}" for row in shown])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(shown) + 0.5, 0.8)
    axes.set_title(shown[0][0])
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("probability of an output other than the watched one")


def _log_axis(axes: Axes) -> None:
    """Powers of ten and, left of a gap, 0."""
    axes.set_xlim(LOWEST - 2.2, 0.3)
    ticks = list(range(int(LOWEST) + 1, 1, 5))
    axes.set_xticks([LOWEST - 1.5, *ticks], ["0", *(f"$10^{{{t}}}$" if t else "1" for t in ticks)])
    axes.axvline(LOWEST - 0.7, color=MUTED, linewidth=0.6, linestyle=":")


def _log_place(probability: float) -> float:
    return LOWEST - 1.5 if probability == 0 else max(math.log10(probability), LOWEST)


def _samplers(axes: Axes, rows: pd.DataFrame) -> None:
    outcomes = list(dict.fromkeys(rows["outcome"]))
    exact = rows.drop_duplicates("outcome")["probability"]
    axes.bar(range(len(outcomes)), exact, width=0.9, color=BAR)
    handles: list[Any] = [Patch(facecolor=BAR, label="exact law")]
    slots = {"rejection": -0.2, "bitwise": 0.2}
    for sampler, slot in slots.items():
        of_sampler = rows[rows["mechanism"] == sampler]
        name, color, marker, _ = METHODS[sampler]
        x = [outcomes.index(o) + slot for o in of_sampler["outcome"]]
        axes.plot(x, of_sampler["frequency"], linestyle="none", color=color, **_hollow(marker))
        label = f"{name.removeprefix('exact, ')}: χ² p = {of_sampler['chi_square_p'].iloc[0]:.2f}"
        handles.append(Line2D([], [], linestyle="none", color=color, label=label, **_hollow(marker)))
    step = max(1, (len(outcomes) - 1) // 8)
    axes.set_xticks(range(0, len(outcomes), step), [o.replace("-", "−") for o in outcomes[::step]])
    axes.grid(visible=False, axis="x")
    axes.set_title(f"exact samplers, {int(rows['draws'].iloc[0]):,} draws each")
    axes.set_xlabel("outcome of the Laplace-like release of 2")
    axes.set_ylabel("probability")
    axes.set_ylim(0, 1.45 * float(exact.max()))
    axes.legend(handles=handles, loc="upper left")


def _loss(axes: Axes, rows: pd.DataFrame) -> None:
    looks: tuple[tuple[float, str, str, str, Dashes], ...] = (
        (1.0, "α = 1", "#0072b2", "o", (0, ())),
        (0.5, "α = ½, rounded", "#d55e00", "s", (0, (4, 1.5))),
    )
    sizes = sorted(rows["outcomes"].unique())
    for sensitivity, name, color, marker, dashes in looks:
        of = rows[rows["sensitivity"] == sensitivity].sort_values("outcomes")
        axes.plot(of["outcomes"], of["loss_bits"], color=color, linestyle=dashes, label=name, **_hollow(marker))
    published = float(rows.loc[rows["sensitivity"] == 0.5, "published_bits"].iloc[0])
    proved = float(rows["proved_bits"].max())
    for y, x, side, text in (
        (published, sizes[-1], "right", "2αη of α = ½ (published)"),
        (proved, sizes[0], "left", "2⌈α⌉η of both"),
    ):
        axes.axhline(y, color=MUTED, linestyle=(0, (1, 1)), linewidth=0.9)
        axes.text(x, y + 0.06, text, ha=side, va="bottom", fontsize=6.3, color=MUTED)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sizes) if len(sizes) < 7 else LogLocator(base=4))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0, 1.15 * proved)
    axes.set_xlabel("number of outcomes")
    axes.set_ylabel("loss (bits)")
    axes.set_title("exact privacy loss on bad neighbours")
    axes.legend(loc="lower right")


def _hollow(marker: str) -> dict[str, Any]:
    return {"marker": marker, "markerfacecolor": "white", "markeredgewidth": 0.8, "markersize": 3.4}
