"""The tables of the paper: published numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import pandas as pd

from pufferflow.errors import ParameterError
from pufferflow.reporting.style import data_label, data_labels, display_names, group_label, in_order, mechanism_style
from pufferflow.reporting.tables.formats import (
    NOT_APPLICABLE,
    UNDEFINED,
    count,
    decimals,
    missing,
    shortest,
    significant,
    with_error,
    yes_no,
)
from pufferflow.reporting.tables.published import Published, keyed, number, published_values, with_published
from pufferflow.reporting.tables.table import Table

ROUNDING = 1e-12
"""Smaller differences come from binary arithmetic and are printed as 0."""

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
        Table of ``experiments.histograms.errors``.
    reported : DataFrame, optional
        The published numbers (reported.csv), to be shown below ours.
    """
    published = published_values(reported, "Table 1", ["group", "task", "mechanism", "epsilon"])
    tasks = [task for task in ("aggregate", "individual") if task in set(errors["task"])]
    columns = {(group_label(group), task): (group, task) for group in dict.fromkeys(errors["group"]) for task in tasks}
    epsilons = list(dict.fromkeys(errors["epsilon"]))
    found = keyed(errors, ["group", "task", "mechanism", "epsilon"])
    blocks = [
        (f"{e:g}", name, {shown: (*place, name, e) for shown, place in columns.items()})
        for e in epsilons
        for name in in_order(errors["mechanism"])
    ]
    display, compared = _error_rows(blocks, found, published)
    if len(epsilons) == 1:
        display = display.drop(columns=[("", "ε")])
    at = f" at ε = {epsilons[0]:g}" if len(epsilons) == 1 else ""
    caption = f"L1 error of the relative-frequency histograms of {errors['dataset'].iloc[0]}{at}."
    note = (
        "Aggregate: one histogram of all people of a group; individual: one of each person, errors averaged over "
        f"people. {_explain(errors, compared)}"
    )
    stand_ins = [f"{group_label(g)} for {STAND_INS[g]}" for g in dict.fromkeys(errors["group"]) if g in STAND_INS]
    if compared and stand_ins:
        note += f" Our groups stand in for the paper's: {'; '.join(stand_ins)}."
    data = with_published(errors, published, ["group", "task", "mechanism", "epsilon"])
    headers = len(display.columns) - len(columns) - 1
    return Table("table1", caption, data_labels(errors), data, display, headers, note)


def table3(errors: pd.DataFrame, reported: pd.DataFrame | None = None) -> Table:
    """Table 3: L1 error by mechanism and ε, of one histogram.

    Parameters
    ----------
    errors : DataFrame
        Table of ``experiments.histograms.errors`` of a data set with one group and task.
    reported : DataFrame, optional
        The published numbers (reported.csv), to be shown below ours.
    """
    if len(errors[["group", "task"]].drop_duplicates()) > 1:
        raise ParameterError("Table 3 is of one histogram, the table of errors has several; select a group and a task")
    published = published_values(reported, "Table 3", ["mechanism", "epsilon"])
    columns = {f"ε = {e:g}": e for e in dict.fromkeys(errors["epsilon"])}
    found = keyed(errors, ["mechanism", "epsilon"])
    blocks = [
        ("", name, {("", shown): (name, e) for shown, e in columns.items()}) for name in in_order(errors["mechanism"])
    ]
    display, compared = _error_rows(blocks, found, published)
    display = display.drop(columns=[("", "ε")]).droplevel(0, axis=1)
    caption = f"L1 error of the relative-frequency histogram of {errors['dataset'].iloc[0]}."
    data = with_published(errors, published, ["mechanism", "epsilon"])
    return Table("table3", caption, data_labels(errors), data, display, note=_explain(errors, compared))


