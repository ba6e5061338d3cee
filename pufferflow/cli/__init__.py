"""The command ``pufferflow``: one module a command, loaded only when it is the one that is run.

A command's module has ``DESCRIPTION`` and ``EPILOG`` (its help), ``add_arguments(parser)`` and ``run(arguments)``;
a row of :data:`COMMANDS` makes it known.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import pufferflow
from pufferflow._work import MOST_WORK, allowing
from pufferflow.errors import ParameterError, PufferflowError

COMMANDS = {
    "fit": "a sample and a chain from a table of records",
    "release": "private statistics of a table of records",
    "simulate": "the seeded twin of release, for planning: not private",
    "count": "a running count of a stream, line by line",
    "synthesise": "synthetic records from what a release published",
    "plan": "the epsilon or the length that reaches a wanted error",
    "ledger": "what was spent on a data set",
    "export": "bundled data as a table",
    "scale": "Laplace scales for a family of chains",
    "verify": "check a certificate",
    "audit": "exact loss of Laplace noise",
    "check": "decide Pufferfish privacy of a hidden Markov model",
    "noisymax": "which of several counts is the largest, privately",
    "network": "Laplace scale for a Bayesian network",
    "general": "Laplace scale and release of a number, for any secrets and scenarios",
}
"""Every command with its line of help, in the order in which one meets them."""

UNBOUNDED = ("ledger", "export", "verify")
"""Commands that are quick whatever they are given, and the one that counts operations on balls."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the arguments of the process).

    Returns
    -------
    int
        Exit code: 0, or 2 for bad input (one line on standard error says what), 130 if interrupted or told to end,
        141 if nobody reads the output any more.
    """
    if argv is None:  # the process is ours: clean up also where a cluster ends it
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        _check_values(words)
        arguments, unknown = _parser(words).parse_known_args(words)
        if unknown:
            raise ParameterError(
                f"unrecognized arguments: {' '.join(unknown)} (see pufferflow {arguments.command} --help)"
            )
        with allowing(_most_work(arguments)):
            arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit:  # argparse, after --help or --version
        return 0
    except BrokenPipeError:
        # what is still buffered would fail again when Python flushes on exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except (PufferflowError, OSError) as error:
        said = str(error)
        if isinstance(error, OSError) and error.strerror:
            # all files that are written or read are named, so what is nameless is the output
            said = f"{os.fspath(error.filename or 'standard output')}: {error.strerror}"
        print("pufferflow: error:", as_options(" ".join(said.split())), file=sys.stderr)
        return 2
    return 0


OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("time", "value", "participant", "group", "timezone", "time_format", "separator", "decimal", "thousands"),
        *("rows_are_steps", "states", "edges", "bins", "width", "top", "other", "step", "smoothing", "coverage"),
        *(
            "split_because",
            "most_transitions",
            "fitted_to_others",
            "chain_is_public",
            "mechanism",
            "window",
            "knows",
            "most_work",
        ),
    )
} | {"step_seconds": "--step", "split_after_seconds": "--split-after"}
"""What arguments of Python are called in the shell."""


def as_options(said: str) -> str:
    """Return a message with the shell's names: those in brackets, and those that are no word of English."""

    def listed(match: re.Match[str]) -> str:
        names = match[1].split(", ")
        return f"({', '.join(OPTIONS[name] for name in names)})" if set(names) <= OPTIONS.keys() else match[0]

    said = re.sub(r"\(([a-z_]+(?:, [a-z_]+)*)\)", listed, said)
    single = "|".join(name for name in OPTIONS if "_" in name)
    return re.sub(rf"(?<![\w'\"/.-])({single})(?![\w'\"/.-]*['\"/])", lambda match: OPTIONS[match[1]], said)


def _most_work(arguments: argparse.Namespace) -> float:
    """Operations that the command may take."""
    if (most := getattr(arguments, "most_work", None)) is None:
        return MOST_WORK
    from pufferflow._checks import check_positive  # loads numpy, which --help does not need

    return check_positive(most, "--most-work")


def _check_values(words: Sequence[str]) -> None:
    """Refuse ``--option=--``, of which argparse makes an empty list.

    Raises ParameterError: there is one.
    """
    for word in words:
        option, equals, value = word.partition("=")
        if option.startswith("--") and equals and value == "--":
            raise ParameterError(f"{option} is '--'; give a value")


class _Parser(argparse.ArgumentParser):
    """A parser, also for subcommands, whose errors are ordinary ones: one line, no usage."""

    def error(self, message: str) -> NoReturn:
        raise ParameterError(f"{message} (see {self.prog} --help)")


def _parser(words: Sequence[str]) -> _Parser:
    """Return the parser; only the command that ``words`` name is loaded, the others are names."""
    parser = _Parser(
        prog="pufferflow",
        description="Noise scales that keep correlated data private, and private histograms of your own data.",
        epilog="Example: pufferflow scale model.json --length 100 --epsilon 1",
    )
    parser.add_argument("--version", action="version", version=f"pufferflow {pufferflow.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        if name not in words:
            commands.add_parser(name, help=line)
            continue
        module = import_module(f"{__name__}.{name}")
        command = commands.add_parser(name, help=line, description=module.DESCRIPTION, epilog=module.EPILOG)
        module.add_arguments(command)
        if name not in UNBOUNDED:
            command.add_argument(
                "--most-work",
                type=float,
                metavar="N",
                help=f"operations to take on at most, estimated beforehand (default: {MOST_WORK:g}, about a minute)",
            )
        command.set_defaults(run=module.run, command=name)
    return parser
