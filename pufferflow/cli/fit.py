"""``pufferflow fit``: a sample and a chain from a table."""

from __future__ import annotations

import argparse
import json

from pufferflow._files import check_outputs
from pufferflow.cli._records import EDGES, add_reading, add_reason, edges, listed, reading
from pufferflow.errors import ParameterError
from pufferflow.publishing.diagnosis import diagnose, diagnosis_text
from pufferflow.publishing.fitting import fit_records
from pufferflow.records.states import States

DESCRIPTION = (
    "Count the states and transitions of a table (CSV or Parquet), fit a chain, and write both: DATA.sample.json, "
    "exact counts, and DATA.chain.json, for releases of other data. Both are as private as the data, for the counts "
    "can be found again from the chain."
)
EPILOG = (
    "Example: pufferflow fit last_year.csv --width 200 && "
    "pufferflow release this_year.csv --chain last_year.csv.chain.json --epsilon 1"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="CSV (also packed) or Parquet file with a header")
    add_reading(parser)
    states = parser.add_argument_group(
        "states (default: up to 12 numbers or texts as they are, other numbers in 20 bins)"
    )
    states.add_argument("--bins", type=int, metavar="K", help="numeric bins of equal width")
    states.add_argument("--width", type=float, metavar="W", help="numeric bins of this width")
    states.add_argument("--edges", metavar="A,B,...", help=f"{EDGES}; both ends are open")
    states.add_argument("--states", metavar="A,B,...", help="the categories")
    states.add_argument("--top", type=int, metavar="K", help="keep the K most frequent categories, the rest is 'other'")
    states.add_argument("--other", action="store_true", help="have a state 'other' for categories that are not listed")
    chain = parser.add_argument_group("chain")
    chain.add_argument("--step", type=int, metavar="SECONDS", help="time step (default: the most common one)")
    chain.add_argument(
        "--split-after",
        type=int,
        metavar="SECONDS",
        help="a longer pause starts a new segment, taken to be independent (default: never, the cautious choice)",
    )
    add_reason(chain)
    chain.add_argument(
        "--smoothing", type=float, metavar="X", help="added to every count (default: 0 if that is ergodic, or 0.5)"
    )
    chain.add_argument("--start", choices=("stationary", "any"), default="stationary", help="initial distribution")
    chain.add_argument(
        "--coverage",
        type=float,
        metavar="P",
        help="all chains within confidence intervals, forwards and (unless --start any) backwards",
    )
    parser.add_argument("--epsilon", type=float, default=1.0, help="for the summary (default: 1)")
    parser.add_argument(
        "--diagnose",
        action="store_true",
        help="try richer models (order 2, a matrix an hour) and say what is lost if they are true; speaks of the "
        "records, so only with --public",
    )
    parser.add_argument("--public", action="store_true", help="the records are public, so they may be spoken of")
    parser.add_argument("--sample", metavar="FILE", help="in a folder that exists (default: DATA.sample.json)")
    parser.add_argument("--chain", metavar="FILE", help="in a folder that exists (default: DATA.chain.json)")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Fit, write both files, print the summary."""
    sample = arguments.sample or f"{arguments.data}.sample.json"
    chain = arguments.chain or f"{arguments.data}.chain.json"
    if arguments.diagnose and not arguments.public:
        raise ParameterError("--diagnose says things about the records, without noise; say --public if they are public")
    check_outputs([sample, chain], [arguments.data])
    states = States(
        bins=arguments.bins,
        width=arguments.width,
        edges=edges(arguments.edges),
        names=listed(arguments.states),
        top=arguments.top,
        other=arguments.other,
    )
    fit = fit_records(
        arguments.data,
        reading=reading(arguments),
        states=states,
        step_seconds=arguments.step,
        split_after_seconds=arguments.split_after,
        split_because=arguments.split_because,
        smoothing=arguments.smoothing,
        initial_distribution=arguments.start,
        coverage=arguments.coverage,
        epsilon=arguments.epsilon,
    )
    table = None
    if arguments.diagnose:
        table = diagnose(arguments.data, fit, reading=reading(arguments), epsilon=arguments.epsilon)
    fit.sample.save(sample)
    fit.save_chain(chain)
    if arguments.json:
        tried = {} if table is None else {"diagnosis": json.loads(table.to_json(orient="records"))}
        print(json.dumps(fit.facts | {"sample": sample, "chain_file": chain} | tried, indent=1, allow_nan=False))
    else:
        print(fit.summary())
        if table is not None:
            print("\n" + diagnosis_text(table, arguments.epsilon))
        print(
            f"\nwrote {sample} (exact counts) and {chain} (for releases of other data): both are as private as the "
            "data, and only you may read them"
        )
