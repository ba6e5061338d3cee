"""A table as CSV with all digits, as Markdown and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tabulate import tabulate

from pufferflow._files import write_atomic
from pufferflow._texts import spreadsheet_csv
from pufferflow.reporting.tables.table import Table

PAGE_ROWS = 40
"""LaTeX tables of more rows run over pages (longtable)."""
SHORT_TEXT = 24
"""LaTeX columns with longer texts break them into lines."""


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
_MARKDOWN = re.compile(r"[\\`*|]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=[(\[:])|~(?=~)")
_SUPERSCRIPT_RUN = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_FROM_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def render(table: Table) -> dict[str, str]:
    """Return the table as ``"csv"``, ``"md"``, ``"tex"``, and as ``"json"`` for the report."""
    return {
        "csv": spreadsheet_csv(table.data),
        "md": _markdown(table),
        "tex": _latex(table),
        "json": table.to_json(),
    }


def save_table(table: Table, stem: str | Path) -> list[Path]:
    """Write ``table`` to ``stem`` plus .csv, .md, .tex and .json; ``stem`` is a path without suffix."""
    return [write_atomic(f"{stem}.{suffix}", text) for suffix, text in render(table).items()]


def _markdown(table: Table) -> str:
    body = tabulate(
        [[escape_markdown(cell) for cell in row] for row in table.rows()],
        headers=[escape_markdown(name) for name in table.column_names()],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["right" if numeric else "left" for numeric in table.numeric()],
    )
    return f"**{escape_markdown(table.caption)}** {escape_markdown(table.legend)}\n\n{body}\n"


def escape_markdown(text: str) -> str:
    r"""Escape what Markdown and the HTML in it read as more than a sign.

    >>> escape_markdown("a|b [x](y) <b> men_18 < _all_ men")
    'a\\|b [x\\](y) \\<b> men_18 < \\_all\\_ men'
    """
    return _MARKDOWN.sub(r"\\\g<0>", text)


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
