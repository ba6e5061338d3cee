"""The page of a release: one HTML file without scripts and external addresses.

Its figures are SVG: values, their simultaneous band, and the public range as the axis. Each value
is a row. Horizontal positions are in percent and letters keep their size, so one drawing serves
every width, in the colours of the page; every name is escaped.
"""

from __future__ import annotations

import math
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from pufferflow.publish.statement import sections_of, warnings_of
from pufferflow.publish.statistics import MostFrequent
from pufferflow.publish.texts import html, number, visible

if TYPE_CHECKING:
    from pufferflow.publish.result import NoisyTable, Release

MAX_VALUES = 240
"""Largest number of values of a figure; with more the page has the table alone."""
HEIGHT, ROWS = 960.0, (5.0, 20.0)
"""Height in pixels of all rows, and the smallest and largest of one row."""
LETTERS, LETTER, RIGHT = 18, 2.2, 92.0
"""Largest number of letters of a name; width of one, and end of the axis, in percent."""
NOTE = "Lines: published values. Shade: with 95\u00a0% probability it contains all exact values."


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
        figures="".join(map(_figure, made.tables)) if made.how.figure else "",
        sections="".join(sections),
        tables="".join(map(_table, made.tables)),
    )


def _table(table: NoisyTable) -> str:
    text = f"<h2>{html(table.heading)}: {html(table.quantity)}</h2>"
    text += "<table><thead><tr><th></th><th>value</th><th>error</th>"
    text += '<th class="wide">from</th><th class="wide">to</th><th>impact</th></tr></thead><tbody>'
    for row in table.to_frame().to_dict("records"):
        error = row["error"]
        ends = (row[k] for k in ("value", "band_low", "band_high"))
        value, low, high = (html(x) if isinstance(x, str) else number(x, error) for x in ends)
        text += f"<tr><th>{html(row['cell'])}</th><td>{value}</td><td>±{number(error)}</td>"
        text += f'<td class="wide">{low}</td><td class="wide">{high}</td>'
        text += f"<td>{row['impact']}</td></tr>"
    return f"{text}</tbody></table>"


def _figure(table: NoisyTable) -> str:
    """Return the figure of a table as HTML, empty if it has too many values, or names."""
    kind, values, half = table.statistic, table.values, table.half_width
    panels, places = table.cells, tuple(column.label for column in table.columns)
    if len(places) <= len(panels) > 1:
        panels, places, values, half = places, panels, values.T, half.T
    if values.size > MAX_VALUES or isinstance(kind, MostFrequent):
        return ""
    used = table.sizes > 0
    least = kind.offset * (np.ones_like(table.sizes) if kind.relative else table.sizes)[used, None]
    low, high = float(least.min()), float((least + table.ranges[used]).max())
    near = np.minimum(half, (high - low) / 2)
    low, high = min(low, np.nanmin(values - near)), max(high, np.nanmax(values + near))
    row = max(ROWS[0], min(ROWS[1], HEIGHT / values.size))
    every = math.ceil(13 / row)  # one of these rows is named

    left = 3 + LETTER * max(len(_short(place, LETTERS)) for place in places)

    def across(value: float) -> float:
        """Return the position of a value, in percent, at most the end of the axis."""
        return left + (RIGHT - left) * min(max((value - low) / (high - low), 0.0), 1.0)

    def box(kind: str, y: float, height: float, one: float, two: float) -> str:
        """Return a box from one value to another, or a line if they are equal."""
        start, end = sorted((across(one), across(two)))
        width = f"{end - start:.2f}%" if end > start else "1"
        place = f'x="{start:.2f}%" y="{y:.1f}" width="{width}" height="{height:.1f}"'
        return f'<rect class="{kind}" {place}/>'

    title, top = table.quantity, 24.0
    out = [_text("axis", f"{left}%", 12, title, "start")]
    for panel, shown, errors in zip(panels, values, half, strict=True):
        if len(panels) > 1:
            out.append(_text("panel", "0", top + 10, _short(panel, 2 * LETTERS), "start"))
            top += 18
        bottom = top + row * len(places)
        for tick, text in _ticks(low, high):
            out.append(box("grid" if tick else "zero", top, bottom - top, tick, tick))
            out.append(_text("name", f"{across(tick):.2f}%", bottom + 14, text, "middle"))
        for j, place in enumerate(places):
            y, thick = top + row * (j + 0.15), row * 0.7
            if j % every == 0:
                name = _short(place, LETTERS)
                out.append(_text("name", f"{left - 2}%", y + row * 0.35 + 4, name, "end"))
            if np.isnan(shown[j]):
                continue
            if not kind.in_unit:
                out.append(box("bar", y, thick, 0, shown[j]))
            out.append(box("band", y, thick, shown[j] - errors[j], shown[j] + errors[j]))
            out.append(box("value", y, thick, shown[j], shown[j]))
        top = bottom + 28
    head = f"<figcaption>{html(table.heading)}</figcaption>"
    size = f'height="{top:.0f}" role="img" aria-label="{html(title)}"'
    return f"<figure>{head}<svg {size}>{''.join(out)}</svg><p>{NOTE}</p></figure>"


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return three or four round numbers of an axis with their labels."""
    raw = (high - low) / 3
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(j * step, number(j * step, 100 * step)) for j in range(first, last + 1)]


def _text(kind: str, x: str, y: float, text: str, anchor: str) -> str:
    where = f'class="{kind}" x="{x}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {where}>{html(text)}</text>"


def _short(name: str, most: int) -> str:
    shown = visible(name)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
