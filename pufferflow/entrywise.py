"""Any mechanism on correlated records: how much a differentially private one may spend, and what it loses.

All that the bounds of :func:`pufferflow.leakage` use of a mechanism is that its output law changes by at most e^c when
one record changes. That is c-differential privacy at event level, however the mechanism was made, adaptive or not; so
such a mechanism has a Pufferfish loss of at most :func:`pufferflow.leakage_loss` at scale 1/c, and for a wanted ε the
largest c whose loss is at most ε is 1/σ, σ the scale that leakage asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pufferflow._checks import Lengths, check_positive, longest
from pufferflow._display import displayed
from pufferflow._optional import require
from pufferflow._protection import Knowledge, Protection, check_protection
from pufferflow._rounding import divide_down
from pufferflow.errors import ParameterError
from pufferflow.markov.families import AnyFamily, Family, as_family
from pufferflow.mechanisms import leakage, leakage_loss

_CHANGED = {"SymmetricDistance": 2, "InsertDeleteDistance": 2, "ChangeOneDistance": 1, "HammingDistance": 1}
"""How far apart two data sets are, by OpenDP's metrics on them, that differ in one record."""


def entry_epsilon(
    family: AnyFamily, length: Lengths, epsilon: float, *, window: int = 1, knows: Knowledge = "nothing"
) -> float:
    """Event-level ε that any differentially private mechanism may spend, rounded down.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ.
    length : int or sequence of int
        Segment lengths.
    epsilon : float
        ε > 0, what may be learnt of the secrets.
    window, knows
        Secrets and adversaries, as for :func:`pufferflow.leakage`.

    Returns
    -------
    float
        c: a mechanism whose output law changes by at most e^c when one record changes to any other value has a
        Pufferfish loss of at most ε. Several such mechanisms may share it.

    Raises
    ------
    ParameterError
        An argument is out of range.
    """
    needed = leakage(family, length, epsilon, window=window, knows=knows)
    return divide_down(1.0, needed.noise_scale(1.0))


@dataclass(frozen=True)
@displayed("length", "event_epsilon", "loss")
class WrappedMeasurement:
    """A mechanism of OpenDP with what it tells of correlated records; call it as the measurement itself.

    Attributes
    ----------
    measurement : opendp Measurement
    family : Family
        Θ.
    length : int
        T of the longest segment.
    event_epsilon : float
        By how much, in nats, its output law changes when one record changes: its privacy map at ``d_in``.
    protection : Protection
        Secrets and adversaries.
    """

    measurement: Any
    family: Family
    length: int
    event_epsilon: float
    protection: Protection

    def __call__(self, data: Any) -> Any:
        """Return what the measurement releases of ``data``."""
        return self.measurement(data)

    @property
    def scale(self) -> float:
        """Laplace scale of a 1-Lipschitz query that costs as much, rounded down: what an account takes."""
        return divide_down(1.0, self.event_epsilon)

    @property
    def loss(self) -> float:
        """Upper bound of its Pufferfish loss, in nats: ε of the guarantee for the secrets of ``protection``."""
        window, knows = self.protection.window, self.protection.knows
        return leakage_loss(self.family, self.length, self.scale, window=window, knows=knows)


def wrap(
    measurement: Any,
    family: AnyFamily,
    length: Lengths,
    *,
    d_in: float | None = None,
    window: int = 1,
    knows: Knowledge = "nothing",
) -> WrappedMeasurement:
    """Say what a mechanism of OpenDP tells of correlated records.

    Parameters
    ----------
    measurement : opendp Measurement
        Of pure differential privacy (its output measure is ``MaxDivergence``).
    family : Family or MarkovChain
        Θ.
    length : int or sequence of int
        Segment lengths of the records.
    d_in : float, optional
        Distance, in the measurement's input metric, of inputs that differ in one record. Known for metrics on data
        sets (2 for ``SymmetricDistance``, which counts the record that goes and the one that comes); of a measurement
        on numbers, such as counts made beforehand, it is the query's sensitivity to one record and has to be given.
    window, knows
        Secrets and adversaries, as for :func:`pufferflow.leakage`.

    Returns
    -------
    WrappedMeasurement

    Raises
    ------
    ParameterError
        It is no such measurement, its privacy map has no finite value at ``d_in``, or an argument is out of range.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> import pufferflow as pf
    >>> dp.enable_features("contrib")
    >>> hour = pf.ForgettingFamily(60, 0.4)
    >>> c = pf.entry_epsilon(hour, 10_000, epsilon=1.0)
    >>> noisy = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=1 / c * (1 + 1e-9))
    >>> wrapped = pf.wrap(noisy, hour, 10_000, d_in=1)
    >>> round(wrapped.loss, 6)
    1.0
    """
    require("opendp", "what a measurement of OpenDP tells")
    from opendp.mod import Measurement, OpenDPException

    if not isinstance(measurement, Measurement):
        raise ParameterError(f"measurement is of type {type(measurement).__name__}; give a Measurement of OpenDP")
    if (measure := str(measurement.output_measure)) != "MaxDivergence":
        raise ParameterError(
            f"the measurement's output measure is {measure}; only pure differential privacy (MaxDivergence) bounds how "
            "much its output law changes with one record"
        )
    distance = _distance(measurement, d_in)
    protection = check_protection(window, knows)
    try:
        event = float(cast(Any, measurement).map(distance))
    except (OpenDPException, TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"the measurement has no privacy loss at d_in = {distance}: {error}") from None
    return WrappedMeasurement(measurement, as_family(family), longest(length), _checked(event), protection)


def _distance(measurement: Any, given: float | None) -> float:
    """``d_in`` as a number of the type that the measurement wants."""
    metric = str(measurement.input_metric)
    known = next((d for name, d in _CHANGED.items() if metric.startswith(name)), None)
    if given is None:
        if known is None:
            raise ParameterError(
                f"the measurement's input metric is {metric}; give d_in, the distance of inputs that differ in one "
                "record"
            )
        return known
    distance = check_positive(given, "d_in")
    if known is not None and distance < known:
        raise ParameterError(f"d_in is {given}; data sets that differ in one record are {known} apart by {metric}")
    return int(distance) if distance == int(distance) and "f" not in str(measurement.input_distance_type) else distance


def _checked(event: float) -> float:
    try:
        return check_positive(event, "the measurement's privacy loss")
    except ParameterError as error:
        raise ParameterError(f"{error}; it must change its output law by a finite factor, above 1") from None
