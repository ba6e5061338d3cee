"""All mechanisms by name."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from pufferflow._util.checks import Lengths, check_choice, check_positive
from pufferflow._util.grids import of_epsilons
from pufferflow.errors import ChainError
from pufferflow.mechanisms.base import NoiseScale, requested
from pufferflow.mechanisms.baselines import entry_dp, group_dp
from pufferflow.mechanisms.entry_couplings import leakage
from pufferflow.mechanisms.one_count import wasserstein
from pufferflow.mechanisms.quilts import mqm_approx, mqm_exact
from pufferflow.mechanisms.weak_correlation import gk16
from pufferflow.models.families import AnyFamily
from pufferflow.models.protection import PROTECTION


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with its properties."""

    name: str
    """Its name in commands and settings."""
    scale: Callable[..., NoiseScale]
    """Its function; raises ChainError if the family has no suitable chains."""
    every_query: bool = True
    """Whether the scale holds for every 1-Lipschitz query, or for one count only."""
    private: bool = True
    """Whether it protects correlated records; a baseline does not."""

    @property
    def options(self) -> tuple[str, ...]:
        """Names of its options."""
        return tuple(signature(self.scale).parameters)[3:]

    def compute(
        self,
        family: AnyFamily,
        length: Lengths,
        epsilon: float,
        *,
        certified: bool = False,
        **options: Any,
    ) -> NoiseScale:
        """Return the scale, proved if ``certified``."""
        found = self.scale(family, length, epsilon, **options)
        return found.certified(family) if certified and found.scale is not None else found


KNOWN = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism("leakage", leakage),
        Mechanism("mqm-exact", mqm_exact),
        Mechanism("mqm-approx", mqm_approx),
        Mechanism("wasserstein", wasserstein, every_query=False),
        Mechanism("gk16", gk16),
        Mechanism("group-dp", group_dp),
        Mechanism("entry-dp", entry_dp, private=False),
    )
}
"""All mechanisms by name, the least noise first, baselines last."""

MECHANISMS = {name: mechanism.scale for name, mechanism in KNOWN.items()}
"""The functions of all mechanisms by name, those with the least noise first, baselines last."""


def find_mechanism(name: str) -> Mechanism:
    """Return the mechanism called ``name``; raises ParameterError if there is none."""
    check_choice(name, "mechanism", KNOWN)
    return KNOWN[name]


def compute_scale(
    name: str, family: AnyFamily, length: Lengths, epsilon: float, **options: Any
) -> NoiseScale:
    """Return the scale of a mechanism, or "not applicable" with the reason.

    ``certified`` and the options of the mechanism may be given.
    """
    mechanism = find_mechanism(name)
    try:
        return mechanism.compute(family, length, epsilon, **options)
    except ChainError as error:
        hidden = {key: options[key] for key in PROTECTION if key in options}
        return replace(requested(name, length, epsilon, **hidden), reason=str(error))


@of_epsilons  # type: ignore[arg-type]  # none of the options is called like the first three
def certify(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    mechanism: str = "mqm-exact",
    scale: float | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Return a certificate of the scale of a mechanism.

    Parameters
    ----------
    family, length, epsilon
        As for the mechanism. Every float stands for its shortest decimal (0.1 for ``0.1``), rows
        are divided by their exact sum.
    mechanism : str
        One of :data:`pufferflow.verify.MECHANISMS`.
    scale : float, optional
        The scale to prove (default: that of the mechanism); it is raised if it is too small.
    **options
        Options of the mechanism, such as ``window``, ``side_information`` and ``states``.

    Returns
    -------
    dict
        Plain JSON types. ``float(certificate["scale"])`` is the scale, at which the verifier's
        bound of the loss is at most ε.

    Raises
    ------
    ParameterError
        An argument is out of range, the mechanism is not applicable, or there is no proof for this
        mechanism or this kind of family.
    """
    least = None if scale is None else check_positive(scale, "scale", or_zero=True)
    found = compute_scale(mechanism, family, length, epsilon, **options)
    if least and found.scale is not None:
        found = replace(found, scale=least)
    certificate = found.certified(family).certificate
    assert certificate is not None
    return certificate
