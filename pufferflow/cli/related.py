"""Privacy of other systems than Markov chains; ACTION --help says more.

Example: echo '[0, 2, 1]' | pufferflow related noisymax -
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pufferflow._checks import check_whole
from pufferflow._files import read_bounded
from pufferflow._json import kind, read_json
from pufferflow._numbers import written_number
from pufferflow.cli.printing import add_bounds, show, table
from pufferflow.errors import DataError, ModelError, ParameterError

CHECK = (
    'MODEL.json: {"transition_matrix": [[...]], "observation_matrix": [[...]], '
    '"initial_distributions": {"secret": [...], ...}}, optional states, observations, pairs, '
    'length, parameters; or {"noisy_max": {"priors": {"secret": [[...], ...], ...}}}, optional '
    'release, ties, mechanism. Numbers are read as written: "1/3" is a third.'
)
NOISYMAX = "COUNTS.json is a list of counts. Every run spends privacy anew."
NETWORK = (
    'NETWORK.json: {"variables": [{"name": ..., "parents": [...], "states": [...], "table": '
    '[...]}, ...]}, the table with one level of lists a parent; or {"networks": [...]}. The scale '
    "is of a query that changes by at most 1 when one variable changes."
)
GENERAL = (
    "Rows are P(value | secret, scenario): columns scenario (or none), secret, value, probability; "
    "or databases: scenario (or none), probability, value of the query, and a column for each "
    "record; the secrets are then RECORD=STATE. Numbers are exact: 1/3 or 2e-3."
)
COLUMNS = ("epsilon", "scale", "node", "quilt", "nearby", "influence", "optimal", "cost")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def action(name: str, file: str, answer: Any, line: str, more: str) -> Callable[..., Any]:
        command = actions.add_parser(name, help=line, description=f"{line.capitalize()}. {more}")
        command.add_argument("file", metavar=file, help="- reads standard input")
        add_bounds(command)
        command.set_defaults(answer=answer)
        return command.add_argument

    many: dict[str, Any] = {"action": "append"}
    epsilon: dict[str, Any] = many | {"type": float, "required": True, "help": "repeat for several"}
    add = action("check", "MODEL.json", _check, "whether a hidden Markov model is private", CHECK)
    add("--factor", required=True, help="e^epsilon, an exact number such as 2 or 3/2")
    add("--length", type=int, metavar="L", help="longest observation sequence")
    add("--preserving", action="store_true", help="find the free parameters that preserve privacy")
    add = action("noisymax", "COUNTS.json", _noisymax, "draw which count is largest", NOISYMAX)
    add("--release", choices=("index", "value"), default="index", help="default: index")
    add("--largest", type=int, default=2, metavar="M", help="counts are 0 to M (default: 2)")
    add("--ratio", default="1/2", metavar="R", help="e^-epsilon, an exact number (default: 1/2)")
    add("--ties", choices=("first", "last", "uniform"), default="first", help="default: first")
    add = action("network", "NETWORK.json", _network, "scale for a Bayesian network", NETWORK)
    add("--epsilon", **epsilon)
    add("--secret", **many, metavar="NAME", help="to protect; repeat for several (default: all)")
    add("--query", **many, metavar="NAME", help="what the query reads; repeat (default: all)")
    add("--releases", type=int, metavar="K", help="also what so many releases cost together")
    add = action("general", "TABLE.csv", _general, "scale for any secrets and scenarios", GENERAL)
    add("--epsilon", **epsilon)
    add("--pair", **many, nargs=2, metavar=("SECRET", "OTHER"), help="repeat (default: any two)")
    add("--group", **many, metavar="A,B,...", help="records that depend on each other; repeat")
    add("--adversary", metavar="BELIEF.csv", help="scenarios outside: what is left against them")
    add("--release", metavar="FILE", help="release the number in it, which is shown nowhere")


def run(arguments: argparse.Namespace) -> None:
    answer = arguments.answer(arguments)
    show(answer, arguments.json, table(answer, COLUMNS) if isinstance(answer, list) else None)


def _check(asked: argparse.Namespace) -> dict[str, Any]:
    from pufferflow import hmm

    model, factor, length = hmm.read_hidden_markov_model(asked.file), asked.factor, asked.length
    if not isinstance(model, hmm.PriorFamily):
        if asked.preserving:
            raise ParameterError("--preserving is about free parameters, which the model lacks")
        largest = hmm.largest_ratio(model, length).to_dict()
        return hmm.check(model, factor, length).to_dict() | {"largest": largest}
    prior = hmm.find_prior(model, factor, length)
    violation = None if prior is None else prior.to_dict()
    answer = {"holds": prior is None, "factor": factor, "violation": violation}
    answer["largest"] = hmm.sup_ratio(model, length).to_dict()
    if asked.preserving:
        conditions = hmm.preserving_region(model, factor, length).conditions
        kept = hmm.find_prior(model, factor, length, violates=False)
        one = None if kept is None else kept.to_dict()["prior"]
        answer["preserving"] = {"prior": one, "conditions": conditions}
    return answer


def _noisymax(asked: argparse.Namespace) -> dict[str, Any]:
    from pufferflow import hmm
    from pufferflow.hmm.model import exact_text

    mechanism = hmm.truncated_geometric(asked.largest, asked.ratio)
    noisy_max = hmm.NoisyMax(asked.release, asked.largest, mechanism, asked.ties)

    def draw(document: object) -> int:
        if not isinstance(document, list):
            raise ModelError(f"the counts must be a list, not {kind(document)}")
        return noisy_max.sample(document)

    drawn = read_json(asked.file, draw, "a list of counts")
    return {asked.release: drawn, "factor": exact_text(noisy_max.factor)}


def _network(asked: argparse.Namespace) -> list[dict[str, Any]]:
    from pufferflow.networks import markov_quilt_mechanism, network_cost, read_networks

    k = None if asked.releases is None else check_whole(asked.releases, "releases", 1, 10**6)
    networks, names = read_networks(asked.file), {"secrets": asked.secret, "query": asked.query}
    answers = []
    for epsilon in asked.epsilon:
        found = markov_quilt_mechanism(networks, epsilon, **names)
        answers.append(found.to_dict())
        if k is not None:
            answers[-1]["cost"] = asdict(network_cost(networks, [found.scale] * k, **names))
    return answers


def _general(asked: argparse.Namespace) -> dict[str, Any]:
    from pufferflow.general import PufferfishFramework
    from pufferflow.general.tables import read_scenarios

    def finite(number: float) -> float | None:
        return number if math.isfinite(number) else None

    def each(name: str, at: Callable[[float], float]) -> list[dict[str, Any]]:
        return [{"epsilon": epsilon, name: finite(at(epsilon))} for epsilon in asked.epsilon]

    if [asked.file, asked.adversary, asked.release].count("-") > 1:
        raise ParameterError("only one of the files can be standard input; give the others names")
    if asked.release is not None and len(asked.epsilon) > 1:
        raise ParameterError("--release needs a single --epsilon")
    framework = PufferfishFramework.from_table(asked.file, asked.pair)
    found = framework.wasserstein()
    answer: dict[str, Any] = {"W": found.W, "scenario": found.law, "pair": found.pair}
    answer["scales"] = each("scale", found.scale)
    if asked.group is not None:
        group = framework.group_sensitivity(text.split(",") for text in asked.group)
        facts = {"sensitivity": group.sensitivity, "records": group.group}
        answer["group"] = facts | {"independent": group.independent}
        answer["group"]["scales"] = each("scale", group.scale)
    if asked.adversary is not None:
        answer["adversaries"] = []
        for name, belief in read_scenarios(asked.adversary).laws.items():
            close = framework.close_adversary(belief)
            facts = {"adversary": name, "delta": finite(close.delta), "closest": close.scenario}
            facts |= {"secret": close.secret, "losses": each("loss", close.loss)}
            answer["adversaries"].append(facts)
    if asked.release is not None:
        try:
            text = read_bounded(asked.release, 10_000).decode().strip()  # of one number
            value = written_number(text, "the value")
        except (UnicodeDecodeError, ParameterError):
            where = "standard input" if asked.release == "-" else asked.release
            raise DataError(f"{where} must hold one exact number alone, such as 0.2") from None
        answer["release"] = framework.release(value, asked.epsilon[0])
    return answer
