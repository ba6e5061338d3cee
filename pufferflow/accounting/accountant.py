"""What a scale guarantees, and what several releases on the same chain cost together.

Releases of 1-Lipschitz queries with Laplace scales σ_1, …, σ_K change their density by at most
exp(c), c = Σ 1/σ_k, when one record changes, also where a query was chosen after earlier outputs. A
bound on one release of scale 1/c by that alone holds for all together.

Theorem 4.4: K · max_k ε_k, with ε_k what the k-th release alone costs by Markov quilts.
Quilts: max_i min_Q [e_Q + card(X_N) · c], the inverse of MQMExact; never above Σ ε_k, for at node i
let Q be the quilt of release j with the fewest nearby nodes, e_Q + card_Q / σ_j ≤ ε_j: then e_Q +
card_Q · c ≤ ε_j + Σ_{k≠j} card_k / σ_k ≤ Σ_k ε_k.
Leakage: the bound on every mechanism known by c alone (:func:`pufferflow.leakage_loss`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Unpack

from scipy.optimize import brentq

from pufferflow._checks import EPSILON_RANGE, Lengths, check_scale, longest
from pufferflow._composition import PRECISION, entrywise_loss, joint_scale
from pufferflow._protection import ProtectionOptions, check_protection
from pufferflow.markov.families import AnyFamily, as_family
from pufferflow.mechanisms import find_mechanism, leakage_loss


@dataclass(frozen=True)
class Cost:
    """What a number of releases costs together: Σ 1/σ_k and the three bounds above, in nats."""

    releases: int
    entrywise: float
    theorem_4_4: float
    quilts: float
    leakage: float

    @property
    def epsilon(self) -> float:
        """The least of the bounds: what the releases cost."""
        return min(self.theorem_4_4, self.quilts, self.leakage)


class Accountant:
    """Keeps account of Laplace releases on one chain.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ, the same for all releases.
    length : int or sequence of int
        Segment lengths of the data.
    window, knows
        What the total is stated for, as for :func:`pufferflow.leakage`.

    Examples
    --------
    >>> import pufferflow as pf
    >>> accountant = pf.Accountant(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), length=100)
    >>> accountant.add(30.0)
    >>> accountant.add(60.0)
    >>> cost = accountant.cost()
    >>> cost.leakage < cost.quilts <= cost.theorem_4_4
    True
    """

    def __init__(
        self, family: AnyFamily, length: Lengths, **protection: Unpack[ProtectionOptions]
    ) -> None:
        self.family = as_family(family)
        self.protection = check_protection(**protection)
        self.length = longest(length)
        self._scales: list[float] = []

    def __repr__(self) -> str:
        count = f"{len(self._scales)} releases"
        return f"Accountant({self.family!r}, length={self.length}, {self.protection}, {count})"

    def add(self, scale: float) -> None:
        """Record a release of noise ``scale · L`` on a query of Lipschitz constant L.

        Raises ParameterError: ``scale`` is not positive.
        """
        self._scales.append(check_scale(scale))

    def cost(self) -> Cost:
        """Return what all releases so far cost together."""
        if not (count := len(self._scales)):
            return Cost(0, 0.0, 0.0, 0.0, 0.0)
        entrywise, joint = entrywise_loss(self._scales), joint_scale(self._scales)
        if joint < EPSILON_RANGE[0]:
            return Cost(count, entrywise, math.inf, math.inf, math.inf)
        leakage = leakage_loss(self.family, self.length, joint, **asdict(self.protection))
        theorem = math.nextafter(count * self._alone(min(self._scales)), math.inf)
        return Cost(count, entrywise, theorem, self._alone(joint), leakage)

    def _alone(self, scale: float) -> float:
        """What one release costs by quilts, or without any where these know of no adversary."""
        name = "mqm-exact" if self.protection.knows == "nothing" else "group-dp"
        return self.guarantee(self.family, self.length, scale, name, **asdict(self.protection))

    @staticmethod
    def guarantee(
        family: AnyFamily, length: Lengths, scale: float, mechanism: str, **options: Any
    ) -> float:
        """Return the smallest ε at which a mechanism asks for no more than ``scale``, rounded up.

        At most 1e-10 above it, relatively, where scales fall as ε grows; infinite where the
        mechanism is not applicable whatever ε. Raises ParameterError: ``scale`` is not positive, or
        the mechanism is unknown.
        """
        asked, scale, records = find_mechanism(mechanism), check_scale(scale), longest(length)
        if asked.uncovered(**options) or asked.unfit(family, length, **asked.own(options)):
            return math.inf

        def excess(log_epsilon: float) -> float:
            """Logarithm of what is asked for over ``scale``, within ±1000."""
            needed = asked.called(family, length, math.exp(log_epsilon), **options).scale
            if needed is None:
                return 1000.0
            if needed > scale:
                return max(math.log(needed) - math.log(scale), 1e-300)
            return min(math.log(needed) - math.log(scale), 0.0) if needed > 0 else -1000.0

        smallest, largest = map(math.log, EPSILON_RANGE)
        low = max(smallest, -math.log(scale) - PRECISION)
        high = min(largest, math.log(records / scale) + PRECISION)
        while excess(high) > 0:  # no more than group-dp asks for, but for rounding
            if high == largest:
                return math.inf
            high = min(high + 1, largest)
        if excess(low) <= 0:
            return math.exp(low)
        high = brentq(excess, low, high, xtol=PRECISION / 4, rtol=1e-15)
        while excess(high) > 0:
            high += PRECISION / 2
        return math.exp(high)
