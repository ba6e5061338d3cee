"""Event-level differentially private mechanisms on correlated records: their budget and loss.

The bounds of :func:`pufferflow.leakage` use only that the output distribution of a mechanism
changes by at most e^c when one record changes: c-differential privacy at event level. So its loss
is at most :func:`pufferflow.leakage_loss` at scale 1/c, and its budget is the inverse of the
leakage scale: an influence curve (Bai et al., arXiv 2602.02718), with proofs and certificates.
With a δ, approximate and zero-concentrated mechanisms count too (:mod:`.approximate`).
"""

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from pufferflow._util import checks
from pufferflow._util.checks import EPSILON_RANGE, Lengths, check_positive, longest
from pufferflow._util.grids import of_epsilons
from pufferflow._util.noise import PRECISION, entrywise_loss, joint_scale
from pufferflow._util.optional import load
from pufferflow._util.rounding import divide_down
from pufferflow.accounting import approximate
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import certify, compute_scale, leakage, leakage_loss
from pufferflow.models import families
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, ProtectionOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CHANGED = {"Symmetric": 2, "InsertDelete": 2, "ChangeOne": 1, "Hamming": 1}
"""Distance, by OpenDP's metrics, of data sets that differ in one record."""
_MEASURES = ("MaxDivergence", "Approximate(MaxDivergence)", "ZeroConcentratedDivergence")


