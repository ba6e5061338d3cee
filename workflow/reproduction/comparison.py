"""Claims and numbers of the sources compared with ours, each with a verdict from a closed list."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pufferflow.errors import ParameterError
from reproduction.tables import UNDEFINED, Table, data_label, display_names, shortest

REPRODUCED = "reproduced"
RESTORED = "restored"
SAME = "same conclusion"
DIFFERS = "differs"
NOT_COMPARABLE = "not comparable"
NOT_IN_PAPER = "not in the paper"
NO_VERDICT = "no verdict"
VERDICTS = {
    REPRODUCED: "in the source's own setting our value is within tolerance of the reported one",
    RESTORED: "the same, but the reported value was derived from the source's definitions: our "
    "plain-text copy had lost it",
    SAME: "an order or an applicability that holds on other data too",
    DIFFERS: "our value differs, or the claim does not hold here; the reason states why",
    NOT_COMPARABLE: "a number on other data or another machine; agreement here is not evidence",
    NOT_IN_PAPER: "our settings (ε, bins, data set) are not those of the source",
    NO_VERDICT: "the source reports no value to compare with; the reason states why",
}
"""Meaning of each verdict."""

SOURCES = {
    "pufferfish": "Song, Wang and Chaudhuri 2017",
    "noisy_max": "Liu, Wang and Zhang 2022",
    "base2_exponential": "Ilvento 2020",
    "alpha_beta": "Rastogi, Suciu and Hong 2007",
    "classical": "Differential privacy basics",
}
"""The sources by the names of their files in ``reported/``."""

WORKED = "worked example"
"""Data of a number that follows from definitions."""


class Row(NamedTuple):
    """One row of a comparison."""

    source: str
    claim: str
    place: str
    origin: str
    reported: str
    ours: str
    verdict: str
    reason: str = ""
    tolerance: str = ""
    data: str = WORKED


def reported_values(name: str) -> pd.DataFrame:
    """Return the values that a source reports, the file ``reported/<name>.csv``, as strings.

    Columns: ``key``, which finds the computed value; ``origin``, "printed", "restored" from the
    source's definitions, or "author's code", which prints, draws or computes it; ``place``,
    ``claim``, ``value``; ``otherwise``, the verdict if our value differs (empty: differs);
    ``reason``; for the paper's tables also ``dataset``, ``group``, ``task``, ``mechanism`` and
    ``epsilon``.
    """
    path = Path(__file__).with_name("reported") / f"{name}.csv"
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def claim(text: str, place: str, reported: str, ours: str, holds: bool, **others: str) -> Row:
    """Return the row of a claim of the paper; names in it become display names.

    ``verdict`` among the ``others`` replaces the verdict of a claim that holds, and ``foreign``
    states why our settings are not those of the source, so that the row reads :data:`NOT_IN_PAPER`.
    ``reason`` is added; further ``others`` are fields of :class:`Row`.
    """
    verdict, foreign = others.pop("verdict", REPRODUCED), others.pop("foreign", "")
    reason = others.pop("reason", "")
    if foreign:
        verdict, reason = NOT_IN_PAPER, foreign
    elif not holds and verdict != NOT_COMPARABLE:
        verdict, reason = DIFFERS, reason or "it does not hold here"
    source, origin = SOURCES["pufferfish"], others.pop("origin", "printed")
    text, ours, reason = map(display_names, (text, ours, reason))
    return Row(source, text, place, origin, reported, ours, verdict, reason, **others)


def values_table(values: pd.DataFrame, name: str) -> Table:
    """Return all values of a system, also those that no source reports.

    ``values`` has the schema ``values``; ``name`` is a key of :data:`SOURCES`.
    """
    reported: dict[str, str] = {}
    for row in reported_values(name).to_dict("records"):
        keys, parts = row["key"].split(), row["value"].split(", ")
        of_each = parts if len(parts) == len(keys) else [row["value"]] * len(keys)
        reported |= zip(keys, of_each, strict=True)
    data = values.assign(reported=values["key"].map(reported).fillna(""))
    numbers = pd.to_numeric(values["computed"], errors="coerce")
    display = data[["example", "quantity"]].assign(
        computed=numbers.map(shortest).where(numbers.notna(), values["computed"]),
        published=data["reported"].replace("", UNDEFINED),
    )
    note = f"{UNDEFINED}: the source states no value."
    caption = f"{SOURCES[name]}: values."
    return Table(f"{name}_values", caption, WORKED, data, display, note=note)


def stated_rows(values: pd.DataFrame, name: str, data: str = WORKED) -> Iterator[Row]:
    """Yield a row for each value that the source ``name`` reports and ``values`` has.

    A reported row of several keys, separated by spaces, has as many values, separated by ``", "``.
    """
    computed = dict(zip(values["key"], values["computed"].astype(str), strict=True))
    for theirs in reported_values(name).to_dict("records"):
        key = theirs["key"]
        keys = [key] if key in computed else key.split()
        if keys and all(key in computed for key in keys):
            yield stated_row(theirs, ", ".join(computed[key] for key in keys), name, data)


def stated_row(theirs: Any, computed: str, name: str, data: str = WORKED) -> Row:
    """Return the row of a computed value and of a reported one, a row of its file."""
    value, ours = theirs["value"], computed
    agree, tolerance = computed == value, "identical"
    try:
        allowed = [_tolerance(part) * (1 + 1e-9) for part in value.split(", ")]
        texts = (text.replace("∞", "inf").split(", ") for text in (computed, value))
        here, there = ([float(part) for part in text] for text in texts)
        agree = bool(np.isclose(here, there, rtol=0, atol=allowed).all())
        tolerance, ours = f"± {max(allowed):.6g}", ", ".join(map(shortest, here))
    except ValueError:
        pass  # words, compared as they are
    verdict = theirs["otherwise"] or DIFFERS
    if agree and verdict not in (NO_VERDICT, NOT_COMPARABLE):
        verdict = RESTORED if theirs["origin"] == "restored" else REPRODUCED
    text, place, origin = theirs["claim"], theirs["place"], theirs["origin"]
    reason, source = theirs["reason"], SOURCES[name]
    return Row(source, text, place, origin, value, ours, verdict, reason, tolerance, data)


def _tolerance(printed: str) -> float:
    """Return half a unit of the last printed digit; rounding errors only below three digits."""
    decimals = len(printed.partition(".")[2])
    return 0.5 * 10.0**-decimals if decimals > 2 else 1e-9


def comparison_table(rows: Iterable[Row], name: str = "comparison") -> Table:
    """Return the table of all rows, in their order.

    Raises ParameterError: a row lacks a reason that its verdict demands, has an unknown verdict, or
    calls a restored value reproduced.
    """
    listed = list(rows)
    for row in listed:
        where = f"{name}: {row.claim!r}"
        if row.verdict not in VERDICTS:
            raise ParameterError(f"{where} reads {row.verdict!r}, which is not a verdict")
        if row.verdict not in (REPRODUCED, RESTORED, SAME) and not row.reason:
            raise ParameterError(f"{where} reads {row.verdict!r} without a reason; give one")
        if row.verdict == REPRODUCED and row.origin == "restored":
            raise ParameterError(f"{where} cannot read {REPRODUCED!r}, its value is restored")
    data = pd.DataFrame(listed, columns=list(Row._fields))
    display = data.map(display_names).assign(data=data["data"].map(_data_name))
    labels = "; ".join(dict.fromkeys(display["data"]))
    return Table(name, "Published claims and numbers, and ours.", labels, data, display)


def _data_name(text: str) -> str:
    dataset, comma, label = text.rpartition(", ")
    return f"{dataset}{comma}{data_label(label)}"
