"""``pufferflow release``: a private histogram of a table."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pufferflow._files import check_outputs
from pufferflow.cli._records import AS_FITTED, add_reading, edges, listed, reading
from pufferflow.errors import ParameterError, PufferflowError
from pufferflow.models import read_public_model
from pufferflow.publishing.histogram import PrivateHistogram, require_new
from pufferflow.publishing.release import rehearse_release, release_histogram
from pufferflow.record_format import RecordFormat, StateSpace

DESCRIPTION = (
    "Release the histogram of a table with noise that keeps every single step private: numbers, statement, certificate "
    "and figure in a new folder. The noise comes from the operating system's randomness; there is no seed. What it "
    "costs is reserved in a ledger first; the first release of a table makes one with epsilon as its limit."
)
EPILOG = "Example: pufferflow release this_year.csv --chain last_year.csv.chain.json --epsilon 1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="CSV (also packed) or Parquet file with a header")
    add_model(parser)
    parser.add_argument("--ledger", metavar="FILE", help="(default: DATA.ledger)")
    parser.add_argument(
        "--limit", type=float, metavar="EPSILON", help="of a new ledger (default: this release's epsilon)"
    )
    parser.add_argument("--no-ledger", action="store_true", help="keep no account of what is released")
    parser.add_argument(
        "--dry-run", action="store_true", help="check all and say what it would do; nothing is written or paid for"
    )
    add_output(parser, "DATA.release")
    add_reading(parser, AS_FITTED)


def run(arguments: argparse.Namespace) -> None:
    """Release, write the folder, say what was done."""
    if arguments.no_ledger and (arguments.ledger is not None or arguments.limit is not None):
        raise ParameterError("--no-ledger and a ledger or its --limit contradict each other; give one of them")
    ledger = None if arguments.no_ledger else arguments.ledger or f"{arguments.data}.ledger"
    output = arguments.output or f"{arguments.data}.release"
    require_new(output)
    check_outputs([output, ledger], [arguments.data, arguments.chain])
    model = read_public_model(arguments.chain)
    form = record_format(arguments)
    options: dict[str, Any] = {
        "ledger": ledger,
        "limit": arguments.limit,
        "form": form,
        "reading": reading(arguments, model.records),
        "mechanism": arguments.mechanism,
        "chain_from_this_data": arguments.chain_from_this_data,
        "output": output,
        "figure": not arguments.no_figure,
    }
    try:
        if arguments.dry_run:
            _show_rehearsal(arguments, rehearse_release(arguments.data, model, arguments.epsilon, **options))
            return
        released = release_histogram(
            arguments.data, model, arguments.epsilon, post_processing=arguments.post_process, **options
        )
    except (PufferflowError, OSError):
        raise
    except Exception as error:
        # whatever else goes wrong, its text could quote the data
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        place = "" if at is None else f" ({at.tb_frame.f_code.co_name}, line {at.tb_lineno})"
        raise PufferflowError(
            f"a fault of this program: {type(error).__name__}{place}; nothing of the data is shown, please report it"
        ) from None
    show(arguments, released, output)
    if not arguments.json and ledger is not None:
        print(f"accounted for in {ledger}; see pufferflow ledger show {ledger}")


def _show_rehearsal(arguments: argparse.Namespace, facts: dict[str, Any]) -> None:
    if arguments.json:
        print(json.dumps(facts, indent=1, allow_nan=False))
        return
    columns = ", ".join(f"{role} {name!r}" for role, name in facts["columns"].items() if name is not None)
    print(f"columns     {columns}; {facts['unused_columns']} not used")
    print(
        f"records     {facts['records']:,} in {facts['segments']:,} segment(s) of {facts['participants']:,} "
        f"participant(s), the longest of {facts['longest_segment']:,} steps\n"
        f"mechanism   {facts['mechanism']}, scale {facts['scale']:.6g}, "
        f"{'certified' if facts['certified'] else 'without a certificate'}\n"
        f"noise       scale {facts['noise_scale']:.6g} on each of {facts['states']} counts; 95 % error of a frequency "
        f"{facts['error_95']:.3g}"
    )
    if facts["limit"] is not None:
        print(f"cost        within the ledger's limit {facts['limit']:g}, of which {facts['left']:.6g} would be left")
    print("\na dry run: nothing was drawn, written or paid for")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Declare what ``release`` and ``simulate`` know besides the data."""
    parser.add_argument(
        "--chain",
        required=True,
        metavar="MODEL.json",
        help="made by fit from other data, or any model file; - reads standard input",
    )
    parser.add_argument("--epsilon", type=float, required=True, help="privacy parameter")
    parser.add_argument("--mechanism", metavar="NAME", help="(default: the least noise that can be certified)")
    parser.add_argument(
        "--post-process",
        choices=("clip", "simplex"),
        help="clip frequencies to [0, 1], or project them to the simplex; costs nothing",
    )
    parser.add_argument(
        "--chain-from-this-data",
        action="store_true",
        help="the chain was fitted to these same data: the guarantee then treats it as public",
    )
    form = parser.add_argument_group("states, where the model does not say")
    form.add_argument("--states", metavar="A,B,...", help="the categories, in the order of the chain")
    form.add_argument("--edges", metavar="A,B,...", help="edges between numeric bins; both ends are open")
    form.add_argument("--step", type=int, metavar="SECONDS", help="time step of the chain")
    form.add_argument(
        "--split-after", type=int, metavar="SECONDS", help="a longer pause starts a new, independent segment"
    )


def add_output(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare where the results go."""
    parser.add_argument(
        "--output", metavar="FOLDER", help=f"must not exist, only the folder it is in (default: {default})"
    )
    parser.add_argument("--no-figure", action="store_true", help="draw no figure")
    parser.add_argument("--json", action="store_true", help="print histogram.json instead of a summary")


def record_format(arguments: argparse.Namespace) -> RecordFormat | None:
    """Return the states given by hand.

    Raises
    ------
    ParameterError
        Both kinds are given, or a step without states.
    """
    names, numbers = listed(arguments.states), edges(arguments.edges)
    if names is not None and numbers is not None:
        raise ParameterError("--states and --edges say different things; give one of them")
    if names is None and numbers is None:
        if arguments.step is not None or arguments.split_after is not None:
            raise ParameterError("--step and --split-after go with --states or --edges; a fitted chain knows them")
        return None
    for name, number, least in (("step", arguments.step, 1), ("split-after", arguments.split_after, 0)):
        if number is not None and number < least:
            raise ParameterError(f"--{name} is {number}; give whole seconds, at least {least}")
    space = StateSpace.categories(names) if names is not None else StateSpace.numeric(numbers or ())
    return RecordFormat(space, arguments.step, arguments.split_after)


def show(arguments: argparse.Namespace, made: PrivateHistogram, output: str) -> None:
    """Print the result."""
    if arguments.json:
        print(made.to_json(), end="")
        return
    table = made.to_frame()[["state", "noisy_count", "frequency", "low_95", "high_95"]]
    most = 24
    print(table.head(most).to_string(index=False, float_format=lambda number: f"{number:.5f}"))
    if len(table) > most:
        print(f"… and {len(table) - most} more states in {output}/histogram.csv")
    print(f"\n{made.statement}\n\nwrote {output}/")
