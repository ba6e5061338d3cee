"""What the commands that release histograms, private or simulated, have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pufferflow._checks import shown
from pufferflow._protection import PARTICIPANT
from pufferflow._work import afford
from pufferflow.cli._records import EDGES, add_reason, edges, listed, reading
from pufferflow.cli._scales import add_protection, level
from pufferflow.cli._tables import aligned
from pufferflow.errors import ParameterError, PufferflowError
from pufferflow.forgetting_family import ForgettingFamily
from pufferflow.mechanisms import KNOWN
from pufferflow.models import PublicModel, number_of_states, read_public_model
from pufferflow.publishing.account import usual_ledger
from pufferflow.publishing.calibration import GROUP, calibration_work
from pufferflow.publishing.histogram import PrivateHistogram
from pufferflow.publishing.released import PrivateRelease
from pufferflow.publishing.request import ReleaseRequest
from pufferflow.publishing.statistics import BY, CATALOGUE, Statistic, own_states, parse_statistics
from pufferflow.records.format import RecordFormat, StateSpace

Number = TypeVar("Number", int, float)

WHERE_FROM = (
    "Where Θ should come from, the first that does: that records forget (--forgets of release), for which nothing is "
    "fitted; a chain or intervals of public records, or of other people's; a private fit (fit --private)."
)
"""The order in which to look for a safe Θ."""


def add_ledger(group: argparse._ArgumentGroup | argparse.ArgumentParser, what: str) -> None:
    """Declare where the cost is kept."""
    group.add_argument("--ledger", metavar="FILE", help="(default: DATA.ledger, and no other where that exists)")
    group.add_argument(
        "--limit", type=float, metavar="EPSILON", help=f"of a new ledger (default: this {what}'s epsilon)"
    )
    group.add_argument("--no-ledger", action="store_true", help=f"keep no account of what this {what} costs")


def ledger_of(arguments: argparse.Namespace) -> str | Path | None:
    """Return the ledger that the options of :func:`add_ledger` name.

    Raises ParameterError: one and none are asked for.
    """
    if arguments.no_ledger and (arguments.ledger is not None or arguments.limit is not None):
        raise ParameterError("--no-ledger and a ledger or its --limit contradict each other; give one of them")
    return None if arguments.no_ledger else arguments.ledger or usual_ledger(arguments.data)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Declare what ``release`` and ``simulate`` know besides the data."""
    add_theta(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="privacy parameter")
    parser.add_argument("--mechanism", metavar="NAME", help="(default: the least noise that can be certified)")
    add_protection(parser)
    what = parser.add_argument_group("what is released (default: one histogram)")
    what.add_argument(
        "--statistic",
        action="append",
        metavar="NAME[:WEIGHT]",
        help=f"one of {', '.join(CATALOGUE)}, also by hour and so on as in mean-by-hour; repeat for several, which "
        "share epsilon by their weights (default: 1 each)",
    )
    what.add_argument(
        "--by", choices=BY, default="all", help="the same for all that say none: one record counts in one cell of it"
    )
    what.add_argument(
        "--bounds", nargs=2, type=float, metavar=("LOW", "HIGH"), help="to which values of sum and mean are clipped"
    )
    what.add_argument(
        "--grid",
        type=float,
        help="step to which they are rounded (default: a thousandth of the range)",
    )
    what.add_argument("--threshold", type=float, help="of above and runs")
    what.add_argument("--durations", metavar="1,2,5,...", help="first steps of the bins of runs")
    what.add_argument(
        "--quantiles", metavar="P,Q,...", help="to read off the noisy histogram, such as 0.05,0.5,0.95; costs nothing"
    )
    parser.add_argument(
        "--post-process",
        choices=("clip", "simplex"),
        help="clip frequencies to [0, 1], or project them to the simplex; costs nothing",
    )
    parser.add_argument(
        "--fitted-to-others",
        action="store_true",
        help="the chain was fitted to records of the same time, but of other participants",
    )
    form = parser.add_argument_group("states, where the model does not say")
    form.add_argument("--states", metavar="A,B,...", help="the categories, in the order of the chain")
    form.add_argument(
        "--edges",
        metavar="A,B,...",
        help=f"{EDGES}; both ends are open (needed by histograms and transitions, or where the model has states)",
    )
    form.add_argument("--step", type=int, metavar="SECONDS", help="time step of the chain")
    form.add_argument(
        "--split-after", type=int, metavar="SECONDS", help="a longer pause starts a new, independent segment"
    )
    add_reason(form)


