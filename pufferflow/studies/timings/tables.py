"""Table 2 of the paper and the engine's benchmark."""

from __future__ import annotations

from math import log10
from typing import Any

import pandas as pd

from pufferflow.reporting.style import data_labels, group_label, mechanism_style
from pufferflow.reporting.tables.formats import (
    NOT_APPLICABLE,
    UNDEFINED,
    missing,
    significant,
    yes_no,
)
from pufferflow.reporting.tables.published import number, published_values, with_published
from pufferflow.reporting.tables.table import Table


def table2(timings: pd.DataFrame, reported: pd.DataFrame | None = None) -> Table:
    """Table 2: seconds to compute each noise scale, here and as published.

    Parameters
    ----------
    timings : DataFrame
        Table of ``studies.timings.measure``.
    reported : DataFrame, optional
        The published numbers (``comparison.reported_values``).
    """
    keys = ["dataset", "group", "mechanism"]
    published = published_values(reported, "Table 2", keys)
    data = with_published(timings, published, keys)
    rows = []
    for row in timings.itertuples():
        printed = published.get((row.dataset, row.group, row.mechanism))
        applies = row.status == "ok"
        theirs = number(printed)
        ratio = None if theirs is None or not applies else theirs / float(str(row.median_seconds))
        rows.append(
            {
                "data": _data_words(row.dataset, row.group),
                "mechanism": mechanism_style(str(row.mechanism)).label,
                "here (median)": significant(row.median_seconds, 3) if applies else NOT_APPLICABLE,
                "least – most": f"{significant(row.least_seconds, 3)} – {significant(row.most_seconds, 3)}"
                if applies
                else NOT_APPLICABLE,
                "published": UNDEFINED if missing(printed) else str(printed),
                "published ÷ here (different machine)": UNDEFINED if ratio is None else significant(ratio, 2),
            }
        )
    display = pd.DataFrame(rows)
    if not published:
        display = display.drop(columns=["published", "published ÷ here (different machine)"])
    caption = f"Seconds to compute a noise scale at ε = {timings['epsilon'].iloc[0]:g}."
    note = (
        f"From the transition matrix on, compiled code warm; {_counts(timings['repeats'])} repeats on "
        f"{timings['machine'].iloc[0]}. {NOT_APPLICABLE}: the mechanism does not apply."
    )
    if partial := _partly_applicable(timings):
        note += f" {partial}"
    if published:
        note += " The published seconds were measured on another machine, in other code and on other data."
    return Table("table2", caption, data_labels(timings), data, display, headers=2, note=note)


def _counts(values: pd.Series[Any]) -> str:
    """Least and most of some counts."""
    return "–".join(dict.fromkeys((str(values.min()), str(values.max()))))


def _partly_applicable(timings: pd.DataFrame) -> str:
    """Say of which families a mean is, where it is not of all."""
    rows = timings[(timings["applicable"] > 0) & (timings["applicable"] < timings["families"])]
    told = [
        f"{mechanism_style(str(row.mechanism)).label}: mean over the {row.applicable} it applies to."
        for row in rows.itertuples()
    ]
    return " ".join(told)


def ratios(timings: pd.DataFrame, reported: pd.DataFrame | None = None) -> Table:
    """How many times as long MQMExact takes as MQMApprox: published and here, each on one machine.

    Parameters
    ----------
    timings : DataFrame
        Table of ``studies.timings.measure``.
    reported : DataFrame, optional
        The published numbers (``comparison.reported_values``).
    """
    published = published_values(reported, "Table 2", ["dataset", "group", "mechanism"])
    seconds = timings[timings["status"] == "ok"].set_index(["dataset", "group", "mechanism"])["median_seconds"]
    rows = []
    for dataset, group in dict.fromkeys(zip(timings["dataset"], timings["group"], strict=True)):
        pair = [(dataset, group, mechanism) for mechanism in ("mqm-exact", "mqm-approx")]
        theirs = [number(published.get(key)) for key in pair]
        ours = [float(seconds[key]) if key in seconds.index else None for key in pair]
        rows.append({"dataset": dataset, "group": group, "published": _ratio(*theirs), "here": _ratio(*ours)})
    data = pd.DataFrame(rows).astype({"published": float, "here": float})
    display = pd.DataFrame({"data": [_data_words(row.dataset, row.group) for row in data.itertuples()]})
    for name in ("published", "here"):
        display[name] = [significant(ratio, 2) for ratio in data[name]]
        display[f"{name}, orders of magnitude"] = [
            UNDEFINED if missing(ratio) else f"{log10(ratio):.1f}" for ratio in data[name]
        ]
    caption = "Seconds of MQMExact ÷ seconds of MQMApprox."
    note = (
        "Published: both in the paper's code on its machine, where MQMExact, which searches all quilts, is slower by "
        "orders of magnitude; here it searches few of them. The paper's synthetic column was lost when its text was "
        "extracted."
    )
    return Table("table2_ratios", caption, data_labels(timings), data, display, note=note)


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    return numerator / denominator if numerator and denominator else None


def _data_words(dataset: object, group: object) -> str:
    return f"{dataset}, {group_label(str(group))}".replace("alpha", "α")


def engine_table() -> Table:
    """Measure and print the engine's benchmark."""
    from pufferflow.studies.timings.engine import engine_benchmark  # loads all mechanisms; no other table does

    return engine(engine_benchmark())


def engine(table: pd.DataFrame) -> Table:
    """The engine's benchmark: milliseconds, ratios, and the bars they are held against.

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.timings.engine``.
    """
    display = pd.DataFrame(
        {
            "workload": table["workload"],
            "engine (ms)": [significant(value, 3) for value in table["engine_milliseconds"]],
            "twin (ms)": [significant(value, 3) for value in table["twin_milliseconds"]],
            "floor (ms)": [significant(value, 3) for value in table["floor_milliseconds"]],
            "twin ÷ engine": [significant(value, 2) for value in table["twin_over_engine"]],
            "engine ÷ floor": [significant(value, 2) for value in table["engine_over_floor"]],
            "MB": [significant(value, 2) for value in table["megabytes"]],
            "bar": [UNDEFINED if missing(value) else str(value) for value in table["bar"]],
            "met": [yes_no(value) for value in table["met"]],
        }
    )
    caption = "Milliseconds to compute a noise scale (MQMExact unless said otherwise), medians of one run."
    note = (
        f"On {table['machine'].iloc[0]}. Twin: plain numpy, every power up to the needed length, all quilts; of leakage"
        " and of the lower bound the engine before couplings of many states were found at once. "
        "Floor: the powers of P up to the active quilt's length in both directions, and nothing else."
    )
    return Table("engine", caption, "bundled real data (electricity); synthetic data", table, display, note=note)
