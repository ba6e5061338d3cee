"""Which mechanism to use: the least noise that is proved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pufferflow._checks import check_epsilon, longest
from pufferflow.errors import ChainError, ParameterError
from pufferflow.markov.families import AnyFamily, Family, as_family
from pufferflow.mechanisms import MECHANISMS, NoiseScale, find_mechanism

UNSOUND = "entry-dp"
"""The baseline that hides nothing in correlated records."""

OF_ONE_COUNT = "wasserstein"
"""Its scale is of one count over whole segments, not of a histogram of the records there are."""


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
    return [name for name in MECHANISMS if name != OF_ONE_COUNT]


def all_scales(family: AnyFamily, length: int, epsilon: float) -> list[NoiseScale]:
    """Scale of every mechanism for histograms, with the reason where one is not applicable."""
    theta = as_family(family)
    found = []
    for name in histogram_mechanisms():
        try:
            found.append(MECHANISMS[name](theta, length, epsilon))
        except ChainError as error:
            found.append(NoiseScale(name, epsilon, longest(length), None, "not applicable", str(error)))
    return found


def calibrate(family: AnyFamily, length: int, epsilon: float, mechanism: str | None = None) -> Calibration:
    """Least scale that can be certified; it depends on Θ, T and ε alone.

    For a kind of family that no certificate covers, the least scale of a mechanism whose scales are proved in its
    text. entry-dp, which ignores correlation, is never taken.

    Parameters
    ----------
    family : Family or MarkovChain
    length : int
        Longest segment T.
    epsilon : float
    mechanism : str, optional
        Take this one.

    Raises
    ------
    ParameterError
        ε or T is out of range; ``mechanism`` is unknown, entry-dp or not applicable.
    ChainError
        ``mechanism`` cannot work on these chains.
    """
    theta, epsilon, length = as_family(family), check_epsilon(epsilon), longest(length)
    if mechanism is not None:
        if mechanism == UNSOUND:
            raise ParameterError(
                "entry-dp hides nothing in correlated records; leave mechanism out for the least noise"
            )
        if mechanism == OF_ONE_COUNT:
            raise ParameterError("wasserstein is for a single count, not for a histogram; leave mechanism out")
        found = find_mechanism(mechanism)(theta, length, epsilon)
        found.noise_scale(1.0)  # raises where it is not applicable
        return _certified(theta, found)
    ranked = sorted((s for s in all_scales(theta, length, epsilon) if s.scale is not None), key=lambda s: s.scale or 0)
    from pufferflow.verify import PROOFS

    best: Calibration | None = None
    uncertified = []
    for found in ranked:
        if found.mechanism == UNSOUND:
            continue
        if best is not None and found.noise_scale(1.0) >= best.scale:  # a certified scale is never the smaller one
            break
        candidate = _certified(theta, found)
        if candidate.certificate is None:
            uncertified.append(candidate)
        elif best is None or candidate.scale < best.scale:
            best = candidate
    return best or next(candidate for candidate in uncertified if candidate.chosen.mechanism in PROOFS)


def _certified(theta: Family, found: NoiseScale) -> Calibration:
    """The scale with a certificate, or with the reason why there is none."""
    try:
        proved = found.certified(theta)
    except ParameterError as error:
        return Calibration(found, None, str(error))
    return Calibration(proved, proved.certificate)
