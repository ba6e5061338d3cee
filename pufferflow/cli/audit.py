"""Print the exact privacy loss of Laplace noise on a count or a histogram.

It is computed from the exact distributions of the chains, rounded up, and printed with the
guarantee. With --event-epsilon: an upper bound of the loss of differentially private mechanisms,
and an attacker's certainty of one of two equally likely values.

Example: pufferflow audit model.json --length 100 --count 1 --epsilon 1
"""

import argparse
import math
from itertools import product
from typing import get_args

from pufferflow._util.checks import check_epsilon
from pufferflow._util.work import afford
from pufferflow.accounting.account import level_of
from pufferflow.accounting.event import influence_curve
from pufferflow.cli.printing import show, table
from pufferflow.cli.scale import add_common, scales_of
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.families import SideInformation
from pufferflow.models.files import read_public_model

COLUMNS = ("mechanism", "scale", "guarantee", "loss", "ratio", "node", "pair", "output", "status")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    of = parser.add_mutually_exclusive_group(required=True)
    add_common(parser, of, "audit the number of records in this state, from 0; or in several")
    of.add_argument("--histogram", action="store_true", help="audit the histogram of all states")
    event = "ε of differential privacy of a reading"
    of.add_argument("--event-epsilon", type=float, action="append", metavar="E", help=event)
    add = parser.add_argument
    add("--reset", type=int, metavar="M", help="E is a budget for M readings, which is then reset")
    add("--length", type=int, required=True, metavar="T", help="records")
    add("--scale", type=float, metavar="S", help="audit this scale (a histogram has noise 2 S)")


def run(arguments: argparse.Namespace) -> None:
    from pufferflow.audit import CountQuery, HistogramQuery, check_work, privacy_loss

    if arguments.event_epsilon:
        return _ordinary(arguments)
    if arguments.reset is not None:
        raise ParameterError("--reset is of the budget --event-epsilon E; give both")
    scale, epsilons = arguments.scale, arguments.epsilon or []
    window = level_of(arguments.protect).window
    if scale is not None and (arguments.mechanism or len(epsilons) > 1):
        raise ParameterError("--scale goes without --mechanism, and with a single --epsilon")
    if scale is None and not epsilons:
        raise ParameterError("give --scale S, or --epsilon E for the scales of mechanisms")
    if window is None or (window > 1 and arguments.histogram):
        problem = (
            "the exact loss is computed of a reading, or of several in a row for --count STATE"
        )
        raise ParameterError(f"--protect is {arguments.protect}; {problem}")
    query = HistogramQuery() if arguments.histogram else CountQuery(arguments.count)
    family, length = read_public_model(arguments.model).family, arguments.length

    def check(losses: int) -> None:
        work = 0.8 * losses * check_work(family, length, query, window)  # of its multiplications
        subject = f"the exact losses of a {query} and {length} records"
        afford(work, subject, "give a shorter --length or fewer scales")

    check(1)  # before the scales, which may take as long
    if scale is None:
        found = scales_of(arguments, family, [length], window=window)
        rows = [one.to_dict() | {"guarantee": one.epsilon, "node": None} for one in found]
    else:
        given = {"guarantee": check_epsilon(epsilons[0]) if epsilons else None}
        rows = [{"mechanism": None, "scale": scale, "status": "ok", "reason": ""} | given]
    check(sum(bool(row["scale"]) for row in rows))
    for row in rows:
        row |= {"loss": None, "ratio": None}
        if row["scale"] == 0 and scale is None:  # W = 0, not a given scale
            row |= {"loss": 0.0, "lower": 0.0, "ratio": 0.0}
            row["reason"] = "the query reveals nothing about any secret"
        elif row["scale"] is not None:
            try:
                row |= privacy_loss(family, length, row["scale"], query, window=window).to_dict()
                row["ratio"] = None if row["guarantee"] is None else row["loss"] / row["guarantee"]
            except (ChainError, ParameterError) as error:
                if scale is not None or arguments.mechanism:  # requested by name
                    raise
                row |= {"status": "not audited", "reason": str(error)}
    title = f"{query}, {length} records" + (f", windows of {window}" if window > 1 else "")
    show(rows, arguments.json, [title, *table(rows, (*COLUMNS, "reason"))])


def _ordinary(arguments: argparse.Namespace) -> None:
    """Print the loss of event-level differential privacy under Θ for both adversaries."""
    if arguments.scale or arguments.epsilon or arguments.mechanism:
        raise ParameterError("--event-epsilon goes without --scale, --epsilon and --mechanism")
    reset = arguments.reset
    family, length, rows = read_public_model(arguments.model).family, arguments.length, []
    hidden = level_of(arguments.protect)
    if hidden.window is None:
        raise ParameterError("participant-level loss is T times the event epsilon; give a window")
    for event, known in product(arguments.event_epsilon, get_args(SideInformation)):
        curve = influence_curve(family, length, window=hidden.window, side_information=known)
        row = {"event_epsilon": event, "readings": 1, "window": hidden.window}
        rows.append(row | {"side_information": known, "loss": curve(event)})
        if reset is not None and known == "none":
            rows.append({**rows[-1], "readings": reset, "loss": curve.reset(event, reset)})
    for row in rows:
        row["certainty"] = 1 / (1 + math.exp(-row["loss"]))
    title = f"event-level differential privacy, {length} records, secrets of {hidden.description()}"
    show(rows, arguments.json, [title, *table(rows, tuple(rows[0]))])
