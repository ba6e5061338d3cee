"""Table 3 of the paper: published numbers beside ours."""

from __future__ import annotations

import pandas as pd

from pufferflow.errors import ParameterError
from pufferflow.reporting.style import data_labels, in_order
from pufferflow.reporting.tables.published import keyed, published_values, with_published
from pufferflow.reporting.tables.table import Table
from pufferflow.studies.histograms.tables import error_rows, explain


def table3(errors: pd.DataFrame, reported: pd.DataFrame | None = None) -> Table:
    """Table 3: L1 error by mechanism and ε, of one histogram.

    Parameters
    ----------
    errors : DataFrame
        Table of ``studies.histograms.measure.errors`` of a data set with one group and task.
    reported : DataFrame, optional
        The published numbers (``comparison.reported_values``), to be shown below ours.
    """
    if len(errors[["group", "task"]].drop_duplicates()) > 1:
        raise ParameterError("Table 3 is of one histogram, the table of errors has several; select a group and a task")
    published = published_values(reported, "Table 3", ["mechanism", "epsilon"])
    columns = {f"ε = {e:g}": e for e in dict.fromkeys(errors["epsilon"])}
    computed = keyed(errors, ["mechanism", "epsilon"])
    blocks = [
        ("", name, {("", shown): (name, e) for shown, e in columns.items()}) for name in in_order(errors["mechanism"])
    ]
    display, compared = error_rows(blocks, computed, published)
    display = display.drop(columns=[("", "ε")]).droplevel(0, axis=1)
    caption = f"L1 error of the relative-frequency histogram of {errors['dataset'].iloc[0]}."
    data = with_published(errors, published, ["mechanism", "epsilon"])
    return Table("table3", caption, data_labels(errors), data, display, note=explain(errors, compared))
