"""Figures of the base-2 exponential mechanism: tidy tables of its experiment in, matplotlib figures out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from pufferflow.reporting.figures.panels import check, styled
from pufferflow.reporting.style import INK, MUTED, TEXT_WIDTH, Dashes

BAND = "#dfe3e8"
BAR = "#c9ccd1"
NAIVE, BASE2 = "#d55e00", "#0072b2"
Look = tuple[str, str, str, Dashes]
"""Name, colour, marker and dashes of a series."""
METHODS: dict[str, Look] = {
    "rejection": ("exact, rejection", "#0072b2", "o", (0, ())),
    "bitwise": ("exact, bit by bit", "#009e73", "s", (0, (4, 1.5))),
    "all exact sums": ("exact, all sums stored", "#cc79a7", "D", (0, (1, 1.5))),
    "naive": ("naive floats", "#d55e00", "^", (0, (6, 1.5, 1, 1.5))),
    "floating-point Laplace": ("one number of floating-point Laplace noise", "#8a6d00", "v", (0, (8, 2))),
}
NOISES: dict[str, Look] = {
    "naive": ("Laplace noise in doubles", *METHODS["naive"][1:]),
    "base-2": ("base-2, on a grid", *METHODS["rejection"][1:]),
    "discrete": ("discrete Laplace, as released here", *METHODS["bitwise"][1:]),
}
PRECISIONS: dict[str, Look] = {
    "theoretical": ("theoretical worst case", *METHODS["naive"][1:]),
    "ComputePrecision": ("ComputePrecision", *METHODS["bitwise"][1:]),
    "any utilities": ("needed by any utilities 0 … n", *METHODS["rejection"][1:]),
    "these utilities": ("used by 0, …, n − 1", *METHODS["all exact sums"][1:]),
}
SUMS: dict[str, Look] = {
    "all exact sums": METHODS["all exact sums"],
    "enclosed sums": ("enclosed, as here", *METHODS["rejection"][1:]),
}
LAWS: dict[str, Look] = {
    "unrounded": ("utilities as they are", *METHODS["naive"][1:]),
    "rounded": ("rounded at random", *METHODS["rejection"][1:]),
}
ERRORS: dict[str, Look] = {
    "bound": ("bound of the error", *METHODS["naive"][1:]),
    "error": ("largest error", *METHODS["rejection"][1:]),
    "width": ("width of the bounds", *METHODS["bitwise"][1:]),
}
ZERO, SWAPPED, TRUNCATED = "zero rounding", "zero rounding, two outcomes", "truncated addition"
_Place = Callable[[float], float]
_PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
WITH_SIZE, WITHOUT_SIZE = 3.4, 6.4
LOWEST = -16.0
"""log10 of the smallest probability drawn; 0 is drawn at the left edge, beyond a gap."""


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Attacks on the exponential mechanism and on Laplace noise, and privacy loss, in four panels.

    Parameters
    ----------
    curves : DataFrame
        First table of ``studies.base2_exponential.measure.measure``.
    """
    check(curves)
    drawn = Figure(figsize=(TEXT_WIDTH, 5.2), layout="constrained")
    panels = drawn.subplots(2, 2, height_ratios=[1.25, 1])
    zero = [
        (ZERO, "naive", NAIVE, ""),
        (SWAPPED, "naive", NAIVE, ",\ntwo outcomes"),
        (ZERO, "base-2", BASE2, ""),
        (SWAPPED, "base-2", BASE2, ",\ntwo outcomes"),
    ]
    _attack(panels[0, 0], curves, zero, float)
    panels[0, 0].set_xlim(-0.03, 1.03)
    truncated = [
        (TRUNCATED, "naive", NAIVE, ""),
        (f"{TRUNCATED}, heavy outcome last", "naive", NAIVE, ",\nheavy last"),
        (TRUNCATED, "base-2", BASE2, ""),  # whose exact sums know no order
    ]
    _attack(panels[0, 1], curves, truncated, _log_place)
    _log_axis(panels[0, 1])
    _noise(panels[1, 0], curves[curves["panel"] == "floating noise"])
    _loss(panels[1, 1], curves[curves["panel"] == "loss"])
    points: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": INK}
    handles = [
        Line2D([], [], label="with Alice", markersize=WITH_SIZE, **points),
        Line2D([], [], label="without Alice", markersize=WITHOUT_SIZE, markerfacecolor="none", **points),
        Patch(facecolor=BAND, label="allowed with Alice by ε"),
    ]
    drawn.legend(handles=handles, loc="outside upper center", ncols=3)
    return drawn


