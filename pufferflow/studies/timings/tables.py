"""Table 2 of the paper and the engine's benchmark."""

from __future__ import annotations

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
from pufferflow.studies.timings.engine import engine_benchmark


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
                "data": f"{row.dataset}, {group_label(str(row.group))}".replace("alpha", "α"),
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
        f"From the transition matrix on, compiled code warm; {timings['repeats'].iloc[0]} repeats on "
        f"{timings['machine'].iloc[0]}. {NOT_APPLICABLE}: the mechanism does not apply."
    )
    if published:
        note += " The published seconds were measured on another machine, in other code and on other data."
    return Table("table2", caption, data_labels(timings), data, display, headers=2, note=note)


def engine_table() -> Table:
    """Measure and print the engine's benchmark."""
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
            "plain numpy (ms)": [significant(value, 3) for value in table["twin_milliseconds"]],
            "floor (ms)": [significant(value, 3) for value in table["floor_milliseconds"]],
            "numpy ÷ engine": [significant(value, 2) for value in table["twin_over_engine"]],
            "engine ÷ floor": [significant(value, 2) for value in table["engine_over_floor"]],
            "MB": [significant(value, 2) for value in table["megabytes"]],
            "bar": [UNDEFINED if missing(value) else str(value) for value in table["bar"]],
            "met": [yes_no(value) for value in table["met"]],
        }
    )
    caption = "Milliseconds to compute a noise scale (MQMExact unless said otherwise), medians of one run."
    note = (
        f"On {table['machine'].iloc[0]}. Plain numpy: every power up to the needed length, all quilts. "
        "Floor: the powers of P up to the active quilt's length in both directions, and nothing else."
    )
    return Table("engine", caption, "bundled real data (electricity); synthetic data", table, display, note=note)
