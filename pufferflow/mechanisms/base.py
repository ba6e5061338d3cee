"""What every mechanism takes and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._checks import check_numbers, check_positive, check_type
from pufferflow.errors import ParameterError
from pufferflow.influence.tables import Convention
from pufferflow.markov.chain import Floats
from pufferflow.markov.families import AnyFamily


class Quilt(NamedTuple):
    """Distances of the quilt nodes left (a) and right (b) of a node; None where there is none."""

    left: int | None
    right: int | None


class Count(NamedTuple):
    """A count: how often segments of these lengths visit a set of states, counted from 0."""

    states: tuple[int, ...]
    lengths: tuple[int, ...]


class LaplaceNoise:
    """Noise from a scale, for the results of all mechanisms."""

    mechanism: str
    scale: float | None
    reason: str

    def noise_scale(self, lipschitz: float) -> float:
        """Scale for a query with the given Lipschitz constant in L1 norm.

        Raises
        ------
        ParameterError
            The mechanism is not applicable, or ``lipschitz`` is not a positive number.
        """
        if self.scale is None:
            raise ParameterError(f"{self.mechanism} is not applicable ({self.reason}); choose another mechanism")
        return self.scale * check_positive(lipschitz, "lipschitz")

    def release(self, values: ArrayLike, lipschitz: float, rng: np.random.Generator) -> Floats:
        """Return ``values`` plus independent Laplace noise of scale ``lipschitz * scale``, same shape.

        The noise is double-precision and from ``rng``: fit for experiments. It does not defend against
        attacks on the low bits of floating-point noise.

        Raises
        ------
        ParameterError
            As :meth:`noise_scale`, or ``rng`` is no generator.
        DataError
            ``values`` are not numbers.
        """
        exact = check_numbers(values, "values")
        check_type(rng, "rng", np.random.Generator)
        return exact + rng.laplace(0.0, self.noise_scale(lipschitz), exact.shape)


@dataclass(frozen=True)
class NoiseScale(LaplaceNoise):
    """The Laplace scale a mechanism asks for, and why.

    Attributes
    ----------
    mechanism : str
    epsilon : float
    length : int
        The segment length that decides: the longest (no scale decreases with the length), but for ``wasserstein``.
    scale : float or None
        Laplace scale of a 1-Lipschitz query, in units of the query, never below the exact value; an
        L-Lipschitz query (L1 norm) gets L · scale on every coordinate. None if not applicable.
    status : {"ok", "not applicable"}
    reason : str
        Why it is not applicable, or what else there is to know; otherwise empty.
    node : int or None
        A worst node, 1-based.
    quilt : Quilt or None
        The quilt that decides there; ``Quilt(None, None)`` is the trivial one.
    influence : float or None
        Max-influence of that quilt, in nats.
    chain : int or None
        Index in the family, from 0, of the chain that decides.
    count : Count or None
        The one query, with its functions, that the scale of ``wasserstein`` is for; those of the others are for every
        query.
    certificate : dict or None
        Proof of the scale as JSON types, where it was asked for (:meth:`certified`).
    """

    mechanism: str
    epsilon: float
    length: int
    scale: float | None
    status: Literal["ok", "not applicable"] = "ok"
    reason: str = ""
    node: int | None = None
    quilt: Quilt | None = None
    influence: float | None = None
    chain: int | None = None
    count: Count | None = None
    certificate: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON types, without the certificate."""
        fields = asdict(replace(self, certificate=None))
        del fields["certificate"]
        fields["quilt"] = None if self.quilt is None else self.quilt._asdict()
        fields["count"] = None if self.count is None else {k: list(v) for k, v in self.count._asdict().items()}
        return fields

    def certified(self, family: AnyFamily, convention: Convention = "exact") -> NoiseScale:
        """Return this scale with a certificate, and as that proves it (:func:`pufferflow.certify`).

        Parameters
        ----------
        family : Family or MarkovChain
            The one this is the scale of.
        convention : {"exact", "published"}
            The one it was computed with.

        Raises
        ------
        ParameterError
            There is none, with the reason.
        """
        from pufferflow.certificates import certify  # loads the interval arithmetic

        if self.scale is None:
            raise ParameterError(f"no certificate for {self.mechanism}: {self.reason}")
        certificate = certify(
            family,
            self.length if self.count is None else self.count.lengths,
            self.epsilon,
            convention=convention,
            mechanism=self.mechanism,
            scale=self.scale,
            states=None if self.count is None else self.count.states,
        )
        return replace(self, scale=float(certificate["scale"]), certificate=certificate)


Mechanism: TypeAlias = Callable[..., NoiseScale]
"""A function of a family, segment lengths and ε, and options of its own."""
