"""The report: what was asked, what came out source by source, and every table and figure below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pufferflow.reporting.comparison import MEANINGS, ORIGIN_MEANINGS
from pufferflow.reporting.judged import sources_of
from pufferflow.reporting.page import write_page
from pufferflow.reporting.section import Section, blocks
from pufferflow.reporting.tables import Table

OWN_ANCHORS = ("top", "comparison", "settings", "provenance")


def write_report(
    path: str | Path,
    *,
    title: str,
    asked: str,
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
    asked : str
        What was asked, in a sentence or two.
    comparison : Table
        Table of :func:`~pufferflow.reporting.tables.comparison`: its verdicts are counted source by source on the
        first screen, its rows are folded below.
    sections : sequence of Section
        The leading ones fill the first screen, the others follow the comparison, in this order.
    provenance, settings : mapping
        Nested mappings, lists and plain values; they close the report.

    Raises
    ------
    ParameterError
        Two sections share an anchor, one is folded below none, or a verdict is none of ``comparison.VERDICTS``.
    """
    sources = sources_of(comparison)
    arranged = blocks(sections, [*OWN_ANCHORS, *(source.anchor for source in sources)])
    return write_page(
        path,
        "report.html.j2",
        title=title,
        asked=asked,
        sources=sources,
        meanings=MEANINGS,
        origins=ORIGIN_MEANINGS,
        leading=[block for block in arranged if block[0].lead],
        following=[block for block in arranged if not block[0].lead],
        provenance=provenance,
        settings=settings,
    )


def write_times(path: str | Path, *, title: str, about: str, sections: Sequence[Section], report: str) -> Path:
    """Write the page of what changes from run to run, seconds, in the report's style.

    Parameters
    ----------
    path : path
        The HTML file.
    title, about : str
        ``about`` says how to read the page.
    sections : sequence of Section
        The leading ones come first.
    report : str
        Address of the report, from the page.
    """
    leading_first = sorted(blocks(sections), key=lambda block: not block[0].lead)
    return write_page(path, "times.html.j2", title=title, about=about, following=leading_first, report=report)
