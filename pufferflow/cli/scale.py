"""``pufferflow scale``: Laplace scales for a family of chains."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import get_args

from pufferflow._checks import longest
from pufferflow._files import check_outputs, write_atomic
from pufferflow._work import afford
from pufferflow.cli._scales import (
    FEWER,
    add_count,
    add_mechanisms,
    add_protection,
    level,
    note,
    scales_of,
    status_text,
)
from pufferflow.cli._tables import aligned
from pufferflow.errors import ParameterError
from pufferflow.markov.families import GapKind
from pufferflow.mechanisms import NoiseScale, find_mechanism
from pufferflow.mechanisms.work import proof_work, scale_work
from pufferflow.models import read_model

DESCRIPTION = (
    "Print the Laplace scale of a 1-Lipschitz query for every mechanism and epsilon. "
    "A query with Lipschitz constant L (L1 norm) gets L times that scale on every coordinate."
)
EPILOG = (
    'Example: echo \'{"chains": [{"transition_matrix": [[0.9, 0.1], [0.4, 0.6]], '
    '"initial_distribution": [1, 0]}]}\' | pufferflow scale - --length 100 --epsilon 1 --epsilon 0.2'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "model",
        metavar="MODEL.json",
        help='family of chains: {"chains": [{"transition_matrix": [[...]], "initial_distribution": [...] | '
        '"stationary" | "any"}, ...]} or {"binary_interval": [low, high]} or '
        '{"interval": {"low": [[...]], "high": [[...]]}} or {"total_variation": {"transition_matrix": [[...]], '
        '"radius": r}} or {"forgetting": {"steps": 60, "overlap": 0.4}}; - reads standard input',
    )
    parser.add_argument(
        "--length",
        type=int,
        action="append",
        required=True,
        metavar="T",
        help="records of an independent segment; repeat for several, the longest decides",
    )
    parser.add_argument(
        "--epsilon", type=float, action="append", required=True, help="privacy parameter; repeat for several"
    )
    add_mechanisms(parser, "all")
    add_protection(parser)
    parser.add_argument(
        "--eigengap",
        choices=get_args(GapKind),
        default="auto",
        help="eigengap of mqm-approx; auto uses the larger one for chains in detailed balance (default: auto)",
    )
    add_count(
        parser, "what wasserstein counts: records in this state, from 0; repeat for a set (default: of two states 1)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.add_argument(
        "--certificate",
        metavar="FILE",
        help="write a certificate of the scale of the one --mechanism (default: mqm-exact), which is then the "
        "certified one; needs a single --epsilon",
    )


def run(arguments: argparse.Namespace) -> None:
    """Print the scales; write the certificate where one is asked for."""
    check_outputs([arguments.certificate], [arguments.model])
    family = read_model(arguments.model)
    options = {"convention": arguments.convention, "eigengap": arguments.eigengap, "states": arguments.count}
    hidden = level(arguments)
    options |= asdict(hidden.over(longest(arguments.length)))
    asked = arguments.mechanism or (["group-dp"] if hidden.whole else None)
    if arguments.certificate is not None:
        asked = asked or ["mqm-exact"]
        if len(arguments.epsilon) > 1 or len(asked) > 1:
            raise ParameterError("--certificate needs a single --epsilon and a single --mechanism")
    if arguments.certificate is not None and asked:
        work = proof_work(asked[0], family) + scale_work(asked[0], family, arguments.length)
        afford(work, f"the scale of {asked[0]} with its certificate", FEWER)
    results = scales_of(asked, family, arguments.length, arguments.epsilon, options)
    if arguments.certificate is not None:
        results = [results[0].certified(family, arguments.convention)]
        write_atomic(arguments.certificate, json.dumps(results[0].certificate) + "\n")
    if arguments.json:
        marked = [result.to_dict() | {"private": find_mechanism(result.mechanism).private} for result in results]
        print(json.dumps(marked, indent=2, allow_nan=False))
    else:
        print(_table(results))


def _table(results: Sequence[NoiseScale]) -> str:
    """Return the results as an aligned table, scales with all digits."""
    rows = [("mechanism", "epsilon", "scale", "node", "quilt", "influence", "status")]
    for r in results:
        rows.append(
            (
                r.mechanism,
                repr(r.epsilon),
                "-" if r.scale is None else repr(r.scale),
                "-" if r.node is None else f"X{r.node}",
                _quilt_nodes(r),
                "-" if r.influence is None else f"{r.influence:.6g}",
                status_text(r.status, r.reason) + note(r.mechanism, r.scale),
            )
        )
    return aligned(rows)


def _quilt_nodes(result: NoiseScale) -> str:
    if result.quilt is None or result.node is None:
        return "-"
    left, right = result.quilt
    nodes = [] if left is None else [f"X{result.node - left}"]
    nodes += [] if right is None else [f"X{result.node + right}"]
    return "{" + ", ".join(nodes) + "}"
