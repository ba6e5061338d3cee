"""``pufferflow export``: bundled data as a table."""

from __future__ import annotations

import argparse

DESCRIPTION = (
    "Write the bundled household electricity (UCI #235, two years of minutes from 2007-05-01, CC BY 4.0) as CSV with "
    "the columns time and watts; several files get consecutive parts of equal length."
)
EPILOG = "Example: pufferflow export electricity first_year.csv second_year.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("dataset", choices=("electricity",), help="which data")
    parser.add_argument("files", metavar="FILE.csv", nargs="+", help="to write; must not exist, only its folder")
    parser.add_argument("--from", dest="start", metavar="TIME", help="first minute (default: 2007-05-01T00:00)")
    parser.add_argument("--minutes", type=int, metavar="N", help="of all files together (default: to the end)")


def run(arguments: argparse.Namespace) -> None:
    """Write the files."""
    from pufferflow.data.household import export_household

    rows = export_household(arguments.files, start=arguments.start, minutes=arguments.minutes)
    for path in arguments.files:
        print(f"wrote {path}: {rows:,} minutes")
