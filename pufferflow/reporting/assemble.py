"""The pages of a run: what its jobs made, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pufferflow.records.sample import load_sample
from pufferflow.reporting.provenance import reproducible_provenance
from pufferflow.reporting.report import write_report, write_times
from pufferflow.reporting.section import Section
from pufferflow.reporting.style import data_label
from pufferflow.reporting.tables import Table

TITLE = "Pufferfish privacy for correlated data: what was reported, computed again"

ASKED = """\
How much noise hides one record of a series whose records depend on each other? Every figure, table and number that \
Song, Wang and Chaudhuri (SIGMOD 2017) answer with, and those of four sources beside it, computed anew from what is \
printed, each with a verdict."""

ABOUT = """\
Every table and figure of Song, Wang and Chaudhuri, “Pufferfish Privacy Mechanisms for Correlated Data” (SIGMOD 2017), \
computed anew. A scale is the scale of Laplace noise that hides the state at any one time from whoever knows the \
chain; no scale here is below its exact value. Errors are L1 norms of the noise of a release.

Real data are not the paper's: its activity data was never published, and its household's electricity data is not ours \
to ship. A number on other data is therefore not comparable, however close it lies; an order, or what no record \
enters, can agree."""

TIMES_TITLE = "Seconds: Table 2 of the paper, and what else is timed"

ABOUT_TIMES = """\
Measured seconds change from run to run and from machine to machine, so they stand apart from the report, which does \
not change by a byte. What can be compared with the paper's are ratios: how many times as long one mechanism takes as \
another on the same machine."""


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
        What follows it: a ``file``, a figure (.svg) or a printed table (.json), none for a note, whose text is the
        caption; and what a study's ``Section`` says of it.
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
        asked=ASKED,
        comparison=_table(comparison),
        sections=[Section("About these results", "about", "note", ABOUT), *map(_section, shown)],
        provenance=reproducible_provenance({name: Path(sample) for name, sample in samples.items()}),
        settings=settings,
    )


def assemble_times(shown: Iterable[Mapping[str, Any]], report: str, path: str | Path) -> None:
    """Write the page of seconds; ``shown`` as :func:`assemble_report` takes it, ``report`` is that page's address."""
    write_times(path, title=TIMES_TITLE, about=ABOUT_TIMES, sections=[*map(_section, shown)], report=report)


def _table(path: str | Path) -> Table:
    return Table.from_json(Path(path).read_text(encoding="utf-8"))


def _section(shown: Mapping[str, Any]) -> Section:
    file, place = shown["file"], {name: shown[name] for name in ("title", "anchor", "lead", "under", "link")}
    if not file:
        return Section(kind="note", content=shown["caption"], **place)
    told = {"data_label": _label(shown), "settings": shown["settings"]}
    if file.endswith(".json"):
        return Section(kind="table", content=_table(file), **told, **place)
    svg = Path(file).read_text(encoding="utf-8")
    return Section(kind="figure", content=svg, caption=shown["caption"], **told, **place)


def _label(shown: Mapping[str, Any]) -> str:
    """Label of the data: as it is said, or of a sample or a printed table; none without either."""
    said, path = shown["data"], shown["data_from"]
    if said or not path:
        return data_label(said) if said else ""
    if Path(path).parent.name == "tables":
        return _table(path).data_label
    sample = load_sample(path)
    return data_label(sample.label, sample.description)
