"""What the commands that draw a figure have in common: where it goes."""

from __future__ import annotations

import argparse
from pathlib import Path

from pufferflow._optional import require
from pufferflow.publishing.folder import FIGURES


def add_figure(parser: argparse.ArgumentParser, what: str, when: str = "") -> None:
    """Declare ``--figure``."""
    parser.add_argument(
        "--figure",
        metavar="STEM",
        help=f"draw {what} to {', '.join(f'STEM.{ending}' for ending in FIGURES)}, in a folder that exists{when}",
    )


def figure_stem(arguments: argparse.Namespace) -> Path:
    """Return where the figure goes, without ending.

    Raises ParameterError: figures cannot be drawn here.
    """
    require("matplotlib", "--figure")
    stem = Path(arguments.figure)
    return stem.with_suffix("") if stem.suffix[1:].lower() in FIGURES else stem


def figure_files(stem: Path) -> list[str]:
    """Return the files of the figure."""
    return [f"{stem}.{ending}" for ending in FIGURES]
