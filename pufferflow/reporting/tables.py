"""The tables: tidy tables in; CSV with all digits, Markdown and LaTeX with readable ones out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from pufferflow._files import write_atomic
from pufferflow.errors import DataError, ParameterError
from pufferflow.reporting.style import data_label, data_labels, display_names, group_label, in_order, mechanism_style

NOT_APPLICABLE = "N/A"
UNDEFINED = "–"

ROUNDING = 1e-12
"""Smaller differences come from binary arithmetic and are printed as 0."""

PAGE_ROWS = 40
"""LaTeX tables of more rows run over pages (longtable)."""
SHORT_TEXT = 24
"""LaTeX columns with longer texts break them into lines."""

STAND_INS = {
    "men_18_54": "cyclists",
    "older_women_55plus": "older women",
    "overweight_women_18_54": "overweight women",
}
"""The paper's groups, whose place ours take."""


@dataclass(frozen=True)
class Table:
    """A table to print and the numbers behind it.

    Attributes
    ----------
    name : str
        Short name, for the LaTeX label and anchors.
    caption : str
        What it shows, in one sentence.
    data_label : str
        How the data came here, in words.
    data : DataFrame
        All numbers with all digits, one row a setting; what the CSV file holds.
    display : DataFrame
        What is printed: strings only. Columns may have two levels.
    headers : int
        Leading columns of ``display`` that name the row; repeats of them are printed once.
    note : str
        How to read it.
    """

    name: str
    caption: str
    data_label: str
    data: pd.DataFrame
    display: pd.DataFrame
    headers: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        if self.data.empty:
            raise DataError(f"table {self.name} has no row; check the settings of the experiment that makes it")

    @property
    def legend(self) -> str:
        """Note and data label, what follows the caption wherever the table is printed."""
        return f"{self.note} Data: {self.data_label}.".strip()

    def column_levels(self) -> list[list[tuple[str, int]]]:
        """Return the header rows as (text, number of columns spanned)."""
        names = [name if isinstance(name, tuple) else (name,) for name in self.display.columns]
        levels = []
        for level in range(len(names[0])):
            # a name is shared only below the same upper name
            runs = groupby(names, key=lambda name: name[: level + 1]) if level == 0 else ((n, [n]) for n in names)
            levels.append([(str(key[level]), len(list(run))) for key, run in runs])
        return levels

    def column_names(self) -> list[str]:
        """Return the column names in one line each."""
        return [", ".join(filter(None, n)) if isinstance(n, tuple) else str(n) for n in self.display.columns]

    def rows(self) -> list[list[str]]:
        """Return the printed cells, with ``""`` for a row name that repeats the one above."""
        rows: list[list[str]] = self.display.astype(str).to_numpy().tolist()
        shown = [list(row) for row in rows]
        for above, row, out in zip(rows, rows[1:], shown[1:], strict=False):
            for column in range(self.headers):
                if row[: column + 1] != above[: column + 1]:
                    break
                out[column] = ""
        return shown

    def numeric(self) -> list[bool]:
        """Say for each column whether it holds numbers, which are set flush right."""
        columns = zip(*self.display.astype(str).to_numpy().tolist(), strict=True)
        return [all(_NUMBER.fullmatch(cell) for cell in column) for column in columns]


_NUMBER = re.compile(rf"[−\d][\d.,×⁰¹²³⁴⁵⁶⁷⁸⁹⁻ ±−–]*|∞|{NOT_APPLICABLE}|{UNDEFINED}|")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def missing(value: Any) -> bool:
    """Say whether a cell is empty: None, NaN or an empty text."""
    return value is None or value is pd.NA or value == "" or (isinstance(value, float) and math.isnan(value))


def significant(value: Any, digits: int = 4) -> str:
    """Format a number to ``digits`` significant digits; texts and empty cells stay what they are.

    >>> significant(0.0123456), significant(-1.5e-7, 2), significant(None), significant("X8")
    ('0.01235', '−1.5×10⁻⁷', '–', 'X8')
    """
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
        text = f"{mantissa}×10{str(power).translate(_SUPERSCRIPTS)}"
    return text.replace("-", "−")


