"""The first screen of the report: three sentences and six rows, filled from the tidy tables."""

from __future__ import annotations

import pandas as pd

from pufferflow.drawing.style import mechanism_style
from reproduction.comparison import reported_values
from reproduction.page import Summary, outcome_of
from reproduction.tables import data_labels, missing, shown_epsilon, significant

SHOWN = ("mqm-exact", "mqm-approx", "group-dp")
WITHOUT_DATA = (
    "The paper's activity data were never published and its household (AMPds2) can only be given "
    "as a file, so orders of the mechanisms can agree on real data, and numbers cannot be "
    "compared, except those of GroupDP, which no record changes."
)


def lead_sentences(errors: pd.DataFrame, synthetic: pd.DataFrame) -> list[str]:
    """Return sentences on the errors of each data set, the range of GK16, and comparability.

    Both are tidy tables "errors": of all data sets, and of the synthetic classes.
    """
    found = []
    for dataset, own in errors.groupby("dataset", sort=False):
        epsilon = shown_epsilon(own["epsilon"])
        noise = _noise(own[own["epsilon"] == epsilon])
        found.append(f"{noise} on {dataset} ({data_labels(own)}) at ε = {epsilon:g}")
    gk16 = errors[errors["mechanism"] == "gk16"]
    applies = synthetic[(synthetic["mechanism"] == "gk16") & (synthetic["status"] == "ok")]
    first = f"from α = {applies['alpha'].min():g} on" if len(applies) else "nowhere"
    works = int((gk16["status"] == "ok").sum())
    return [
        f"Expected L1 error of a released histogram: {'; '.join(found)}.",
        f"GK16 applies to {works or 'none'} of {len(gk16)} settings of real data, and to the "
        f"synthetic classes {first}.",
        WITHOUT_DATA,
    ]


def summary_rows(
    comparison: pd.DataFrame, errors: pd.DataFrame, timings: pd.DataFrame
) -> list[Summary]:
    """Return the six rows of the summary, from the comparison (strings) and two tidy tables.

    The paper's values are in ``reported/summary.csv``. The outcome of a row is the worst verdict of
    its claims, or "other data" if it has none (seconds of another machine).
    """
    at_one = errors[errors["epsilon"] == 1]
    activity, electricity = (
        _noise(at_one[at_one["dataset"] == name]) for name in ("activity", "electricity")
    )
    seconds = timings.pivot_table("median_seconds", ["dataset", "group"], "mechanism")
    seconds = seconds.reindex(columns=["mqm-exact", "mqm-approx"])
    ratio = _range(seconds["mqm-exact"] / seconds["mqm-approx"])
    worked = comparison[comparison["data"] == "worked example"]["verdict"]
    agree, differ = worked.isin(["restored", "reproduced"]).sum(), (worked == "differs").sum()

    def ours(claim: str) -> str:
        found = comparison[comparison["claim"].str.startswith(claim)]["ours"]
        return str(found.iloc[0]) if len(found) else "not computed"

    here = (
        f"{ours('MQMExact < MQMApprox, ε')}; GK16 {ours('the α from which on')}",
        ours("patterns are not always visible"),
        activity,
        f"{ratio} times, on another machine and with a search of few quilts",
        electricity,
        f"{agree} rows agree, {differ} {'differs' if differ == 1 else 'differ'}",
    )
    rows = []
    stated = reported_values("summary").to_dict("records")
    for theirs, computed in zip(stated, here, strict=True):
        subject, anchor, source, places = theirs.values()
        at = comparison["place"].str.startswith(tuple(places.split("|")))
        outcome = outcome_of(comparison[at]["verdict"]) if places else "other data"
        rows.append(Summary(subject, anchor, source, computed, outcome))
    return rows


def _noise(errors: pd.DataFrame) -> str:
    """Return the range of each mechanism's error over the groups, for the first task."""
    first = errors.drop_duplicates(["group", "mechanism"]).groupby("mechanism")["expected_error"]
    ranges = [
        f"{_range(first.get_group(name))} ({mechanism_style(name).label})"
        for name in SHOWN
        if name in first.groups
    ]
    return ", ".join(ranges) or "not computed"


def _range(values: pd.Series[float]) -> str:
    ends = [significant(value, 2) for value in (values.min(), values.max()) if not missing(value)]
    return " to ".join(dict.fromkeys(ends)) or "N/A"
