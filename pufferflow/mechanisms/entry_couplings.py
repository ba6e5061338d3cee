"""Leakage calibration: Laplace noise by upper bounds of the loss of any one entry."""

import math
from dataclasses import replace

from pufferflow._util.checks import Lengths, check_positive, longest
from pufferflow._util.grids import of_epsilons
from pufferflow.bounds.of_families import Part, loss_bounds
from pufferflow.bounds.roots import SMALLEST_EPSILON
from pufferflow.mechanisms.base import NoiseScale, requested
from pufferflow.mechanisms.baselines import group_dp
from pufferflow.mechanisms.quilts import mqm_exact
from pufferflow.models.families import AnyFamily, Protection, SideInformation, as_family


@of_epsilons
def leakage(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Return the smallest scale by the bounds of ``docs/leakage.md``, at most other mechanisms'.

    A mechanism whose density changes by at most e^c with one entry (Laplace noise of scale 1/c on a
    1-Lipschitz query) is analysed along the chain, without a quilt: by optimal couplings of two
    copies of the chain that start at different values of an entry, through blocks of steps, and by
    the quilts of MQMExact; the result is the smallest scale. Each is an upper bound of the loss for
    every such mechanism and any query. For binary chains with a stationary start it is attained;
    for others :func:`pufferflow.lower_bound` bounds the distance to the optimal scale.

    Couplings take more time and memory than the cube of the states. With more than 64 states (for
    families between bounds 12) blocks and quilts are left, with more than 200 quilts alone, and
    more than 36 histories of chains of order m are not compared (Theorem L2); ``reason`` states so.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ. In an ``IntervalFamily`` or a ``TotalVariationFamily`` every step may have other rows
        within the bounds; bounds of the reversed chain (``backward``) reduce the scale.
    length, epsilon, window
        As for :func:`pufferflow.mqm_exact`. A window includes all its parts.
    side_information : {"none", "any"}
        ``"any"``: the bound also holds for adversaries with any records outside the window as side
        information. The scale is then the smaller one of the couplings' and of ``group-dp``.

    Returns
    -------
    NoiseScale
        With a worst node: except at the beginning of the chain all nodes share a bound, and one of
        them is returned. ``quilt`` and ``influence`` are those of MQMExact if its bound is the
        smallest.
    """
    request = requested("leakage", length, epsilon, window, side_information)
    theta = as_family(family)
    parts = loss_bounds(theta, request.length, Protection(window, side_information))
    scales = [_scale(part, request) for part in parts]
    index = max(range(len(scales)), key=lambda i: scales[i].scale or math.inf)
    chain = index if theta.chains else None
    return replace(scales[index], mechanism="leakage", chain=chain)


def leakage_loss(
    family: AnyFamily,
    length: Lengths,
    scale: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> float:
    """Return a bound of the loss of mechanisms whose density changes by at most e^(1/scale).

    It is in nats, rounded up, and at most T / scale. Quilts are not used: at a scale of
    :func:`leakage` with a ``quilt`` the bound may be above ε.

    Parameters
    ----------
    family, length, window, side_information
        As for :func:`leakage`.
    scale : float
        Laplace scale of a 1-Lipschitz query; for several releases of the same records with scales
        σ_k, 1/scale is Σ 1/σ_k.

    Raises
    ------
    ParameterError
        An argument is out of range.
    """
    records = longest(length)
    # the largest change by one record, rounded up
    cost = math.nextafter(1 / check_positive(scale, "scale", (1e-90, 1e100)), math.inf)
    parts = loss_bounds(as_family(family), records, Protection(window, side_information))
    every = math.nextafter(records * cost, math.inf)  # the loss of all records of the segment
    return max(every if p.bound is None else p.bound.loss(cost).value for p in parts)


def _scale(part: Part, request: NoiseScale) -> NoiseScale:
    """Return the scale of a part, or the smallest of other mechanisms if that is smaller."""
    side = request.side_information
    other = mqm_exact if part.family.chains and side == "none" else group_dp
    known = other(
        part.family, request.length, request.epsilon, window=request.window, side_information=side
    )
    assert known.scale is not None
    if part.bound is None:
        return replace(known, reason=f"the scale of {known.mechanism}: {part.why}")
    bounded = part.bound.scale(request.epsilon, known.scale)
    if bounded is not None and bounded[0] < known.scale:
        return replace(request, scale=bounded[0], reason=part.why, node=bounded[1])
    why = f"epsilon is below {SMALLEST_EPSILON:g}, where rounding would count"
    why = f"{why}: the scale of {known.mechanism}" if request.epsilon < SMALLEST_EPSILON else ""
    return replace(known, reason=part.why or why)
