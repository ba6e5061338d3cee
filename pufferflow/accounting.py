"""What a scale guarantees, and what several releases on the same chain cost together.

A release of a 1-Lipschitz query with Laplace scale σ changes its density by a factor of at most exp(1/σ) when
one record changes. Releases of scales σ_1, …, σ_K draw their noise independently given the records, so all of
them together change by at most exp(c), c = Σ_k 1/σ_k, also where a query was chosen after seeing earlier
outputs. Whatever a bound says of one release of scale 1/c that uses nothing else of it, it says of all of them.

Theorem 4.4
    K · max_k ε_k, with ε_k what the k-th release alone costs by Markov quilts; the sets of quilts are the same.
Quilts
    max_i min_Q [e_Q + card(X_N) · c]. Never above Σ_k ε_k ≤ K · max_k ε_k: at node i let Q_k be a quilt of
    release k with e_{Q_k} + card_k / σ_k ≤ ε_k, and Q the one of them of fewest nearby nodes, that of release j.
    Then e_Q + card_Q · c ≤ (e_{Q_j} + card_j / σ_j) + Σ_{k≠j} card_k / σ_k ≤ Σ_k ε_k.
Leakage
    The bound of leakage calibration on every mechanism known by c alone (:func:`pufferflow.leakage_loss`).

The quilts' bound is the inverse of MQMExact: card / (ε − e) ≤ σ says the same as e + card / σ ≤ ε, so the scale
of ε is at most σ exactly if the bound at σ is at most ε.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from pufferflow._checks import EPSILON_RANGE, Lengths, check_epsilon, check_scale, check_whole, longest
from pufferflow._composition import PRECISION, entrywise_loss, joint_scale
from pufferflow._display import displayed
from pufferflow._protection import Knowledge, Protection, check_protection
from pufferflow.markov.families import AnyFamily, as_family
from pufferflow.mechanisms import compute_scale, find_mechanism, leakage_loss

MOST_RELEASES = 10**6
"""Releases that can be recorded at once."""


def guarantee(
    family: AnyFamily, length: Lengths, scale: float, *, mechanism: str = "mqm-exact", **options: Any
) -> float:
    """Smallest ε at which a mechanism asks for no more than ``scale``, rounded up.

    Parameters
    ----------
    family : Family or MarkovChain
    length : int or sequence of int
        Segment lengths.
    scale : float
        Laplace scale of a 1-Lipschitz query.
    mechanism : str
        Name of a mechanism whose scale falls as ε grows.
    options
        Of the mechanism, ``window`` and ``knows`` among them.

    Returns
    -------
    float
        ε in nats, at most 1e-10 above the smallest, relatively, where scales fall as ε grows (those of mqm-exact may
        rise by a thousandth with thousands of records: a smaller ε may then do, too); infinite where the mechanism is
        not applicable whatever ε.

    Raises
    ------
    ParameterError
        ``scale`` is not a positive number, or the mechanism is unknown.
    """
    asked, records = find_mechanism(mechanism), longest(length)
    scale = check_scale(scale)
    if asked.uncovered(**options) or asked.unfit(family, length, **asked.own(options)):
        return math.inf

    def excess(epsilon: float) -> float:
        """Logarithm of what is asked for over ``scale``: not positive where that is enough."""
        # all lengths, not the longest alone: of some mechanisms a shorter segment decides
        needed = asked.called(family, length, epsilon, **options).scale
        if needed is None:
            return math.inf
        ratio = math.log(needed) - math.log(scale) if needed > 0 else -math.inf
        return max(ratio, 1e-300) if needed > scale else min(ratio, 0.0)

    smallest, largest = EPSILON_RANGE
    low, high = max(smallest, 1 / scale / (1 + PRECISION)), min(largest, records / scale * (1 + PRECISION))
    while (at_high := excess(high)) > 0:  # bayesian-dp may ask for more than group-dp does
        if high == largest:
            return math.inf
        high = min(2 * high, largest)
    if (at_low := excess(low)) <= 0:
        return low
    # where a line through both logarithms meets the scale, a little below and above it in turn; or half way
    count = 0
    while high > low * (1 + PRECISION):
        share = at_low / (at_low - at_high) if at_low < math.inf and count % 4 < 3 else 0.5
        aside = PRECISION / 3 * (1 if count % 2 else -1)
        middle = low * math.exp(share * math.log(high / low) + aside)
        if not low < middle < high:
            middle = math.sqrt(low) * math.sqrt(high)
        if (at_middle := excess(middle)) > 0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        count += 1
    return high


@dataclass(frozen=True)
@displayed("releases", "entrywise", "theorem_4_4", "quilts", "leakage")
class Cost:
    """What a number of releases costs together, by every bound that is valid.

    Attributes
    ----------
    releases : int
    entrywise : float
        c = Σ 1/σ_k, rounded up: the loss if records were independent.
    theorem_4_4, quilts, leakage : float
        The three bounds of the module's text, in nats.
    """

    releases: int
    entrywise: float
    theorem_4_4: float
    quilts: float
    leakage: float

    @property
    def epsilon(self) -> float:
        """The least of the bounds: what the releases cost."""
        return min(self.theorem_4_4, self.quilts, self.leakage)

    @property
    def bound(self) -> str:
        """Name of the least bound."""
        return min(("leakage", "quilts", "theorem_4_4"), key=lambda name: float(getattr(self, name)))


@displayed()
class Accountant:
    """Keeps account of Laplace releases on one chain.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ, the same for all releases.
    length : int or sequence of int
        Segment lengths of the data.
    window, knows
        What the total is stated for, as for :func:`pufferflow.leakage`. A release that hides windows of several records
        hides those of fewer, and one that holds against those who know records holds against those who know none: so
        the total is that of the least of what its releases promise. By Σ 1/σ_k it can be stated for any.

    Examples
    --------
    >>> import pufferflow as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> accountant = pf.Accountant(chain, length=100)
    >>> for _ in range(2):
    ...     accountant.add(pf.mqm_exact(chain, 100, 1.0).scale)
    >>> cost = accountant.cost()
    >>> cost.leakage < cost.quilts <= cost.theorem_4_4
    True
    """

    def __init__(self, family: AnyFamily, length: Lengths, *, window: int = 1, knows: Knowledge = "nothing") -> None:
        self.family = as_family(family)
        self.protection = check_protection(window, knows)
        self.length = longest(length)
        self._scales: list[float] = []
        self._known: dict[tuple[str, float], float] = {}  # what was computed before, at the same scale

    def __repr__(self) -> str:
        hidden = f"window={self.protection.window}, knows={self.protection.knows!r}"
        return f"Accountant({self.family!r}, length={self.length}, {hidden}, {len(self._scales)} releases)"

    @property
    def scales(self) -> tuple[float, ...]:
        """Scales of the releases so far, for a 1-Lipschitz query each."""
        return tuple(self._scales)

    def add(self, scale: float, *, releases: int = 1) -> None:
        """Record releases of noise ``scale · L`` on queries of Lipschitz constant L each.

        Raises
        ------
        ParameterError
            ``scale`` is not a positive number, or ``releases`` is not an integer from 0 to 10^6.
        """
        self._scales += [check_scale(scale)] * check_whole(releases, "releases", 0, MOST_RELEASES)

    def cost(self) -> Cost:
        """Return what all releases so far cost together."""
        if not self._scales:
            return Cost(0, 0.0, 0.0, 0.0, 0.0)
        single = self._alone(min(self._scales))
        theorem = math.nextafter(len(self._scales) * single, math.inf)
        return Cost(len(self._scales), self.entrywise, theorem, self._quilts(), self._leakage())

    def within(self, limit: float) -> bool:
        """Say whether all releases so far cost at most ``limit``; the cheaper bound is tried first.

        Raises
        ------
        ParameterError
            ``limit`` is not a positive number.
        """
        limit = check_epsilon(limit)
        return not self._scales or self._quilts() <= limit or self._leakage() <= limit

    @property
    def entrywise(self) -> float:
        """Sum of 1/σ_k, rounded up."""
        return entrywise_loss(self._scales)

    def _together(self) -> float:
        """Scale of the one release that all so far amount to, rounded down."""
        return joint_scale(self._scales)

    def _bounded(self) -> bool:
        """Whether the releases amount to one of a scale that can be computed with."""
        return self._together() >= EPSILON_RANGE[0]

    def _quilts(self) -> float:
        return self._alone(self._together()) if self._bounded() else math.inf

    def _alone(self, scale: float) -> float:
        """What one release costs by quilts, or without any where these say nothing of such adversaries."""
        name, _ = _bounds(self.protection)
        if (name, scale) not in self._known:
            options = asdict(self.protection)
            self._known[name, scale] = guarantee(self.family, self.length, scale, mechanism=name, **options)
        return self._known[name, scale]

    def _leakage(self) -> float:
        if not self._bounded():
            return math.inf
        scale = self._together()
        if ("leakage", scale) not in self._known:
            options = asdict(self.protection)
            self._known["leakage", scale] = leakage_loss(self.family, self.length, scale, **options)
        return self._known["leakage", scale]


def least_scale(account: Accountant, limit: float) -> float:
    """About the least scale of a single release that costs ``limit`` in this account; infinite where none does."""
    options = asdict(account.protection)
    needed = (
        compute_scale(name, account.family, account.length, limit, **options).scale
        for name in _bounds(account.protection)
    )
    return min((scale for scale in needed if scale is not None), default=math.inf)


def _bounds(protection: Protection) -> tuple[str, str]:
    """Mechanisms whose bounds hold of any release: leakage, and quilts where adversaries know nothing."""
    return "mqm-exact" if protection.knows == "nothing" else "group-dp", "leakage"
