"""Terms of releases for the tests of the ledger, and what the processes of these tests do."""

from dataclasses import replace
from fractions import Fraction

import pufferflow as pf
from pufferflow._protection import Level
from pufferflow.accounting.account import Charge, Promise
from pufferflow.accounting.entries import Entry, Population, Terms
from pufferflow.accounting.ledger import reserved

POPULATION = Population(1800, "utc", "meter", ("kwh",))
THETA = pf.MixingFamily(2, 0.4).document()
STATES = {"theta": pf.BinaryInterval(0.3, 0.7).document()}
STATES["of"] = replace(POPULATION, states=["a", "b"])
DAY = Level(48)
COSTS = {DAY: Fraction(1, 50), Level(1): Fraction(1, 3), Level(1, "any"): Fraction(1, 6)}
"""C at ε = 1, in proportion to ε: the ledger takes what it is given."""
MONDAY, LONGEST = 1704067200, 336


def promise_of(level, epsilon=1.0, certificate=None):
    """What the calibration of these tests says."""
    return Promise(level, epsilon, COSTS.get(level, Fraction(0)) * Fraction(epsilon), certificate)


def terms(
    week=0, level=DAY, epsilon=1.0, share=1, *, weeks=1, limit=None, of=POPULATION, theta=THETA,
    promise=True, query="mean-by-hour", span=None, certificate=None, new_values=False,
):  # fmt: skip
    """Terms of a release of some weeks, with as little noise as its share allows."""
    cost = promise_of(level, epsilon).allowed(LONGEST) * Fraction(share)
    first = MONDAY + week * 7 * 86400
    range_ = (first, first + weeks * 7 * 86400 - 1800) if span is None else span
    entry = Entry(of, Charge(cost, cost * LONGEST, *range_), level, epsilon, query, promise)
    allowed = promise_of(level, limit or epsilon, certificate) if promise else None
    return Terms(entry, None if level.whole else theta, allowed, new_values)


def pay(ledger, *args, **changes):
    """Make a release of nothing."""
    with reserved(ledger, terms(*args, **changes)) as paid:
        return paid


def work(path, name, said):
    """Reserve and record one release of a fifth of the limit."""
    try:
        pay(path, share=Fraction(1, 5), query=name)
        said.put((name, True))
    except pf.BudgetError:
        said.put((name, False))
