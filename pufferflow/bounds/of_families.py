"""The bounds of the loss of each kind of family.

A bound holds for every mechanism whose density changes by at most e^c with one entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

from pufferflow._util.grids import shared
from pufferflow._util.numbers import ball
from pufferflow._util.rounding import float_up
from pufferflow.bounds.loss import ProcessLoss
from pufferflow.bounds.process import of_chain, of_histories, of_periodic, of_sets
from pufferflow.bounds.roots import Loss, scale_below
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import ChainFamily, Family, Protection
from pufferflow.models.mixing import MixingFamily
from pufferflow.models.processes import HiddenChain, PeriodicChain

if TYPE_CHECKING:
    from flint import arb

MAX_STATES = 64
"""Largest number of states for couplings of all pairs of values."""

MAX_ROBUST_STATES = 12
"""Largest number of states of an interval family for couplings."""

MAX_HISTORIES = 36
"""Largest number of compared histories: seconds; time grows with their sixth power."""

MAX_RATIO_STATES = 64
"""Largest number of states of an interval family for which ratios are compared instead."""

MAX_BLOCK_STATES = 200
"""Largest number of states for blocks of steps: time grows faster than the cube."""


class MixingLoss:
    """Largest loss over a segment's windows in terms of c: a closed form in interval arithmetic.

    With ρ = (1 − α) e^(mc) the odds ratio of two values by n = km + r records after them is at most
    E(n) = ρ^k e^(rc) + α e^((m−1)c) (1 + ρ + … + ρ^(k−1)), and the loss of a window of w
    records with j before it and n after it is at most w·c + log E(j) + log E(n).
    """

    def __init__(self, family: MixingFamily, length: int, window: int = 1) -> None:
        self._steps, self._kept = family.steps, 1 - Fraction(repr(family.overlap))
        self._length, self._window = length, min(window, length)

    def loss(self, cost: float) -> Loss:
        """Return a bound, rounded up, at c, and the first record of a worst window."""
        from flint import ctx

        c, around = Fraction(cost), self._length - self._window
        most = float_up(self._length * c)
        digits = abs(c.numerator.bit_length() - c.denominator.bit_length())
        with ctx.workprec(256 + 2 * digits + self._length.bit_length()):
            losses = []
            for j in self._worst(around):
                value = (self._factor(j, c) * self._factor(around - j, c)).log()
                loss = math.nextafter(float((value + ball(self._window * c)).upper()), math.inf)
                losses.append(Loss(loss if loss < most else most, j + 1))  # NaN proves nothing
        return max(losses, key=lambda loss: loss.value)

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Return the smallest scale with loss ≤ ε, rounded up, and a node; None if ≥ ``upper``."""
        return scale_below(self.loss, epsilon, upper, 1 / upper, 1e-15)

    def _worst(self, around: int) -> Iterator[int]:
        """Yield numbers of records before a window; one of them is the worst (Theorem F2)."""
        blocks, rest = divmod(around, self._steps)
        for first, pairs in ((0, blocks), (rest + 1, blocks - 1)):
            if pairs >= 0 and first < self._steps:
                for k in range(max(pairs // 2 - 1, 0), min(pairs // 2 + 1, pairs) + 1):
                    yield k * self._steps + first

    def _factor(self, records: int, cost: Fraction) -> arb:
        """Return E(n)."""
        blocks, rest = divmod(records, self._steps)
        c = ball(cost)
        ratio = ball(self._kept) * (self._steps * c).exp()
        power = ratio**blocks
        fresh = ball(1 - self._kept) * ((self._steps - 1) * c).exp()
        return power * (rest * c).exp() + fresh * (1 - power) / (1 - ratio)


class Part(NamedTuple):
    """A part of a family: a chain of a finite one, or the whole family."""

    family: Family
    bound: ProcessLoss | MixingLoss | None
    why: str = ""  # the reason if there is no bound, or a remark


@singledispatch
def loss_bounds(family: Family, length: int, protection: Protection) -> list[Part]:
    """Return bounds for the parts of a family, whose largest loss and largest scale count.

    ``length`` is T of the longest segment.
    """
    return [p for c in family.chains for p in _of_chain(ChainFamily([c]), c, length, protection)]


def _of_chain(
    family: Family,
    chain: MarkovChain | HiddenChain,
    length: int,
    protection: Protection,
    why: str = "",
) -> list[Part]:
    k = chain.states if isinstance(chain, MarkovChain) else chain.chain.states
    if k > MAX_BLOCK_STATES:
        return [Part(family, None, _beyond("other bounds", MAX_BLOCK_STATES, k))]
    return _parts(family, why, of_chain, chain, length, protection, pairs=k <= MAX_STATES)


@loss_bounds.register
def _(family: MixingFamily, length: int, protection: Protection) -> list[Part]:
    if protection.side_information != "none":
        why = "side information can lead to distributions that do not mix as those of the family"
        return [Part(family, None, why)]
    return [Part(family, MixingLoss(family, length, protection.window))]


@loss_bounds.register
def _(family: HiddenChain, length: int, protection: Protection) -> list[Part]:
    hidden, histories, why = family.chain.states, family.histories, ""
    order = 1 if histories is None else histories.shape[1]
    if order > 1 and protection.side_information == "any":
        if hidden <= MAX_HISTORIES:
            return _parts(family, why, of_histories, family, length, protection)
        limit = f"where there are at most {MAX_HISTORIES}, not {hidden}"
        why = f"histories of {order} observations are compared {limit}"
    return _of_chain(family, family, length, protection, why)


@loss_bounds.register
def _(family: BoundedFamily, length: int, protection: Protection) -> list[Part]:
    k, why = family.states, ""
    if k > MAX_RATIO_STATES:
        return [Part(family, None, _beyond("other bounds", MAX_RATIO_STATES, k))]
    if k > MAX_ROBUST_STATES and protection.side_information == "none":
        why = _beyond("couplings", MAX_ROBUST_STATES, k)
    return _parts(family, why, of_sets, family, length, protection, pairs=k <= MAX_ROBUST_STATES)


@loss_bounds.register
def _(family: PeriodicChain, length: int, protection: Protection) -> list[Part]:
    if family.states > MAX_STATES:
        return [Part(family, None, _beyond("other bounds", MAX_STATES, family.states))]
    return _parts(family, "", of_periodic, family, length, protection)


def _beyond(what: str, most: int, states: int) -> str:
    return f"{what} are computed for at most {most} states, not for {states}"


@shared
def _parts(
    family: Family, why: str, make: Callable[..., Any], *arguments: Any, **options: Any
) -> list[Part]:
    """Return a part with a bound for each of the processes of a family, mostly one."""
    made = make(*arguments, **options)
    every = made if isinstance(made, list) else [made]
    return [Part(family, ProcessLoss(process), why) for process in every]
