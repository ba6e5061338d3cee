"""``pufferflow fit``: a sample and a chain from a table."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from pufferflow._files import check_outputs
from pufferflow.cli._faults import nothing_quoted
from pufferflow.cli._records import EDGES, add_reading, add_reason, edges, listed, reading
from pufferflow.cli._releases import WHERE_FROM, add_ledger, ledger_of, warn
from pufferflow.errors import ParameterError
from pufferflow.publishing.diagnosis import diagnose, diagnosis_text
from pufferflow.publishing.fitting import fit_records
from pufferflow.publishing.private_fit import fit_privately
from pufferflow.records.format import RecordFormat, StateSpace
from pufferflow.records.states import States

DESCRIPTION = (
    "Count the states and transitions of a table, fit a chain, and write both: DATA.sample.json, exact counts, and "
    "DATA.chain.json, for releases of other data. Both are as private as the data, for the counts can be found again "
    f"from the chain. {WHERE_FROM} With --private it makes the third: DATA.private.json alone, which may leave. It "
    "hides all records of any one participant; its intervals hold the chain with the confidence that is asked for, "
    "noise included, if participants are independent draws of one chain. The states, the step and the clock are then "
    "never read from the data, and the number of participants is public."
)
EPILOG = (
    "Example: pufferflow fit last_year.csv --width 200 && "
    "pufferflow release this_year.csv --chain last_year.csv.chain.json --epsilon 1; or pufferflow fit homes.csv "
    "--private --epsilon 1 --edges 200:2000:200 --step 1800 --timezone UTC --most-transitions 336"
)

FOR_PRIVATE = ("most_transitions", "confidence", "ledger", "limit", "no_ledger")
NOT_FOR_PRIVATE = ("bins", "width", "top", "smoothing", "coverage", "diagnose", "public", "sample")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="CSV (also packed), Parquet or Excel file with a header")
    add_reading(parser)
    states = parser.add_argument_group(
        "states (default: up to 12 numbers or texts as they are, other numbers in about 20 bins)"
    )
    states.add_argument("--bins", type=int, metavar="K", help="about K numeric bins of a round width")
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
    private = parser.add_argument_group("with --private")
    private.add_argument("--private", action="store_true", help="hide each participant wholly, so that it may leave")
    private.add_argument(
        "--most-transitions",
        type=int,
        metavar="N",
        help="of each participant the first N transitions count; the noise grows with N, so give about as many as a "
        "record has by public knowledge",
    )
    private.add_argument(
        "--confidence", type=float, help="with which the intervals hold the chain, noise included (default: 0.95)"
    )
    add_ledger(private, "fit")
    parser.add_argument(
        "--epsilon", type=float, help="with --private what it costs, otherwise for the summary (default: 1)"
    )
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
    if arguments.private:
        _run_private(arguments)
        return
    _refuse(arguments, FOR_PRIVATE, "goes with --private")
    epsilon = 1.0 if arguments.epsilon is None else arguments.epsilon
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
        epsilon=epsilon,
    )
    table = None
    if arguments.diagnose:
        table = diagnose(arguments.data, fit, reading=reading(arguments), epsilon=epsilon)
    fit.sample.save(sample)
    fit.save_chain(chain)
    if arguments.json:
        tried = {} if table is None else {"diagnosis": json.loads(table.to_json(orient="records"))}
        print(json.dumps(fit.facts | {"sample": sample, "chain_file": chain} | tried, indent=1, allow_nan=False))
    else:
        print(fit.summary())
        if table is not None:
            print("\n" + diagnosis_text(table, epsilon))
        print(
            f"\nwrote {sample} (exact counts) and {chain} (for releases of other data): both are as private as the "
            "data, and only you may read them"
        )


def _run_private(arguments: argparse.Namespace) -> None:
    """Fit with noise, write the model file, print the summary."""
    _refuse(arguments, NOT_FOR_PRIVATE, "speaks of the data without noise, so not with --private")
    names, numbers = listed(arguments.states), edges(arguments.edges)
    if (names is None) == (numbers is None):
        raise ParameterError("--private needs states that are public: give --states or --edges")
    if arguments.epsilon is None or arguments.most_transitions is None:
        raise ParameterError("--private needs --epsilon, what it costs, and --most-transitions of a participant")
    space = StateSpace.categories(names, other=arguments.other) if names else StateSpace.numeric(numbers or ())
    chain, ledger = arguments.chain or f"{arguments.data}.private.json", ledger_of(arguments)
    check_outputs([chain], [arguments.data], ledger=ledger)
    with nothing_quoted():
        fit = fit_privately(
            arguments.data,
            RecordFormat(space, arguments.step, arguments.split_after, split_because=arguments.split_because),
            arguments.epsilon,
            most_transitions=arguments.most_transitions,
            ledger=ledger,
            limit=arguments.limit,
            reading=reading(arguments),
            confidence=0.95 if arguments.confidence is None else arguments.confidence,
            initial_distribution=arguments.start,
            output=chain,
        )
    warn(fit.warnings)
    if arguments.json:
        print(json.dumps(fit.facts | {"chain_file": chain}, indent=1, allow_nan=False))
        return
    print(f"{fit.summary()}\n\nwrote {chain}, which may leave: its statement says what is hidden, and what is assumed")
    if ledger is not None:
        print(f"accounted for in {ledger}; see pufferflow ledger show {ledger}")


def _refuse(arguments: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Raise where one of these options is given."""
    for name in names:
        if getattr(arguments, name) not in (None, False):
            raise ParameterError(f"--{name.replace('_', '-')} {why}")