def shortest(value: Any, digits: int = 6) -> str:
    """Format as :func:`significant` does, without trailing zeros."""
    text = significant(value, digits)
    return re.sub(r"\.?0+(?=×|$)", "", text) if "." in text else text


def decimals(value: Any) -> str:
    """Format an error with four decimals as the paper does; two significant digits where that shows nothing."""
    if missing(value):
        return NOT_APPLICABLE
    number = float(value)
    return f"{number:.4f}" if abs(number) >= 0.0005 or number == 0 else significant(number, 2)


def with_error(mean: Any, standard_error: Any) -> str:
    """Format a mean ± its standard error, both to the error's second digit.

    >>> with_error(0.0085712, 0.00015), with_error(517.53, 7.6), with_error(None, None)
    ('0.00857 ± 0.00015', '517.5 ± 7.6', 'N/A')
    """
    if missing(mean):
        return NOT_APPLICABLE
    if missing(standard_error) or not standard_error > 0:
        return decimals(mean)
    places = max(0, 1 - math.floor(math.log10(standard_error)))
    return f"{mean:.{places}f} ± {standard_error:.{places}f}"


def count(value: Any) -> str:
    """Format a whole number with separators, for example ``"1,051,200"``."""
    return UNDEFINED if missing(value) else f"{int(value):,}"


def render(table: Table) -> dict[str, str]:
    """Return the table as ``"csv"``, ``"md"`` and ``"tex"``."""
    return {
        "csv": table.data.to_csv(index=False, lineterminator="\n"),
        "md": _markdown(table),
        "tex": _latex(table),
    }


def save_table(table: Table, stem: str | Path) -> list[Path]:
    """Write ``table`` to ``stem`` plus .csv, .md and .tex; ``stem`` is a path without suffix."""
    return [write_atomic(f"{stem}.{suffix}", text) for suffix, text in render(table).items()]


def _markdown(table: Table) -> str:
    def escaped(text: str) -> str:
        return text.replace("|", "\\|")

    body = tabulate(
        [[escaped(cell) for cell in row] for row in table.rows()],
        headers=[escaped(name) for name in table.column_names()],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["right" if numeric else "left" for numeric in table.numeric()],
    )
    return f"**{table.caption}** {table.legend}\n\n{body}\n"


_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "’": "'",
} | {
    symbol: f"${command}$"
    for symbol, command in {
        "α": r"\alpha",
        "β": r"\beta",
        "γ": r"\gamma",
        "Γ": r"\Gamma",
        "Δ": r"\Delta",
        "ε": r"\varepsilon",
        "θ": r"\theta",
        "Θ": r"\Theta",
        "λ": r"\lambda",
        "π": r"\pi",
        "σ": r"\sigma",
        "Φ": r"\Phi",
        "∞": r"\infty",
        "∅": r"\emptyset",
        "≥": r"\geq",
        "≤": r"\leq",
        "<": "<",
        ">": ">",
        "|": r"\mid",
        "‖": r"\|",
        "±": r"\pm",
        "×": r"\times",
        "÷": r"\div",
        "·": r"\cdot",
        "−": "-",
        "→": r"\to",
        "↔": r"\leftrightarrow",
        "°": r"^\circ",
    }.items()
}
_SUPERSCRIPT_RUN = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_FROM_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def escape_latex(text: str) -> str:
    r"""Escape what LaTeX reserves and put Greek letters and signs into math.

    >>> escape_latex("50 % of σ ≥ 10⁻³ in men_18_54")
    '50 \\% of $\\sigma$ $\\geq$ 10$^{-3}$ in men\\_18\\_54'
    """
    pieces, end = [], 0
    for run in _SUPERSCRIPT_RUN.finditer(text):
        pieces += [_TEX.get(c, c) for c in text[end : run.start()]]
        pieces.append(f"$^{{{run[0].translate(_FROM_SUPERSCRIPTS)}}}$")
        end = run.end()
    return "".join([*pieces, *(_TEX.get(c, c) for c in text[end:])])


