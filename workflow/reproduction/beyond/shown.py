"""Tables of the studies beyond the paper."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from pufferflow.drawing import style
from reproduction.tables import (
    UNDEFINED,
    Table,
    count,
    data_labels,
    group_label,
    shown_epsilon,
    significant,
    yes_no,
)

CAPTIONS = {
    "least_noise": "Noise of each mechanism, and the lower bound for any mechanism.",
    "composition": "Total ε of several releases on the same chain, by each bound.",
    "wider_guarantees": "Noise for wider guarantees and weaker assumptions.",
    "related_bounds": "Noise by related bounds of the same chains ÷ noise of leakage calibration.",
    "certainty": "An attacker's certainty of a past record under event-level DP of later ones.",
    "other_data": "Expected L1 errors for other people, in longer steps and shorter windows.",
    "top_states": "How often the most frequent states of a participant are found.",
    "cohort": "Errors of the participants' own histograms, and gaps (noise ÷ lower bound).",
}
NOTES = {
    "least_noise": "Laplace scales for any 1-Lipschitz query, but Wasserstein's for the count of "
    "the states that leak most.",
    "composition": "Each release at the scale of MQMExact for ε = {epsilon:g}.",
    "wider_guarantees": "Leakage calibration at ε = {epsilon:g} for all records of a window "
    "together. MQMExact: for one record of the fitted chain.",
    "related_bounds": "Scales at ε = {epsilon:g}, each ÷ that of leakage calibration with the same "
    "side information. Bayesian DP: any side information; T/ε if it has no scale.",
    "certainty": "The posterior probability of the true one of two equally likely states. All "
    "records from then on: an upper bound. One record: attained.",
    "other_data": "At ε = {epsilon:g}. The scale of a quilt mechanism, in records, hardly depends "
    "on the time step, so longer steps mean larger errors.",
    "top_states": "By repeated noisy max, or sorted noisy histograms. Hit rate: share of listed "
    "states that belong on the list; right rate: of lists with each in its position. Hit rates of "
    "Bai et al. (2026) are of other data: not comparable.",
    "cohort": "",
}
IN_TABLES = {
    "certainty": " At ε = {epsilon:g}.",
    "least_noise": " L1 error: of the relative frequencies. Actual loss: of the count that leaks "
    "most.",
    "wider_guarantees": " Loss: at most, at the scale of MQMExact; ▲ marks more than ε.",
}
COLUMNS = {
    "least_noise": "group epsilon mechanism scale expected_error relative_noise gap actual_loss",
    "composition": "group releases bound total_epsilon",
    "wider_guarantees": "group model side_information window scale paper_loss certified",
    "related_bounds": "group side_information bound chains least median most",
    "certainty": "group records bound certainty",
    "other_data": "data step_seconds group participants records task mechanism expected_error",
    "top_states": "group participants epsilon top task mechanism hit_rate right_rate",
    "cohort": "epsilon mechanism quantity count mean std 5% 50% 95% max",
}
SPREAD = dict.fromkeys(("composition", "certainty"), "bound")
SPREAD |= {"wider_guarantees": "window", "other_data": "mechanism"}
"""Columns that are spread in printed tables: each of their values becomes a column."""
TITLES = {"epsilon": "ε", "total_epsilon": "total ε", "expected_error": "expected L1 error"}
TITLES |= {"relative_noise": "÷ MQMExact", "gap": "÷ lower bound", "std": "standard deviation"}
TITLES |= {"step_seconds": "step (s)", "participants": "people", "count": "people"}
WORDS = {  # values of the columns `model` and `bound`
    "fitted": "fitted chain",
    "order 2": "second-order chain",
    "hourly": "a chain for each hour of the day",
    "intervals": "interval bounds",
    "mixing": "mixing condition only",
    "theorem_4_4": "Theorem 4.4",
    "quilts": "one Markov quilt for all releases",
    "leakage": "leakage",
    "tpl": "temporal privacy leakage",
    "bdp": "Bayesian DP",
    "lower-bound": "lower bound",
    "one-record": "the record at that time alone",
    "all-later": "all records from then on",
}


def duration(seconds: int) -> str:
    """Return the length of a window in the largest unit that divides it."""
    units = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
    unit = next(name for name, size in units.items() if seconds % size == 0)
    one = "an hour" if unit == "hour" else f"a {unit}"
    return one if seconds == units[unit] else f"{seconds // units[unit]} {unit}s"


FORMATS: dict[str, Callable[[Any], str]] = {
    "group": group_label,
    "epsilon": "{:g}".format,
    "mechanism": lambda name: style.mechanism_style(name).label,
    "model": WORDS.__getitem__,
    "bound": lambda name: WORDS.get(name) or style.mechanism_style(name).label,
    "window": duration,
    "certified": yes_no,
    **dict.fromkeys(
        ("step_seconds", "participants", "records", "releases", "count", "chains", "top"), count
    ),
}


def study_of(case: str) -> str:
    """Return the study of a table or figure, for example of ``"least_noise_synthetic"``."""
    return next(study for study in CAPTIONS if case.startswith(study))


def printed(table: pd.DataFrame, study: str) -> Table:
    """Return the printed table of a study; one that is spread has only the ε closest to 1."""
    shown, epsilon = table, shown_epsilon(table["epsilon"])
    if study in SPREAD:
        shown = table[table["epsilon"] == epsilon]
    if study == "related_bounds":
        keys = ["group", "side_information", "bound"]
        ratios = shown[shown["epsilon"] == epsilon].groupby(keys, sort=False)["relative_noise"]
        shown = ratios.agg(chains="size", least="min", median="median", most="max").reset_index()
    if study == "wider_guarantees":
        losses = [("▲ " if x > epsilon else "") + significant(x) for x in shown["paper_loss"]]
        shown = shown.assign(window=shown["window"] * shown["step_seconds"], paper_loss=losses)
    display = pd.DataFrame()
    for name in COLUMNS[study].split():
        title = TITLES.get(name, name.replace("_", " "))
        display[title] = shown[name].map(FORMATS.get(name, significant))
    if study in SPREAD:
        titles, at = list(display), list(display).index(SPREAD[study])
        rows, columns, values = titles[:at], titles[at], titles[at + 1 :]
        display = display.pivot_table(values, rows, columns, "first", sort=False).reset_index()
    label = data_labels(table) if "label" in table else "synthetic data"
    note = (NOTES[study] + IN_TABLES.get(study, "")).format(epsilon=epsilon)
    note += f" {UNDEFINED}: not applicable, not defined, or not computed."
    return Table(study, CAPTIONS[study], label, table, display.fillna(UNDEFINED), 2, note)
