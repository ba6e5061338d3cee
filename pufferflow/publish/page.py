"""The page of a release: one HTML file without scripts and external addresses."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from pufferflow.publish.figure import figure_of
from pufferflow.publish.statement import sections_of, warnings_of
from pufferflow.publish.texts import html, number

if TYPE_CHECKING:
    from pufferflow.publish.result import NoisyTable, Release


def page_of(made: Release) -> str:
    """Return statement, figures and tables as one HTML page."""
    published, *sections = (
        f"<section><h2>{title}</h2><ul>{''.join(f'<li>{html(p)}</li>' for p in ps)}</ul></section>"
        for title, ps in sections_of(made)
    )
    page = Template(files("pufferflow.publish").joinpath("page.html").read_text("utf-8"))
    return page.substitute(
        title=html(made.title),
        warnings="".join(f'<p class="warning">{html(text)}</p>' for text in warnings_of(made)),
        published=published,
        figures="".join(map(figure_of, made.tables)) if made.how.figure else "",
        sections="".join(sections),
        tables="".join(_table(table) for table in made.tables),
    )


def _table(table: NoisyTable) -> str:
    frame = table.to_frame()
    text = f"<h2>{html(table.heading)}: {html(table.quantity)}</h2>"
    text += "<table><thead><tr><th></th><th>value</th><th>error</th>"
    text += '<th class="wide">from</th><th class="wide">to</th><th>impact</th></tr></thead><tbody>'
    for row in frame.to_dict("records"):
        error = row["error"]
        ends = (row[k] for k in ("value", "band_low", "band_high"))
        value, low, high = (html(x) if isinstance(x, str) else number(x, error) for x in ends)
        text += f"<tr><th>{html(row['cell'])}</th><td>{value}</td><td>±{number(error)}</td>"
        text += f'<td class="wide">{low}</td><td class="wide">{high}</td>'
        text += f"<td>{row['impact']}</td></tr>"
    return f"{text}</tbody></table>"
