"""Fit a chain to a table, for releases of other data, and show the mixing of its readings.

The model contains the counts of the table, so keep it private unless the table is public. With
--private noise protects whole participants, and the model is safe to publish.

Example: pufferflow fit homes.csv --private --epsilon 1 --participant home --step 30min --timezone
UTC --edges 200:2000:200 --from 2024-01-01 --to 2024-01-07
"""

import argparse
import os

from pufferflow._util.files import check_output
from pufferflow.accounting.account import percent
from pufferflow.cli.options import DRY_RUN, add_options, given, settle_ledger
from pufferflow.cli.printing import show, warn
from pufferflow.errors import ParameterError
from pufferflow.publish.fit import fit
from pufferflow.publish.private_fit import fit_privately
from pufferflow.records.options import GUARANTEE, OUTPUT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pufferflow fit TABLE [options]"
    add = add_options(parser, fit, fit_privately)
    add(GUARANTEE, "--private", action="store_true", help="Protect whole participants with noise.")
    default = "New model file (default: TABLE.chain.json or TABLE.private.json)."
    add(OUTPUT, "--output", dest="model", metavar="FILE", help=default)


def run(arguments: argparse.Namespace) -> None:
    table, private = arguments.source, arguments.private
    if private:
        settle_ledger(arguments)
    options = given(arguments, fit_privately if private else fit)
    for name in sorted(given(arguments, fit, fit_privately).keys() - options):
        raise ParameterError(f"`{name}` goes {'without' if private else 'with'} --private")
    output = arguments.model or f"{table}.{'private' if private else 'chain'}.json"
    if private:
        dry = "dry_run" in options
        made = fit_privately(output=None if dry else output, **options)
        warn(made.warnings)
        last = [DRY_RUN if dry else f"safe to publish: {output}"]
        if made.paid is not None:
            spent = made.paid.spent
            share = f"{percent(spent)} % of its limits" if spent else "no release has set a limit"
            last = [f"ledger        {os.path.basename(options['ledger'])}: {share}", *last]
    else:
        check_output(output, table)
        made = fit(**options)
        made.save(output)
        last = [f"wrote {output}: it contains confidential counts, so only you may read it"]
    show(made.facts, arguments.json, [made.summary(), "", *last])
