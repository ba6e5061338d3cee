"""The errors that the paper prints beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from pufferflow.reporting.comparison import reported_values
from pufferflow.reporting.figures.panels import check, finish, panels_of, styled
from pufferflow.reporting.style import INK, MUTED, TEXT_WIDTH, VERBATIM, group_label, in_order, mechanism_style
from pufferflow.reporting.tables.formats import NOT_APPLICABLE, UNDEFINED, decimals, missing
from pufferflow.reporting.tables.published import number, published_values, with_published
from pufferflow.studies.histograms.figures import at_epsilon

PLACE = ["dataset", "group", "task", "mechanism", "epsilon"]
NUMBERS_SHARE = 0.42
"""Share of a panel's width that its two columns of numbers take."""


@styled
def beside_printed(errors: pd.DataFrame, *, columns: int, epsilon: float) -> Figure:
    """Errors of each mechanism, printed in the paper and computed here, as marks and as numbers.

    Parameters
    ----------
    errors : DataFrame
        Table of ``studies.histograms.measure.errors``.
    columns : int
        Panels side by side.
    epsilon : float
        The ε to draw where nothing is printed for any.
    """
    check(errors)
    reported = reported_values()
    published = published_values(reported[reported["place"].str.startswith("Table")], "", PLACE)
    printed = with_published(errors.reset_index(drop=True), published, PLACE).rename(columns={"published": "printed"})
    panels = [rows for _, rows in _panels(printed, epsilon)]
    names = in_order(name for rows in panels for name in rows["mechanism"])
    width = TEXT_WIDTH if columns > 1 else 0.6 * TEXT_WIDTH
    figure, all_axes = panels_of(len(panels), height=0.26 + 0.18 * len(names), columns=columns, width=width)
    shown = pd.concat(panels)
    values = [*shown["expected_error"].dropna(), *filter(None, map(number, shown["printed"]))] or [1.0]
    decades = np.floor(np.log10(min(values)) - 0.05), np.ceil(np.log10(max(values)) + 0.05)
    for place, (axes, rows) in enumerate(zip(all_axes, panels, strict=True)):
        _rows(axes, rows.set_index("mechanism"), names, first=place % columns == 0)
        axes.set_title(_title(rows, errors), loc="left", fontsize=7.2, **VERBATIM)
        # the numbers stand right of the last decade, in the panel's own width
        axes.set_xlim(10.0 ** decades[0], 10.0 ** (decades[0] + (decades[1] - decades[0]) / (1 - NUMBERS_SHARE)))
        axes.spines["bottom"].set_bounds(*10.0 ** np.array(decades))
        ticks = 10.0 ** np.arange(decades[0], decades[1] + 0.5, 2 if decades[1] - decades[0] > 3 else 1)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        last = place >= len(panels) - columns
        axes.tick_params(axis="x", labelbottom=last)
        if last:
            axes.set_xlabel("L1 error", loc="left")
    handles = [
        Line2D(
            [],
            [],
            color=INK,
            marker="o",
            markersize=6,
            markerfacecolor="none",
            linestyle="none",
            label="printed in the paper",
        ),
        Line2D([], [], color=INK, marker="o", markersize=3.4, linestyle="none", label="computed here"),
    ]
    finish(figure, handles, "", errors)
    return figure


def _panels(printed: pd.DataFrame, epsilon: float) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Rows of each task, ε and group of which the paper prints anything; all at one ε where it prints nothing."""
    keys = ["task", "epsilon", "group"]
    ranks = printed.assign(**{key: printed[key].map(list(dict.fromkeys(printed[key])).index) for key in keys})
    printed = printed.loc[ranks.sort_values(keys, kind="stable").index]
    known = printed.groupby(keys)["printed"].transform(lambda column: column.notna().any()).astype(bool)
    return iter((printed[known] if known.any() else at_epsilon(printed, epsilon)).groupby(keys, sort=False))


def _title(rows: pd.DataFrame, errors: pd.DataFrame) -> str:
    """What tells a panel from the others."""
    first = rows.iloc[0]
    parts = {
        "group": group_label(str(first["group"])),
        "task": str(first["task"]),
        "epsilon": f"ε = {first['epsilon']:g}",
    }
    told = [text for name, text in parts.items() if len(set(errors[name])) > 1]
    return ", ".join(told or [parts["epsilon"]])


def _rows(axes: Axes, rows: pd.DataFrame, names: Sequence[str], *, first: bool) -> None:
    """One line a mechanism: hollow the printed error, filled ours, and both as numbers."""
    axes.set_xscale("log")
    for y, name in enumerate(names):
        row: Any = rows.loc[name] if name in rows.index else None
        theirs = None if row is None else number(row["printed"])
        ours = None if row is None or missing(row["expected_error"]) else float(row["expected_error"])
        look = mechanism_style(name)
        ends = [value for value in (theirs, ours) if value is not None]
        axes.plot(ends, [y] * len(ends), color=look.color, linewidth=1.4, alpha=0.55)
        # a cross cannot be filled: bold is ours, thin is theirs
        if ours is not None:
            axes.plot(ours, y, color=look.color, marker=look.marker, markersize=3.4, markeredgewidth=1.4)
        if theirs is not None:
            axes.plot(theirs, y, color=look.color, marker=look.marker, markersize=6, markerfacecolor="none")
        texts = (UNDEFINED, UNDEFINED) if row is None else (_printed(row["printed"]), decimals(row["expected_error"]))
        for right, text in zip((1 - 0.48 * NUMBERS_SHARE, 1.0), texts, strict=True):
            axes.text(
                right, y, text, transform=axes.get_yaxis_transform(), ha="right", va="center_baseline", fontsize=6.3
            )
    for right, text in ((1 - 0.48 * NUMBERS_SHARE, "printed"), (1.0, "here")):
        axes.text(right, -0.85, text, transform=axes.get_yaxis_transform(), ha="right", fontsize=6, color=MUTED)
    axes.set_yticks(range(len(names)), [mechanism_style(name).label for name in names] if first else [])
    axes.set_ylim(len(names) - 0.5, -1.25)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def _printed(value: Any) -> str:
    return UNDEFINED if missing(value) else NOT_APPLICABLE if value == NOT_APPLICABLE else str(value)
