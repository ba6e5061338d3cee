"""Scales below which no Laplace noise is private: Theorems 9 and 10 of ``docs/leakage.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pufferflow._checks import Lengths, check_epsilon, longest
from pufferflow._protection import Knowledge, Protection, check_protection
from pufferflow._types import Bools
from pufferflow.coupling.cost_search import CostSearch
from pufferflow.coupling.set_runs import Runs, runs_of, set_at
from pufferflow.coupling.surroundings import Leak, Pair, Surroundings
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.families import AnyFamily, as_family


@dataclass(frozen=True)
class LowerBound:
    """A scale that is too small, and why: Laplace noise of a smaller scale on a count of visits is not private.

    The query is the number of entries t with a state in S_t; :meth:`counted` gives S_t.

    Attributes
    ----------
    epsilon : float
    length : int
        The segment length that decides.
    scale : float
        Every Laplace scale below it breaks ε for the count; rounded down.
    node : int
        The entry that leaks, 1-based; the first of them where ``secret_window`` are the secret.
    pair : tuple of int
        The two values of that entry, as indices of states, that can be told apart. Where no entry has two values
        ``scale`` is 0.
    states : tuple of int
        S_t at the node.
    alternating : bool
        Whether S_t is ``states`` at even distances from the node and its complement at odd ones, where it is counted.
    before, after : int
        How many entries on either side of the node, or of the window, are counted.
    chain : int
        Index in the family, from 0, of the chain that decides.
    changing : bool
        Whether S_t changes with time in another way than ``alternating`` says.
    earlier, later : tuple of (int, tuple of tuple of int)
        S_t of the entries counted before and after the secret, with growing distance: how often a row of sets is
        repeated, and the row.
    secrets : tuple of two tuples of int
        The two values of the secret: of ``secret_window`` records, or of as many as are needed.
    secret_window : int
        w, the consecutive records that are to be hidden.
    knows : {"nothing", "any records"}
        Whom from.
    known : tuple of pair of int
        Records that whoever learns ε knows: entry, 1-based, and value.
    initial_law : tuple of float, optional
        The law of the first record for which this holds, where the chain has a given one or any.
    """

    epsilon: float
    length: int
    scale: float
    node: int
    pair: Pair
    states: tuple[int, ...]
    alternating: bool
    before: int
    after: int
    chain: int
    changing: bool = False
    earlier: Runs = ()
    later: Runs = ()
    secrets: tuple[tuple[int, ...], tuple[int, ...]] = ((0,), (0,))
    secret_window: int = 1
    knows: Knowledge = "nothing"
    known: tuple[Pair, ...] = ()
    initial_law: tuple[float, ...] | None = None

    @property
    def window(self) -> int:
        """How far from the node entries are counted at most."""
        return max(self.before, self.after)

    def counted(self, entry: int) -> tuple[int, ...]:
        """S_t of one entry, 1-based: the states that the query counts there, none beyond those it looks at."""
        offset = entry - self.node
        if 0 <= offset < len(self.secrets[0]):
            here, other = (values[offset] for values in self.secrets)
            if len(self.secrets[0]) == 1:
                return self.states
            return (here,) if here != other else ()
        if offset < 0:
            return set_at(self.earlier, -offset)
        return set_at(self.later, offset - len(self.secrets[0]) + 1)


def lower_bound(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    alternating: bool = True,
    window: int = 1,
    knows: Knowledge = "nothing",
) -> LowerBound:
    """Largest scale found below which Laplace noise on a 1-Lipschitz count is not ε-Pufferfish private.

    Noise of scale σ on the number N of entries t with a state in S_t leaks, for outputs beyond all counts, exactly the
    logarithm of E[e^(N/σ) | X_i = x] / E[e^(N/σ) | X_i = x'], a product of transfer matrices. The sets S_t are found
    one after another, for the pair of values that leaks most; where none of them can be improved, no other 1-Lipschitz
    query tells these two values apart better, counts or not. Any sets give a valid bound. Beside
    :func:`pufferflow.leakage` it says how far that scale can be from the best one.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; some chain of it is enough, the worst one is reported.
    length : int or sequence of int
    epsilon : float
        ε > 0. Below about 1e-8, where rounding leaves little of the leaks, and above 200 the bound is 1/ε times the
        records that can differ, the scale that the secret itself needs.
    alternating : bool
        Whether sets may change with time; else one S counts for all entries outside the window.
    window : int
        w ≥ 1: secrets are the values of w consecutive records, or of all of a shorter segment.
    knows : {"nothing", "any records"}
        Whether any other records of the segment may be known.

    Raises
    ------
    ParameterError
        ε, a length, the window or ``knows`` is out of range.
    ChainError
        The family is an interval family, which has no list of chains; give chains of it.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    protection = check_protection(window, knows)
    bounds = [
        _bound(chain, i, records, epsilon, protection, alternating) for i, chain in enumerate(as_family(family).chains)
    ]
    return max(bounds, key=lambda bound: bound.scale)


def _bound(
    chain: MarkovChain, index: int, length: int, epsilon: float, protection: Protection, changing: bool
) -> LowerBound:
    """The bound, of the chain with this index in its family; by one set for all entries unless ``changing``."""
    around = Surroundings(chain, length, epsilon, protection)
    best = CostSearch(around, epsilon).best(changing)
    if best is not None:
        return _stated(around, epsilon, *best, index)
    hidden, knows = protection.window, protection.knows
    return LowerBound(epsilon, length, 0.0, 1, (0, 0), (), False, 0, 0, index, secret_window=hidden, knows=knows)


def _stated(around: Surroundings, epsilon: float, leak: Leak, cost: float, index: int) -> LowerBound:
    """The bound in the names of the family's states."""
    (one, other), names = leak.secrets, around.names
    earlier, later = (runs_of(half.counts, names) for half in (leak.behind, leak.ahead))
    here: tuple[int, ...] = (int(names[one[0]]),)
    alternating = changing = False
    if len(one) == 1 and (earlier or later):
        kind = _kind(leak)
        if kind is None:
            changing = True
        else:
            here, alternating = tuple(names[kind[0]].tolist()), kind[1]
    known = tuple(
        (node + d, int(names[z]))
        for half, node in ((leak.behind, leak.node), (leak.ahead, leak.node + len(one) - 1))
        if half.side.known is not None
        for d, z in [half.side.known]
    )
    law = leak.behind.side.law
    return LowerBound(
        epsilon,
        around.length,
        _below(1 / cost),
        leak.node,
        (int(names[one[0]]), int(names[other[0]])),
        here,
        alternating,
        leak.behind.counts.entries,
        leak.ahead.counts.entries,
        index,
        changing,
        earlier,
        later,
        (tuple(names[list(one)].tolist()), tuple(names[list(other)].tolist())),
        around.protection.window,
        around.protection.knows,
        known,
        None if law is None else tuple(law.tolist()),
    )


def _kind(leak: Leak) -> tuple[Bools, bool] | None:
    """S and whether it alternates with its complement, where that is what the query counts."""
    if leak.one is not None:
        return leak.one, False
    x, y = leak.secrets[0][0], leak.secrets[1][0]
    for alternating in (False, True):
        rows = []
        for counts in (leak.behind.counts, leak.ahead.counts):
            some = np.concatenate([counts.sets, *[counts.cycle] * min(counts.repeats, 2)])
            if alternating and counts.repeats and len(counts.cycle) % 2:
                return None
            odd = (np.arange(1, len(some) + 1) % 2 == 1) & alternating
            rows.append(some ^ odd[:, None])
        every = np.concatenate(rows)
        if (every == every[0]).all() and every[0, x] and not every[0, y]:
            return every[0], alternating
    return None


def _below(scale: float) -> float:
    return math.nextafter(math.nextafter(scale, 0.0), 0.0)
