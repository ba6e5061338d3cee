"""The printed tables of the paper: errors (Tables 1 and 3), seconds (Table 2), data and chains."""

from __future__ import annotations

import pandas as pd

from pufferflow.drawing.style import in_order, mechanism_style
from reproduction.comparison import reported_values
from reproduction.tables import (
    NOT_APPLICABLE,
    UNDEFINED,
    Table,
    compared_label,
    count,
    data_labels,
    decimals,
    group_label,
    significant,
    with_error,
    yes_no,
)


def with_published(table: pd.DataFrame, place: str) -> pd.DataFrame:
    """Return a table "errors" or "timings" with the column "published" from ``place``.

    ``place`` is a part of the paper, such as "Table 2".
    """
    reported = reported_values("pufferfish").rename(columns={"value": "published"})
    reported = reported[reported["place"].str.startswith(place)]
    reported = reported.assign(epsilon=pd.to_numeric(reported["epsilon"]))
    keys = [key for key in ("dataset", "group", "task", "mechanism", "epsilon") if key in table]
    return table.merge(reported[[*keys, "published"]], how="left", on=keys)


def _mechanism_label(name: str) -> str:
    return mechanism_style(name).label


def error_table(errors: pd.DataFrame, name: str) -> Table:
    """Return L1 errors of one data set: expected, simulated, and published if the paper has any.

    Columns are groups and tasks if there are several (Table 1), otherwise ε (Table 3).
    """
    data = with_published(errors, "Table")
    compared = bool(data["published"].notna().any())
    single = len(data[["group", "task"]].drop_duplicates()) == 1
    several = len(set(data["epsilon"])) > 1
    simulated = map(with_error, data["mean_error"], data["standard_error"])
    places = {
        "ε": data["epsilon"].map("{:g}".format).radd("ε = " if single else ""),
        "mechanism": data["mechanism"].map(_mechanism_label),
        "group": data["group"].map(compared_label if compared else group_label),
        "task": data["task"],
    }
    texts = {
        "expected": data["expected_error"].map(decimals),
        "simulated": ["" if text == NOT_APPLICABLE else text for text in simulated],
        "published": data["published"].fillna(""),
    }
    lines = pd.DataFrame(places | texts).melt([*places], var_name="value", value_name="text")
    lines = lines[lines["text"] != ""]
    orders = {key: list(dict.fromkeys(lines[key])) for key in ("ε", "group", "value")}
    orders["mechanism"] = list(map(_mechanism_label, in_order(data["mechanism"])))
    ordered = {key: pd.Categorical(lines[key], order) for key, order in orders.items()}
    rows = ["ε", "mechanism", "value"] if several and not single else ["mechanism", "value"]
    columns = ["ε"] if single else ["group", "task"]
    wide = lines.assign(**ordered).pivot_table("text", rows, columns, "first", observed=True)
    display = wide.astype(object).fillna(UNDEFINED).reset_index()
    at = "" if several else f" at ε = {data['epsilon'].iloc[0]:g}"
    note = "" if single else "Aggregate: one histogram of a group; individual: one of each person. "
    note += f"Simulated: mean of {data['repetitions'].iloc[0]} releases ± standard error. "
    note += "Published: the paper's numbers, on its own data. " if compared else ""
    note += f"{NOT_APPLICABLE}: the mechanism does not apply; {UNDEFINED}: there is no such number."
    histograms = f"histogram{'' if single else 's'} of {data['dataset'].iloc[0]}"
    caption = f"L1 error of the relative-frequency {histograms}{at}."
    return Table(name, caption, data_labels(data), data, display, len(rows) - 1, note)


def seconds_table(timings: pd.DataFrame) -> Table:
    """Return Table 2: seconds to compute each noise scale, here and published (tidy "timings")."""
    data = with_published(timings, "Table 2")
    applies, mechanism = data["status"] == "ok", data["mechanism"].map(_mechanism_label)
    column = (data["dataset"] + ", " + data["group"].map(compared_label)).str.replace("alpha", "α")

    def shown(name: str) -> pd.Series[str]:
        return data[f"{name}_seconds"].map(lambda seconds: significant(seconds, 3))

    def over_approx(seconds: pd.Series[float]) -> list[str]:
        approx = seconds.where(data["mechanism"] == "mqm-approx").groupby(column).transform("max")
        return [significant(ratio, 2) for ratio in seconds / approx]

    columns = {
        "data": column,
        "mechanism": mechanism,
        "here (median)": shown("median").where(applies, NOT_APPLICABLE),
        "least – most": (shown("least") + " – " + shown("most")).where(applies, NOT_APPLICABLE),
        "÷ MQMApprox": over_approx(data["median_seconds"].where(applies)),
        "published": data["published"].fillna(UNDEFINED),
        "published ÷ MQMApprox": over_approx(pd.to_numeric(data["published"], errors="coerce")),
    }
    part = (data["applicable"] > 0) & (data["applicable"] < data["families"])
    means = mechanism + ": mean over the " + data["applicable"].astype(str) + " it applies to. "
    repeats = "–".join(data["repeats"].agg(["min", "max"]).astype(str).unique())
    note = (
        f"From the transition matrix on, compiled code warm; {repeats} repeats on "
        f"{data['machine'].iloc[0]}. {NOT_APPLICABLE}: the mechanism does not apply. "
        f"{''.join(means[part])}The published seconds were measured on another machine, in other "
        "code and on other data; MQMExact searched all quilts there and searches few of them here."
    )
    caption = f"Seconds to compute a noise scale at ε = {data['epsilon'].iloc[0]:g}."
    return Table("table2", caption, data_labels(data), data, pd.DataFrame(columns), 2, note)


def chain_table(chains: pd.DataFrame) -> Table:
    """Return the size of each group's data and the properties of its chain (tidy "chains")."""
    columns = {
        "data": chains["dataset"] + ", " + chains["group"].map(group_label),
        "people": chains["participants"].map(count),
        "records": chains["observations"].map(count),
        "independent chains": chains["segments"].map(count),
        "longest": chains["longest_segment"].map(count),
        "states": chains["states"].map(count),
        "π_min": [significant(value, 3) for value in chains["smallest_stationary_probability"]],
        "period": [count(value) for value in chains["period"]],
        "reversible": [yes_no(value) for value in chains["reversible"]],
        "eigengap": [significant(value, 3) for value in chains["eigengap_general"]],
    }
    note = "π_min: smallest stationary probability; eigengap: that of P P*; –: the chain has none."
    caption, display = "Data and fitted Markov chains.", pd.DataFrame(columns)
    return Table("chains", caption, data_labels(chains), chains, display, note=note)
