"""Event-level differentially private mechanisms on correlated records: their budget and loss.

The bounds of :func:`pufferflow.leakage` use only that the output distribution of a mechanism
changes by at most e^c when one record changes: c-differential privacy at event level. So its loss
is at most :func:`pufferflow.leakage_loss` at scale 1/c, and its budget is the inverse of the
leakage scale: an influence curve (Bai et al., arXiv 2602.02718), with proofs and certificates.
With a δ, approximate and zero-concentrated mechanisms count too (:mod:`.approximate`).
"""

import math
from dataclasses import dataclass, field
from typing import Any, Unpack

from pufferflow._util.checks import Lengths, check_epsilon, check_positive, check_type, shown
from pufferflow._util.grids import of_epsilons
from pufferflow._util.optional import load
from pufferflow._util.rounding import divide_down
from pufferflow.accounting.approximate import MARGIN, gaussian_ratio, pufferfish_delta
from pufferflow.accounting.curve import InfluenceCurve, influence_curve
from pufferflow.errors import ParameterError
from pufferflow.models.families import AnyFamily
from pufferflow.models.protection import ProtectionOptions

_CHANGED = {"Symmetric": 2, "InsertDelete": 2, "ChangeOne": 1, "Hamming": 1}
"""Distance, by OpenDP's metrics, of data sets that differ in one record."""
_MEASURES = ("MaxDivergence", "Approximate(MaxDivergence)", "ZeroConcentratedDivergence")


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
    gets Δ2·σ on every coordinate. It is less than Laplace noise with the same guarantee if many
    statistics share a record: at δ = 1e-6 from about 12 means or 6 histograms on. Other
    parameters and errors are those of :func:`pufferflow.leakage`.
    """
    ratio = gaussian_ratio(epsilon, delta)
    return ratio / event_epsilon(family, length, epsilon, **protection) * (1 + MARGIN)


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
        if check_epsilon(epsilon) < (loss := self.loss):
            return 1.0
        return pufferfish_delta(loss, self.event_epsilon, self.event_delta)


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

    Raises
    ------
    ParameterError
        It is not such a measurement, or its privacy map has no finite value at ``d_in``.
    """
    opendp = load("opendp.mod", "the guarantee of a measurement of OpenDP")
    check_type(measurement, "measurement", opendp.Measurement)
    if (measure := str(measurement.output_measure)) not in _MEASURES:
        what = f"the effect of one record is known for {', '.join(_MEASURES)}; convert it to one"
        raise ParameterError(f"the measurement is of {measure}; {what}")
    metric = str(measurement.input_metric)
    known = next((d for name, d in _CHANGED.items() if metric.startswith(name)), None)
    if (d_in is None) == (known is None):
        what = "give the distance that one record makes for numbers, and none for data sets"
        raise ParameterError(f"`d_in` is {shown(d_in)} for {metric}; {what}")
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
