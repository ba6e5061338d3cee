"""What every mechanism takes and returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pufferflow.errors import ParameterError
from pufferflow.influence.tables import Convention
from pufferflow.markov.chain import Floats, MarkovChain
from pufferflow.markov.families import Family

Lengths: TypeAlias = int | Sequence[int]
AnyFamily: TypeAlias = Family | MarkovChain


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
        if not (math.isfinite(lipschitz) and lipschitz > 0):
            raise ParameterError(f"lipschitz is {lipschitz}; it must be a positive number")
        return self.scale * lipschitz

    def release(self, values: ArrayLike, lipschitz: float, rng: np.random.Generator) -> Floats:
        """Return ``values`` plus independent Laplace noise of scale ``lipschitz * scale``, same shape.

        The noise is double-precision and from ``rng``: fit for experiments. It does not defend against
        attacks on the low bits of floating-point noise.

        Raises
        ------
        ParameterError
            As :meth:`noise_scale`.
        """
        exact = np.asarray(values, dtype=np.float64)
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


EPSILON_RANGE = (1e-90, 1e90)
"""Within it no scale overflows, and ε stays below the number that stands for +∞ in the influence tables."""

LONGEST = 2**62
"""Longest segment: sums of two positions must fit 64 bits."""


def check_epsilon(epsilon: float) -> float:
    """Return ε as a float, or raise :class:`ParameterError` unless it is positive and within ``EPSILON_RANGE``."""
    return _positive(epsilon, "epsilon", EPSILON_RANGE)


def check_scale(scale: float, limits: tuple[float, float] = EPSILON_RANGE) -> float:
    """Return a Laplace scale as a float; raises as :func:`check_epsilon`, here for what is not within ``limits``."""
    return _positive(scale, "scale", limits)


def _positive(number: float, name: str, limits: tuple[float, float]) -> float:
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} is {number!r}; it must be a positive number") from None
    if not value > 0:
        raise ParameterError(f"{name} is {number}; it must be a positive number")
    smallest, largest = limits
    if not smallest <= value <= largest:
        raise ParameterError(f"{name} is {number}; it must lie between {smallest} and {largest}")
    return value


def longest(length: Lengths) -> int:
    """Return the longest segment, or raise :class:`ParameterError` unless all are integers of at least 1."""
    try:
        lengths = np.atleast_1d(np.asarray(length))
    except ValueError:  # rows of unequal length
        raise ParameterError(f"length is {length!r}; it must be an integer or a list of integers") from None
    if lengths.size == 0:
        raise ParameterError("the list of segment lengths is empty; give at least one length")
    huge = lengths.dtype.kind == "O" and all(type(n) is int for n in lengths.flat)  # beyond 64 bits, refused below
    if lengths.ndim > 1 or not (huge or lengths.dtype.kind in "iu"):
        raise ParameterError(f"length is {length!r}; it must be an integer or a list of integers")
    shortest, records = int(lengths.min()), int(lengths.max())
    if shortest < 1:
        raise ParameterError(f"a segment length is {shortest}; every segment has at least 1 record")
    if records > LONGEST:
        raise ParameterError(f"a segment length is {records}; the largest that can be handled is {LONGEST}")
    return records
