"""The table of wider guarantees."""

from __future__ import annotations

import pandas as pd

from pufferflow.reporting.style import data_labels, group_label
from pufferflow.reporting.tables.formats import missing, significant
from pufferflow.reporting.tables.table import Table
from pufferflow.studies.histograms.figures import at_epsilon
from pufferflow.studies.wider_guarantees.words import KNOWS, MODELS, duration

ABOVE = "▲"
"""Before a loss that is more than ε."""


def wider_guarantees(table: pd.DataFrame, epsilon: float) -> Table:
    """What hiding more, from more, costs, and what noise made for less gives away.

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.wider_guarantees.measure``.
    epsilon : float
        Of the rows to show.
    """
    shown = at_epsilon(table, epsilon)
    rows = []
    for (group, model, knows), of_model in shown.groupby(["group", "model", "knows"], sort=False):
        cells = {}
        for row in of_model.to_dict("records"):
            hidden = duration(int(row["window"]) * int(row["step_seconds"]))
            star = "" if missing(row["certified"]) or row["certified"] else "*"
            cells[f"{hidden}: scale"] = significant(row["scale"]) + star
            mark = f"{ABOVE} " if row["paper_loss"] > row["epsilon"] else ""
            cells[f"{hidden}: loss"] = mark + significant(row["paper_loss"], 3)
        believed = MODELS[str(model)]
        rows.append({"data": group_label(str(group)), "belief": believed, "known besides": KNOWS[str(knows)], **cells})
    exceeding = shown[shown["paper_loss"] > shown["epsilon"]]
    note = (
        "Scale: Laplace noise for a 1-Lipschitz query, in records, by leakage calibration, that hides what happened "
        "within so long a time at this ε. Loss: what is given away at most if the noise is that of MQMExact for one "
        f"record of the fitted chain; {ABOVE} marks more than ε: {len(exceeding)} of {len(shown)} cases."
    )
    if (shown["certified"].dropna() == False).any():  # noqa: E712 - a column of objects
        note += " *: without a certificate; the other scales have one, which was verified."
    elif shown["certified"].notna().all():
        note += " Every scale has a certificate, which was verified."
    caption = f"What the model costs, and what it hides, at ε = {epsilon:g}."
    return Table("wider_guarantees", caption, data_labels(table), table, pd.DataFrame(rows), headers=3, note=note)
