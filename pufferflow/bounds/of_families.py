"""The bounds of the loss of each kind of family.

A bound holds for every mechanism whose density changes by at most e^c with one entry.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple, Protocol, TypeVar

from pufferflow.bounds.loss import ProcessLoss
from pufferflow.bounds.mixing import MixingLoss
from pufferflow.bounds.process import (
    MAX_HISTORIES,
    MAX_ROBUST_STATES,
    Process,
    of_chain,
    of_histories,
    of_periodic,
    of_sets,
)
from pufferflow.bounds.roots import Loss
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import ChainFamily, Family, Protection
from pufferflow.models.hidden import HiddenChain
from pufferflow.models.mixing import MixingFamily
from pufferflow.models.periodic import PeriodicChain

MAX_STATES = 64
"""Largest number of states for couplings of all pairs of values."""

MAX_RATIO_STATES = 64
"""Largest number of states of an interval family for which ratios are compared instead."""

_KEPT = 16
_kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
_Made = TypeVar("_Made")

MAX_BLOCK_STATES = 200
"""Largest number of states for blocks of steps: time grows faster than the cube."""


class LossBound(Protocol):
    """Upper bounds of the loss of all c-DP mechanisms."""

    def loss(self, cost: float) -> Loss:
        """Return a bound, rounded up, at c."""

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Return the smallest scale with loss ≤ ε, rounded up, and a node; None if ≥ ``upper``."""


class Part(NamedTuple):
    """A part of a family: a chain of a finite one, or the whole family."""

    family: Family
    bound: LossBound | None
    why: str = ""  # the reason if there is no bound, or a remark


class _Least(NamedTuple):
    """The smallest of several bounds of the same loss."""

    bounds: tuple[LossBound, ...]

    def loss(self, cost: float) -> Loss:
        return min((bound.loss(cost) for bound in self.bounds), key=lambda loss: loss.value)

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        best = None
        for bound in self.bounds:
            if (found := bound.scale(epsilon, upper)) is not None:
                best, upper = found, found[0]
        return best


@singledispatch
def loss_bounds(family: Family, length: int, protection: Protection) -> list[Part]:
    """Return bounds for the parts of a family, whose largest loss and largest scale count.

    ``length`` is T of the longest segment.
    """
    return [_of_chain(ChainFamily([c]), c, c.states, length, protection) for c in family.chains]


def _of_chain(
    family: Family,
    chain: MarkovChain | HiddenChain,
    k: int,
    length: int,
    protection: Protection,
) -> Part:
    if k > MAX_BLOCK_STATES:
        why = f"of {k} states other bounds would take minutes, they are computed for at most "
        return Part(family, None, f"{why}{MAX_BLOCK_STATES}")
    return Part(family, kept(_made, of_chain, chain, length, protection, pairs=k <= MAX_STATES))


def _made(process: Callable[..., Process], *arguments: Any, **options: Any) -> LossBound:
    return ProcessLoss(process(*arguments, **options))


@loss_bounds.register
def _(family: MixingFamily, length: int, protection: Protection) -> list[Part]:
    if protection.side_information != "none":
        why = "side information can lead to distributions that do not mix as those of the family"
        return [Part(family, None, why)]
    return [Part(family, MixingLoss(family, length, protection.window))]


@loss_bounds.register
def _(family: HiddenChain, length: int, protection: Protection) -> list[Part]:
    hidden, histories = family.chain.states, family.histories
    part = _of_chain(family, family, hidden, length, protection)
    if part.bound is None or protection.side_information == "none" or histories is None:
        return [part]
    if hidden > MAX_HISTORIES:
        limit = f"where there are at most {MAX_HISTORIES}, not {hidden}"
        why = f"histories of {histories.shape[1]} observations are compared {limit}"
        return [part._replace(why=why)]
    other = kept(_made, of_histories, family, length, protection)
    return [Part(family, _Least((part.bound, other)))]


@loss_bounds.register
def _(family: BoundedFamily, length: int, protection: Protection) -> list[Part]:
    k, why = family.states, ""
    if k > MAX_RATIO_STATES:
        why = f"other bounds are computed for at most {MAX_RATIO_STATES} states, not for {k}"
        return [Part(family, None, why)]
    if k > MAX_ROBUST_STATES and protection.side_information == "none":
        why = f"couplings are computed for at most {MAX_ROBUST_STATES} states, not for {k}"
    bound = kept(_made, of_sets, family, length, protection, pairs=k <= MAX_ROBUST_STATES)
    return [Part(family, bound, why)]


@loss_bounds.register
def _(family: PeriodicChain, length: int, protection: Protection) -> list[Part]:
    if family.states > MAX_STATES:
        limit = f"at most {MAX_STATES} states, not {family.states}"
        why = f"couplings at every phase are computed for {limit}"
        return [Part(family, None, why)]
    return [Part(family, bound) for bound in kept(_at_phases, family, length, protection)]


def _at_phases(*arguments: Any) -> list[LossBound]:
    return [ProcessLoss(process) for process in of_periodic(*arguments)]


def kept(make: Callable[..., _Made], *arguments: Any, **options: Any) -> _Made:
    """Return the bounds of a family, shared by all calls of a thread on the same objects.

    Couplings of one ε are the start for the next one.
    """
    key = threading.get_ident(), make, *arguments, *options.items()
    made = _kept.pop(key, None) or make(*arguments, **options)
    while len(_kept) >= _KEPT:
        _kept.popitem(last=False)
    _kept[key] = made
    return made
