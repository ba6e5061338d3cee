"""Privacy of systems other than Markov chains; see also ACTION --help.

Example: echo '[0, 2, 1]' | pufferflow related noisymax -
"""

import argparse
import math
from typing import Any

from pufferflow._util.checks import check_whole, named_type
from pufferflow._util.json import read_json
from pufferflow.cli.printing import actions_of, add_bounds, show, table
from pufferflow.errors import ModelError, ParameterError

CHECK = (
    'MODEL.json: {"transition_matrix": [["3/4", "1/4"], ...], "observation_matrix": [...], '
    '"initial_distributions": {"secret": [...], ...}}, or {"noisy_max": {"priors": {...}}}.'
)
NOISYMAX = "COUNTS.json is a list of counts. Every run consumes budget."
NETWORK = (
    'NETWORK.json: {"variables": [{"name": ..., "parents": [...], "table": [...]}, ...]}. The '
    "scale is of a query that changes by at most 1 when one variable changes."
)
GENERAL = (
    "Columns: scenario (or none), secret, value, probability; or of databases: scenario (or none), "
    "probability, value, and one per record; the secrets are then RECORD=STATE."
)
COLUMNS = ("epsilon", "scale", "node", "quilt", "nearby", "influence", "optimal", "cost")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    action = actions_of(parser, "- reads standard input")
    many: dict[str, Any] = {"action": "append"}
    epsilon: dict[str, Any] = many | {"type": float, "required": True, "help": "repeat for several"}
    add = action("check", "MODEL.json", _check, "whether a hidden Markov model is private", CHECK)
    add_bounds(add)
    add("--factor", required=True, help="e^epsilon, an exact number such as 2 or 3/2")
    add("--length", type=int, metavar="L", help="longest observation sequence")
    add("--preserving", action="store_true", help="find the free parameters that preserve privacy")
    add = action("noisymax", "COUNTS.json", _noisymax, "draw which count is largest", NOISYMAX)
    add_bounds(add)
    add("--release", choices=("index", "value"), default="index", help="default: index")
    add("--largest", type=int, default=2, metavar="M", help="counts are 0 to M (default: 2)")
    add("--ratio", default="1/2", metavar="R", help="e^-epsilon, an exact number (default: 1/2)")
    add("--ties", choices=("first", "last", "uniform"), default="first", help="default: first")
    add = action("network", "NETWORK.json", _network, "scale for a Bayesian network", NETWORK)
    add_bounds(add)
    add("--epsilon", **epsilon)
    add("--secret", **many, metavar="NAME", help="to protect; repeat for several (default: all)")
    add("--query", **many, metavar="NAME", help="variable of the query; repeat (default: all)")
    add("--releases", type=int, metavar="K", help="also the epsilon of K releases together")
    add = action("general", "TABLE.csv", _general, "scale for any secrets and scenarios", GENERAL)
    add_bounds(add)
    add("--epsilon", **epsilon)
    add("--pair", **many, nargs=2, metavar=("SECRET", "OTHER"), help="repeat (default: any two)")
    add("--group", **many, metavar="A,B,...", help="records that depend on each other; repeat")
    add("--adversary", metavar="BELIEF.csv", help="scenarios outside: the guarantee against them")


def run(args: argparse.Namespace) -> None:
    answer = args.act(args)
    show(answer, args.json, table(answer, COLUMNS) if isinstance(answer, list) else None)


def _check(args: argparse.Namespace) -> dict[str, Any]:
    from pufferflow import hmm
    from pufferflow.hmm.model import plain

    model = hmm.read_hidden_markov_model(args.file)
    bounds = args.factor, args.length
    if not isinstance(model, hmm.PriorFamily):
        if args.preserving:
            raise ParameterError("--preserving is about free parameters, which the model lacks")
        largest = hmm.largest_ratio(model, args.length)
        return hmm.check(model, *bounds).to_dict() | {"largest": largest.to_dict()}

    prior = hmm.find_prior(model, *bounds)
    answer: dict[str, Any] = {"holds": prior is None, "factor": args.factor, "violation": None}
    if prior is not None:
        found = hmm.check(model.at(**prior), *bounds).witness
        answer["violation"] = {"prior": plain(prior), "witness": found and found.to_dict()}
    answer["largest"] = hmm.sup_ratio(model, args.length).to_dict()
    if args.preserving:
        kept = hmm.find_prior(model, *bounds, violates=False)
        answer["preserving"] = {
            "prior": kept and plain(kept),
            "conditions": hmm.preserving_region(model, *bounds).conditions,
        }
    return answer


def _noisymax(args: argparse.Namespace) -> dict[str, Any]:
    from pufferflow import hmm
    from pufferflow.hmm.model import plain

    mechanism = hmm.truncated_geometric(args.largest, args.ratio)
    noisy_max: Any = hmm.NoisyMax(args.release, args.largest, mechanism, args.ties)

    def draw(counts: Any) -> int:
        if not isinstance(counts, list):
            raise ModelError(f"the counts must be a list, not {named_type(counts)}")
        index: int = noisy_max.sample(counts)
        return index

    drawn = read_json(args.file, draw, "a list of counts")
    return {args.release: drawn, "factor": plain(noisy_max.factor)}


def _network(args: argparse.Namespace) -> list[dict[str, Any]]:
    from pufferflow.networks import markov_quilt_mechanism, network_cost, read_networks

    k = None if args.releases is None else check_whole(args.releases, "releases", 1, 10**6)
    networks, names = read_networks(args.file), {"secrets": args.secret, "query": args.query}
    answers = []
    for epsilon in args.epsilon:
        found = markov_quilt_mechanism(networks, epsilon, **names)
        answers.append(found.to_dict())
        if k is not None:
            answers[-1]["cost"] = network_cost(networks, [found.scale] * k, **names)
    return answers


def _general(args: argparse.Namespace) -> dict[str, Any]:
    from pufferflow.general import PufferfishFramework

    def finite(fact: Any) -> Any:
        return None if fact == math.inf else fact

    def facts(found: Any, at: str, ending: str, **names: str) -> dict[str, Any]:
        """Return facts by their names, and a scale or a loss at each epsilon."""
        each = [{"epsilon": e, at: finite(getattr(found, at)(e))} for e in args.epsilon]
        shown = {key: finite(getattr(found, name)) for key, name in names.items()}
        return shown | {f"{at}{ending}": each}

    if args.file == args.adversary == "-":
        raise ParameterError("only one of the files can be standard input; give the other a name")
    framework = PufferfishFramework.from_table(args.file, args.pair)
    answer = facts(framework.wasserstein(), "scale", "s", W="W", scenario="scenario", pair="pair")
    if args.group is not None:
        group = framework.group_sensitivity(text.split(",") for text in args.group)
        own = {"sensitivity": "sensitivity", "records": "group", "independent": "independent"}
        answer["group"] = facts(group, "scale", "s", **own)
    if args.adversary is not None:
        answer["adversaries"] = []
        for name, belief in PufferfishFramework.from_table(args.adversary).distributions.items():
            close, own = framework.close_adversary(belief), {"delta": "delta", "secret": "secret"}
            found = facts(close, "loss", "es", closest="scenario", **own)
            answer["adversaries"].append({"adversary": name} | found)
    return answer