@styled
def exactness_figure(curves: pd.DataFrame) -> Figure:
    """What exactness does to the law and what it costs: samplers, rounding, precision, random bits, sums.

    Parameters
    ----------
    curves : DataFrame
        First table of ``studies.base2_exponential.measure.measure``.
    """
    check(curves)
    drawn = Figure(figsize=(TEXT_WIDTH, 7.4), layout="constrained")
    panels = drawn.subplots(3, 2).flat
    for axes, panel, draw in (
        (panels[0], "samplers", _samplers),
        (panels[1], "precision", _precision),
        (panels[2], "random bits", _random_bits),
        (panels[3], "growth, range", _growth),
        (panels[4], "rounding law", _rounded_law),
        (panels[5], "rounding", _rounding_error),
    ):
        draw(axes, curves[curves["panel"] == panel])
    return drawn


@styled
def time_figure(times: pd.DataFrame) -> Figure:
    """Median seconds of one release: of n outcomes, over a range of utilities, and of a Laplace-like number.

    Both exact samplers compare the leading words of the cumulative weights and form an exact sum only where these do
    not decide; storing all exact sums gives the same law and ends where they outgrow memory. The cross is what the
    source reports of its own machine.

    Parameters
    ----------
    times : DataFrame
        Table of ``studies.base2_exponential.measure.measure_times``.
    """
    check(times)
    drawn = Figure(figsize=(TEXT_WIDTH, 2.9), layout="constrained")
    panels = drawn.subplots(1, 3, sharey=True)
    for axes, panel, x, label in (
        (panels[0], "outcomes", "outcomes", "number of outcomes"),
        (panels[1], "range", "utility_range", "range of the utilities\nof 1000 outcomes"),
        (panels[2], "laplace", "outcomes", "grid points of a\nLaplace-like release"),
    ):
        _curves(axes, times[times["panel"] == panel], METHODS, x, "seconds")
        _thousands(axes)
        _powers(axes)
        axes.set_xlabel(label)
    published = times.dropna(subset="published_seconds").drop_duplicates("outcomes")
    panels[0].plot(published["outcomes"], published["published_seconds"], "x", color=INK, markersize=6)
    panels[0].set_ylabel("seconds of one release")
    handles = [_handle(look) for method, look in METHODS.items() if method in set(times["method"])]
    if len(published):
        handles.append(
            Line2D([], [], linestyle="none", marker="x", markersize=6, color=INK, label="the source, its machine")
        )
    drawn.legend(handles=handles, loc="outside upper center", ncols=3)
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
        points: dict[str, Any] = {"marker": "o", "color": color, "clip_on": False, "zorder": 3}
        axes.plot(ends, [y, y], color=color, linestyle="-" if there else (0, (2, 2)), linewidth=1)
        # a ring around a dot, so that both are seen where they coincide
        axes.plot(ends[1], y, markersize=WITHOUT_SIZE, markerfacecolor="none", **points)
        axes.plot(ends[0], y, markersize=WITH_SIZE, **points)
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
    axes.set_xticks([LOWEST - 1.5, *ticks], ["0", *(_power(10.0**t) for t in ticks)])
    axes.axvline(LOWEST - 0.7, color=MUTED, linewidth=0.6, linestyle=":")


def _log_place(probability: float) -> float:
    return LOWEST - 1.5 if probability == 0 else max(math.log10(probability), LOWEST)


def _noise(axes: Axes, rows: pd.DataFrame) -> None:
    _curves(axes, rows, NOISES, "epsilon", "share")
    axes.set_ylim(-0.04, 1.3)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("ε of a release of 0 or of 1")
    axes.set_ylabel("possible for one of both alone")
    axes.set_title("outputs that tell the value")
    axes.legend(loc="upper left")


