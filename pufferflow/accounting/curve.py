"""The influence curve: the Pufferfish ε of event-level mechanisms, as an object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from pufferflow._util.checks import Lengths, check_list, check_positive, check_whole, longest
from pufferflow._util.noise import PRECISION, joint_scale
from pufferflow._util.rounding import divide_down
from pufferflow.accounting.approximate import concentrated_delta, pufferfish_delta
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import certify, leakage, leakage_loss
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, ChainFamily, Family, as_family
from pufferflow.models.protection import Protection, ProtectionOptions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class InfluenceCurve:
    """Pufferfish ε as a function of event-level ε; :func:`influence_curve` makes it."""

    family: Family
    length: int
    protection: Protection

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
        rho *= 1 + PRECISION
        found = concentrated_delta(epsilon, allowed, rho + pure**2 / 2 * (1 + PRECISION))
        if pure < allowed:
            rest = (allowed - pure) * (1 - PRECISION)
            spent = concentrated_delta(rest, rest, rho)
            found = min(found, pufferfish_delta(epsilon, allowed, spent))
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
        event, records = check_positive(epsilon, "epsilon"), check_whole(records, "records")
        chains = self.family.chains if isinstance(self.family, ChainFamily) else ()
        stationary = all(chain.start == "stationary" for chain in chains)
        if not (chains and stationary and self.protection.side_information == "none"):
            what = "the loss of a budget that is reset is bounded for stationary chains"
            raise ParameterError(f"{what} and without side information")
        number, touched = ((n - 2) // records + 2 for n in (self.length, self.protection.window))
        powers = [np.linalg.matrix_power(chain.transition_matrix, records) for chain in chains]
        family = ChainFamily([MarkovChain(power) for power in powers])
        sides = 2 * leakage_loss(family, number, 1 / event) * (1 + 1e-9)  # powers are rounded
        return min(self(event), touched * event + sides)

    def certificate(self, epsilon: float) -> dict[str, Any]:
        """Return a certificate that event-level mechanisms of ε' = 1/scale lose at most ε.

        Raises ParameterError: there is no proof for this kind of family.
        """
        options = {"mechanism": "leakage", **asdict(self.protection)}
        return certify(self.family, self.length, epsilon, **options)

    def table(self, event_epsilons: Iterable[float] | None = None) -> pd.DataFrame:
        """Return points of the curve: columns ``event_epsilon`` and ``epsilon``.

        The default is 25 points, whose losses run from about 0.01 to 10.
        """
        import pandas as pd

        if event_epsilons is None:
            event_epsilons = np.geomspace(self.inverse(0.01), self.inverse(10.0), 25)
        events = [float(event) for event in check_list(event_epsilons, "event_epsilons")]
        return pd.DataFrame({"event_epsilon": events, "epsilon": map(self, events)})

    def plot(self, axes: Axes, **style: Any) -> None:
        """Draw the points of :meth:`table` as a line on logarithmic axes."""
        points = self.table()
        axes.plot(points["event_epsilon"], points["epsilon"], **style)
        axes.set(xscale="log", yscale="log", xlabel="event-level ε", ylabel="Pufferfish ε")


def influence_curve(
    family: AnyFamily, length: Lengths, **protection: Unpack[ProtectionOptions]
) -> InfluenceCurve:
    """Return the curve from event-level ε to the Pufferfish ε under Θ.

    Bai et al. (2026) translate differentially private mechanisms by such curves; here they come
    from the bounds of :func:`pufferflow.leakage_loss`, which are exact for stationary chains of two
    states, and exist for every Θ, window and side information that :func:`pufferflow.leakage`
    takes.

    Parameters
    ----------
    family, length, protection
        As for :func:`pufferflow.leakage`.

    Raises ParameterError: one is out of range.

    Examples
    --------
    >>> import pufferflow as pf
    >>> curve = pf.influence_curve(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), length=100)
    >>> round(curve(0.1), 3), round(curve(0.05, 0.05), 3), round(curve.inverse(1.0), 3)
    (0.312, 0.312, 0.3)
    """
    return InfluenceCurve(as_family(family), longest(length), Protection(**protection))
