"""Print the error of a release at each level of protection; no data are needed.

Example: pufferflow plan --mixing 1h 0.4 --statistic mean-by-hour --bounds 0 3 --unit kWh --step
30min --participants 500 --period 7d
"""

import argparse

from pufferflow.cli.options import add_options, given, theta_of
from pufferflow.cli.printing import as_options, show, warn
from pufferflow.publish.plan import plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    wanted = "--mixing TIME OVERLAP --step TIME --participants N --period TIME"
    parser.usage = f"pufferflow plan {wanted} [options]"
    add_options(parser, plan)


def run(arguments: argparse.Namespace) -> None:
    made = plan(theta_of(arguments), **given(arguments, plan))
    warn(made.warnings)
    show(made.to_dict(), arguments.json, map(as_options, made.lines()))
