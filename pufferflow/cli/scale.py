"""Print the Laplace scale of a 1-Lipschitz query for every mechanism and epsilon.

A query with Lipschitz constant L (L1 norm) gets L times that scale on every coordinate.

Example: echo '{"chains": [{"transition_matrix": [[0.9, 0.1], [0.4, 0.6]], "initial_distribution":
[1, 0]}]}' | pufferflow scale - --length 100 --epsilon 1
"""

import argparse
import json
from dataclasses import asdict, replace
from inspect import signature
from typing import Any, get_args

from tqdm import tqdm

from pufferflow._util.checks import longest
from pufferflow._util.files import check_output, write_atomic
from pufferflow._util.work import afford, estimate, is_allowed
from pufferflow.accounting.account import Level, level_of
from pufferflow.cli.printing import add_bounds, show, table
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import MECHANISMS, NoiseScale, compute_scale, find_mechanism
from pufferflow.mechanisms.base import requested
from pufferflow.mechanisms.registry import scale_work
from pufferflow.models.chain import GapKind
from pufferflow.models.families import PROTECTION, Family
from pufferflow.models.files import read_public_model

COLUMNS = ("mechanism", "epsilon", "scale", "node", "quilt", "private", "status", "reason")
FEWER = "give fewer states, other mechanisms (--mechanism) or shorter segments"


def add_common(parser: Any, of: Any, count: str, epsilon: bool = False) -> None:
    """Declare the common arguments of scales, which need an ``epsilon``, and of audits ``of``."""
    add, names, many = parser.add_argument, ", ".join(MECHANISMS), "repeat for several"
    add("model", metavar="MODEL.json", help="model of chains; - reads standard input")
    add("--mechanism", action="append", metavar="NAME", help=f"{names} (default: all); {many}")
    add("--epsilon", type=float, action="append", required=epsilon, help=many)
    of.add_argument("--count", type=int, action="append", metavar="STATE", help=count)
    add("--protect", default="reading", help="reading, participant, or a number of readings")
    add("--convention", choices=("exact", "published"), default="exact", help="of mqm-exact")
    add_bounds(add)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, parser, "state that wasserstein counts, from 0; or several", epsilon=True)
    add, gaps = parser.add_argument, get_args(GapKind)
    add("--length", type=int, action="append", required=True, help="records; the longest decides")
    add("--side-information", choices=("none", "any"), default="none", help="of the adversary")
    add("--eigengap", choices=gaps, default="auto", help="of mqm-approx")
    add("--certificate", metavar="FILE", help="new proof for one epsilon and mechanism (mqm-exact)")


def run(arguments: argparse.Namespace) -> None:
    family, lengths = read_public_model(arguments.model).family, arguments.length
    level = level_of(arguments.protect, arguments.side_information)
    records = max(longest(length) for length in lengths)  # one by one: an error shows which
    hidden = Level(records) if level.whole else level
    usual = "group-dp" if level.whole else arguments.certificate and "mqm-exact"
    asked = arguments.mechanism = arguments.mechanism or (usual and [usual])
    if arguments.certificate is not None:
        check_output(arguments.certificate, arguments.model)
        if len(arguments.epsilon) > 1 or len(asked) > 1:
            raise ParameterError("--certificate needs a single --epsilon and a single --mechanism")
        work = scale_work(asked[0], family, lengths, certified=True)
        afford(work, f"the scale of {asked[0]} with its certificate", FEWER)
    results = scales_of(arguments, family, lengths, eigengap=arguments.eigengap, **asdict(hidden))
    if arguments.certificate is not None:
        results = [results[0].certified(family)]
        write_atomic(arguments.certificate, json.dumps(results[0].certificate) + "\n")
    rows = [one.to_dict() | {"private": one.mechanism != "entry-dp"} for one in results]
    show(rows, arguments.json, table(rows, COLUMNS))


def scales_of(
    arguments: argparse.Namespace, family: Family, lengths: list[int], **options: Any
) -> list[NoiseScale]:
    """Return the scale of each mechanism at each ε, "not applicable" if there is none.

    Mechanisms requested by name raise ParameterError if they take too long or have no scale.
    """
    asked, epsilons, scales = arguments.mechanism, arguments.epsilon, []
    options |= {"convention": arguments.convention, "states": arguments.count}
    pairs = [(epsilon, name) for epsilon in epsilons for name in asked or MECHANISMS]
    for epsilon, name in tqdm(pairs, desc="scales", delay=1, disable=None, leave=False):
        work, function = scale_work(name, family, lengths) * len(epsilons), find_mechanism(name)
        own = {key: options[key] for key in signature(function).parameters if key in options}
        if asked:
            afford(work, f"the scale of {name}", FEWER)
            scales.append(function(family, lengths, epsilon, **own))
        elif is_allowed(work):
            scales.append(compute_scale(name, family, lengths, epsilon, **own))
        else:
            why = f"it {estimate(work)}; {FEWER}, or allow more (--most-work)"
            hidden = {key: own[key] for key in PROTECTION if key in own}
            scales.append(replace(requested(name, lengths, epsilon, **hidden), reason=why))
    return scales
