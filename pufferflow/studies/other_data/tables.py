"""Errors on other people, in other time steps and over other windows, side by side."""

from __future__ import annotations

import pandas as pd

from pufferflow.reporting.style import data_labels, group_label, in_order, mechanism_style
from pufferflow.reporting.tables.formats import NOT_APPLICABLE, UNDEFINED, missing, significant
from pufferflow.reporting.tables.table import Table
from pufferflow.studies.histograms.figures import at_epsilon


def other_data(errors: pd.DataFrame, epsilon: float) -> Table:
    """One row a sample, group and task; one column a mechanism.

    Parameters
    ----------
    errors : DataFrame
        Table of ``studies.other_data.measure``.
    epsilon : float
        Of the rows to show.
    """
    shown = at_epsilon(errors, epsilon)
    names = in_order(errors["mechanism"])
    rows = []
    for (data, step, group, task), of_task in shown.groupby(["data", "step_seconds", "group", "task"], sort=False):
        measured = of_task.set_index("mechanism")
        cells = {
            mechanism_style(name).label: UNDEFINED
            if name not in measured.index
            else NOT_APPLICABLE
            if missing(value := measured.loc[name, "expected_error"])
            else significant(value, 3)
            for name in names
        }
        rows.append(
            {
                "data": str(data),
                "step (s)": f"{step}",
                "group": group_label(str(group)),
                "people": f"{of_task['participants'].iloc[0]}",
                "records": f"{of_task['records'].iloc[0]:,}",
                "histogram": str(task),
                **cells,
            }
        )
    caption = f"Expected L1 error at ε = {epsilon:g} on other people, in longer steps and in shorter windows."
    note = (
        "An error is 2k times the scale over the number of records. The scale of a quilt mechanism, in records, hardly "
        "depends on the length of a person's step, so longer steps mean larger errors. "
        f"{NOT_APPLICABLE}: the mechanism does not apply; {UNDEFINED}: not defined."
    )
    return Table("other_data", caption, data_labels(errors), errors, pd.DataFrame(rows), headers=2, note=note)
