"""Print the error of a release at each level of protection; no data are needed.

Example: pufferflow plan --mixing 1h 0.4 --statistic mean-by-hour --bounds 0 3 --unit kWh --step
30min --participants 500 --period 7d
"""

import argparse

from pufferflow.cli.options import add_options, given, theta_of
from pufferflow.cli.printing import show, warn
from pufferflow.publish.plan import plan
from pufferflow.publish.request import TABLE, WHAT, GuaranteeOptions, StatisticOptions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    wanted = "--mixing TIME OVERLAP --step TIME --participants N --period TIME"
    parser.usage = f"pufferflow plan {wanted} [options]"
    add = add_options(parser, StatisticOptions, GuaranteeOptions, theta=True)
    add(WHAT, "--states", type=int, default=None, metavar="K", help="How many states there are.")
    add(TABLE, "--step", required=True, metavar="TIME", help="Time between readings: 30min.")
    add(TABLE, "--period", required=True, metavar="TIME", help="Time with readings: 7d.")
    add(TABLE, "--participants", type=int, required=True, metavar="N", help="How many.")
    add(TABLE, "--groups", type=int, default=1, metavar="N", help="How many, for cells.")


def run(arguments: argparse.Namespace) -> None:
    made = plan(theta_of(arguments), **given(arguments))
    warn(made.warnings)
    show(made.to_dict(), arguments.json, made.lines())
