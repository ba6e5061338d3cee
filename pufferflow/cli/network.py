"""``pufferflow network``: Laplace scale for a Bayesian network."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from pufferflow._checks import check_whole
from pufferflow.cli._tables import aligned

MOST_RELEASES = 10**6
"""Releases that are added up at once."""

DESCRIPTION = (
    "Print the scale of the Markov Quilt Mechanism for a query that changes by at most 1 when one "
    "variable changes. A query with Lipschitz constant L (L1 norm) gets L times that scale on every coordinate."
)
EPILOG = (
    'Example: echo \'{"variables": [{"name": "Ann", "table": [0.9, 0.1]}, '
    '{"name": "Bob", "parents": ["Ann"], "table": [[0.95, 0.05], [0.4, 0.6]]}]}\' '
    "| pufferflow network - --epsilon 1 --epsilon 6"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "networks",
        metavar="NETWORK.json",
        help='{"variables": [{"name": ..., "parents": [...], "states": [...], "table": [...]}, ...]}, '
        "the table with one level of lists a parent; or "
        '{"networks": [{"variables": [...]}, ...]}; - reads standard input',
    )
    parser.add_argument(
        "--epsilon", type=float, action="append", required=True, help="privacy parameter; repeat for several"
    )
    parser.add_argument(
        "--secret", action="append", metavar="NAME", help="variable to protect; repeat for several (default: all)"
    )
    parser.add_argument(
        "--query", action="append", metavar="NAME", help="variable the query reads; repeat for several (default: all)"
    )
    parser.add_argument(
        "--releases",
        type=int,
        metavar="K",
        help="also say what so many releases of each scale cost together: by Theorem 4.4, and by one quilt for all",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")


def run(arguments: argparse.Namespace) -> None:
    """Print the scales."""
    from pufferflow.related.bayesnet import markov_quilt_mechanism, network_cost, read_networks

    releases = None if arguments.releases is None else check_whole(arguments.releases, "releases", 1, MOST_RELEASES)
    networks = read_networks(arguments.networks)
    names = {"secrets": arguments.secret, "query": arguments.query}
    results = [markov_quilt_mechanism(networks, epsilon, **names) for epsilon in arguments.epsilon]
    costs = [network_cost(networks, [one.scale] * releases, **names) for one in results] if releases else []
    if arguments.json:
        answers = [result.to_dict() for result in results]
        for answer, cost in zip(answers, costs, strict=False):
            answer["cost"] = asdict(cost)
        print(json.dumps(answers, indent=2, allow_nan=False))
        return
    rows = [["epsilon", "scale", "node", "quilt", "nearby", "influence", "network", "optimal"]]
    for r in results:
        quilt, nearby = ("{" + ", ".join(names) + "}" for names in (r.quilt, r.nearby))
        optimal = "yes" if r.optimal else "not shown"
        rows.append(
            [repr(r.epsilon), repr(r.scale), r.node, quilt, nearby, f"{r.influence:.6g}", str(r.network), optimal]
        )
    if costs:
        rows[0] += [f"{releases} by Theorem 4.4", f"{releases} by one quilt"]
        for row, cost in zip(rows[1:], costs, strict=True):
            row += [f"{cost.theorem_4_4:.6g}", f"{cost.quilts:.6g}"]
    print(aligned(rows))