def _latex(table: Table) -> str:
    caption = rf"\caption{{{escape_latex(f'{table.caption} {table.legend}')}}}"
    label = rf"\label{{tab:{table.name}}}"
    columns = "".join(map(_latex_column, zip(table.numeric(), table.display.to_numpy().T, strict=True)))
    head = [r"\toprule", *_latex_head(table), r"\midrule"]
    body = []
    for i, row in enumerate(table.rows()):
        if i and table.headers > 1 and row[0]:
            body.append(r"\addlinespace")
        body.append(" & ".join(escape_latex(cell) for cell in row) + r" \\")
    if len(body) > PAGE_ROWS:
        lines = [
            r"% needs \usepackage{array,booktabs,longtable}",
            rf"\begingroup\footnotesize\begin{{longtable}}{{{columns}}}",
            rf"{caption}{label}\\",
            *[*head, r"\endfirsthead"],
            *[*head, r"\endhead"],
            *[r"\bottomrule", r"\endfoot"],
            *body,
            r"\end{longtable}\endgroup",
        ]
    else:
        lines = [
            r"% needs \usepackage{array,booktabs}",
            r"\begin{table}",
            r"\centering\footnotesize",
            caption,
            label,
            rf"\begin{{tabular}}{{{columns}}}",
            *head,
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    return "\n".join([*lines, ""])


def _latex_column(column: tuple[bool, Iterable[str]]) -> str:
    numeric, cells = column
    if numeric:
        return "r"
    return r">{\raggedright\arraybackslash}p{3cm}" if max(map(len, cells)) > SHORT_TEXT else "l"


def _latex_head(table: Table) -> list[str]:
    *upper, last = table.column_levels()
    lines = []
    for level in upper:
        cells, rules, column = [], [], 1
        for text, span in level:
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escape_latex(text)}}}" if text else " & " * (span - 1))
            if text:
                rules.append(rf"\cmidrule(lr){{{column}-{column + span - 1}}}")
            column += span
        lines += [" & ".join(cells) + r" \\", "".join(rules)]
    return [*lines, " & ".join(escape_latex(text) for text, _ in last) + r" \\"]


# --- builders -------------------------------------------------------------------------------------

Published = Mapping[tuple[Hashable, ...], Any]


def table1(errors: pd.DataFrame, reported: pd.DataFrame | None = None, *, epsilon: float | None = None) -> Table:
    """Table 1: L1 error by mechanism, group and task, one block of rows an ε.

    Parameters
    ----------
    errors : DataFrame
        Table of ``experiments.histograms.errors``.
    reported : DataFrame, optional
        The published numbers (reported.csv), to be shown below ours.
    epsilon : float, optional
        Show this ε alone.
    """
    if epsilon is not None:
        errors = _only(errors, epsilon)
    published = _published(reported, "Table 1", ["group", "task", "mechanism", "epsilon"])
    tasks = [task for task in ("aggregate", "individual") if task in set(errors["task"])]
    columns = {(group_label(group), task): (group, task) for group in dict.fromkeys(errors["group"]) for task in tasks}
    epsilons = list(dict.fromkeys(errors["epsilon"]))
    found = _keyed(errors, ["group", "task", "mechanism", "epsilon"])
    blocks = [
        (f"{e:g}", name, {shown: (*place, name, e) for shown, place in columns.items()})
        for e in epsilons
        for name in in_order(errors["mechanism"])
    ]
    display, compared = _error_rows(blocks, found, published, ["ε", "mechanism", "value"])
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
    data = _with_published(errors, published, ["group", "task", "mechanism", "epsilon"])
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
    published = _published(reported, "Table 3", ["mechanism", "epsilon"])
    columns = {f"ε = {e:g}": e for e in dict.fromkeys(errors["epsilon"])}
    found = _keyed(errors, ["mechanism", "epsilon"])
    blocks = [
        ("", name, {("", shown): (name, e) for shown, e in columns.items()}) for name in in_order(errors["mechanism"])
    ]
    display, compared = _error_rows(blocks, found, published, ["ε", "mechanism", "value"])
    display = display.drop(columns=[("", "ε")]).droplevel(0, axis=1)
    caption = f"L1 error of the relative-frequency histogram of {errors['dataset'].iloc[0]}."
    data = _with_published(errors, published, ["mechanism", "epsilon"])
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
    published = _published(reported, "Table 2", keys)
    data = _with_published(timings, published, keys)
    rows = []
    for row in timings.itertuples():
        printed = published.get((row.dataset, row.group, row.mechanism))
        applies = row.status == "ok"
        theirs = _number(printed)
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
    published = _published(reported, "", ["key"])
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
    data = _with_published(table, published, ["key"]).assign(label="worked example")
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
    yes_no = {True: "yes", False: "no", "True": "yes", "False": "no"}
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


