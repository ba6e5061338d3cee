"""The report of a run: what its jobs made, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pufferflow.records.sample import load_sample
from pufferflow.reporting.provenance import reproducible_provenance
from pufferflow.reporting.report import Section, write_report
from pufferflow.reporting.style import data_label
from pufferflow.reporting.tables import Table

TITLE = "Pufferfish privacy mechanisms for correlated data: the paper's results beside ours"

ABOUT = """\
Every table and figure of Song, Wang and Chaudhuri, “Pufferfish Privacy Mechanisms for Correlated Data” (SIGMOD 2017), \
computed anew. A scale is the scale of Laplace noise that hides the state at any one time from whoever knows the \
chain; no scale here is below its exact value. Errors are L1 norms of the noise of a release.

Real data are not the paper's: its activity data was never published, and its household's electricity data is not ours \
to ship. A number on other data can therefore agree in its conclusion, never read “reproduced”."""


def assemble_report(
    comparison: str | Path,
    shown: Iterable[Mapping[str, Any]],
    samples: Mapping[str, str],
    settings: Mapping[str, Any],
    path: str | Path,
) -> None:
    """Write the report from the files of a run.

    Parameters
    ----------
    comparison : path
        The printed table of all claims and numbers, as JSON.
    shown : iterable of mapping
        What follows it: ``title``, ``anchor`` and ``caption``; ``file``, a figure (.svg) or a printed table (.json),
        none for a note, whose text is the caption; ``data`` or ``data_from``, and ``settings``, as a study says them.
    samples : mapping of str to path
        Samples by data set.
    settings : mapping
        The configuration of the run.
    path : path
        The HTML file.
    """
    write_report(
        path,
        title=TITLE,
        comparison=_table(comparison),
        sections=[Section("About these results", "about", "note", ABOUT), *map(_section, shown)],
        provenance=reproducible_provenance({name: Path(sample) for name, sample in samples.items()}),
        settings=settings,
    )


def _table(path: str | Path) -> Table:
    return Table.from_json(Path(path).read_text(encoding="utf-8"))


def _section(shown: Mapping[str, Any]) -> Section:
    title, anchor, file = shown["title"], shown["anchor"], shown["file"]
    if not file:
        return Section(title, anchor, "note", shown["caption"])
    label = data_label(shown["data"]) if shown["data"] else _label(shown["data_from"])
    if file.endswith(".json"):
        return Section(title, anchor, "table", _table(file), "", label, shown["settings"])
    svg = Path(file).read_text(encoding="utf-8")
    return Section(title, anchor, "figure", svg, shown["caption"], label, shown["settings"])


def _label(path: str) -> str:
    """Label of the data of a sample or of a printed table; none without either."""
    if not path:
        return ""
    if path.startswith("results/tables/"):
        return _table(path).data_label
    sample = load_sample(path)
    return data_label(sample.label, sample.description)