def add_theta(parser: argparse.ArgumentParser) -> None:
    """Declare what is assumed of the records, the first choice first."""
    theta = parser.add_argument_group(
        "what is assumed of the records (one of the two)",
        "First choice: that they forget, for which nothing is fitted. Second: a chain, or intervals of one, from "
        "public records or other people's; one fitted to these records would give them away. Third: intervals fitted "
        "with noise (fit --private), also to these records, in the same ledger.",
    ).add_mutually_exclusive_group()
    theta.add_argument(
        "--forgets",
        nargs=2,
        metavar=("STEPS", "OVERLAP"),
        help="the laws of the record so many steps on, and back, from any two states overlap in at least so much, for "
        "example 60 0.4 for minutes of electricity; fit says which hold for other data",
    )
    theta.add_argument(
        "--chain", metavar="MODEL.json", help="made by fit from other data, or any model file; - reads standard input"
    )


def model(arguments: argparse.Namespace) -> PublicModel:
    """Return what the options of :func:`add_theta` say.

    Raises ParameterError: neither is given, or the numbers of ``--forgets`` are none.
    """
    if arguments.forgets is None and arguments.chain is None:
        raise ParameterError(
            "what is assumed of the records is not said; give --forgets with a number of steps after which they have "
            "mostly forgotten what was, for example --forgets 60 0.4 for minutes of electricity, or --chain with a "
            "model of public records or other people's"
        )
    if arguments.forgets is None:
        return read_public_model(arguments.chain)
    steps, overlap = arguments.forgets
    try:
        return PublicModel(ForgettingFamily(int(steps), float(overlap)))
    except (ValueError, PufferflowError) as error:
        why = error if isinstance(error, PufferflowError) else f"{steps} {overlap} are not two numbers"
        raise ParameterError(f"--forgets: {why}; give steps and an overlap, for example 60 0.4") from None


CHEAPER = "give fewer states, or a mechanism that takes less (--mechanism mqm-exact)"
"""What makes a calibration cheaper."""


def afford_noise(arguments: argparse.Namespace, public: PublicModel, more: float = 0.0) -> None:
    """Raise :class:`ParameterError` where finding the noise would take too long; looks at Θ and the options alone."""
    whole = level(arguments, 1).whole
    if arguments.mechanism is None or arguments.mechanism in KNOWN:
        work = calibration_work(public.family, GROUP if whole else arguments.mechanism)
        afford(work + more, "to find and prove the noise", CHEAPER)


