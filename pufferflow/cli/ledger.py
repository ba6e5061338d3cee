"""Show, verify or change a ledger, which adds up the releases entered in it.

It does not detect releases of a copy of the data or in another ledger, nor that an older copy of it
was put back. Its digests have no key: note the one that verify prints, for --noted.

Example: pufferflow ledger show pufferflow.ledger
"""

import argparse
from dataclasses import replace

import numpy as np

from pufferflow._util.numbers import written_number
from pufferflow.accounting.account import UNBOUNDED, Charge, Level, level_of, percent
from pufferflow.accounting.entries import Entry, Terms
from pufferflow.accounting.ledger import Ledger, reserved
from pufferflow.cli.printing import actions_of, show, table
from pufferflow.errors import LedgerError, ParameterError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    action = actions_of(parser, "made by the first release")
    add = action("show", "LEDGER", _show, "promises, their spent part, and every release")
    add("--json", action="store_true", help="print JSON instead of text")
    add = action("verify", "LEDGER", _verify, "check the file, its digests and its promises")
    add("--noted", metavar="DIGEST", help="that an earlier verify printed")
    add = action("add", "LEDGER", _add, "enter a release that was made by other means")
    add("query", metavar="WORDS", help="description of the publication")
    add("--cost", default=UNBOUNDED, help="sum of Lipschitz constant / scale (default: no bound)")
    add("--whole", default=UNBOUNDED, help="the same of a whole participant (default: no bound)")
    zero = "of one reading (default: 0)"
    add("--rho", default="0", help=f"of zero-concentrated differential privacy, {zero}")
    add("--whole-rho", help="the same of a whole participant (default: no bound if one has a rho)")
    add("--delta", default="0", help=f"of approximate differential privacy, {zero}")
    add("--from", dest="first", metavar="TIME", help="readings from then on (default: all)")
    add("--to", dest="last", metavar="TIME", help="readings before; a date is the whole day")
    add("--participant", metavar="COLUMN", help="of that table (default: unknown, no bound holds)")
    add("--value", metavar="COLUMN", help="of that table")
    add("--yes", action="store_true", help="also a value column that is new to the ledger")
    add = action("set-limit", "LEDGER", _set_limit, "promise another epsilon of a level")
    add("level", metavar="LEVEL", help="reading, participant, or a time such as 1d")
    add("epsilon", metavar="EPSILON", type=float, help="of all releases together")
    add("--delta", type=float, default=0.0, help="of all releases together (default: 0)")
    add("--side-information", choices=("none", "any"), default="none", help="default: none")
    add("--yes", action="store_true", help="change it instead of showing it")


def run(arguments: argparse.Namespace) -> None:
    arguments.act(Ledger(arguments.file), arguments)


def _show(ledger: Ledger, arguments: argparse.Namespace) -> None:
    content = ledger.to_dict()
    known = content["population"] or {"step_seconds": None, "time_base": "none"}
    zone = "Z" * (known["time_base"] == "utc")  # without it times are local, as in the table
    for row in (*content["promises"], *content["releases"]):
        row["protect"] = row["level"] and Level(**row["level"]).description(known["step_seconds"])
    for row in content["releases"]:
        for name, time in (("from", row["charge"]["first"]), ("to", row["charge"]["last"])):
            row[name] = None if time is None else f"{np.datetime64(time, 's')}{zone}"
    columns = ("number", "made", "from", "to", "protect", "epsilon", "query")
    delta = ("delta",) * any("delta" in row for row in content["promises"])
    lines = [*table(content["promises"], ("protect", "epsilon", *delta, "spent_percent")), ""]
    show(content, arguments.json, [*lines, *table(content["releases"], columns)])


def _verify(ledger: Ledger, arguments: argparse.Namespace) -> None:
    entries, digest = ledger.verify(arguments.noted)
    since = "" if arguments.noted is None else "; all up to the digest noted is as it was then"
    print(f"verified: the digests of {entries} rows fit together and all promises hold{since}")
    print(f"digest to note, for --noted, which shows whether rows were made again: {digest}")


def _add(ledger: Ledger, arguments: argparse.Namespace) -> None:
    from pufferflow.records.read import parse_range

    known, value = ledger.book.population, arguments.value
    if known is None:
        raise LedgerError(f"ledger {ledger.path} is empty; the first release fills it")
    cost, whole = written_number(arguments.cost, "cost"), written_number(arguments.whole, "whole")
    if value is None and arguments.participant is None:
        if min(cost, whole) < UNBOUNDED:
            raise ParameterError("--cost and --whole need --participant or --value; name a column")
        cost = whole = UNBOUNDED
    else:
        values = known.values if value is None else (value,)
        known = replace(known, values=values, participant=arguments.participant)
    rho, delta = (written_number(getattr(arguments, name), name) for name in ("rho", "delta"))
    whole_rho = UNBOUNDED if rho else rho
    if arguments.whole_rho is not None:
        whole_rho = written_number(arguments.whole_rho, "whole_rho")
    period = parse_range(arguments.first, arguments.last)
    charge = Charge(cost, whole, *period, rho, whole_rho, delta)
    entry = Entry(known, charge, None, None, arguments.query)
    with reserved(ledger, Terms(entry, new_values=arguments.yes)) as paid:
        assert paid is not None
        print(f"entered: {percent(paid.spent)} % is spent")


def _set_limit(ledger: Ledger, arguments: argparse.Namespace) -> None:
    from pufferflow.models.files import parse_model
    from pufferflow.publish.noise import calibrate

    book = ledger.book
    step = None if book.population is None else book.population.step_seconds
    level = level_of(arguments.level, arguments.side_information, step)
    before = f"{book.promises[level].epsilon:g}" if level in book.promises else "none"
    if not arguments.yes:
        raise ParameterError(f"the limit of {arguments.level} is {before}; add --yes to change it")
    theta = None if book.theta is None else parse_model(book.theta).family
    ledger.set_limit(calibrate(theta, level, arguments.epsilon, arguments.delta))
    print(f"limit of {arguments.level}: {before} before, {arguments.epsilon:g} now")
