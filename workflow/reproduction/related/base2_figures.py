"""Figure of :mod:`reproduction.related.base2_exponential`: attacks, loss, error of rounding."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pufferflow.drawing.style import MUTED, check, footer, styled
from reproduction.panels import LOOKS, panels_of, plain_log_ticks

BAND = "#dfe3e8"
COLORS = {"naive": "#d55e00", "base-2": "#0072b2"}
LOSSES = {1.0: "α = 1", 0.5: "α = ½, utilities rounded at random"}
LIMITS = {"proved_bits": "2⌈α⌉η of both", "published_bits": "2αη of α = ½"}
ERRORS = {"error": "largest error", "bound": "bound of the error", "width": "width of the bounds"}


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Draw the attacks, the exact loss, and the error of rounding; no row is a DataError."""
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
        # a ring around a dot, so that both are seen where they coincide
        ring = look | {"markersize": 6.4, "markerfacecolor": "none"}
        axes.plot(absent, y, "o", label="without Alice", **ring)
        axes.plot(seen, y, "o", label="with Alice", markersize=3.4, **look)
        text = f"loss {loss:.3g}, ε = {epsilon:.3g}".replace("inf", "∞")
        look = {"fontsize": 6.3, "color": MUTED, "transform": axes.get_yaxis_transform()}
        axes.text(0.09, y - 0.32, text, **look)
    axes.set_yticks(range(len(labels)), labels)
    axes.set(ylim=(len(labels) - 0.5, -0.8), title=name, xlabel="probability of outputs but o1")
    axes.grid(visible=False, axis="y")
