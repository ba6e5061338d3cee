"""Publish statistics of a table with noise that protects the secrets of --protect.

Example: pufferflow release meter.csv --mixing 1h 0.4 --edges 200:2000:200
"""

import argparse
import os

from pufferflow.accounting.account import percent
from pufferflow.cli.options import DRY_RUN, add_options, given, settle_ledger, theta_of
from pufferflow.cli.printing import as_options, show, warn
from pufferflow.publish.files import require_new
from pufferflow.publish.plan import Plan
from pufferflow.publish.release import release


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pufferflow release TABLE --mixing TIME OVERLAP [options]"
    add_options(parser, release)


def run(arguments: argparse.Namespace) -> None:
    settle_ledger(arguments)
    ending = "simulation" if hasattr(arguments, "seed") else "release"
    arguments.output = getattr(arguments, "output", f"{arguments.source}.{ending}")
    folder, ledger = require_new(arguments.output), getattr(arguments, "ledger", None)
    made = release(theta=theta_of(arguments), **given(arguments, release))
    warn(made.warnings)
    answer = made.to_dict()
    if isinstance(made, Plan):
        lines = [as_options(line) for line in made.lines()]
        if ledger is not None and made.paid is not None:
            share = f"{percent(made.paid.spent)} % would be used"
            lines += [f"ledger    {os.path.basename(ledger)}: {share}"]
        lines += [DRY_RUN]
    else:
        answer["folder"] = str(folder)
        lines = made.lines("" if ledger is None else os.path.relpath(ledger), str(folder))
    show(answer, arguments.json, lines)
