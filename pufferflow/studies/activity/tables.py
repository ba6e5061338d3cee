"""Table 1 of the paper: published numbers beside ours."""

from __future__ import annotations

import pandas as pd

from pufferflow.reporting.style import data_labels, group_label, in_order
from pufferflow.reporting.tables.published import keyed, published_values, with_published
from pufferflow.reporting.tables.table import Table
from pufferflow.studies.histograms.tables import error_rows, explain

STAND_INS = {
    "men_18_54": "cyclists",
    "older_women_55plus": "older women",
    "overweight_women_18_54": "overweight women",
}
"""The paper's groups, whose place ours take."""


def table1(errors: pd.DataFrame, reported: pd.DataFrame | None = None) -> Table:
    """Table 1: L1 error by mechanism, group and task, one block of rows an ε.

    Parameters
    ----------
    errors : DataFrame
        Table of ``studies.histograms.measure.errors``.
    reported : DataFrame, optional
        The published numbers (``comparison.reported_values``), to be shown below ours.
    """
    published = published_values(reported, "Table 1", ["group", "task", "mechanism", "epsilon"])
    tasks = [task for task in ("aggregate", "individual") if task in set(errors["task"])]
    columns = {(group_label(group), task): (group, task) for group in dict.fromkeys(errors["group"]) for task in tasks}
    epsilons = list(dict.fromkeys(errors["epsilon"]))
    computed = keyed(errors, ["group", "task", "mechanism", "epsilon"])
    blocks = [
        (f"{e:g}", name, {shown: (*place, name, e) for shown, place in columns.items()})
        for e in epsilons
        for name in in_order(errors["mechanism"])
    ]
    display, compared = error_rows(blocks, computed, published)
    if len(epsilons) == 1:
        display = display.drop(columns=[("", "ε")])
    at = f" at ε = {epsilons[0]:g}" if len(epsilons) == 1 else ""
    caption = f"L1 error of the relative-frequency histograms of {errors['dataset'].iloc[0]}{at}."
    note = (
        "Aggregate: one histogram of all people of a group; individual: one of each person, errors averaged over "
        f"people. {explain(errors, compared)}"
    )
    stand_ins = [f"{group_label(g)} for {STAND_INS[g]}" for g in dict.fromkeys(errors["group"]) if g in STAND_INS]
    if compared and stand_ins:
        note += f" Our groups stand in for the paper's: {'; '.join(stand_ins)}."
    data = with_published(errors, published, ["group", "task", "mechanism", "epsilon"])
    headers = len(display.columns) - len(columns) - 1
    return Table("table1", caption, data_labels(errors), data, display, headers, note)
