"""Display names of groups and sources of data, and the pairs of the paper's groups and ours."""

import re
from collections.abc import Iterable
from math import log

import pandas as pd

from pufferflow.drawing.style import MECHANISMS

GROUPS = {
    "men_18_54": "men 18–54",
    "older_women_55plus": "women 55+",
    "overweight_women_18_54": "women 18–54, BMI ≥ 25",
}
PAPER_GROUPS = dict(zip(GROUPS, ("cyclists", "older women", "overweight women"), strict=True))
LABELS = {
    "bundled": "bundled real data",
    "downloaded": "downloaded real data",
    "file": "data from a file of the user",
    "synthetic": "synthetic data",
}


def group_label(name: str) -> str:
    """Return the display name of a group, or ``name`` itself."""
    return GROUPS.get(name, name)


def compared_label(name: str) -> str:
    """Return both names of a group, for example ``"cyclists (paper) · men 18–54 (here)"``."""
    return f"{PAPER_GROUPS[name]} (paper) · {GROUPS[name]} (here)" if name in GROUPS else name


def data_label(label: str, description: str = "") -> str:
    """Return the display name of a source of data, with a description of them."""
    return LABELS.get(label, label) + (f": {description}" if description else "")


def data_labels(table: pd.DataFrame) -> str:
    """Return the sources of the data of a table, with the data sets' names if they differ."""
    datasets = table.drop_duplicates(["label", "dataset"]).groupby("label", sort=False)["dataset"]
    names = {label: ", ".join(own[own != label]) for label, own in datasets}
    shown = {label: f" ({own})" if own and len(names) > 1 else "" for label, own in names.items()}
    return "; ".join(data_label(str(label)) + own for label, own in shown.items())


def display_names(text: str) -> str:
    """Replace the internal names of groups and mechanisms in a sentence by their display names."""
    shown = GROUPS | {name: style.label for name, style in MECHANISMS.items()}
    pattern = rf"(?<![\w-])({'|'.join(shown)})(?![\w-])"
    return re.sub(pattern, lambda match: shown[match[1]], text)


def shown_epsilon(epsilons: Iterable[float]) -> float:
    """Return the ε of a figure that shows only one: the one closest to 1, the paper's choice."""
    return float(min(epsilons, key=lambda epsilon: abs(log(epsilon))))
