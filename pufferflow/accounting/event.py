"""Any mechanism on correlated records: what a differentially private one may spend, and loses.

The bounds of :func:`pufferflow.leakage` use of a mechanism only that its output distribution
changes by at most e^c when one record changes: c-differential privacy at event level. So it loses
at most :func:`pufferflow.leakage_loss` at scale 1/c, and may spend 1/σ, σ what leakage asks for.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Unpack

from pufferflow._util.checks import Lengths, check_positive, check_type, longest, shown
from pufferflow._util.optional import load
from pufferflow._util.protection import Protection, ProtectionOptions, check_protection
from pufferflow._util.rounding import divide_down
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import leakage, leakage_loss
from pufferflow.models.families import AnyFamily, Family, as_family

_CHANGED = {"Symmetric": 2, "InsertDelete": 2, "ChangeOne": 1, "Hamming": 1}
"""Distance, by OpenDP's metrics, of data sets that differ in one record."""


def event_epsilon(
    family: AnyFamily, length: Lengths, epsilon: float, **protection: Unpack[ProtectionOptions]
) -> float:
    """Event-level ε that differentially private mechanisms may spend together, rounded down.

    Parameters and errors are those of :func:`pufferflow.leakage`.
    """
    needed = leakage(family, length, epsilon, **protection)
    return divide_down(1.0, needed.noise_scale(1.0))


@dataclass(frozen=True)
class WrappedMeasurement:
    """A measurement of OpenDP and Θ; call it as the measurement itself.

    ``event_epsilon`` is the largest change in nats of its output distribution by one record.
    """

    measurement: Any = field(repr=False)
    family: Family
    length: int
    event_epsilon: float
    protection: Protection

    def __call__(self, data: Any) -> Any:
        """Return what the measurement releases of ``data``."""
        return self.measurement(data)

    @property
    def scale(self) -> float:
        """Laplace scale of a 1-Lipschitz query that costs as much, rounded down."""
        return divide_down(1.0, self.event_epsilon)

    @property
    def loss(self) -> float:
        """Upper bound of its Pufferfish loss, in nats, for the secrets of ``protection``."""
        return leakage_loss(self.family, self.length, self.scale, **asdict(self.protection))


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
        Of pure differential privacy (its output measure is ``MaxDivergence``).
    family, length, protection
        ``window`` and ``side_information`` as for :func:`pufferflow.leakage`.
    d_in : float, optional
        Distance, in the measurement's input metric, of inputs that differ in one record: known for
        metrics on data sets, to be given for one on numbers, such as counts made beforehand.

    Raises
    ------
    ParameterError
        It is no such measurement, or its privacy map has no finite value at ``d_in``.
    """
    opendp = load("opendp.mod", "what a measurement of OpenDP guarantees")
    check_type(measurement, "measurement", opendp.Measurement)
    if (measure := str(measurement.output_measure)) != "MaxDivergence":
        what = "only pure differential privacy (MaxDivergence) bounds what one record changes"
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
        event = float(measurement.map(distance))
    except (opendp.OpenDPException, TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"{where} is not known: {error}") from None
    event, hidden = check_positive(event, where), check_protection(**protection)
    return WrappedMeasurement(measurement, as_family(family), longest(length), event, hidden)
