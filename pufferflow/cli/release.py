"""``pufferflow release``: a private histogram of a table."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from pufferflow._files import check_outputs
from pufferflow._protection import SECONDS
from pufferflow.cli._faults import nothing_quoted
from pufferflow.cli._records import AS_FITTED, add_reading
from pufferflow.cli._releases import (
    add_ledger,
    add_model,
    add_output,
    afford_noise,
    ledger_of,
    level_table,
    release_request,
    show,
    show_columns,
    warn,
)
from pufferflow.ledger import UNNOTICED
from pufferflow.models import PublicModel
from pufferflow.publishing.folder import INTERNAL, PUBLISH, require_new
from pufferflow.publishing.levels import levels_work
from pufferflow.publishing.release import rehearse, release

DESCRIPTION = (
    "Release a histogram or other statistics of a table with noise that keeps every single step private, or what "
    "--protect names. What is assumed of the records is said by --forgets (first choice: nothing is fitted) or --chain "
    "(of public records or other people's). A new folder has publish/ (numbers, statement and figures, which may "
    "leave) and internal/ (a fitted chain and the certificate, which must not: they tell the counts that the chain was "
    "fitted to). The noise comes from the operating system's randomness; there is no seed. What it costs is reserved "
    "in a ledger first; the first release of a table makes one with epsilon as its limit."
)
EPILOG = (
    "Example: pufferflow release meter.csv --forgets 60 0.4 --epsilon 1 --edges 200:10000:200 --step 60, or "
    "pufferflow release this_year.csv --chain last_year.csv.chain.json --epsilon 1"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="CSV (also packed), Parquet or Excel file with a header")
    add_model(parser)
    add_ledger(parser, "release")
    parser.add_argument(
        "--dry-run", action="store_true", help="check all and say what it would do; nothing is written or paid for"
    )
    parser.add_argument(
        "--chain-is-public",
        action="store_true",
        help="the records that the chain was fitted to are public: it and the certificate may leave too",
    )
    add_output(parser, "DATA.release")
    add_reading(parser, AS_FITTED)


def run(arguments: argparse.Namespace) -> None:
    """Release, write the folder, say what was done."""
    ledger = ledger_of(arguments)
    output = arguments.output or f"{arguments.data}.release"
    folder = require_new(output)
    check_outputs([None if folder.is_dir() else folder], [arguments.data, arguments.chain], ledger=ledger)
    request = release_request(
        arguments, ledger=ledger, limit=arguments.limit, chain_is_public=arguments.chain_is_public, output=output
    )
    public = request.model
    assert isinstance(public, PublicModel)
    levels = 0.0
    if arguments.dry_run:
        step = None if public.records is None else public.records.step_seconds
        levels = levels_work(public.family, step or arguments.step, SECONDS["d"] + 1)
    afford_noise(arguments, public, levels)
    new = ledger is not None and not os.path.lexists(ledger)
    with nothing_quoted():
        if arguments.dry_run:
            _show_rehearsal(arguments, rehearse(request))
            return
        released = release(request)
    show(arguments, released, f"{output}/{PUBLISH}")
    if not arguments.json and not released.chain_is_public:
        print(f"{output}/{INTERNAL}/ holds the chain and the certificate of the scale, and must not leave")
    if not arguments.json and ledger is not None:
        made = f" (new: {UNNOTICED})" * new
        print(f"accounted for in {ledger}{made}; see pufferflow ledger show {ledger}")


def _hidden(facts: dict[str, Any]) -> str:
    if facts["whole_participant"]:
        return "everything of one participant, whatever the correlation within their records"
    what = "any one step" if facts["window"] == 1 else f"any {facts['window']} steps in a row"
    whom = "know none of the records" if facts["knows"] == "nothing" else "may know any of the other records"
    return f"{what}, from those who {whom}"


def _show_rehearsal(arguments: argparse.Namespace, facts: dict[str, Any]) -> None:
    warn(facts["warnings"])
    if arguments.json:
        print(json.dumps(facts, indent=1, allow_nan=False))
        return
    show_columns(facts["columns"], facts["unused_columns"])
    print(
        f"records     {facts['records']:,} in {facts['segments']:,} segment(s) of {facts['participants']:,} "
        f"participant(s), the longest of {facts['longest_segment']:,} steps\n"
        f"mechanism   {facts['mechanism']}, scale {facts['scale']:.6g}, "
        f"{'certified' if facts['certified'] else 'without a certificate'}\n"
        f"hides       {_hidden(facts)}"
    )
    for one in facts["statistics"]:
        print(
            f"noise       scale {one['noise_scale']:.6g} on each number of {one['name']}; expected error "
            f"{one['expected_error']:.3g}, 95 % below {one['error_95']:.3g}"
        )
    if facts["limit"] is not None:
        print(f"cost        within the ledger's limit {facts['limit']:g}, of which {facts['left']:.6g} would be left")
    print(f"\nwhat each level costs one histogram at epsilon {facts['epsilon']:g}:\n{level_table(facts['levels'])}")
    print("\na dry run: nothing was drawn, written or paid for")
