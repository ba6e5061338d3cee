"""``pufferflow noisymax``: one exact draw of Noisy Max."""

from __future__ import annotations

import argparse
import json
from typing import Any, get_args

from pufferflow.errors import ModelError

DESCRIPTION = (
    "Add noise to counts, exactly and with the system's randomness, and print the place of the largest noisy count "
    "(from 0) or that noisy count itself. The noise is the truncated geometric mechanism of differential privacy; what "
    "a release says of correlated counts, check decides. Every run spends privacy anew."
)
EPILOG = "Example: echo '[0, 2, 1]' | pufferflow noisymax -"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from pufferflow.related.hmm.builders import Release, Ties

    parser.add_argument("counts", metavar="COUNTS.json", help="a list of counts; - reads standard input")
    parser.add_argument("--release", choices=get_args(Release), default="index", help="what to print (default: index)")
    parser.add_argument("--largest", type=int, default=2, metavar="M", help="counts are 0 to M (default: 2)")
    parser.add_argument(
        "--ratio", default="1/2", metavar="R", help="of the noise, e^-epsilon, an exact number below 1 (default: 1/2)"
    )
    parser.add_argument(
        "--ties", choices=get_args(Ties), default="first", help="which of equal noisy counts (default: first)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of lines")


def run(arguments: argparse.Namespace) -> None:
    """Print what was drawn."""
    from pufferflow._json import read_json
    from pufferflow.related import hmm
    from pufferflow.related.hmm.checking import ratio_text

    mechanism = hmm.truncated_geometric(arguments.largest, arguments.ratio)
    noisy_max = hmm.NoisyMax(arguments.release, arguments.largest, mechanism, arguments.ties)
    drawn = noisy_max.draw(read_json(arguments.counts, _counts, "a list of counts"))
    factor = ratio_text(noisy_max.factor)
    if arguments.json:
        print(json.dumps({arguments.release: drawn, "factor": factor}))
        return
    print(f"{arguments.release} {drawn}")
    print(f"factor {factor} at most where one count changes by one")


def _counts(document: object) -> list[Any]:
    from pufferflow._json import kind

    if not isinstance(document, list):
        raise ModelError(f"the counts must be a list, not {kind(document)}")
    return document
