"""``pufferflow synthesise``: synthetic records from what a release published."""

from __future__ import annotations

import argparse

from pufferflow._files import check_outputs, open_atomic
from pufferflow._progress import progress
from pufferflow._texts import spreadsheet_csv
from pufferflow._work import afford

DESCRIPTION = (
    "Make synthetic records from what a release published, its histogram and its transitions, or its histogram and a "
    "public chain. Nothing else is read, so they cost no privacy and protect just what the release does. They are "
    "labelled as synthetic, and are no better than the release: look at its error first."
)
EPILOG = "Example: pufferflow synthesise meter.csv.release --length 1000 --output meter.synthetic.csv"

A_RECORD = 1e4
"""Operations that a synthetic record takes, most of them to be written."""

PART = 100_000
"""Records that are written at once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("release", metavar="RELEASE", help="folder of a release, or publish in it")
    parser.add_argument("--length", type=int, required=True, metavar="T", help="records to make")
    parser.add_argument("--chain", metavar="MODEL.json", help="a public chain, for releases without transitions")
    parser.add_argument("--start", metavar="TIME", help="of the first record (default: steps are counted)")
    parser.add_argument("--seed", type=int, help="for the same records again; tells nothing private")
    parser.add_argument("--output", metavar="FILE", help="(default: RELEASE.synthetic.csv)")


def run(arguments: argparse.Namespace) -> None:
    """Write the records."""
    from pufferflow.publishing.synthetic import LABEL, synthesise

    output = arguments.output or f"{arguments.release.rstrip('/')}.synthetic.csv"
    check_outputs([output], [arguments.chain], new=True)
    afford(arguments.length * A_RECORD, f"to make {arguments.length:,} records", "give a shorter --length")
    made = synthesise(
        arguments.release, arguments.length, chain=arguments.chain, start=arguments.start, seed=arguments.seed
    )
    with open_atomic(output) as stream:
        for begin in progress(range(0, len(made), PART), desc="writing", unit=" parts", delay=1):
            stream.write(spreadsheet_csv(made.iloc[begin : begin + PART], header=begin == 0).encode())
    print(f"wrote {output}: {len(made):,} records, {LABEL}")
