"""The bounds of the loss of each kind of family.

A bound holds for every mechanism whose density changes by at most e^c with one entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pufferflow._util.grids import shared
from pufferflow._util.numbers import ball
from pufferflow.bounds.loss import ProcessLoss
from pufferflow.bounds.process import of_chain, of_histories, of_periodic, of_sets
from pufferflow.bounds.roots import Loss
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

_LARGE = 10**6
"""Costs of a block of steps (m·c) above which mixing saves less than 1e-6 T·c and is left out."""

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
        """Return a bound, rounded up, at c."""
        value, node = self._loss(Fraction(cost))
        return Loss(math.nextafter(float(value.upper()), math.inf), node)

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Return the smallest float with loss ≤ ε, and a deciding node; None if ≥ ``upper``."""
        if not self._suffices(below := math.nextafter(upper, 0.0), epsilon):
            return None
        # a window alone costs w·c
        low, high = max(self._window / epsilon / 2, math.ulp(0.0)), below
        while (middle := low + (high - low) / 2) not in (low, high):
            low, high = (low, middle) if self._suffices(middle, epsilon) else (middle, high)
        return high, self._loss(1 / Fraction(high))[1]

    def _suffices(self, scale: float, epsilon: float) -> bool:
        return bool(self._loss(1 / Fraction(scale))[0] <= epsilon)

    def _loss(self, cost: Fraction) -> tuple[arb, int]:
        """Return a ball with the bound, to some 30 digits, and the first node of a worst window."""
        from flint import ctx

        around = self._length - self._window
        if self._steps * cost > _LARGE or around == 0:
            return ball(self._length * cost), 1
        digits = abs(cost.numerator.bit_length() - cost.denominator.bit_length())
        for bits in (128, 512, 2048, 8192):
            with ctx.workprec(bits + 2 * digits + self._length.bit_length()):
                factors = [
                    (self._factor(j, cost) * self._factor(around - j, cost), j)
                    for j in self._worst(around)
                ]
                total, before = max(factors, key=lambda factor: float(factor[0].mid().log()))
                for factor, _ in factors:
                    total = total.max(factor)
                value = total.log() + ball(self._window * cost)
                if value.is_finite() and value.rad() * 2**80 < value:
                    return value, before + 1
        return ball(self._length * cost), 1  # ρ is within 10^-2000 of 1

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
        factor = power * (rest * c).exp()
        if blocks:
            fresh = ball(1 - self._kept) * ((self._steps - 1) * c).exp()
            factor += fresh * (1 - power) / (1 - ratio)
        return factor


LossBound: TypeAlias = ProcessLoss | MixingLoss
"""Upper bounds of the loss of all c-DP mechanisms, and smallest scales by them."""


class Part(NamedTuple):
    """A part of a family: a chain of a finite one, or the whole family."""

    family: Family
    bound: LossBound | None
    why: str = ""  # the reason if there is no bound, or a remark


@singledispatch
def loss_bounds(family: Family, length: int, protection: Protection) -> list[Part]:
    """Return bounds for the parts of a family, whose largest loss and largest scale count.

    ``length`` is T of the longest segment.
    """
    return [_of_chain(ChainFamily([c]), c, c.states, length, protection) for c in family.chains]


def _of_chain(
    family: Family, chain: MarkovChain | HiddenChain, k: int, length: int, protection: Protection
) -> Part:
    if k > MAX_BLOCK_STATES:
        why = f"of {k} states other bounds would take minutes, they are computed for at most "
        return Part(family, None, f"{why}{MAX_BLOCK_STATES}")
    (bound,) = _bounds(of_chain, chain, length, protection, pairs=k <= MAX_STATES)
    return Part(family, bound)


@loss_bounds.register
def _(family: MixingFamily, length: int, protection: Protection) -> list[Part]:
    if protection.side_information != "none":
        why = "side information can lead to distributions that do not mix as those of the family"
        return [Part(family, None, why)]
    return [Part(family, MixingLoss(family, length, protection.window))]


@loss_bounds.register
def _(family: HiddenChain, length: int, protection: Protection) -> list[Part]:
    hidden, histories = family.chain.states, family.histories
    order = 1 if histories is None else histories.shape[1]
    compared = order > 1 and protection.side_information == "any"
    if compared and hidden <= MAX_HISTORIES:
        (bound,) = _bounds(of_histories, family, length, protection)
        return [Part(family, bound)]
    part = _of_chain(family, family, hidden, length, protection)
    if compared and part.bound is not None:
        limit = f"where there are at most {MAX_HISTORIES}, not {hidden}"
        part = part._replace(why=f"histories of {order} observations are compared {limit}")
    return [part]


@loss_bounds.register
def _(family: BoundedFamily, length: int, protection: Protection) -> list[Part]:
    k, why = family.states, ""
    if k > MAX_RATIO_STATES:
        why = f"other bounds are computed for at most {MAX_RATIO_STATES} states, not for {k}"
        return [Part(family, None, why)]
    if k > MAX_ROBUST_STATES and protection.side_information == "none":
        why = f"couplings are computed for at most {MAX_ROBUST_STATES} states, not for {k}"
    (bound,) = _bounds(of_sets, family, length, protection, pairs=k <= MAX_ROBUST_STATES)
    return [Part(family, bound, why)]


@loss_bounds.register
def _(family: PeriodicChain, length: int, protection: Protection) -> list[Part]:
    if family.states > MAX_STATES:
        limit = f"at most {MAX_STATES} states, not {family.states}"
        why = f"couplings at every phase are computed for {limit}"
        return [Part(family, None, why)]
    return [Part(family, bound) for bound in _bounds(of_periodic, family, length, protection)]


@shared
def _bounds(make: Callable[..., Any], *arguments: Any, **options: Any) -> list[ProcessLoss]:
    """Return the bounds of one or more processes."""
    made = make(*arguments, **options)
    return [ProcessLoss(each) for each in (made if isinstance(made, list) else [made])]