def _precision(axes: Axes, rows: pd.DataFrame) -> None:
    _curves(axes, rows, PRECISIONS, "outcomes", "bits")
    axes.set_xscale("linear")  # as in the author's figure
    _thousands(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("number n of outcomes, utilities 0, …, n − 1")
    axes.set_ylabel("bits")
    axes.set_title("bits of precision, η = 1")
    axes.legend(loc="upper left")


def _random_bits(axes: Axes, rows: pd.DataFrame) -> None:
    precision = sorted(rows["precision_bits"].unique())
    axes.fill_between(precision, precision, [2 * p for p in precision], color=BAND, label="p to 2p")
    looks: dict[str, Look] = {
        "all exact sums": ("s of p bits at once", *METHODS["all exact sums"][1:]),
        "rejection": ("rejection, as here", *METHODS["rejection"][1:]),
        "bitwise": ("bit by bit, as here", *METHODS["bitwise"][1:]),
    }
    for shape, filled in (("0, …, n − 1", False), ("all equal", True)):
        _curves(
            axes, rows[rows["outcome"] == shape], looks, "precision_bits", "bits", expected="expected_bits", full=filled
        )
    _thousands(axes)
    _powers(axes)
    axes.set_ylim(0.9, 40 * 2 * precision[-1])
    axes.set_xlabel("needed precision p (bits)")
    axes.set_ylabel("random bits of one release")
    axes.set_title("random bits")
    handles: list[Any] = [_handle(look) for look in looks.values()]
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": INK, "markersize": 3.4}
    handles += [
        Line2D([], [], label="0, …, n − 1", markerfacecolor="white", **dots),
        Line2D([], [], label="all equal", **dots),
        Patch(facecolor=BAND, label="p to 2p"),
    ]
    axes.legend(handles=handles, loc="upper left", ncols=2)


def _growth(axes: Axes, rows: pd.DataFrame) -> None:
    _curves(axes, rows, SUMS, "utility_range", "bits")
    stored = rows[rows["mechanism"] == "all exact sums"]
    _thousands(axes)
    _powers(axes)
    axes.set_ylim(top=20 * float(stored["bits"].max()))
    axes.set_xlabel("range of the utilities of 1000 outcomes")
    axes.set_ylabel("bits of all sums")
    axes.set_title("growth with the range")
    axes.legend(loc="upper left")


def _curves(
    axes: Axes,
    rows: pd.DataFrame,
    looks: Mapping[str, Look],
    x: str,
    y: str,
    *,
    expected: str = "",
    full: bool = False,
) -> None:
    """One line a series, through its points or through what is ``expected`` of them."""
    column = "method" if "method" in rows else "mechanism"
    for series, (name, color, marker, dashes) in looks.items():
        of = rows[rows[column] == series].sort_values(x)
        style = _hollow(marker) | ({"markerfacecolor": color} if full else {})
        axes.plot(of[x], of[expected or y], color=color, linestyle=dashes, label=name, **({} if expected else style))
        if expected:
            axes.plot(of[x], of[y], color=color, linestyle="none", **style)
    axes.set_xscale("log")


def _thousands(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _powers(axes: Axes) -> None:
    """Logarithmic y axis with whole powers of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
    axes.yaxis.set_minor_locator(NullLocator())


def _power(value: float) -> str:
    exponent = round(math.log10(value))
    return f"10{str(exponent).translate(_RAISED)}" if exponent else "1"


def _handle(look: Look) -> Line2D:
    name, color, marker, dashes = look
    return Line2D([], [], color=color, linestyle=dashes, label=name, **_hollow(marker))


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


def _rounded_law(axes: Axes, rows: pd.DataFrame) -> None:
    granularity = float(rows["granularity"].max())
    laws = rows[rows["granularity"] == granularity].astype({"outcome": float})
    lower, upper = (laws[laws["mechanism"] == end].sort_values("outcome") for end in ("lower", "upper"))
    axes.fill_between(lower["outcome"], lower["probability"], upper["probability"], color=BAND, label="bounds")
    _curves(axes, laws, LAWS, "outcome", "probability")
    axes.set_xscale("linear")
    axes.set_ylim(0, 1.5 * float(upper["probability"].max()))
    axes.set_xlabel(f"outcome, granularity γ = {granularity:g}")
    axes.set_ylabel("probability")
    axes.set_title("a Laplace-like release of 0, η = 2")
    axes.legend(loc="upper left")


def _rounding_error(axes: Axes, rows: pd.DataFrame) -> None:
    _curves(axes, rows, ERRORS, "granularity", "share")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(_PLAIN)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("granularity γ")
    axes.set_ylabel("difference of probabilities")
    axes.set_title("error of rounding at random")
    axes.legend(loc="upper left")


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
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.set_ylim(0, 1.15 * proved)
    axes.set_xlabel("number of outcomes")
    axes.set_ylabel("loss (bits)")
    axes.set_title("exact privacy loss on bad neighbours")
    axes.legend(loc="lower right")


def _hollow(marker: str) -> dict[str, Any]:
    return {"marker": marker, "markerfacecolor": "white", "markeredgewidth": 0.8, "markersize": 3.4}
