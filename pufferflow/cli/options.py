"""Options of commands, generated from those of functions in Python."""

import argparse
import re
from collections.abc import Callable
from dataclasses import MISSING
from functools import partial
from inspect import signature
from typing import Any

from pufferflow._util.numbers import written_number
from pufferflow._util.work import MAX_WORK, estimate
from pufferflow.accounting.ledger import default_ledger
from pufferflow.cli.printing import flag, warn
from pufferflow.errors import ParameterError
from pufferflow.mechanisms.registry import scale_work
from pufferflow.models.files import PublicModel, read_public_model
from pufferflow.models.mixing import mixing
from pufferflow.records.options import ACCOUNT, GROUPS, GUARANTEE, OUTPUT
from pufferflow.records.states import MAX_STATES

DRY_RUN = "a dry run: nothing was drawn, written or charged"


def add_options(parser: argparse.ArgumentParser, *functions: Any) -> Callable[..., Any]:
    """Declare the options of functions; return a function that adds one more option to a group."""
    groups = {title: parser.add_argument_group(title) for title in GROUPS}
    taken = {name for function in functions for name in signature(function).parameters}
    absent: Any = {"default": argparse.SUPPRESS}

    def add(group: str, *names: str, **how: Any) -> None:
        groups[group].add_argument(*names, **how)

    odds = "Odds change by at most e^epsilon (default: 1)."
    add(GUARANTEE, "--epsilon", type=float, metavar="E", help=odds, **absent)
    if "theta" in taken:
        of = groups[GUARANTEE].add_mutually_exclusive_group()
        mixes = "Overlap of distributions a time apart: 1h 0.4."
        of.add_argument("--mixing", nargs=2, metavar=("TIME", "OVERLAP"), help=mixes)
        of.add_argument("--chain", metavar="FILE", help="Model of a chain fitted to other data.")
    for name, field in {f.name: f for function in functions for f in function.options}.items():
        metavar, kind = field.metadata["metavar"], str(field.type)
        meaning = field.metadata["meaning"].replace("%", "%%")
        element = re.findall(r"\w+", kind.removeprefix("Sequence"))[0]
        one: Any = {"int": int, "float": float}.get(element, str)
        how: dict[str, Any] = {"type": one, "metavar": metavar} | absent
        if field.default is True:
            how = {"action": "store_false"} | absent
            meaning = f"Do not {meaning[0].lower()}{meaning[1:]}"
        elif metavar is None:
            how = {"action": "store_true"} | absent
        elif isinstance(metavar, tuple):
            how["nargs"] = 2
        elif kind.startswith("Sequence"):
            how |= {"action": "extend", "type": partial(_read_list, one)}
        if field.default is MISSING:
            how["required"] = True
        add(field.metadata["group"], flag(name), dest=name, help=meaning, **how)
    if "source" in taken:
        parser.add_argument("source", metavar="TABLE", help=argparse.SUPPRESS)
        add(ACCOUNT, "--no-ledger", action="store_true", help="Keep no account of this.")
    add(OUTPUT, "--json", action="store_true", help="Print JSON.")
    return add


def given(arguments: argparse.Namespace, *functions: Any) -> dict[str, Any]:
    """Return the options of functions that are on the command line."""
    taken = {name for function in functions for name in signature(function).parameters}
    return {name: value for name, value in vars(arguments).items() if name in taken}


def _read_list(one: Callable[[str], Any], text: str) -> list[Any]:
    """Read ``a,b,c``, and for numbers also ``LOW:HIGH:WIDTH``."""
    try:
        if one is not float or text.count(":") != 2:
            return [one(part.strip()) for part in text.split(",")]
        low, high, width = (written_number(part, "an edge") for part in text.split(":"))
        if width <= 0 or not 0 <= (count := (high - low) // width) <= MAX_STATES:
            raise ValueError
        return [float(low + i * width) for i in range(count + 1)]
    except (ValueError, OverflowError):
        wanted = "give numbers with commas, such as 0,200,400, or LOW:HIGH:WIDTH"
        raise argparse.ArgumentTypeError(f"{text!a} is not a list; {wanted}") from None


def theta_of(arguments: argparse.Namespace) -> PublicModel | None:
    """Return Θ, None if none is given; warn of long computations."""
    if arguments.mixing is not None:
        time, overlap = arguments.mixing
        given = written_number(overlap, "the OVERLAP of --mixing TIME OVERLAP (1h 0.4)")
        return PublicModel(mixing(time, float(given)))
    if arguments.chain is None:
        return None
    model = read_public_model(arguments.chain)
    work = sum(scale_work("leakage", model.family, 1, certified=one) for one in (False, True))
    if work > MAX_WORK and getattr(arguments, "protect", "") != "participant":
        warn([f"to find and prove the noise {estimate(work)}"])
    return model


def settle_ledger(arguments: argparse.Namespace) -> None:
    """Set the table's default ledger if none is named; refuse one if no account is kept."""
    without = "seed" * hasattr(arguments, "seed") or "no_ledger" * arguments.no_ledger
    if without and hasattr(arguments, "ledger"):
        raise ParameterError(f"`{without}` keeps no account; leave `ledger` out")
    if arguments.no_ledger and hasattr(arguments, "share"):
        raise ParameterError("`share` is of a ledger's budget; leave it, or `no_ledger`, out")
    if not without and not hasattr(arguments, "ledger"):
        arguments.ledger = default_ledger(arguments.source)
