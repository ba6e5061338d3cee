"""Terms of releases for the tests of the ledger, and what the processes of these tests do."""

from fractions import Fraction

import pufferflow as pf
from pufferflow._protection import Level
from pufferflow.accounting.account import Charge, Promise
from pufferflow.accounting.entries import Entry, Population, Terms
from pufferflow.accounting.ledger import reserved

POPULATION = Population(1800, "utc", "meter", ("kwh",))
THETA = pf.MixingFamily(2, 0.4).document()
OF_STATES = pf.BinaryInterval(0.3, 0.7).document()
DAY, READING, INFORMED, PARTICIPANT = Level(48), Level(1), Level(1, "any"), Level(None)
COSTS = {DAY: Fraction(1, 50), READING: Fraction(1, 3), INFORMED: Fraction(1, 6)}
"""C at ε = 1, in proportion to ε: the ledger takes what it is given."""
MONDAY, WEEK = 1704067200, 7 * 86400
LONGEST = 336


def promise_of(level, epsilon=1.0, certificate=None):
    """What the calibration of these tests says."""
    cost = Fraction(0) if level.whole else COSTS[level] * Fraction(epsilon)
    return Promise(level, epsilon, cost, certificate)


def terms(
    week=0, level=DAY, epsilon=1.0, share=1, *, weeks=1, limit=None, of=POPULATION, theta=THETA,
    promise=True, query="mean-by-hour", span=None, certificate=None, new_values=False,
):  # fmt: skip
    """Terms of a release of some weeks, with as little noise as its share allows."""
    per_reading = Fraction(epsilon) / LONGEST if level.whole else promise_of(level, epsilon).cost
    cost = per_reading * Fraction(share)
    first = MONDAY + week * WEEK
    range_ = (first, first + weeks * WEEK - 1800) if span is None else span
    entry = Entry(of, Charge(cost, cost * LONGEST, *range_), level, epsilon, query, promise)
    allowed = promise_of(level, epsilon if limit is None else limit, certificate)
    theta = None if level.whole else theta
    return Terms(entry, theta, allowed if promise else None, new_values)


def elsewhere(charge, of=POPULATION):
    """Terms of a release that was made elsewhere."""
    return Terms(Entry(of, charge, None, None, "a table", promise=False))


def pay(ledger, *args, **changes):
    """Make a release of nothing."""
    with reserved(ledger, terms(*args, **changes)) as paid:
        return paid


def work(path, name, said):
    """Reserve and record one release of a fifth of the limit."""
    try:
        pay(path, share=Fraction(1, 5), query=name)
        said.put((name, "made"))
    except pf.BudgetError:
        said.put((name, "refused"))
