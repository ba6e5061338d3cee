"""What Tables 1 and 3 show: the order of the mechanisms, where GK16 does not apply, and each number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from typing import Any

import pandas as pd

from pufferflow.reporting.comparison import (
    DIFFERS,
    NOT_APPLICABLE,
    NOT_COMPARABLE,
    PAPERS,
    REPRODUCED,
    Row,
    claim,
    increasing,
    reported_values,
)
from pufferflow.reporting.style import mechanism_style
from pufferflow.studies.other_data.reasons import OTHERS, other_data_reason

OTHER_DATA = "on other data an order may be another"

RELEASES = 20
"""The paper draws so many releases of a histogram; a mean of its errors is taken to be over as many."""


def histogram_claims(
    errors: pd.DataFrame,
    dataset: str,
    place: str,
    without_data: Sequence[str] = (),
    elsewhere: pd.DataFrame | None = None,
    others: tuple[str, str] = OTHERS,
) -> Iterator[Row]:
    """Claims and numbers of the paper's table ``place`` beside the errors of a data set.

    ``without_data`` are the mechanisms whose error does not depend on the records, so that other data are no excuse;
    ``elsewhere`` are errors on other data (``studies.other_data.measure``), to say what a difference is made of, and
    ``others`` the words for them, as :func:`~pufferflow.studies.other_data.reasons.other_data_reason` takes them.
    """
    reported = reported_values()
    yield from _order(errors, dataset, place, reported)

    def reason(ours: Any, theirs: float) -> str:
        return other_data_reason(ours, theirs, elsewhere, others)

    yield from _numbers(errors, dataset, reported, without_data, reason)


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
                OTHER_DATA,
            )
    gk16 = errors[errors["mechanism"] == "gk16"]
    if len(gk16):
        failed = int((gk16["status"] != "ok").sum())
        ours = f"not applicable in {failed} of {len(gk16)} settings"
        yield claim(f"GK16 is not applicable: {dataset}", place, "N/A", ours, failed == len(gk16), label, OTHER_DATA)
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
                "the scale of a mechanism may be the same at two ε",
            )


def _numbers(
    errors: pd.DataFrame,
    dataset: str,
    reported: pd.DataFrame,
    without_data: Sequence[str],
    reason_of: Callable[[Any, float], str],
) -> Iterator[Row]:
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
        verdict, reason, tolerance = _judge(computed, printed, str(theirs.mechanism) in without_data)
        if verdict == NOT_COMPARABLE:
            reason = reason_of(computed, float(printed))
        applies = computed.status == "ok"
        printed = str(theirs.value)
        yield Row(
            PAPERS["pufferfish"],
            "number",
            name,
            str(theirs.place),
            str(theirs.source),
            printed,
            f"{computed.mean_error:.4f}" if applies else "N/A",
            float(computed.standard_error) if applies else None,
            float(computed.mean_error) - float(printed) if applies and printed != "N/A" else None,
            tolerance,
            verdict,
            reason,
            label,
        )


def _judge(computed: Any, printed: str, without_data: bool) -> tuple[str, str, str]:
    """Verdict, its reason, and the tolerance."""
    if printed == "N/A" or computed.status != "ok":
        if printed == "N/A" and computed.status != "ok":
            return NOT_APPLICABLE, "", ""
        return DIFFERS, f"it applies to {'our' if printed == 'N/A' else 'their'} data only", ""
    if not without_data:
        return NOT_COMPARABLE, "", ""
    # one release has a sum of k independent |Laplace|: its deviation is the mean over √k
    tolerance = 3 * computed.expected_error / sqrt(computed.bins * RELEASES)
    agree = abs(computed.expected_error - float(printed)) <= tolerance
    reason = (
        f"2k/ε for k = {computed.bins} bins whatever the records; the tolerance is three deviations of a mean of "
        f"{RELEASES} releases"
    )
    return REPRODUCED if agree else DIFFERS, reason, f"± {tolerance:.3g}"
