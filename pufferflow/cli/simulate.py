"""``pufferflow simulate``: the seeded twin of release, for planning."""

from __future__ import annotations

import argparse

from pufferflow._work import afford
from pufferflow.cli._records import AS_FITTED, add_reading
from pufferflow.cli._releases import add_model, add_output, afford_noise, release_request, show
from pufferflow.models import PublicModel
from pufferflow.publishing.folder import INTERNAL, require_new
from pufferflow.publishing.release import simulate

DESCRIPTION = (
    "Do what release does with noise from a seed, on a table or on simulated steps of the chain, and without a ledger. "
    "NOT PRIVATE: whoever knows the seed can remove the noise. For planning only; nothing of it may leave."
)
EPILOG = (
    "Example: pufferflow simulate --chain last_year.csv.chain.json --length 10000 --epsilon 1 --seed 7 --output trial"
)

A_STEP = 2e3
"""Operations that a simulated step takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", nargs="?", help="CSV, Parquet or Excel file (default: simulated steps)")
    parser.add_argument("--length", type=int, metavar="T", help="steps to simulate where there is no DATA")
    parser.add_argument(
        "--seed", type=int, required=True, help="of the simulation; the same seed gives the same result"
    )
    add_model(parser)
    add_output(parser, "DATA.simulation-not-private")
    add_reading(parser, AS_FITTED)


def run(arguments: argparse.Namespace) -> None:
    """Simulate, write the folder, say that it is not private."""
    output = arguments.output or f"{arguments.data or arguments.chain}.simulation-not-private"
    require_new(output)
    request = release_request(arguments)
    assert isinstance(request.model, PublicModel)
    afford_noise(arguments, request.model)
    if arguments.length is not None:
        afford(arguments.length * A_STEP, f"to simulate {arguments.length:,} steps", "give a shorter --length")
    made = simulate(request, arguments.seed, arguments.length)
    made.save(output, figure=not arguments.no_figure)
    show(arguments, made, f"{output}/{INTERNAL}")
