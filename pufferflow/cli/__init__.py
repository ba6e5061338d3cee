"""The command ``pufferflow``: one module per command, imported only if that command is run.

The docstring of a module is its help, ``add_arguments(parser)`` declares its arguments,
``run(arguments)`` runs it and prints the answer, and :data:`COMMANDS` lists it.
"""

import argparse
import io
import math
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from traceback import extract_tb
from typing import Any, NoReturn

from pufferflow import __version__
from pufferflow._util.work import allowing
from pufferflow.cli.printing import as_options
from pufferflow.errors import ParameterError, PufferflowError

COMMANDS = {
    "release": "publish statistics of a table with noise",
    "plan": "the error of a release at each level of protection",
    "fit": "a chain from public data, or with noise from confidential data (--private)",
    "ledger": "the account of all releases of a population",
    "verify": "check a certificate",
    "scale": "Laplace scales for a family of chains",
    "audit": "exact privacy loss of Laplace noise",
    "example": "bundled data as a table",
    "related": "hidden Markov models, Noisy Max, Bayesian networks, any secrets and scenarios",
}
OLD = {name: f"is now related {name}" for name in ("check", "noisymax", "network", "general")}
OLD |= {
    "simulate": "is now release --simulate SEED",
    "export": "is now example",
    "count": "is gone; pf.RunningCount counts a stream in Python",
    "synthesise": "is gone without a replacement",
}
"""Commands of earlier versions."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the arguments of the process), return the exit code.

    That is 0, or 2 for bad input (one line on standard error states what), 130 if interrupted or
    terminated, 141 if the output is closed.
    """
    if argv is None:  # the process is ours: clean up also if a cluster terminates it
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be invalid UTF-8
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        if words and words[0] in OLD:
            raise ParameterError(f"{words[0]} {OLD[words[0]]}")
        arguments = _parser(words).parse_args(words)
        with allowing(getattr(arguments, "most_work", math.inf)):
            arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit:  # argparse, after --help or --version
        return 0
    except BrokenPipeError:
        # buffered output would fail again when Python flushes on exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        message = str(error)
        if isinstance(error, OSError) and error.strerror:
            # all files have names in errors, so a nameless one is the output
            message = f"{os.fspath(error.filename or 'standard output')}: {error.strerror}"
        elif not isinstance(error, PufferflowError | OSError):  # its message could quote the data
            at = extract_tb(error.__traceback__)[-1]
            fault = f"{type(error).__name__} ({at.name}, line {at.lineno})"
            message = f"a fault of this program: {fault}; no data is shown, please report it"
        print("pufferflow: error:", as_options(" ".join(message.split())), file=sys.stderr)
        return 2
    return 0


class Parser(argparse.ArgumentParser):
    """A parser, also for subcommands, whose errors are one sentence without usage."""

    def __init__(self, **options: Any) -> None:
        width = min(100, shutil.get_terminal_size((100, 24)).columns)
        form = partial(argparse.HelpFormatter, width=width, max_help_position=30)
        super().__init__(add_help=False, allow_abbrev=False, formatter_class=form, **options)
        self.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
        self._negative_number_matcher = re.compile(r"-(\d|\.\d|inf)")  # also -1e3 and -5,0,5

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown arguments; a parser of subcommands leaves that to them."""
        for word in (word for word in args if word.startswith("--")):
            if word.endswith("=--"):  # argparse makes an empty list of it
                raise ParameterError(f"{word.removesuffix('=--')} is '--'; give a value")
        given = [word.partition("=")[0] for word in args if word.startswith("--")]
        once = (a for a in self._actions if not isinstance(a, argparse._AppendAction))
        for name in (name for action in once for name in action.option_strings):
            if given.count(name) > 1:  # all values but the last would be ignored in silence
                self.error(f"{name} is given {given.count(name)} times; give it once")
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def format_help(self) -> str:
        """Return the help without blank lines between groups of options."""
        return re.sub(r"\n\n(?=[a-z -]+:\n)", "\n", super().format_help())

    def error(self, message: str) -> NoReturn:
        """Raise ParameterError."""
        raise ParameterError(f"{message} (see {self.prog} --help)")


def _parser(words: Sequence[str]) -> Parser:
    """Return the parser; only the commands that ``words`` name are imported."""
    parser = Parser(
        prog="pufferflow",
        description="Private statistics of confidential, correlated data, and noise scales for "
        "Markov chains; see also COMMAND --help.",
        epilog="Example: pufferflow release meter.csv --mixing 1h 0.4 --edges 200:2000:200",
    )
    parser.add_argument("--version", action="version", version=f"pufferflow {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line)
        if name in words:
            module = import_module(f"{__name__}.{name}")
            command.description, _, example = (module.__doc__ or "").partition("Example: ")
            command.epilog = f"Example: {example}"
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
