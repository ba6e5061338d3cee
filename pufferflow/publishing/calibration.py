"""Which mechanism to use: the least noise that is proved."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pufferflow._checks import check_epsilon, longest
from pufferflow._progress import progress
from pufferflow._protection import NARROWEST, Protection
from pufferflow.errors import ParameterError
from pufferflow.markov.families import AnyFamily, Family, as_family
from pufferflow.mechanisms import KNOWN, Mechanism, NoiseScale, compute_scale, find_mechanism
from pufferflow.mechanisms.work import proof_work, scale_work

GROUP = "group-dp"
"""The mechanism that hides whole records, whatever Θ is."""


@dataclass(frozen=True)
class Calibration:
    """A noise scale with its proof.

    Attributes
    ----------
    chosen : NoiseScale
        Of a 1-Lipschitz query.
    certificate : dict or None
        What ``pufferflow verify`` checks.
    reason : str
        Why there is no certificate; otherwise empty.
    """

    chosen: NoiseScale
    certificate: dict[str, Any] | None = field(repr=False)
    reason: str = ""

    @property
    def scale(self) -> float:
        """The Laplace scale."""
        assert self.chosen.scale is not None
        return self.chosen.scale


def histogram_mechanisms() -> list[str]:
    """Names of the mechanisms whose scales hold for every 1-Lipschitz query."""
    return [name for name, mechanism in KNOWN.items() if mechanism.every_query]


def mechanism_for_histograms(name: str, advice: str) -> Mechanism:
    """Return a mechanism whose scale holds for a histogram of the records there are.

    Raises ParameterError: it is unknown, or its scale is of one count over whole segments; ``advice`` says what to do
    then.
    """
    mechanism = find_mechanism(name)
    if not mechanism.every_query:
        raise ParameterError(f"{name} is for a single count, not for a histogram; {advice}")
    return mechanism


def all_scales(family: AnyFamily, length: int, epsilon: float, protection: Protection = NARROWEST) -> list[NoiseScale]:
    """Scale of every mechanism for histograms, with the reason where one is not applicable."""
    theta = as_family(family)
    options = asdict(protection)
    names = progress(histogram_mechanisms(), desc="scales", unit=" mechanisms", delay=1)
    return [compute_scale(name, theta, length, epsilon, **options) for name in names]


def calibration_work(family: AnyFamily, mechanism: str | None = None) -> float:
    """Operations that :func:`calibrate` takes, about."""
    names = histogram_mechanisms() if mechanism is None else [mechanism]
    scales = sum(scale_work(name, family, 1) for name in names)
    return scales + proof_work("leakage" if mechanism is None else mechanism, family)


def calibrate(
    family: AnyFamily, length: int, epsilon: float, mechanism: str | None = None, protection: Protection = NARROWEST
) -> Calibration:
    """Least scale that can be certified; it depends on Θ, T and ε alone.

    For a kind of family that no certificate covers, the least scale of a mechanism whose scales are proved in its
    text. entry-dp, which ignores correlation, is never taken.

    Raises ParameterError: ε or T is out of range; ``mechanism`` is unknown, entry-dp or not applicable; ChainError:
    ``mechanism`` cannot work on these chains.

    Parameters
    ----------
    mechanism : str, optional
        Take this one.
    protection : Protection
        What is to be hidden, and from whom.
    """
    theta, epsilon, length = as_family(family), check_epsilon(epsilon), longest(length)
    if mechanism is not None:
        asked = mechanism_for_histograms(mechanism, "leave mechanism out")
        if not asked.private:
            raise ParameterError(
                f"{mechanism} hides nothing in correlated records; leave mechanism out for the least noise"
            )
        scale = asked.called(theta, length, epsilon, **asdict(protection))
        scale.noise_scale(1.0)  # raises where it is not applicable
        return _certified(theta, scale)
    ranked = sorted(
        (s for s in all_scales(theta, length, epsilon, protection) if s.scale is not None), key=lambda s: s.scale or 0
    )
    from pufferflow.verify import PROOFS

    best: Calibration | None = None
    uncertified = []
    for scale in progress(ranked, desc="certificates", unit=" tried", delay=1):
        if not find_mechanism(scale.mechanism).private:
            continue
        if best is not None and scale.noise_scale(1.0) >= best.scale:  # a certified scale is never the smaller one
            break
        candidate = _certified(theta, scale)
        if candidate.certificate is None:
            uncertified.append(candidate)
        elif best is None or candidate.scale < best.scale:
            best = candidate
    return best or next(candidate for candidate in uncertified if candidate.chosen.mechanism in PROOFS)


def _certified(theta: Family, scale: NoiseScale) -> Calibration:
    """The scale with a certificate, or with the reason why there is none."""
    try:
        proved = scale.certified(theta)
    except ParameterError as error:
        return Calibration(scale, None, str(error))
    return Calibration(proved, proved.certificate)
