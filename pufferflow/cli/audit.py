"""``pufferflow audit``: exact loss of Laplace noise."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from pufferflow._checks import check_epsilon, check_whole
from pufferflow._work import afford
from pufferflow.cli._scales import add_count, add_mechanisms, scales_of, status_text
from pufferflow.cli._tables import aligned
from pufferflow.errors import ChainError, ParameterError
from pufferflow.markov.families import Family
from pufferflow.models import read_model

if TYPE_CHECKING:
    from pufferflow.audit import Query

DESCRIPTION = (
    "Print the privacy loss that Laplace noise really has on a count or a histogram, from the exact "
    "law of the chains, beside what the mechanism guarantees. The loss is never below the exact value."
)
EPILOG = "Example: pufferflow audit model.json --length 100 --count 1 --mechanism mqm-exact --epsilon 1"

A_MULTIPLICATION = 0.8
"""Operations that a multiplication of the laws takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL.json", help="chains, as for scale; - reads standard input")
    parser.add_argument("--length", type=int, required=True, metavar="T", help="records")
    parser.add_argument(
        "--scale", type=float, metavar="S", help="Laplace scale of a 1-Lipschitz query (a histogram has noise 2 S)"
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        action="append",
        help="guarantee to hold the loss against; repeat for several mechanisms' scales",
    )
    parser.add_argument(
        "--window",
        type=int,
        default=1,
        metavar="W",
        help="audit what so many consecutive records were, all together, and hide it by the mechanisms; counts only "
        "(default: 1)",
    )
    add_mechanisms(parser, "all, without --scale")
    add_count(parser, "audit the number of records in this state, from 0; repeat for a set of states")
    parser.add_argument("--histogram", action="store_true", help="audit the histogram of all states")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Print the losses beside the guarantees."""
    from pufferflow.audit import CountQuery, HistogramQuery, check_work

    if (arguments.count is None) == (not arguments.histogram):
        raise ParameterError("give either --count STATE or --histogram")
    if arguments.scale is not None and arguments.mechanism:
        raise ParameterError("give either --scale or --mechanism, not both")
    if arguments.scale is None and not arguments.epsilon:
        raise ParameterError("give --scale S, or --epsilon E for the scales of mechanisms")
    if arguments.scale is not None and len(arguments.epsilon or []) > 1:
        raise ParameterError("--scale is held against a single --epsilon")
    if check_whole(arguments.window, "--window") > 1 and arguments.histogram:
        raise ParameterError(f"--window is {arguments.window}; the exact loss of windows is computed for --count STATE")
    query = HistogramQuery() if arguments.histogram else CountQuery(arguments.count)
    family = read_model(arguments.model)
    work = check_work(family, arguments.length, query, arguments.window)
    by_name = arguments.scale is not None or bool(arguments.mechanism)
    _check(work, query, arguments.length)  # of one, before the scales, which may take as long
    scales = _scales(arguments, family)
    _check(work * sum(bool(row["scale"]) for row in scales), query, arguments.length)
    rows = [row | _audited(row, family, arguments, query, by_name) for row in scales]
    if arguments.json:
        print(json.dumps(rows, indent=2, allow_nan=False))
    else:
        hidden = f", windows of {arguments.window}" if arguments.window > 1 else ""
        print(f"{query}, {arguments.length} records{hidden}")
        print(
            aligned(
                [("mechanism", "scale", "guarantee", "actual loss", "ratio", "node", "secrets", "output", "status")]
                + [_audit_row(row) for row in rows]
            )
        )


def _check(work: float, query: Query, length: int) -> None:
    """Raise where the exact losses take more than is allowed."""
    afford(
        work * A_MULTIPLICATION,
        f"the exact losses of a {query} and {length} records",
        "give a shorter --length or fewer scales",
    )


def _scales(arguments: argparse.Namespace, family: Family) -> list[dict[str, Any]]:
    """The scales to audit, a row each."""
    if arguments.scale is not None:
        epsilons = [check_epsilon(epsilon) for epsilon in arguments.epsilon or []]
        return [_row(None, epsilons[0] if epsilons else None, arguments.scale)]
    options = {"convention": arguments.convention, "states": arguments.count, "window": arguments.window}
    scales = scales_of(arguments.mechanism, family, [arguments.length], arguments.epsilon, options)
    return [_row(one.mechanism, one.epsilon, one.scale, one.status, one.reason) for one in scales]


def _row(
    mechanism: str | None, guarantee: float | None, scale: float | None, status: str = "ok", reason: str = ""
) -> dict[str, Any]:
    """A row without its loss."""
    row = {"mechanism": mechanism, "guarantee": guarantee, "loss": None, "ratio": None, "scale": scale}
    return row | {"status": status, "reason": reason}


def _audited(
    row: dict[str, Any], family: Family, arguments: argparse.Namespace, query: Query, by_name: bool
) -> dict[str, Any]:
    """What the audit adds to a row; a scale that cannot be audited costs its row only, unless asked for by name."""
    from pufferflow.audit import privacy_loss

    scale, guarantee = row["scale"], row["guarantee"]
    if scale is None:
        return {}
    if scale == 0 and row["mechanism"] is not None:  # where W = 0, not a scale that a user gave
        return {"loss": 0.0, "lower": 0.0, "ratio": 0.0, "reason": "the query tells nothing of any secret, so no noise"}
    try:
        loss = privacy_loss(family, arguments.length, scale, query, window=arguments.window)
    except (ChainError, ParameterError) as error:
        if by_name:
            raise
        return {"status": "not audited", "reason": str(error)}
    return loss.to_dict() | {"ratio": None if guarantee is None else loss.loss / guarantee}


def _audit_row(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(key: str, form: str = "") -> str:
        value = row.get(key)
        return "-" if value is None else format(value, form)

    pair, output = row.get("pair"), row.get("output")
    return (
        shown("mechanism"),
        shown("scale"),
        shown("guarantee"),
        shown("loss", ".6f"),
        shown("ratio", ".4f"),
        shown("node", "d") if row.get("node") is None else f"X{row['node']}",
        "-" if pair is None else f"{pair[0]} against {pair[1]}",
        "-" if output is None else str(tuple(output) if isinstance(output, list) else output),
        status_text(row["status"], row["reason"]),
    )
