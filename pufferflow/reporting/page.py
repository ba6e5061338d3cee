"""A page of HTML with everything in it, to be read without a network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from pufferflow._files import write_atomic
from pufferflow.reporting.comparison import VERDICTS
from pufferflow.reporting.tables import Table

SHORT = 12
"""A table of more rows is folded."""

_PARTS = ("page.html.j2", "sections.html.j2", "report.html.j2", "times.html.j2")

MARKS = dict(zip(VERDICTS, "✓≈≃○†✗∅·", strict=True))
"""A sign before the word of each verdict, so that colour is the last thing to tell them apart."""


@dataclass(frozen=True)
class _Cell:
    """A cell of an HTML table."""

    text: str
    numeric: bool
    rowspan: int


def write_page(path: str | Path, template: str, **content: Any) -> Path:
    """Write ``path`` from a template beside this module; the same content gives the same bytes."""
    environment = Environment(
        loader=DictLoader({name: _beside(name) for name in _PARTS}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"inline_svg": _inline_svg, "cells": _cells, "badge": _badge, "unbroken": _unbroken}
    environment.tests["mapping_like"] = lambda value: isinstance(value, Mapping)
    environment.globals |= {
        "style": Markup(_beside("page.css")),
        "script": Markup(_beside("report.js")),
        "short": SHORT,
    }
    return write_atomic(path, environment.get_template(template).render(**content))


def _beside(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _badge(verdict: str) -> Markup:
    """A verdict in words, with its sign and colour."""
    return Markup('<span class="verdict v{}"><span aria-hidden="true">{} </span>{}</span>').format(
        VERDICTS.index(verdict), MARKS[verdict], verdict
    )


def _unbroken(text: str) -> str:
    """A line never ends inside "ε = 1"."""
    return text.replace(" = ", "\u00a0=\u00a0")


def _cells(table: Table) -> list[list[_Cell]]:
    """Cells of the body; a row name that repeats is one cell over all its rows."""
    numeric = table.numeric()
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
            cells.append(_Cell(_unbroken(text), numeric[column], span))
        out.append(cells)
    return out


def _inline_svg(svg: str, anchor: str, description: str) -> Markup:
    """Prepare the text of an SVG file for a page that holds several: own ids, a description, its width, no preamble."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{anchor}-", body)
    opening = Markup('<svg role="img" aria-label="{}"').format(description)
    if points := re.search(r'<svg[^>]*\bwidth="([\d.]+)pt"', body):
        opening += Markup(' style="--natural: {:.0f}px"').format(float(points[1]) * 4 / 3)
    return Markup(body.replace("<svg", opening, 1))