def table2(timings: pd.DataFrame, reported: pd.DataFrame | None = None) -> Table:
    """Table 2: seconds to compute each noise scale, here and as published.

    Parameters
    ----------
    timings : DataFrame
        Table of ``experiments.timings``.
    reported : DataFrame, optional
        The published numbers (reported.csv).
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


def stated_values(
    table: pd.DataFrame,
    reported: pd.DataFrame | None = None,
    *,
    name: str = "worked_examples",
    title: str = "Worked examples of the paper",
) -> Table:
    """Values a source works out, as computed here.

    Parameters
    ----------
    table : DataFrame
        Table of ``experiments.worked_examples``, or of the values of a related experiment.
    reported : DataFrame, optional
        The published numbers (reported.csv), matched by ``key``.
    name, title : str
        Name of the table and what it is about.
    """
    published = published_values(reported, "", ["key"])
    display = pd.DataFrame(
        {
            "example": table["example"],
            "quantity": table["quantity"],
            "computed": [shortest(value) for value in table["computed"]],
        }
    )
    note = ""
    if published:
        printed = [published.get((key,)) for key in table["key"]]
        display["published"] = [UNDEFINED if missing(value) else str(value) for value in printed]
        note = f"{UNDEFINED}: the source prints no value."
    data = with_published(table, published, ["key"]).assign(label="worked example")
    return Table(
        name,
        title if title.endswith("?") else f"{title}.",
        "none, worked out from definitions",
        data,
        display,
        note=note,
    )


def chain_properties(chains: pd.DataFrame) -> Table:
    """Size of each group's data and the properties of its chain.

    Parameters
    ----------
    chains : DataFrame
        Tables of ``experiments.chains.describe_chains``, concatenated.
    """
    display = pd.DataFrame(
        {
            "data": [f"{d}, {group_label(g)}" for d, g in zip(chains["dataset"], chains["group"], strict=True)],
            "people": chains["participants"].map(count),
            "observations": chains["observations"].map(count),
            "independent chains": chains["segments"].map(count),
            "longest": chains["longest_segment"].map(count),
            "states": chains["states"].map(count),
            "π_min": [significant(value, 3) for value in chains["smallest_stationary_probability"]],
            "irreducible": chains["irreducible"].map(yes_no),
            "period": chains["period"].map(count),
            "reversible": chains["reversible"].map(yes_no),
            "eigengap": [significant(value, 3) for value in chains["eigengap_general"]],
        }
    )
    note = f"π_min: smallest stationary probability; eigengap: that of P P*; {UNDEFINED}: the chain has none."
    return Table("chains", "Data and fitted Markov chains.", data_labels(chains), chains, display, note=note)


def comparison(table: pd.DataFrame) -> Table:
    """Every claim and number of the paper beside ours, with a verdict.

    Parameters
    ----------
    table : DataFrame
        With columns claim, place, reported, ours, standard_error, difference, tolerance, verdict, data.
    """

    def data_words(text: str) -> str:
        dataset, comma, label = text.rpartition(", ")
        return f"{dataset}{comma}{data_label(label)}"

    def printed(value: Any) -> str:
        return UNDEFINED if missing(value) else display_names(str(value))

    formats: dict[str, Callable[[Any], str]] = {
        "claim": printed,
        "place": printed,
        "reported": printed,
        "ours": lambda value: significant(value, 4) if isinstance(value, float) else printed(value),
        "standard_error": lambda value: significant(value, 2),
        "difference": lambda value: significant(0 if abs(value) < ROUNDING else value, 2),
        "tolerance": printed,
        "verdict": str,
        "data": data_words,
    }
    display = pd.DataFrame(
        {name.replace("_", " "): [form(value) for value in table[name]] for name, form in formats.items()}
    )
    labels = "; ".join(dict.fromkeys(display["data"]))
    caption = "Published claims and numbers beside ours."
    note = f"{UNDEFINED}: there is none."
    return Table("comparison", caption, labels, table, display, note=note)


def _error_rows(
    blocks: Iterable[tuple[str, str, Mapping[tuple[str, str], tuple[Hashable, ...]]]],
    found: Mapping[tuple[Hashable, ...], Any],
    published: Published,
) -> tuple[pd.DataFrame, bool]:
    """Two or three printed rows for each ε and mechanism: expected, simulated, published.

    Also says whether any published value is among them.
    """
    rows = []
    compared = False
    for epsilon, name, places in blocks:
        ours = {shown: found.get(key) for shown, key in places.items()}
        theirs = {shown: published.get(key) for shown, key in places.items()}
        lines: dict[str, dict[tuple[str, str], str]] = {
            "expected": {s: UNDEFINED if r is None else decimals(r.expected_error) for s, r in ours.items()},
            "simulated": {
                s: UNDEFINED if r is None else with_error(r.mean_error, r.standard_error) for s, r in ours.items()
            },
        }
        if all(r is None or r.status != "ok" for r in ours.values()):
            lines = {"": lines["expected"]}
        if any(not missing(value) for value in theirs.values()):
            compared = True
            lines["published"] = {s: UNDEFINED if missing(v) else str(v) for s, v in theirs.items()}
        for kind, cells in lines.items():
            names = {"ε": epsilon, "mechanism": mechanism_style(name).label, "value": kind or "expected"}
            rows.append({("", header): text for header, text in names.items()} | cells)
    display = pd.DataFrame(rows)
    display.columns = pd.MultiIndex.from_tuples(list(rows[0]))
    return display, compared


def _explain(errors: pd.DataFrame, compared: bool) -> str:
    text = (
        f"Expected: the mean of the noise; simulated: mean of {errors['repetitions'].iloc[0]} releases ± standard error"
    )
    published = "; published: the paper's number on its own data" if compared else ""
    return (
        f"{text}{published}. {NOT_APPLICABLE}: the mechanism does not apply; {UNDEFINED}: not defined or not printed."
    )