def least_noise(table: pd.DataFrame) -> Table:
    """What each mechanism asks for, beside the least that could be private and what the noise gives away.

    Parameters
    ----------
    table : DataFrame
        Table of ``experiments.least_noise.least_noise``.
    """
    display = pd.DataFrame(
        {
            "chain": [group_label(g) if g else d for g, d in zip(table["group"], table["dataset"], strict=True)],
            "ε": [f"{epsilon:g}" for epsilon in table["epsilon"]],
            "mechanism": [mechanism_style(name).label for name in table["mechanism"]],
            "scale": [NOT_APPLICABLE if missing(value) else significant(value) for value in table["scale"]],
            "L1 error": table["expected_error"].map(decimals),
            "÷ MQMExact": [significant(value, 3) for value in table["relative_noise"]],
            "÷ lower bound": [significant(value, 3) for value in table["gap"]],
            "actual loss": [significant(value, 3) for value in table["actual_loss"]],
        }
    )
    longest = " or ".join(f"{length:,}" for length in dict.fromkeys(table["length"].astype(int)))
    note = (
        f"Laplace scale for a 1-Lipschitz query on segments of up to {longest} records; expected L1 error of the "
        "relative-frequency histogram. Below the lower bound no Laplace scale is private. Actual loss: of the count of "
        "the states that leak most, at that scale; the scale of Wasserstein is for this count alone. "
        f"{NOT_APPLICABLE}: the mechanism does not apply; {UNDEFINED}: not defined or not computed."
    )
    caption = "Noise of each mechanism, the least there could be, and what it gives away."
    return Table("least_noise", caption, data_labels(table), table, display, headers=2, note=note)


def cohort(table: pd.DataFrame) -> Table:
    """How the errors of a cohort's participants are distributed, by ε and mechanism.

    Parameters
    ----------
    table : DataFrame
        Summary of ``experiments.cohort.gather``.
    """
    quantiles = {"5 %": "error_q05", "median": "error_q50", "95 %": "error_q95", "largest": "largest_error"}
    columns = {
        ("", "ε"): [f"{epsilon:g}" for epsilon in table["epsilon"]],
        ("", "mechanism"): [mechanism_style(name).label for name in table["mechanism"]],
        ("participants", "all"): table["participants"].map(count),
        ("participants", "with a scale"): table["applicable"].map(count),
        ("expected L1 error", "mean"): table["mean_error"].map(decimals),
        **{("expected L1 error", shown): table[name].map(decimals) for shown, name in quantiles.items()},
        ("error of one release each", "mean"): [
            UNDEFINED if missing(mean) else with_error(mean, error)
            for mean, error in zip(table["mean_released_error"], table["standard_error"], strict=True)
        ],
        ("noise ÷ lower bound", "median"): [significant(value, 3) for value in table["gap_q50"]],
        ("noise ÷ lower bound", "95 %"): [significant(value, 3) for value in table["gap_q95"]],
    }
    display = pd.DataFrame(columns)
    note = (
        "Relative-frequency histogram of each participant's own record, with a chain of their own. Quantiles over the "
        "participants with a scale, rounded up by at most 1.2 %. ± one standard error over participants. "
        f"{UNDEFINED}: there is none."
    )
    return Table(
        "cohort", "Errors over the participants of a cohort.", data_labels(table), table, display, headers=2, note=note
    )


