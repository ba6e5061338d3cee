"""``pufferflow ledger``: what was spent on a data set."""

from __future__ import annotations

import argparse
import json

DESCRIPTION = (
    "Show a budget ledger, change its limit, or check that no entry was changed or taken out. An older copy put in its "
    "place cannot be told from it: keep the number and the digest that verify prints."
)
EPILOG = "Example: pufferflow ledger show this_year.csv.ledger"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, line in (
        ("show", "limit, what is spent and left, and every release"),
        ("set-limit", "change the limit; the old one stays on record"),
        ("verify", "check the file, its chain of digests and its limit"),
    ):
        command = actions.add_parser(action, help=line, description=line)
        command.add_argument("file", metavar="LEDGER", help="made by pufferflow release, beside the data")
        if action == "set-limit":
            command.add_argument("limit", metavar="EPSILON", type=float, help="that all releases together may cost")
        if action == "show":
            command.add_argument("--json", action="store_true", help="print a JSON object")


def run(arguments: argparse.Namespace) -> None:
    """Show, change or check the ledger."""
    from pufferflow.ledger import Ledger  # loads the mechanisms

    book = Ledger(arguments.file)
    if arguments.action == "set-limit":
        before = book.limit
        book.set_limit(arguments.limit)
        print(f"limit of {arguments.file}: {before:g} before, {book.limit:g} now")
    elif arguments.action == "verify":
        entries, digest = book.verify()
        print(
            f"verified: {entries} entries, none changed or missing before the last, whose digest is {digest}; "
            "what is spent is within the limit"
        )
    else:
        shown = book.to_dict()
        if arguments.json:
            print(json.dumps(shown, indent=1, allow_nan=False))
            return
        print(f"limit {shown['limit']:g}, spent {shown['spent']:.6g}, left {shown['left']:.6g}")
        for number, entry in enumerate(shown["releases"], 1):
            state = "released" if entry["released"] else "reserved, not known to be released (counts as spent)"
            print(
                f"{number:>4}  {entry['time']}  epsilon {entry['epsilon']:g}  {entry['mechanism']}  "
                f"scale {entry['scale']:.6g}  {entry['query']}  {state}"
            )
