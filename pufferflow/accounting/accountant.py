"""The guarantee of a scale, and the total ε of several releases on the same chain.

Releases of 1-Lipschitz queries with Laplace scales σ_1, …, σ_K change their density by at most
exp(c), c = Σ 1/σ_k, when one record changes, also if a query was chosen after earlier outputs.
Bounds of one release of scale 1/c that use only this hold for all releases together:
docs/any_mechanism.md, "Several releases".
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Unpack

from pufferflow._util.checks import EPSILON_RANGE, Lengths, check_positive, longest
from pufferflow._util.noise import PRECISION, entrywise_loss, joint_scale
from pufferflow.accounting.event import influence_curve
from pufferflow.mechanisms import compute_scale, leakage_loss
from pufferflow.models.families import AnyFamily, ProtectionOptions


@dataclass(frozen=True)
class Cost:
    """The total cost of several releases: the three bounds above, in nats."""

    releases: int
    theorem_4_4: float
    quilts: float
    leakage: float

    @property
    def epsilon(self) -> float:
        """The total ε: the smallest of the bounds."""
        return min(self.theorem_4_4, self.quilts, self.leakage)


class Accountant:
    """Keeps account of Laplace releases on one chain.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ, the same for all releases.
    length : int or sequence of int
        Segment lengths of the data.
    window, side_information
        The protection that the total is for, as for :func:`pufferflow.leakage`.

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
        self.curve = influence_curve(family, length, **protection)
        self._scales: list[float] = []
        self._rho: list[float] = []

    def __repr__(self) -> str:
        return f"Accountant({self.curve!r}, {len(self._scales) + len(self._rho)} releases)"

    def add(self, scale: float) -> None:
        """Record a release of noise ``scale · L`` on a query of Lipschitz constant L.

        Raises ParameterError: ``scale`` is not positive.
        """
        self._scales.append(check_positive(scale, "scale", EPSILON_RANGE))

    def add_concentrated(self, rho: float) -> None:
        """Record a release of ρ-zero-concentrated DP at event level, such as Gaussian noise.

        Noise of standard deviation σ on a query that one record changes by at most Δ2 in L2 norm
        has ρ = Δ2²/(2σ²). Raises ParameterError: ``rho`` is not positive.
        """
        self._rho.append(check_positive(rho, "rho"))

    def delta(self, epsilon: float) -> float:
        """Return a δ with which all releases so far together are (ε, δ)-Pufferfish private.

        It is 1 if there is no smaller bound.
        """
        pure = entrywise_loss(self._scales) if self._scales else 0.0
        return self.curve.delta(epsilon, pure, math.fsum(self._rho))

    def cost(self) -> Cost:
        """Return the total cost of all releases so far; infinite if any has only a ρ.

        With side information group-dp takes the place of quilts.
        """
        scales, count, of = self._scales, len(self._scales) + len(self._rho), self.curve
        if not count:
            return Cost(0, 0.0, 0.0, 0.0)
        if self._rho or (joint := joint_scale(scales)) < EPSILON_RANGE[0]:
            return Cost(count, math.inf, math.inf, math.inf)
        hidden = asdict(of.protection)
        name = "mqm-exact" if hidden["side_information"] == "none" else "group-dp"
        alone, quilts = (
            self.guarantee(of.family, of.length, scale, name, **hidden)
            for scale in (min(scales), joint)
        )
        leakage = leakage_loss(of.family, of.length, joint, **hidden)
        return Cost(count, math.nextafter(count * alone, math.inf), quilts, leakage)

    @staticmethod
    def guarantee(
        family: AnyFamily, length: Lengths, scale: float, mechanism: str, **options: Any
    ) -> float:
        """Return the smallest ε at which a mechanism needs at most ``scale``, rounded up.

        The relative error is at most 1e-10 if scales fall as ε grows; the result is infinite if the
        mechanism is not applicable at any ε. Raises ParameterError: ``scale`` is not positive, or
        the mechanism is unknown.
        """
        scale, records = check_positive(scale, "scale", EPSILON_RANGE), longest(length)
        if compute_scale(mechanism, family, length, 1.0, **options).scale is None:
            return math.inf

        def needs_more(log_epsilon: float) -> bool:
            epsilon = math.exp(log_epsilon)
            needed = compute_scale(mechanism, family, length, epsilon, **options).scale
            return needed is None or needed > scale

        smallest, largest = map(math.log, EPSILON_RANGE)
        low = max(smallest, -math.log(scale) - PRECISION)
        high = min(largest, math.log(records / scale) + PRECISION)
        while needs_more(high):  # group-dp needs no more, except for rounding
            if high == largest:
                return math.inf
            high = min(high + 1, largest)
        if not needs_more(low):
            return math.exp(low)
        while high - low > PRECISION / 2:
            middle = (low + high) / 2
            low, high = (middle, high) if needs_more(middle) else (low, middle)
        return math.exp(high)
