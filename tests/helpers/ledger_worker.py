"""What the processes of the ledger's tests do."""

import pufferflow as pf
from pufferflow.ledger import Ledger

CHAIN = pf.ChainFamily([pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])])
LENGTH = 50


def work(path, scale, name, said):
    """Reserve and record one release."""
    try:
        mine = Ledger(path)
        terms = {"mechanism": "mqm-exact", "epsilon": 0.1, "scale": scale, "query": name}
        mine.record(mine.reserve(CHAIN, LENGTH, **terms))
        said.put((name, "made"))
    except pf.BudgetError:
        said.put((name, "refused"))
