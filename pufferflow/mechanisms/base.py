"""Arguments and results of all mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from pufferflow._util.checks import Lengths, check_epsilon, check_positive, longest, shown_name
from pufferflow.errors import ParameterError
from pufferflow.models.families import AnyFamily, Protection, SideInformation, as_family


class Quilt(NamedTuple):
    """Distances of the quilt nodes left (a) and right (b) of a node; None for no quilt node."""

    left: int | None
    right: int | None


class Count(NamedTuple):
    """A count: the number of visits of segments of these lengths to a set of states, from 0."""

    states: tuple[int, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class NoiseScale:
    """The Laplace scale of a mechanism, with the settings and nodes that determine it."""

    mechanism: str
    epsilon: float
    length: int
    """The segment length that determines the scale: the longest, except for ``wasserstein``."""
    scale: float | None = None
    """Laplace scale of a 1-Lipschitz query, in units of the query, never below the exact value; an
    L-Lipschitz query (L1 norm) gets L · scale on every coordinate. None if not applicable.
    """
    reason: str = ""
    """The reason if it is not applicable, or a remark; otherwise empty."""
    node: int | None = None
    """A worst node, 1-based; for windows the first one of a worst window."""
    quilt: Quilt | None = None
    """The active quilt of that node; ``Quilt(None, None)`` is the trivial one."""
    influence: float | None = None
    """Max-influence of that quilt, in nats."""
    chain: int | None = None
    """Index in the family, from 0, of the worst chain."""
    count: Count | None = None
    """The only query, with its functions, for a scale of ``wasserstein``."""
    window: int = 1
    """Number of consecutive records that are protected together."""
    side_information: SideInformation = "none"
    """Side information: none, or any other records of the participant."""
    certificate: dict[str, Any] | None = field(default=None, compare=False, repr=False)
    """Proof of the scale as JSON types, if requested (:meth:`certified`)."""

    @property
    def status(self) -> Literal["ok", "not applicable"]:
        """Whether there is a scale."""
        return "not applicable" if self.scale is None else "ok"

    def noise_scale(self, lipschitz: float) -> float:
        """Return the scale for a query with the given Lipschitz constant in L1 norm.

        Raises ParameterError: the mechanism is not applicable, or ``lipschitz`` not positive.
        """
        if self.scale is None:
            why = f"{self.mechanism} is not applicable ({self.reason})"
            raise ParameterError(f"{why}; choose another mechanism")
        return self.scale * check_positive(lipschitz, "lipschitz")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON types, without the certificate."""
        fields = asdict(replace(self, certificate=None))
        del fields["certificate"]
        head = {name: fields.pop(name) for name in ("mechanism", "epsilon", "length", "scale")}
        if self.quilt is not None:
            fields["quilt"] = self.quilt._asdict()
        if self.count is not None:
            fields["count"] = {name: list(part) for name, part in self.count._asdict().items()}
        return head | {"status": self.status} | fields

    def certified(self, family: AnyFamily) -> NoiseScale:
        """Return the proved scale, slightly larger if necessary, with its certificate.

        ``family`` is the one it was computed for. Raises ParameterError: there is no certificate,
        with the reason.
        """
        from pufferflow.certificates.prove import prove  # loads the interval arithmetic
        from pufferflow.verify.parse import MECHANISMS

        if self.mechanism not in MECHANISMS:
            why = f"only the scales of {', '.join(MECHANISMS)} have proofs"
            raise ParameterError(f"no certificate for {shown_name(self.mechanism)}: {why}")
        if self.scale is None:
            raise ParameterError(f"no certificate for {self.mechanism}: {self.reason}")
        certificate = prove(self, as_family(family))
        return replace(self, scale=float(certificate["scale"]), certificate=certificate)


def requested(
    mechanism: str,
    length: Lengths,
    epsilon: float,
    window: Any = 1,
    side_information: Any = "none",
    lacks: Sequence[str] = (),
) -> NoiseScale:
    """Return the checked arguments of a mechanism, as a result without a scale yet.

    The ``reason`` is set if an option is used that the mechanism ``lacks`` bounds for.
    """
    protection, reason = Protection(window, side_information), ""
    if protection.window > 1 and "window" in lacks:
        reason = f"{mechanism} protects single records; use leakage, which has a bound for windows"
    elif protection.side_information != "none" and "side_information" in lacks:
        who = "side information about other records"
        reason = f"{mechanism} has no bound for {who}; use leakage or group-dp"
    epsilon, records = check_epsilon(epsilon), longest(length)
    return NoiseScale(mechanism, epsilon, records, reason=reason, **asdict(protection))
