"""A self-contained page of HTML without scripts."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pufferflow._util.files import write_atomic
from reproduction.comparison import DIFFERS, NOT_COMPARABLE, REPRODUCED, RESTORED, SAME, VERDICTS
from reproduction.tables import Table, display_names

TEMPLATE, STYLE = "page.html.j2", "page.css"
OUTCOMES = {"agrees": "✓", "other data": "≈", "differs": "✗", "not in the paper": "·"}
"""Outcomes of summary rows, each with a sign, so that colour is not needed."""


class Section(NamedTuple):
    """A heading and its blocks: :func:`figure`, :func:`table`, :func:`rows`, :func:`text`."""

    title: str
    anchor: str
    blocks: Sequence[Markup]


class Summary(NamedTuple):
    """A row of the first screen: its subject, values of source and run, and the outcome."""

    name: str
    anchor: str
    source: str
    here: str
    outcome: str


def text(paragraph: str) -> Markup:
    """Return a paragraph."""
    return Markup("<p>{}</p>").format(_unbroken(paragraph))


def link(address: str, words: str) -> Markup:
    """Return a paragraph with a link to another page of the run."""
    return Markup('<p><a href="{}">{}</a></p>').format(address, words)


def figure(svg: str | Path, caption: str | Path) -> Markup:
    """Return a figure from its SVG file; ``caption`` is its text or the file that holds it."""
    path = Path(svg)
    words = caption.read_text(encoding="utf-8") if isinstance(caption, Path) else caption
    words = _unbroken(" ".join(words.split()))
    drawing = path.read_text(encoding="utf-8")
    body = drawing[drawing.index("<svg") :]
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{path.stem}-", body)  # own ids on the page
    points = float(re.findall(r'<svg[^>]*\bwidth="([\d.]+)pt"', body)[0])
    shape = f"width: {1.3 * points * 4 / 3:.0f}px"  # larger than on paper
    opening = Markup('<svg role="img" aria-label="{}" style="{}"').format(words, shape)
    drawn = Markup(body.replace("<svg", opening, 1))
    return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(drawn, words)


def table(shown: Table, *, folded: bool = False) -> Markup:
    """Return a table with its caption; a folded one shows only the caption."""
    html = Markup('<div class="wide">{}</div><p class="note">{}</p>').format(
        Markup(_unbroken(shown.html())), _unbroken(shown.legend)
    )
    if folded:
        return Markup("<details><summary>{}</summary>{}</details>").format(shown.caption, html)
    return Markup("<h3>{}</h3>{}").format(shown.caption, html)


def rows(comparison: pd.DataFrame, *, folded: bool = True) -> Markup:
    """Return rows of a comparison, each below its claim and verdict."""
    return Markup("\n").join(
        Markup(
            "<details class='row'{}><summary>{} <b>{}</b></summary><p>{}</p>"
            "<dl><dt>reported</dt><dd>{} <i>({}, {})</i></dd><dt>here</dt><dd>{} {}</dd>"
            "<dt>data</dt><dd>{}</dd></dl></details>"
        ).format(
            "" if folded else " open",
            badge(str(row.verdict)),
            *(_unbroken(display_names(str(part))) for part in (row.claim, row.reason)),
            *(display_names(str(part)) for part in (row.reported, row.origin, row.place)),
            display_names(str(row.ours)),
            f"({row.tolerance!s})" if row.tolerance else "",
            row.data,
        )
        for row in comparison.itertuples()
    )


def badge(verdict: str) -> Markup:
    """Return a verdict with a sign and a colour."""
    outcome = outcome_of([verdict])
    sign, kind = OUTCOMES[outcome], outcome.split()[0]
    return Markup('<span class="verdict {}">{} {}</span>').format(kind, sign, verdict)


def outcome_of(verdicts: Iterable[str]) -> str:
    """Return the worst of several verdicts as an outcome."""
    found = set(verdicts)
    if DIFFERS in found:
        return "differs"
    if found & {SAME, NOT_COMPARABLE, "other data"}:
        return "other data"
    return "agrees" if found & {REPRODUCED, RESTORED, "agrees"} else "not in the paper"


def count_verdicts(comparison: pd.DataFrame) -> str:
    """Return the number of rows with each verdict, as a phrase."""
    counts = comparison["verdict"].value_counts()
    return ", ".join(f"{counts[name]} {name}" for name in VERDICTS if name in counts)


def write_page(path: str | Path, **content: Any) -> None:
    """Write a page from the template in this folder; the same content gives the same bytes.

    ``content`` are ``title``; ``lead``, sentences of the first screen; ``summary``, rows of
    :class:`Summary`; ``sections``; ``links``, other pages by address.
    """
    here = Path(__file__).parent
    options: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined}
    environment = Environment(loader=FileSystemLoader(here), trim_blocks=True, **options)
    environment.globals["outcomes"] = OUTCOMES
    environment.filters["unbroken"] = _unbroken
    style = Markup((here / STYLE).read_text(encoding="utf-8"))
    write_atomic(path, environment.get_template(TEMPLATE).render(style=style, **content))


def _unbroken(words: str) -> str:
    """Prevent line breaks inside "ε = 1"."""
    return words.replace(" = ", "\u00a0=\u00a0")
