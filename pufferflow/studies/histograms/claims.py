"""What Tables 1 and 3 show: the order of the mechanisms, where GK16 does not apply, and each number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from pufferflow.reporting.comparison import DIFFERS, NOT_APPLICABLE, SAME, Row, claim, increasing, reported_values
from pufferflow.reporting.style import mechanism_style

OTHER_DATA_FACTOR = 2.0
"""A number on other data supports the paper's when it lies within this factor of it."""


def histogram_claims(errors: pd.DataFrame, dataset: str, place: str) -> Iterator[Row]:
    """Claims and numbers of the paper's table ``place`` beside the errors of a data set."""
    reported = reported_values()
    yield from _order(errors, dataset, place, reported)
    yield from _numbers(errors, dataset, reported)


def _order(errors: pd.DataFrame, dataset: str, place: str, reported: pd.DataFrame) -> Iterator[Row]:
    label = f"{dataset}, {errors['label'].iloc[0]}"
    published = reported[reported["dataset"] == dataset]
    chain = [m for m in ("mqm-exact", "mqm-approx", "group-dp", "dp") if m in set(errors["mechanism"])]
    for (group, task, epsilon), at_place in errors.groupby(["group", "task", "epsilon"], sort=False):
        values = at_place.set_index("mechanism")["expected_error"]
        order = [m for m in chain if m in values.index]
        theirs = published[
            (published["group"] == group) & (published["task"] == task) & (published["epsilon"] == f"{epsilon:g}")
        ].set_index("mechanism")["value"]
        printed = [theirs[m] for m in order] if all(m in theirs.index for m in order) else []
        if len(order) > 1:
            yield claim(
                f"{' < '.join(mechanism_style(m).label for m in order)}: {group}, {task}, ε = {epsilon:g}",
                place,
                " < ".join(printed) if printed else "same order at other ε",
                " < ".join(f"{values[m]:.4f}" for m in order),
                increasing([values[m] for m in order]),
                label,
            )
    gk16 = errors[errors["mechanism"] == "gk16"]
    if len(gk16):
        failed = int((gk16["status"] != "ok").sum())
        ours = f"not applicable in {failed} of {len(gk16)} settings"
        yield claim(f"GK16 is not applicable: {dataset}", place, "N/A", ours, failed == len(gk16), label)
    if len(errors["epsilon"].unique()) > 1:
        for mechanism, applied in errors[errors["status"] == "ok"].groupby("mechanism", sort=False):
            curves = applied.sort_values("epsilon", ascending=False).groupby(["group", "task"])["expected_error"]
            holds = all(increasing(curve.to_list()) for _, curve in curves)
            name = mechanism_style(str(mechanism)).label
            yield claim(
                f"the error of {name} falls as ε rises: {dataset}",
                place,
                "falls",
                "falls" if holds else "does not",
                holds,
                label,
            )


def _numbers(errors: pd.DataFrame, dataset: str, reported: pd.DataFrame) -> Iterator[Row]:
    label = f"{dataset}, {errors['label'].iloc[0]}"
    published = reported[(reported["dataset"] == dataset) & (reported["task"] != "seconds")]
    keyed = {(row.group, row.task, row.mechanism, f"{row.epsilon:g}"): row for row in errors.itertuples()}
    for theirs in published.itertuples():
        computed: Any = keyed.get((theirs.group, theirs.task, theirs.mechanism, str(theirs.epsilon)))
        if computed is None:
            continue
        mechanism = mechanism_style(str(theirs.mechanism)).label
        name = f"L1 error of {mechanism}: {theirs.group}, {theirs.task}, ε = {theirs.epsilon}"
        printed = str(theirs.value)
        if printed == "N/A" or computed.status != "ok":
            agree = printed == "N/A" and computed.status != "ok"
            ours = "N/A" if computed.status != "ok" else f"{computed.expected_error:.4f}"
            verdict = NOT_APPLICABLE if agree else DIFFERS
            yield Row("number", name, str(theirs.place), printed, ours, None, None, "", verdict, label)
            continue
        ratio = computed.expected_error / float(printed)
        agree = 1 / OTHER_DATA_FACTOR <= ratio <= OTHER_DATA_FACTOR
        yield Row(
            "number",
            name,
            str(theirs.place),
            printed,
            f"{computed.mean_error:.4f}",
            float(computed.standard_error),
            float(computed.mean_error) - float(printed),
            f"factor {OTHER_DATA_FACTOR:g}, other data",
            SAME if agree else DIFFERS,
            label,
        )
