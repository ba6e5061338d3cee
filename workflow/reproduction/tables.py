"""Printed tables as Markdown, LaTeX and HTML, and the display names of their entries."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pufferflow._util.files import write_atomic
from pufferflow.drawing.style import MECHANISMS
from pufferflow.errors import DataError
from pufferflow.publish.texts import spreadsheet_csv

NOT_APPLICABLE = "N/A"
UNDEFINED = "–"
GROUPS = {
    "men_18_54": "men 18–54",
    "older_women_55plus": "women 55+",
    "overweight_women_18_54": "women 18–54, BMI ≥ 25",
}
PAPER_GROUPS = dict(zip(GROUPS, ("cyclists", "older women", "overweight women"), strict=True))
LABELS = {
    "bundled": "bundled real data",
    "downloaded": "downloaded real data",
    "file": "a file of the user",
    "synthetic": "synthetic data",
}
LONG_TEXT = 24  # LaTeX columns with longer strings break them into lines
PAGE_ROWS = 40  # LaTeX tables of more rows run over several pages

_SUPERSCRIPTS = dict(zip("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", strict=True))
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*|[]<"})
_COMMANDS = {
    "α": "alpha", "β": "beta", "γ": "gamma", "Γ": "Gamma", "δ": "delta", "Δ": "Delta", "η": "eta",
    "ε": "varepsilon", "θ": "theta", "Θ": "Theta", "λ": "lambda", "π": "pi", "ρ": "rho",
    "σ": "sigma", "Σ": "Sigma", "Φ": "Phi", "∞": "infty", "∅": "emptyset", "≥": "geq", "≤": "leq",
    "\\": "backslash", "|": "mid", "‖": "|", "±": "pm", "×": "times", "÷": "div", "·": "cdot",
    "→": "to", "√": "surd", "∝": "propto", "⌈": "lceil", "⌉": "rceil", "▲": "triangle",
    "φ": "varphi", "¼": "frac14", "½": "frac12", "¾": "frac34",
}  # fmt: skip
_LATEX = str.maketrans(
    {sign: f"$\\{command}$" for sign, command in _COMMANDS.items()}
    | {raised: f"$^{{{plain}}}$" for plain, raised in _SUPERSCRIPTS.items()}
    | {sign: f"\\{sign}" for sign in "%&_#${}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "−": "$-$"}
    | {"–": "--", "\N{COMBINING TILDE}": r"$^\sim$"}
)


@dataclass(frozen=True)
class Table:
    """A table to print and its numbers.

    ``data`` has all digits, one row per setting; ``display`` has the printed strings, in columns of
    one or two levels, of which the first ``headers`` name the row. ``label`` is the source of the
    data, ``note`` explains them; ``name`` is the label in LaTeX.
    """

    name: str
    caption: str
    label: str
    data: pd.DataFrame
    display: pd.DataFrame
    headers: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        if self.data.empty:
            raise DataError(f"table {self.name} has no row; check the settings that make it")

    @property
    def legend(self) -> str:
        """The sentences that follow the caption."""
        return f"{self.note} Data: {self.label}.".strip() if self.label else self.note

    @property
    def shown(self) -> pd.DataFrame:
        """The printed cells; row names that repeat the one above are empty."""
        shown = self.display.astype(str)
        for depth in range(self.headers, 0, -1):
            names = shown.iloc[:, :depth]
            repeated = (names == names.shift()).all(axis=1)
            shown.iloc[:, depth - 1] = shown.iloc[:, depth - 1].mask(repeated, "")
        return shown

    def save(self, stem: str | Path) -> None:
        """Write ``stem`` plus .csv with all digits, .md and .tex."""
        write_atomic(f"{stem}.csv", spreadsheet_csv(self.data))
        write_atomic(f"{stem}.md", self.markdown())
        write_atomic(f"{stem}.tex", self.latex())

    def markdown(self) -> str:
        """Return a pipe table below its caption."""
        shown = self.shown.map(lambda cell: cell.translate(_MARKDOWN))
        if shown.columns.nlevels > 1:
            shown.columns = shown.columns.map(lambda levels: ", ".join(filter(None, levels)))
        shown = shown.rename(columns=lambda name: name.translate(_MARKDOWN))
        body = shown.to_markdown(index=False, disable_numparse=True)
        caption = f"**{self.caption.translate(_MARKDOWN)}** {self.legend.translate(_MARKDOWN)}"
        return f"{caption}\n\n{body}\n"

    def latex(self) -> str:
        """Return a booktabs table for pdflatex; one of many rows is a longtable."""
        shown, broken = self.shown, r">{\raggedright\arraybackslash}p{3cm}"
        long = len(shown) > PAGE_ROWS
        escaped = shown.map(lambda cell: cell.translate(_LATEX))
        escaped = escaped.rename(columns=lambda name: name.translate(_LATEX))
        body = escaped.style.hide(axis="index").to_latex(
            column_format="".join(broken if n > LONG_TEXT else "l" for n in shown.map(len).max()),
            hrules=True,
            multicol_align="c",
            environment="longtable" if long else "table",
            position_float=None if long else "centering",
            caption=f"{self.caption} {self.legend}".translate(_LATEX),
            label=f"tab:{self.name}",
        )
        return f"% needs \\usepackage{{array,booktabs,longtable}}\n{body}"

    def html(self) -> str:
        """Return the table for a page."""
        return self.shown.to_html(index=False, index_names=False, border=0)


def missing(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN or an empty string."""
    return bool(pd.isna(value)) or value == ""


def significant(value: Any, digits: int = 4) -> str:
    """Format to ``digits`` digits, as "−1.50×10⁻⁷"; strings and empty cells are unchanged."""
    if missing(value):
        return UNDEFINED
    try:
        number = float(value)
    except ValueError:
        return str(value)
    if not math.isfinite(number):
        return "∞" if number > 0 else "−∞"
    if number == 0:
        return "0"
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    power = int(exponent)
    if -4 <= power < 6:
        text = f"{number:.{max(0, digits - 1 - power)}f}"
    else:
        text = f"{mantissa}×10{''.join(_SUPERSCRIPTS[sign] for sign in str(power))}"
    return text.replace("-", "−")


def shortest(value: Any, digits: int = 6) -> str:
    """Format as :func:`significant` does, without trailing zeros."""
    text = significant(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text and "×" not in text else text


def decimals(value: Any) -> str:
    """Format an error with four decimals, as the paper does; a small one with two digits."""
    if missing(value):
        return NOT_APPLICABLE
    return f"{value:.4f}" if abs(value) >= 0.0005 or value == 0 else significant(value, 2)


def with_error(mean: Any, standard_error: Any) -> str:
    """Format a mean ± its standard error, both to the error's second digit.

    >>> with_error(0.0085712, 0.00015), with_error(517.53, 7.6), with_error(None, None)
    ('0.00857 ± 0.00015', '517.5 ± 7.6', 'N/A')
    """
    if missing(mean) or missing(standard_error) or not standard_error > 0:
        return decimals(mean)
    places = max(0, 1 - math.floor(math.log10(standard_error)))
    return f"{mean:.{places}f} ± {standard_error:.{places}f}"


def yes_no(value: Any) -> str:
    """Format a truth value."""
    return UNDEFINED if missing(value) else "yes" if value else "no"


def count(value: Any) -> str:
    """Format a whole number with separators, for example ``"1,051,200"``."""
    return UNDEFINED if missing(value) else f"{int(value):,}"


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
    return float(min(epsilons, key=lambda epsilon: abs(math.log(epsilon))))
