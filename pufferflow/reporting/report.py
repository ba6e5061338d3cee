"""The report: one HTML page with everything in it, to be read without a network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pufferflow._files import write_atomic
from pufferflow.errors import ParameterError
from pufferflow.reporting.comparison import VERDICTS
from pufferflow.reporting.tables import Table


@dataclass(frozen=True)
class Section:
    """One table, figure or note of the report.

    Attributes
    ----------
    title : str
    anchor : str
        Letters, digits and dashes, unique on the page.
    kind : {"table", "figure", "note"}
    content : Table or str
        A :class:`~pufferflow.reporting.tables.Table`; the text of an SVG file as ``save_figure`` writes it;
        or plain text, paragraphs separated by empty lines.
    caption : str
        What is shown; of a table, its own caption if empty. Of a figure also its description for those
        who do not see it.
    data_label : str
        How the data came here, in words; of a table, its own if empty.
    settings : mapping
        Settings the content depends on.
    """

    title: str
    anchor: str
    kind: Literal["table", "figure", "note"]
    content: Table | str
    caption: str = ""
    data_label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"section {self.title!r}"
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", self.anchor):
            raise ParameterError(f"{where}: anchor {self.anchor!r} must be a letter, then letters, digits and dashes")
        if self.kind not in ("table", "figure", "note"):
            raise ParameterError(f"{where}: kind {self.kind!r} is none of table, figure, note")
        if (self.kind == "table") != isinstance(self.content, Table):
            raise ParameterError(f"{where}: content of a {self.kind} cannot be a {type(self.content).__name__}")
        if self.kind == "figure" and not self.caption:
            raise ParameterError(f"{where}: a figure needs a caption, it is also its description in words")


@dataclass(frozen=True)
class _Cell:
    """A cell of an HTML table."""

    text: str
    numeric: bool
    rowspan: int
    verdict: str


def write_report(
    path: str | Path,
    *,
    title: str,
    comparison: Table,
    sections: Sequence[Section],
    provenance: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Path:
    """Write the report; the same arguments give the same bytes.

    Parameters
    ----------
    path : path
        The HTML file.
    title : str
    comparison : Table
        Table of :func:`~pufferflow.reporting.tables.comparison`: comes first, and its verdicts are counted
        in the summary.
    sections : sequence of Section
        What follows it, in this order.
    provenance, settings : mapping
        Nested mappings, lists and plain values; they close the report.

    Raises
    ------
    ParameterError
        Two sections share an anchor, or a verdict is none of ``comparison.VERDICTS``.
    """
    counts = Counter(comparison.data["verdict"])
    if unknown := set(counts) - set(VERDICTS):
        raise ParameterError(f"verdict {sorted(unknown)[0]!r} is none of {', '.join(VERDICTS)}")
    everything = [Section("Comparison with the sources", "comparison", "table", comparison), *sections]
    repeated = [anchor for anchor, n in Counter(s.anchor for s in everything).items() if n > 1]
    if reserved := [*repeated, *({s.anchor for s in sections} & {"top", "provenance", "settings"})]:
        raise ParameterError(f"anchor {reserved[0]!r} is used twice on the page; give each section its own")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["inline_svg"] = _inline_svg
    environment.filters["cells"] = _cells
    environment.tests["mapping_like"] = lambda value: isinstance(value, Mapping)
    template = environment.from_string(_beside("report.html.j2"))
    page = template.render(
        title=title,
        sections=everything,
        verdicts=[(verdict, _verdict_class(verdict), counts[verdict]) for verdict in VERDICTS],
        total=sum(counts.values()),
        provenance=provenance,
        settings=settings,
        script=Markup(_beside("report.js")),
    )
    return write_atomic(path, page)


def _beside(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _verdict_class(verdict: str) -> str:
    return f"verdict v{VERDICTS.index(verdict)}"


def _cells(table: Table) -> list[list[_Cell]]:
    """Cells of the body; a row name that repeats is one cell over all its rows."""
    numeric = table.numeric()
    verdicts = [name == "verdict" for name in table.column_names()]
    rows = table.rows()
    out: list[list[_Cell]] = []
    for i, row in enumerate(rows):
        cells = []
        for column, text in enumerate(row):
            span = 1
            if column < table.headers:
                if not text and i:
                    continue
                while i + span < len(rows) and not rows[i + span][column]:
                    span += 1
            verdict = _verdict_class(text) if verdicts[column] else ""
            # a line never ends inside "ε = 1"
            cells.append(_Cell(text.replace(" = ", "\u00a0=\u00a0"), numeric[column], span, verdict))
        out.append(cells)
    return out


def _inline_svg(svg: str, anchor: str, description: str) -> Markup:
    """Prepare the text of an SVG file for a page that holds several: own ids, a description, no preamble."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{anchor}-", body)
    opening = Markup('<svg role="img" aria-label="{}"').format(description)
    return Markup(body.replace("<svg", opening, 1))