@dataclass(frozen=True)
class InfluenceCurve:
    """Pufferfish ε as a function of event-level ε; :func:`influence_curve` makes it."""

    family: families.Family
    length: int
    protection: families.Protection

    def __call__(self, *event_epsilons: float) -> float:
        """Return the loss of event-level mechanisms together, in nats, rounded up.

        Each may have been chosen after the outputs of the others. Raises ParameterError: a value is
        not positive.
        """
        scales = [1 / check_positive(event, "event_epsilon") for event in event_epsilons]
        if not scales:
            return 0.0
        scale = joint_scale(scales)
        return leakage_loss(self.family, self.length, scale, **asdict(self.protection))

    def inverse(self, epsilon: float) -> float:
        """Return the event-level ε with a loss of at most ε, rounded down."""
        needed = leakage(self.family, self.length, epsilon, **asdict(self.protection))
        return divide_down(1.0, needed.noise_scale(1.0))

    def delta(self, epsilon: float, pure: float, rho: float) -> float:
        """Return a δ, rounded up, with which pure DP and zCDP mechanisms together keep ε.

        It is 1 if there is no smaller bound. The ``pure`` nats are subtracted from the event-level
        ε, or counted as zero-concentrated ones; the smaller δ holds (``docs/approximate.md``,
        Theorems A and C). Raises ParameterError: ε is out of range, or Θ has no event-level ε.
        """
        allowed = self.inverse(epsilon)
        if not rho:
            return 0.0 if pure <= allowed else 1.0
        up = 1 + PRECISION
        found = approximate.concentrated_delta(epsilon, allowed, (rho + pure**2 / 2) * up)
        if pure < allowed:
            rest = (allowed - pure) / up
            spent = approximate.concentrated_delta(rest, rest, rho * up)
            found = min(found, approximate.pufferfish_delta(epsilon, allowed, spent))
        return found

    def reset(self, epsilon: float, records: int) -> float:
        """Return the loss of mechanisms whose budget ε is reset after ``records``, in nats.

        They are ε-DP for all records of a period together, for any outputs of earlier periods.
        A window may touch p periods. The releases on each side of them depend on the chain of the
        periods' first (or last) records, of matrix P^records, like a mechanism that is ε-DP for
        one of its records. So p·ε plus twice the loss under that chain is an upper bound; another
        one is the loss of event-level mechanisms.

        Raises ParameterError: Θ has other than stationary chains, there is side information, or a
        value is out of range; ChainError: P^records does not mix.
        """
        event, records = check_positive(epsilon, "epsilon"), checks.check_whole(records, "records")
        chains = self.family.chains if isinstance(self.family, families.ChainFamily) else ()
        stationary = all(chain.start == "stationary" for chain in chains)
        if not (chains and stationary and self.protection.side_information == "none"):
            problem = "the loss of a budget that is reset is bounded for stationary chains"
            raise ParameterError(f"{problem} and without side information")
        number, touched = ((n - 2) // records + 2 for n in (self.length, self.protection.window))
        powers = [np.linalg.matrix_power(chain.transition_matrix, records) for chain in chains]
        family = families.ChainFamily([MarkovChain(power) for power in powers])
        sides = 2 * leakage_loss(family, number, 1 / event) * (1 + 1e-9)  # powers are rounded
        return min(self(event), touched * event + sides)

    def certificate(self, epsilon: float) -> dict[str, Any]:
        """Return a certificate that event-level mechanisms of ε' = 1/scale lose at most ε.

        Raises ParameterError: there is no proof for this kind of family.
        """
        options = {"mechanism": "leakage", **asdict(self.protection)}
        return certify(self.family, self.length, epsilon, **options)

    def plot(self, axes: "Axes", **style: Any) -> None:
        """Draw 25 points, of losses from about 0.01 to 10, as a line on logarithmic axes."""
        events = np.geomspace(self.inverse(0.01), self.inverse(10.0), 25).tolist()
        axes.plot(events, [*map(self, events)], **style)
        axes.set(xscale="log", yscale="log", xlabel="event-level ε", ylabel="Pufferfish ε")


def influence_curve(
    family: AnyFamily, length: Lengths, **protection: Unpack[ProtectionOptions]
) -> InfluenceCurve:
    """Return the curve from event-level ε to the Pufferfish ε under Θ.

    Bai et al. (2026) translate differentially private mechanisms by such curves; these are those of
    :func:`pufferflow.leakage_loss`. Parameters and errors are those of :func:`pufferflow.leakage`.

    Examples
    --------
    >>> import pufferflow as pf
    >>> curve = pf.influence_curve(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), length=100)
    >>> round(curve(0.1), 3), round(curve(0.05, 0.05), 3), round(curve.inverse(1.0), 3)
    (0.312, 0.312, 0.3)
    """
    theta, hidden = families.as_family(family), families.Protection(**protection)
    return InfluenceCurve(theta, checks.longest(length), hidden)


@of_epsilons
def event_epsilon(
    family: AnyFamily, length: Lengths, epsilon: float, **protection: Unpack[ProtectionOptions]
) -> float:
    """Return the total event-level ε of differentially private mechanisms, rounded down.

    Parameters and errors are those of :func:`pufferflow.leakage`.
    """
    return influence_curve(family, length, **protection).inverse(epsilon)


@of_epsilons
def gaussian_scale(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    delta: float,
    **protection: Unpack[ProtectionOptions],
) -> float:
    """Return the σ of the Gaussian noise that leakage calibration allows (Theorem B), rounded up.

    It is for a query that one record changes by at most 1 in L2 norm; one that it changes by Δ2
    gets Δ2·σ on every coordinate. Other parameters and errors are those of
    :func:`pufferflow.leakage`.
    """
    ratio = approximate.gaussian_ratio(epsilon, delta)
    return ratio / event_epsilon(family, length, epsilon, **protection) * (1 + approximate.MARGIN)


@dataclass(frozen=True)
class WrappedMeasurement:
    """A measurement of OpenDP and its curve under Θ; call it as the measurement itself.

    ``event_epsilon`` and ``event_delta`` bound the change of its output distribution by one record;
    of a zero-concentrated measurement ``rho`` does, and ``event_epsilon`` is infinite.
    """

    measurement: Any = field(repr=False)
    curve: InfluenceCurve
    event_epsilon: float
    event_delta: float = 0.0
    rho: float | None = None

    def __call__(self, data: Any) -> Any:
        """Return the measurement's release of ``data``."""
        return self.measurement(data)

    @property
    def scale(self) -> float:
        """Laplace scale of a 1-Lipschitz query of the same cost, rounded down."""
        return divide_down(1.0, self.event_epsilon)

    @property
    def loss(self) -> float:
        """Upper bound of its Pufferfish ε, in nats; infinite if only ``rho`` is known."""
        return math.inf if self.rho is not None else self.curve(self.event_epsilon)

    def delta(self, epsilon: float) -> float:
        """Return a δ, rounded up, with which it is (ε, δ)-Pufferfish private; at most 1."""
        if self.rho is not None:
            return self.curve.delta(epsilon, 0.0, self.rho)
        if checks.check_epsilon(epsilon) < (loss := self.loss):
            return 1.0
        return approximate.pufferfish_delta(loss, self.event_epsilon, self.event_delta)


def wrap(
    measurement: Any,
    family: AnyFamily,
    length: Lengths,
    *,
    d_in: float | None = None,
    **protection: Unpack[ProtectionOptions],
) -> WrappedMeasurement:
    """Return a mechanism of OpenDP with its guarantee for correlated records.

    Parameters
    ----------
    measurement : opendp Measurement
        Of pure, approximate or zero-concentrated differential privacy.
    family, length, protection
        ``window`` and ``side_information`` as for :func:`pufferflow.leakage`.
    d_in : float, optional
        Distance, in the measurement's input metric, of inputs that differ in one record; required
        only for metrics on numbers, such as counts made beforehand.

    Raises ParameterError: it is not such a measurement, or its privacy map has no finite value at
    ``d_in``.
    """
    opendp = load("opendp.mod", "the guarantee of a measurement of OpenDP")
    checks.check_type(measurement, "measurement", opendp.Measurement)
    if (measure := str(measurement.output_measure)) not in _MEASURES:
        problem = f"the effect of one record is known for {', '.join(_MEASURES)}; convert it to one"
        raise ParameterError(f"the measurement is of {measure}; {problem}")
    metric = str(measurement.input_metric)
    known = next((d for name, d in _CHANGED.items() if metric.startswith(name)), None)
    if (d_in is None) == (known is None):
        problem = "give the distance that one record makes for numbers, and none for data sets"
        raise ParameterError(f"`d_in` is {checks.shown(d_in)} for {metric}; {problem}")
    distance: float = check_positive(d_in if known is None else known, "d_in")
    if distance.is_integer() and "f" not in str(measurement.input_distance_type):
        distance = int(distance)
    where = f"the measurement's privacy loss at d_in = {distance}"
    try:
        mapped = measurement.map(distance)
    except (opendp.OpenDPException, TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"{where} is not known: {error}") from None
    loss, delta = mapped if isinstance(mapped, tuple) else (mapped, 0.0)
    loss, delta = check_positive(loss, where), check_positive(delta, f"δ of {where}", or_zero=True)
    zcdp = measure == "ZeroConcentratedDivergence"
    guarantee = {"event_epsilon": math.inf, "rho": loss} if zcdp else {"event_epsilon": loss}
    curve = influence_curve(family, length, **protection)
    return WrappedMeasurement(measurement, curve, **guarantee, event_delta=delta)


class Accountant:
    """Keeps account of releases on one chain.

    The density of Laplace releases of 1-Lipschitz queries, of scales σ_k, changes by at most
    exp(Σ 1/σ_k) with one record, also if a query was chosen after earlier outputs.

    Parameters
    ----------
    family, length, protection
        As for :func:`pufferflow.leakage`, the same for all releases.

    Examples
    --------
    >>> import pufferflow as pf
    >>> accountant = pf.Accountant(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), length=100)
    >>> accountant.add(30.0)
    >>> accountant.add(60.0)
    >>> {bound: round(epsilon, 2) for bound, epsilon in accountant.cost().items()}
    {'theorem_4_4': 1.02, 'quilts': 0.7, 'leakage': 0.15}
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

    def cost(self) -> dict[str, float]:
        """Return three bounds of the total ε of all releases so far, of which the least one holds.

        docs/any_mechanism.md defines them. They are 0 without a release, and infinite if any has
        only a ρ. With side information group-dp takes the place of quilts.
        """
        scales, of, hidden = self._scales, self.curve, asdict(self.curve.protection)
        bounds = ("theorem_4_4", "quilts", "leakage")
        if self._rho or not scales or (joint := joint_scale(scales)) < EPSILON_RANGE[0]:
            return dict.fromkeys(bounds, math.inf if self._rho or scales else 0.0)
        name = "mqm-exact" if hidden["side_information"] == "none" else "group-dp"
        alone, quilts = (
            self.guarantee(of.family, of.length, scale, name, **hidden)
            for scale in (min(scales), joint)
        )
        theorem = math.nextafter(len(scales) * alone, math.inf)
        losses = theorem, quilts, leakage_loss(of.family, of.length, joint, **hidden)
        return dict(zip(bounds, losses, strict=True))

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
        while high - low > PRECISION / 2:
            middle = (low + high) / 2
            low, high = (middle, high) if needs_more(middle) else (low, middle)
        return math.exp(high)
