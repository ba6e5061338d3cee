"""All mechanisms by name, and the operations of their scales (:mod:`pufferflow._util.work`)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pufferflow._util.checks import Lengths, check_choice, check_positive
from pufferflow._util.grids import of_epsilons
from pufferflow.bounds.of_families import MAX_BLOCK_STATES, MAX_ROBUST_STATES, MAX_STATES
from pufferflow.errors import ChainError
from pufferflow.mechanisms import one_count
from pufferflow.mechanisms.base import NoiseScale, requested
from pufferflow.mechanisms.baselines import entry_dp, gk16, group_dp
from pufferflow.mechanisms.entry_couplings import leakage
from pufferflow.mechanisms.quilts import mqm_approx, mqm_exact
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.families import PROTECTION, AnyFamily, as_family
from pufferflow.models.processes import HiddenChain, PeriodicChain

MECHANISMS: dict[str, Callable[..., NoiseScale]] = {
    "leakage": leakage,
    "mqm-exact": mqm_exact,
    "mqm-approx": mqm_approx,
    "wasserstein": one_count.wasserstein,
    "gk16": gk16,
    "group-dp": group_dp,
    "entry-dp": entry_dp,
}
"""The functions of all mechanisms by name, those with the least noise first, baselines last.

They raise ChainError if the family has no suitable chains.
"""

SMALL = 2e8
"""Operations that every scale takes at least, including preparation."""

CUBES = {"leakage": 150.0, "mqm-exact": 150.0, "mqm-approx": 8.0, "gk16": 80.0}
"""Operations of mechanisms per cube of a number of states, without couplings."""


def find_mechanism(name: str) -> Callable[..., NoiseScale]:
    """Return the function of a mechanism; raises ParameterError if there is none."""
    check_choice(name, "mechanism", MECHANISMS)
    return MECHANISMS[name]


def compute_scale(
    name: str,
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    certified: bool = False,
    **options: Any,
) -> NoiseScale:
    """Return the scale of a mechanism, proved if ``certified``, or "not applicable", with why."""
    function = find_mechanism(name)
    try:
        found = function(family, length, epsilon, **options)
        return found.certified(family) if certified and found.scale is not None else found
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

    Raises ParameterError: the mechanism is not applicable, or there is no proof for it or for this
    kind of family.
    """
    least = None if scale is None else check_positive(scale, "scale", or_zero=True)
    found = compute_scale(mechanism, family, length, epsilon, **options)
    if least and found.scale is not None:
        found = replace(found, scale=least)
    certificate = found.certified(family).certificate
    assert certificate is not None
    return certificate


def scale_work(name: str, family: AnyFamily, length: Lengths, certified: bool = False) -> float:
    """Return the operations of a mechanism's scale at one ε, or of its certificate and check.

    The numbers were measured (``tests/unit/test_files.py``). They depend on Θ's kind, its numbers
    of states and its start, and on T, but not on the probabilities of a chain, which may have been
    fitted to private records: chains that mix fast may take a fifth, others twice as much.
    """
    theta = as_family(family)
    if isinstance(theta, HiddenChain):
        theta = as_family(theta.chain)
    k, matrices = float(theta.states or 0), max(len(theta.chains), 1)
    work: float = SMALL + matrices * CUBES.get(name, 0.0) * k**3
    if name == "wasserstein":
        work += one_count.work(theta.chains, length)
    if certified and name in ("leakage", "mqm-exact", "mqm-approx"):
        work += SMALL + matrices * 18e3 * k**3
    if name != "leakage" or theta.states is None or k > MAX_BLOCK_STATES:
        return work
    if isinstance(theta, BoundedFamily):
        work += 9.1e9 * (k / 12) ** 5.3 if k <= MAX_ROBUST_STATES else 800.0 * k**4
    elif k > MAX_STATES:
        work += matrices * 15e3 * k**3
    else:
        times = 1.0
        if isinstance(theta, PeriodicChain):  # pairs are solved again at its first records
            matrices, times = len(theta.transition_matrices), 0.5 * min(theta.repeat, 10)
        work += matrices * (times * 11e3 * k**3.5 + certified * 17e3 * k**3.8)
    return work
