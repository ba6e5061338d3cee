"""What every mechanism takes and returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from inspect import signature
from typing import Any, Literal, NamedTuple, get_args

from pufferflow._util.checks import (
    Lengths,
    check_choice,
    check_epsilon,
    check_positive,
    longest,
    shown_name,
)
from pufferflow._util.noise import LaplaceNoise
from pufferflow._util.protection import (
    NARROWEST,
    PROTECTION,
    Protection,
    SideInformation,
    asked_for,
    check_protection,
)
from pufferflow.errors import ParameterError
from pufferflow.influence.quilts import Candidate, Convention
from pufferflow.models.families import AnyFamily, as_family


class Quilt(NamedTuple):
    """Distances of the quilt nodes left (a) and right (b) of a node; None where there is none."""

    left: int | None
    right: int | None


class Count(NamedTuple):
    """A count: how often segments of these lengths visit a set of states, counted from 0."""

    states: tuple[int, ...]
    lengths: tuple[int, ...]

    def weights(self, states: int) -> list[int]:
        """What a visit to each of all ``states`` adds to the count."""
        return [int(x in self.states) for x in range(states)]


@dataclass(frozen=True)
class NoiseScale(LaplaceNoise):
    """The Laplace scale a mechanism asks for, and why.

    Attributes
    ----------
    mechanism : str
    epsilon : float
    length : int
        The segment length that decides: the longest (exact scales never decrease with it), but for ``wasserstein``.
    scale : float or None
        Laplace scale of a 1-Lipschitz query, in units of the query, never below the exact value; an
        L-Lipschitz query (L1 norm) gets L · scale on every coordinate. None if not applicable.
    status : {"ok", "not applicable"}
    reason : str
        Why it is not applicable, or what else there is to know; otherwise empty.
    node : int or None
        A worst node, 1-based; of windows the first one of a worst window.
    quilt : Quilt or None
        The quilt that decides there; ``Quilt(None, None)`` is the trivial one.
    influence : float or None
        Max-influence of that quilt, in nats.
    chain : int or None
        Index in the family, from 0, of the chain that decides.
    count : Count or None
        The one query, with its functions, that the scale of ``wasserstein`` is for; those of the others are for every
        query.
    window : int
        Secrets are what happened during so many consecutive records.
    side_information : {"none", "any"}
        What an adversary may know beside Θ: nothing, or any other records of the participant.
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
    window: int = 1
    side_information: SideInformation = "none"
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
            window=self.window,
            side_information=self.side_information,
        )
        return replace(self, scale=float(certificate["scale"]), certificate=certificate)


def not_applicable(
    mechanism: str, epsilon: float, length: int, reason: str, protection: Protection = NARROWEST
) -> NoiseScale:
    """Return the result of a mechanism that cannot work."""
    return NoiseScale(mechanism, epsilon, length, None, "not applicable", reason, **asdict(protection))


def of_quilt(
    mechanism: str, epsilon: float, length: int, worst: Candidate, window: int, chain: int | None = None
) -> NoiseScale:
    """Return the scale that the worst node with its best quilt asks for."""
    return NoiseScale(
        mechanism,
        epsilon,
        length,
        worst.score,
        node=worst.node,
        quilt=Quilt(worst.left, worst.right),
        influence=worst.influence,
        chain=chain,
        window=window,
    )


def unfit_informed(mechanism: str, side_information: SideInformation) -> str:
    """Why a mechanism cannot work that bounds what an adversary learns who knows no records; empty for such ones."""
    if check_protection(1, side_information) == NARROWEST:
        return ""
    return f"{mechanism} has no bound for adversaries who know other records; use leakage or group-dp"


def _always(family: AnyFamily, length: Lengths, **options: Any) -> str:
    return ""


