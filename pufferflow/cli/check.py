"""``pufferflow check``: Pufferfish privacy of a hidden Markov model."""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from typing import Any

DESCRIPTION = (
    "Decide exactly whether the observations of a hidden Markov model have the same probability under "
    "every two secrets up to the factor e^epsilon, and print the observations that violate it most. A model with "
    "free parameters is checked for every prior. The exit code is 0 either way."
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
        '"1/3" is a third; - reads standard input',
    )
    parser.add_argument("--factor", required=True, help="e^epsilon, an exact number such as 2 or 3/2")
    parser.add_argument(
        "--length", type=int, metavar="L", help="longest observation sequence (default: the length in the model)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of lines")


def run(arguments: argparse.Namespace) -> None:
    """Print the verdict with the worst observations."""
    from pufferflow.related import hmm

    model = hmm.read_hidden_markov_model(arguments.model)
    factor, length = arguments.factor, arguments.length
    answer: dict[str, Any]
    if isinstance(model, hmm.PriorFamily):
        prior = hmm.find_prior(model, factor, length)
        supremum = hmm.sup_ratio(model, length)
        worst = supremum.witness
        answer = {"holds": prior is None, "factor": factor, "violation": None if prior is None else prior.to_dict()}
        answer["largest"] = supremum.to_dict()
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
        at = ", ".join(f"{name} = {value}" for name, value in largest["prior"].items())
        print(f"largest ratio {_exact(worst.ratio)} at the prior {at}{bound}")
    else:
        print(f"largest ratio {_exact(worst.ratio)}")
    print(f"observations {', '.join(worst.observations) or 'none'}")
    print(f"  probability given {worst.secret}: {_exact(worst.probability)}")
    print(f"  probability given {worst.other}: {_exact(worst.other_probability)}")


def _exact(number: Fraction | float) -> str:
    """Show an exact number, a fraction with its decimal."""
    from pufferflow.related.hmm.checking import ratio_text

    text = ratio_text(number)
    return f"{text} ({float(number):.6g})" if "/" in text else text