def add_output(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare where the results go."""
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        help=f"must not exist or be empty; the folder it is in must exist (default: {default})",
    )
    parser.add_argument("--no-figure", action="store_true", help="draw no figure")
    parser.add_argument("--json", action="store_true", help="print the JSON file instead of a summary")


def record_format(arguments: argparse.Namespace, otherwise: StateSpace | None = None) -> RecordFormat | None:
    """Return the states given by hand, or those that there are ``otherwise``.

    Raises ParameterError: both kinds are given, or a step without states.
    """
    names, numbers = listed(arguments.states), edges(arguments.edges)
    if names is not None and numbers is not None:
        raise ParameterError("--states and --edges say different things; give one of them")
    if names is None and numbers is None and otherwise is None:
        if any(given is not None for given in (arguments.step, arguments.split_after, arguments.split_because)):
            raise ParameterError(
                "--step, --split-after and --split-because go with --states or --edges; a fitted chain knows them"
            )
        return None
    for name, number, least in (("step", arguments.step, 1), ("split-after", arguments.split_after, 0)):
        if number is not None and number < least:
            raise ParameterError(f"--{name} is {number}; give whole seconds, at least {least}")
    if numbers is not None:
        otherwise = StateSpace.numeric(numbers)
    space = StateSpace.categories(names) if names is not None else otherwise
    assert space is not None
    return RecordFormat(space, arguments.step, arguments.split_after, split_because=arguments.split_because)


def release_request(arguments: argparse.Namespace, **more: Any) -> ReleaseRequest:
    """Return what is asked for by the options of models, of output and of reading."""
    public, statistics = model(arguments), _statistics(arguments)
    # where neither Θ nor what is asked for has states, none need be made up
    free = public.records is None and number_of_states(public.family) is None
    form = record_format(arguments, own_states(statistics) if free else None)
    known = form or public.records
    hidden = level(arguments, None if known is None else known.step_seconds)
    return ReleaseRequest(
        arguments.data,
        public,
        arguments.epsilon,
        form=form,
        reading=reading(arguments, public.records),
        mechanism=arguments.mechanism,
        protect=PARTICIPANT if hidden.window is None else hidden.window,
        knows=hidden.knows,
        post_processing=arguments.post_process,
        statistics=statistics,
        quantiles=_numbers("quantiles", arguments.quantiles, float),
        fitted_to_others=arguments.fitted_to_others,
        figure=not arguments.no_figure,
        **more,
    )


def _statistics(arguments: argparse.Namespace) -> tuple[Statistic, ...]:
    """What is asked for.

    Raises ParameterError: a name, a weight or an option is none.
    """
    options = {name: getattr(arguments, name) for name in ("bounds", "grid", "threshold")}
    options["durations"] = None if arguments.durations is None else _numbers("durations", arguments.durations, int)
    return parse_statistics(arguments.statistic or ["histogram"], arguments.by, options)


def _numbers(name: str, text: str | None, kind: type[Number]) -> tuple[Number, ...]:
    try:
        return () if text is None else tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"--{name} is {shown(text)}; give numbers with commas") from None


def show_columns(columns: Mapping[str, str | None], unused: int) -> None:
    """Print which column played which role."""
    print(f"columns     {', '.join(f'{role} {name!r}' for role, name in columns.items() if name)}; {unused} not used")


def warn(warnings: Sequence[str]) -> None:
    """Print what weakens the guarantee, beside the results."""
    for warning in warnings:
        print(f"pufferflow: warning: {warning}", file=sys.stderr)


def show(arguments: argparse.Namespace, made: PrivateRelease, output: str) -> None:
    """Print the result."""
    warn(made.warnings)
    if arguments.json:
        print(made.to_json(), end="")
        return
    if made.columns:
        show_columns(made.columns, made.unused_columns)
    table, most = made.to_frame(), 24
    if isinstance(made, PrivateHistogram):
        table = table[["state", "noisy_count", "frequency", "low_95", "high_95"]]
    else:
        table = table[["statistic", "by", "cell", "bin", "value", "expected_error", "low_95", "high_95"]]
    print(table.head(most).to_string(index=False, float_format=lambda number: f"{number:.5f}"))
    if len(table) > most:
        print(f"… and {len(table) - most} more rows in {output}/{made.stem}.csv")
    print(f"\n{made.promise.text()}\nwrote {output}/")


def level_table(costs: Sequence[Mapping[str, Any]]) -> str:
    """What each level of protection costs, as a table."""
    rows = [("protect", "others known", "mechanism", "scale", "mean error", "95 % error")]
    for cost in costs:
        errors = [cost[key] for key in ("expected_error", "error_95")]
        rows.append(
            (
                cost["protect"],
                "no" if cost["knows"] == "nothing" else "any",
                cost["mechanism"],
                f"{cost['scale']:.6g}",
                *("-" if error is None else f"{error:.3g}" for error in errors),
            )
        )
    return aligned(rows)