def engine(table: pd.DataFrame) -> Table:
    """The engine's benchmark: milliseconds, ratios, and the bars they are held against.

    Parameters
    ----------
    table : DataFrame
        Table of ``experiments.engine_benchmark``.
    """
    met = {True: "yes", False: "no", "True": "yes", "False": "no"}
    display = pd.DataFrame(
        {
            "workload": table["workload"],
            "engine (ms)": [significant(value, 3) for value in table["engine_milliseconds"]],
            "plain numpy (ms)": [significant(value, 3) for value in table["twin_milliseconds"]],
            "floor (ms)": [significant(value, 3) for value in table["floor_milliseconds"]],
            "numpy ÷ engine": [significant(value, 2) for value in table["twin_over_engine"]],
            "engine ÷ floor": [significant(value, 2) for value in table["engine_over_floor"]],
            "bar": [UNDEFINED if missing(value) else str(value) for value in table["bar"]],
            "met": [met.get(value, UNDEFINED) for value in table["met"]],
        }
    )
    caption = "Milliseconds to compute a noise scale (MQMExact unless said otherwise), medians of one run."
    note = (
        f"On {table['machine'].iloc[0]}. Plain numpy: every power up to the needed length, all quilts. "
        "Floor: the powers of P up to the active quilt's length in both directions, and nothing else."
    )
    return Table("engine", caption, "bundled real data (electricity); synthetic data", table, display, note=note)


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
    caption = "Claims and numbers of the paper and the other sources beside ours."
    note = f"{UNDEFINED}: there is none."
    return Table("comparison", caption, labels, table, display, note=note)


def _error_rows(
    blocks: Iterable[tuple[str, str, Mapping[tuple[str, str], tuple[Hashable, ...]]]],
    found: Mapping[tuple[Hashable, ...], Any],
    published: Published,
    headers: Sequence[str],
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
            names = zip(headers, (epsilon, mechanism_style(name).label, kind or "expected"), strict=True)
            rows.append({("", header): text for header, text in names} | cells)
    display = pd.DataFrame(rows)
    display.columns = pd.MultiIndex.from_tuples(list(rows[0]))
    return display, compared


def _published(reported: pd.DataFrame | None, place: str, keys: list[str]) -> dict[tuple[Hashable, ...], Any]:
    """Printed values of one table of the paper by their keys; ε as a float."""
    if reported is None:
        return {}
    rows = reported[reported["place"] == place] if place else reported
    values = rows.assign(epsilon=pd.to_numeric(rows["epsilon"], errors="coerce"))
    return dict(zip(values[keys].itertuples(index=False, name=None), values["value"], strict=True))


def _with_published(table: pd.DataFrame, published: Published, keys: list[str]) -> pd.DataFrame:
    if not published:
        return table
    values = [published.get(key) for key in table[keys].itertuples(index=False, name=None)]
    return table.assign(published=pd.Series(values, index=table.index, dtype=object))


def _keyed(table: pd.DataFrame, keys: list[str]) -> dict[tuple[Hashable, ...], Any]:
    """Rows by the values of their key columns."""
    return dict(zip(table[keys].itertuples(index=False, name=None), table.itertuples(), strict=True))


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _only(errors: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    rows = errors[errors["epsilon"] == epsilon]
    if rows.empty:
        present = ", ".join(f"{e:g}" for e in dict.fromkeys(errors["epsilon"]))
        raise ParameterError(f"epsilon = {epsilon:g} is not in the table; it has {present}")
    return rows


def _explain(errors: pd.DataFrame, compared: bool) -> str:
    text = (
        f"Expected: the mean of the noise; simulated: mean of {errors['repetitions'].iloc[0]} releases ± standard error"
    )
    published = "; published: the paper's number on its own data" if compared else ""
    return (
        f"{text}{published}. {NOT_APPLICABLE}: the mechanism does not apply; {UNDEFINED}: not defined or not printed."
    )
