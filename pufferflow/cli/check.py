"""``pufferflow check``: Pufferfish privacy of a hidden Markov model."""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferflow.errors import ParameterError

if TYPE_CHECKING:
    from pufferflow.related import hmm

DESCRIPTION = (
    "Decide exactly whether the observations of a hidden Markov model have the same probability under "
    "every two secrets up to the factor e^epsilon, and print the observations that violate it most. A model with "
    "free parameters is checked for every prior; --preserving finds those that preserve privacy. The exit code is 0 "
    "either way."
)
EPILOG = (
    'Example: echo \'{"transition_matrix": [[1, 0], [0, 1]], "observation_matrix": [["3/4", "1/4"], '
    '["1/4", "3/4"]], "initial_distributions": {"yes": [1, 0], "no": [0, 1]}}\' '
    "| pufferflow check - --factor 3 --length 1"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "model",
        metavar="MODEL.json",
        help='{"transition_matrix": [[...]], "observation_matrix": [[...]], "initial_distributions": {"secret": [...], '
        "...}} with optional states, observations, pairs, length and parameters; numbers are read as written, "
        '"1/3" is a third; or {"noisy_max": {"priors": {"secret": [[...], ...], ...}}} with optional release (index or '
        "value), ties, mechanism, and outside pairs and parameters; - reads standard input",
    )
    parser.add_argument("--factor", required=True, help="e^epsilon, an exact number such as 2 or 3/2")
    parser.add_argument(
        "--length", type=int, metavar="L", help="longest observation sequence (default: the length in the model)"
    )
    parser.add_argument(
        "--preserving",
        action="store_true",
        help="of a model with free parameters, print a prior that preserves privacy, and the conditions on all that do",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of lines")


def run(arguments: argparse.Namespace) -> None:
    """Print the verdict with the worst observations."""
    from pufferflow.related import hmm

    model = hmm.read_hidden_markov_model(arguments.model)
    factor, length = arguments.factor, arguments.length
    answer: dict[str, Any]
    if arguments.preserving and not isinstance(model, hmm.PriorFamily):
        raise ParameterError("--preserving is about free parameters and the model has none; leave it out")
    if isinstance(model, hmm.PriorFamily):
        prior = hmm.find_prior(model, factor, length)
        supremum = hmm.sup_ratio(model, length)
        worst = supremum.witness
        answer = {"holds": prior is None, "factor": factor, "violation": None if prior is None else prior.to_dict()}
        answer["largest"] = supremum.to_dict()
        if arguments.preserving:
            answer["preserving"] = _preserving(model, factor, length)
        held = "holds for every prior of the box"
    else:
        verdict, worst = hmm.check(model, factor, length), hmm.largest_ratio(model, length)
        answer = verdict.to_dict() | {"largest": worst.to_dict()}
        held = "holds for every length" if verdict.every_length else f"holds up to length {verdict.length}"
    if arguments.json:
        print(json.dumps(answer, indent=2, allow_nan=False))
        return
    print(f"{held if answer['holds'] else 'violated'}: factor {factor}")
    largest = answer["largest"]
    if "prior" in largest:
        bound = "" if largest["exact"] else f", at most {largest['upper']} at any"
        print(f"largest ratio {_exact(worst.ratio)} at the prior {_assigned(largest['prior'])}{bound}")
    else:
        print(f"largest ratio {_exact(worst.ratio)}")
    print(f"observations {', '.join(worst.observations) or 'none'}")
    print(f"  probability given {worst.secret}: {_exact(worst.probability)}")
    print(f"  probability given {worst.other}: {_exact(worst.other_probability)}")
    if "preserving" in answer:
        _print_preserving(answer["preserving"])


def _preserving(family: hmm.PriorFamily, factor: str, length: int | None) -> dict[str, Any]:
    """Return a prior that preserves the factor, or None, and the conditions on all that do."""
    from pufferflow.related import hmm

    region = hmm.preserving_region(family, factor, length)
    kept = hmm.find_prior(family, factor, length, violates=False)
    return {"prior": None if kept is None else kept.to_dict()["prior"], "conditions": list(region.conditions)}


def _print_preserving(preserving: dict[str, Any]) -> None:
    prior, conditions = preserving["prior"], preserving["conditions"]
    if prior is None:
        print("no prior of the box preserves it")
    elif not conditions:
        print("every prior of the box preserves it")
    else:
        print(f"preserved at the prior {_assigned(prior)}, and at all with")
        for condition in conditions:
            print(f"  {condition}")


def _assigned(prior: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in prior.items())


def _exact(number: Fraction | float) -> str:
    """Show an exact number, a fraction with its decimal."""
    from pufferflow.related.hmm.checking import ratio_text

    text = ratio_text(number)
    return f"{text} ({float(number):.6g})" if "/" in text else text
