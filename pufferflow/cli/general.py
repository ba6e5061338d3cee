"""``pufferflow general``: the Wasserstein Mechanism for any finite secrets and scenarios."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from pufferflow._files import read_bounded
from pufferflow._numbers import written_number
from pufferflow.cli._faults import nothing_quoted
from pufferflow.cli._records import listed
from pufferflow.cli._tables import aligned
from pufferflow.errors import DataError, ParameterError
from pufferflow.general import PufferfishFramework
from pufferflow.general.tables import read_scenarios

MOST_BYTES = 10_000
"""Size of a file with one number."""

DESCRIPTION = (
    "Print the Laplace scale with which the Wasserstein Mechanism releases a number, for secrets and scenarios given "
    "as a table. Its rows are P(value | secret, scenario), in columns scenario, secret, value and probability; or, "
    "without a column secret, whole databases: scenario, probability, the value of the query, and a column for each "
    "record, of which the secrets are RECORD=STATE. The column scenario may be left out. Numbers are exact: 1/3, 0.2 "
    "or 2e-3. The scale depends on this table alone, never on data."
)
EPILOG = (
    "Example: printf 'secret,value,probability\\nwell,0,1/2\\nwell,1,1/2\\nill,1,1/2\\nill,2,1/2\\n' "
    "| pufferflow general - --epsilon 1"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("table", metavar="TABLE.csv", help="the scenarios; - reads standard input")
    parser.add_argument(
        "--epsilon", type=float, action="append", required=True, help="privacy parameter; repeat for several"
    )
    parser.add_argument(
        "--pair",
        action="append",
        nargs=2,
        metavar=("SECRET", "OTHER"),
        help="secrets that must not be told apart; repeat for several (default: any two, of records any two states of "
        "one)",
    )
    parser.add_argument(
        "--group",
        action="append",
        metavar="A,B,...",
        help="records that depend on each other, for the scale of group differential privacy; repeat for several; a "
        "record in none is a group of its own",
    )
    parser.add_argument(
        "--adversary",
        metavar="BELIEF.csv",
        help="a table of scenarios outside the first: what is still guaranteed against who believes in them",
    )
    parser.add_argument(
        "--release",
        metavar="FILE",
        help="release the number in this file, the true value of the query, with exact noise; it is shown nowhere; - "
        "reads standard input; needs a single --epsilon",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of lines; null is infinite")


def run(arguments: argparse.Namespace) -> None:
    """Print the scales and whatever else is asked for."""
    if [arguments.table, arguments.adversary, arguments.release].count("-") > 1:
        raise ParameterError("only one of the files can be standard input; give the others names")
    if arguments.release is not None and len(arguments.epsilon) > 1:
        raise ParameterError("--release needs a single --epsilon")
    framework = PufferfishFramework.from_table(arguments.table, arguments.pair)
    answer = _answer(framework, arguments)
    if arguments.json:
        print(json.dumps(answer, indent=2, allow_nan=False))
    else:
        print("\n".join(_lines(answer)))


def _answer(framework: PufferfishFramework, arguments: argparse.Namespace) -> dict[str, Any]:
    """All that is asked for, in plain JSON types."""
    sensitivity = framework.wasserstein()
    answer: dict[str, Any] = {
        "W": sensitivity.W,
        "scenario": sensitivity.law,
        "pair": None if sensitivity.pair is None else list(sensitivity.pair),
        "scales": [{"epsilon": epsilon, "scale": sensitivity.scale(epsilon)} for epsilon in arguments.epsilon],
    }
    if arguments.group is not None:
        group = framework.group_sensitivity(listed(text) or () for text in arguments.group)
        answer["group"] = {
            "sensitivity": group.sensitivity,
            "records": list(group.group),
            "independent": group.independent,
            "scales": [{"epsilon": epsilon, "scale": group.scale(epsilon)} for epsilon in arguments.epsilon],
        }
    if arguments.adversary is not None:
        answer["adversaries"] = _adversaries(framework, arguments.adversary, arguments.epsilon)
    if arguments.release is not None:
        (epsilon,) = arguments.epsilon
        with nothing_quoted():
            answer["release"] = framework.release(_true_value(arguments.release), epsilon)
    return answer


def _adversaries(framework: PufferfishFramework, table: str, epsilons: list[float]) -> list[dict[str, Any]]:
    rows = []
    for name, belief in read_scenarios(table).laws.items():
        close = framework.close_adversary(belief)
        losses = [(epsilon, close.loss(epsilon)) for epsilon in epsilons]
        rows.append(
            {
                "adversary": name,
                "delta": _finite(close.delta),
                "closest": close.scenario,
                "secret": close.secret,
                "losses": [{"epsilon": epsilon, "loss": _finite(loss)} for epsilon, loss in losses],
            }
        )
    return rows


def _true_value(path: str) -> Fraction:
    """Read the number to release; no message shows it."""
    where = "standard input" if path == "-" else path
    try:
        return written_number(read_bounded(path, MOST_BYTES).decode().strip(), "the value")
    except (UnicodeDecodeError, ParameterError):
        raise DataError(f"{where} must hold one exact number and nothing else, such as 3, 0.2 or 1/3") from None


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    pair = "-" if answer["pair"] is None else " / ".join(answer["pair"])
    decides = "-" if answer["scenario"] is None else answer["scenario"]
    group = answer.get("group")
    rows = [["epsilon", "scale", "W", "scenario", "pair"]]
    rows += [[repr(one["epsilon"]), repr(one["scale"]), repr(answer["W"]), decides, pair] for one in answer["scales"]]
    if group is not None:
        more = ["group-dp scale", *(repr(one["scale"]) for one in group["scales"])]
        rows = [[*row, cell] for row, cell in zip(rows, more, strict=True)]
    yield aligned(rows)
    if group is not None:
        which = (
            "independent of each other, so noise for them hides the states of every record"
            if group["independent"]
            else "not independent of each other, so noise for one of them does not hide its records from the others"
        )
        yield f"group sensitivity {group['sensitivity']!r} ({', '.join(group['records'])}); the groups are {which}"
    for one in answer.get("adversaries", ()):
        losses = ", ".join(f"{_shown(loss['loss'])} at epsilon {loss['epsilon']!r}" for loss in one["losses"])
        secret = "" if one["secret"] is None else f", decided by {one['secret']}"
        yield (
            f"adversary {one['adversary']}: delta {_shown(one['delta'])} from {one['closest']}{secret}; loss at most "
            f"{losses}"
        )
    if "release" in answer:
        yield f"released {answer['release']!r}"
        yield "no account is kept: further releases of this number add up their epsilon; of others no sum is known"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _shown(number: float | None) -> str:
    return "inf" if number is None else repr(number)
