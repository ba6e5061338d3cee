"""``pufferflow ledger``: what was spent on a data set."""

from __future__ import annotations

import argparse
import json
from typing import Any

from pufferflow.ledger import UNNOTICED, Ledger

DESCRIPTION = (
    "Show a budget ledger, change its limit, or check that its entries fit together. What it cannot know: "
    f"{UNNOTICED}. The digests have no key: whoever rewrites entries can make them anew. Note the digest that verify "
    "prints, away from the ledger, and give it to the next verify as --noted."
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
        if action == "verify":
            command.add_argument("--noted", metavar="DIGEST", help="that an earlier verify printed")
        if action == "show":
            command.add_argument("--json", action="store_true", help="print a JSON object")


def run(arguments: argparse.Namespace) -> None:
    """Show, change or check the ledger."""
    book = Ledger(arguments.file)
    if arguments.action == "set-limit":
        before = book.limit
        book.set_limit(arguments.limit)
        print(f"limit of {arguments.file}: {before:g} before, {book.limit:g} now")
    elif arguments.action == "verify":
        _verify(book, arguments.noted)
    else:
        _show(book.to_dict(), arguments.json)


def _verify(book: Ledger, noted: str | None) -> None:
    entries, digest = book.verify(noted)
    since = (
        "whether entries were rewritten together with their digests, or taken off the end, only a digest noted before "
        "can tell (--noted)"
        if noted is None
        else "everything up to the digest that was noted is as it was then"
    )
    print(
        f"verified: the numbers and digests of {entries} entries fit together and what is spent is within the limit; "
        f"{since}\ndigest of the last entry, to be noted elsewhere: {digest}"
    )


def _show(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(shown, indent=1, allow_nan=False))
        return
    print(f"limit {shown['limit']:g}, spent {shown['spent']:.6g}, left {shown['left']:.6g}{_hidden(shown)}")
    places = {entry["number"]: place for place, entry in enumerate(shown["releases"], 1)}
    for entry in shown["releases"]:
        state = "released" if entry["released"] else "reserved, not known to be released (counts as spent)"
        print(
            f"{places[entry['number']]:>4}  {entry['time']}  epsilon {entry['epsilon']:g}  {entry['mechanism']}  "
            f"scale {entry['scale']:.6g}  {entry['query']}{_extent(entry['extent'])}{_hidden(entry)}  {state}"
        )
        if entry["overlaps"]:
            print(f"      of the same time as {', '.join(str(places[number]) for number in entry['overlaps'])}")


def _hidden(shown: dict[str, Any]) -> str:
    """What it is stated for, where that is not one record and an adversary who knows none."""
    if shown.get("length", 1) is None:
        return "  whole participants"
    records = "" if shown["window"] == 1 else f"  {shown['window']} records in a row"
    return records + ("" if shown["knows"] == "nothing" else "  even if others are known")


def _extent(extent: dict[str, Any] | None) -> str:
    if extent is None:
        return ""
    return f"  n {extent['records']}" + (f" from {extent['first']} to {extent['last']}" if extent["first"] else "")