@dataclass(frozen=True)
class Mechanism:
    """What there is to know of a mechanism.

    Attributes
    ----------
    name : str
        As commands and settings write it; ``reporting.style`` has its label, for figures depend on no mechanism.
    scale : callable
        The public function of a family, segment lengths and ε, and options of its own.
    unfit : callable
        Of the family, the lengths and the options: why the mechanism cannot work there, empty where it can.
    every_query : bool
        Whether the scale holds for every 1-Lipschitz query, or for one count only.
    private : bool
        Whether it hides an entry of correlated records, or is a baseline that does not.
    """

    name: str
    scale: Callable[..., NoiseScale]
    unfit: Callable[..., str] = _always
    every_query: bool = True
    private: bool = True

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that are its own."""
        return _options(self.scale)

    def own(self, options: dict[str, Any]) -> dict[str, Any]:
        """Those options that the mechanism has; it may lack ``window`` and ``side_information``."""
        return {key: value for key, value in options.items() if key in self.options or key not in PROTECTION}

    def called(self, family: AnyFamily, length: Lengths, epsilon: float, **options: Any) -> NoiseScale:
        """Return the scale, or "not applicable" where it has no bound for such a ``window`` or ``side_information``."""
        if reason := self.uncovered(**options):
            return not_applicable(self.name, check_epsilon(epsilon), longest(length), reason, asked_for(options))
        return self.scale(family, length, epsilon, **self.own(options))

    def uncovered(self, **options: Any) -> str:
        """Why the mechanism has no bound for such secrets or adversaries, empty where it has options for them."""
        protection = asked_for(options)
        if protection.window > 1 and "window" not in self.options:
            return f"{self.name} hides single records; use a mechanism with a bound for windows, such as leakage"
        if protection.side_information != "none" and "side_information" not in self.options:
            return unfit_informed(self.name, protection.side_information)
        return ""


@cache
def _options(scale: Callable[..., NoiseScale]) -> tuple[str, ...]:
    return tuple(signature(scale).parameters)[3:]


KNOWN: dict[str, Mechanism] = {}
"""All mechanisms by name, those with the least noise first, baselines last; the package fills it."""


def find_mechanism(name: str) -> Mechanism:
    """Return the mechanism called ``name``.

    Raises
    ------
    ParameterError
        There is none.
    """
    try:
        return KNOWN[name]
    except (KeyError, TypeError):
        raise ParameterError(f"mechanism {shown_name(name)} is unknown; choose from {', '.join(KNOWN)}") from None


def compute_scale(name: str, family: AnyFamily, length: Lengths, epsilon: float, **options: Any) -> NoiseScale:
    """Return the scale of a mechanism with options of its own, "not applicable" with the reason where it cannot work.

    ``window`` and ``side_information`` may be given to all of them.

    Raises
    ------
    ParameterError
        The mechanism is unknown, or an argument out of range.
    """
    mechanism = find_mechanism(name)
    if reason := mechanism.uncovered(**options) or mechanism.unfit(family, length, **mechanism.own(options)):
        return not_applicable(name, check_epsilon(epsilon), longest(length), reason, asked_for(options))
    return mechanism.called(family, length, epsilon, **options)


def certify(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    convention: Convention = "exact",
    mechanism: str = "mqm-exact",
    scale: float | None = None,
    states: Sequence[int] | None = None,
    window: int = 1,
    side_information: SideInformation = "none",
) -> dict[str, Any]:
    """Return a certificate of the scale of a mechanism.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ. Every float stands for its shortest decimal (0.1 for ``0.1``), rows are divided by their exact sum.
    length : int or sequence of int
        Segment lengths; only for wasserstein others than the longest, T, matter.
    epsilon : float
        ε > 0, likewise read as its shortest decimal.
    convention : {"exact", "published"}
        As for :func:`pufferflow.mqm_exact`.
    mechanism : str
        Whose scale, one of those in :data:`pufferflow.verify.MECHANISMS`.
    scale : float, optional
        The scale to prove (default: computed with default options); it is raised where it is too small.
    states : sequence of int, optional
        As for :func:`pufferflow.wasserstein`.
    window : int
        Secrets are what happened during so many consecutive records (1: single records).
    side_information : {"none", "any"}
        What an adversary may know beside Θ: nothing, or any other records of the participant.

    Returns
    -------
    dict
        Plain JSON types. ``float(certificate["scale"])`` is the scale, at which the verifier's bound of the loss is at
        most ε.

    Raises
    ------
    ParameterError
        ε, T, ``window`` or ``side_information`` is out of range, the mechanism is not applicable, there is no proof
        for this mechanism or this kind of family, or no precision suffices to decide (numbers so far apart do not
        occur in fitted chains).
    """
    from pufferflow.certificates.prove import Claim, prove  # loads the interval arithmetic
    from pufferflow.verify import MECHANISMS

    theta, epsilon = as_family(family), check_epsilon(epsilon)
    records = longest(length)
    check_choice(convention, "convention", get_args(Convention))
    if scale is not None:
        scale = check_positive(scale, "scale", or_zero=True)
    if mechanism not in tuple(MECHANISMS):
        named = shown_name(mechanism)
        raise ParameterError(f"no certificate for {named}: only the scales of {', '.join(MECHANISMS)} have proofs")
    record, hidden = find_mechanism(mechanism), check_protection(window, side_information)
    count = None
    if not scale or not record.every_query:
        options: dict[str, Any] = asdict(hidden)
        if "convention" in record.options:
            options["convention"] = convention
        if "states" in record.options:
            options["states"] = states
        result = compute_scale(mechanism, theta, length, epsilon, **options)
        if result.scale is None:
            raise ParameterError(f"no certificate for {mechanism}: {result.reason}")
        scale = scale or result.scale
        count = result.count
    if count is not None:
        weights, lengths = count.weights(theta.chains[0].states), list(count.lengths)
        return prove(Claim(mechanism, theta, records, epsilon, scale, hidden, (weights, lengths)))
    return prove(Claim(mechanism, theta, records, epsilon, scale, hidden))
