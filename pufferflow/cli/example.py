"""Write bundled household electricity as CSV, with the columns time and watts.

Two years of minutes (UCI #235, CC BY 4.0); several files get consecutive parts of equal length.

Example: pufferflow example first_year.csv second_year.csv
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", metavar="FILE.csv", nargs="+", help="must not exist, its folder must")
    add("--from", dest="start", metavar="TIME", help="default: 2007-05-01T00:00")
    add("--minutes", type=int, metavar="N", help="of all files together (default: to the end)")


def run(arguments: argparse.Namespace) -> None:
    from pufferflow.data.household import export_household

    rows = export_household(arguments.files, start=arguments.start, minutes=arguments.minutes)
    for path in arguments.files:
        print(f"wrote {path}: {rows:,} minutes")
