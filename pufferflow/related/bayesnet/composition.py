"""What several releases on the same networks cost together.

Theorem 4.4
    K · max_k ε_k, with ε_k what the k-th release alone costs; the sets of quilts are the same for all.
Quilts
    max_i min_Q [e_Q + card(X_N) · Σ_k 1/σ_k], at most Σ_k ε_k. Given the records the noises are independent, so all
    releases together change by at most exp(card(X_N) · Σ_k 1/σ_k) with X_N, as one release of scale 1/Σ_k 1/σ_k does.

A bound at σ and the scale at ε say the same: e + card/σ ≤ ε exactly if card/(ε − e) ≤ σ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from pufferflow._checks import EPSILON_RANGE, check_list, check_scale
from pufferflow._composition import PRECISION, joint_scale
from pufferflow._display import displayed
from pufferflow.errors import ParameterError
from pufferflow.related.bayesnet.mechanism import NetworkScale, markov_quilt_mechanism, require_alike
from pufferflow.related.bayesnet.network import BayesianNetwork


@dataclass(frozen=True)
@displayed("releases", "theorem_4_4", "quilts")
class NetworkCost:
    """What a number of releases on networks costs together.

    Attributes
    ----------
    releases : int
    theorem_4_4, quilts : float
        The two bounds of the module's text, in nats, rounded up.
    """

    releases: int
    theorem_4_4: float
    quilts: float

    @property
    def epsilon(self) -> float:
        """The smaller bound: what the releases cost."""
        return min(self.theorem_4_4, self.quilts)


def network_cost(
    networks: BayesianNetwork | Iterable[BayesianNetwork],
    scales: Iterable[float],
    *,
    secrets: Iterable[str] | None = None,
    query: Iterable[str] | None = None,
    limit: int | None = None,
) -> NetworkCost:
    """What Laplace releases of 1-Lipschitz queries on the same networks cost together (Theorem 4.4), rounded up.

    Parameters
    ----------
    networks, secrets, query, limit
        As for :func:`pufferflow.markov_quilt_mechanism`; ``query`` are the variables that any of the queries reads.
    scales : iterable of float
        One a release: the scale of its noise for a 1-Lipschitz query.

    Returns
    -------
    NetworkCost

    Raises
    ------
    ParameterError
        There is no scale, or one is not a positive number.
    NetworkError
        As for :func:`pufferflow.markov_quilt_mechanism`.

    Examples
    --------
    >>> import pufferflow as pf
    >>> ann = pf.Variable("Ann", [0.9, 0.1])
    >>> bob = pf.Variable("Bob", [[0.95, 0.05], [0.4, 0.6]], parents=["Ann"])
    >>> network = pf.BayesianNetwork([ann, bob])
    >>> cost = pf.network_cost(network, [0.5] * 3)
    >>> round(cost.theorem_4_4, 6), round(cost.quilts, 6)
    (12.0, 8.548328)
    """
    noise = check_list(scales, "scales")
    if not all(isinstance(scale, int | float | np.number) for scale in noise):
        raise ParameterError("scales must be numbers; give that of each release")
    noise = [check_scale(scale) for scale in noise]
    if not noise:
        raise ParameterError("there is no release; give the scale of each")
    family = require_alike([networks] if isinstance(networks, BayesianNetwork) else check_list(networks, "networks"))
    protected, read = (None if names is None else check_list(names, "names") for names in (secrets, query))

    def scale_at(epsilon: float) -> NetworkScale:
        return markov_quilt_mechanism(family, epsilon, secrets=protected, query=read, limit=limit)

    counted = set(family[0].names if read is None else read)
    single = _cost(scale_at, min(noise), counted)
    theorem = math.nextafter(len(noise) * single, math.inf)
    return NetworkCost(len(noise), theorem, _cost(scale_at, joint_scale(noise), counted))


def _cost(scale_at: Callable[[float], NetworkScale], scale: float, counted: set[str]) -> float:
    """Smallest ε at which the mechanism asks for no more than ``scale``, at most :data:`PRECISION` above it.

    The quilt that decides at one ε costs e + card/σ, which is where the scale of that node meets σ: the next ε to try.
    Only an ε that was tried and is enough is returned.
    """
    smallest, largest = EPSILON_RANGE
    # between what one record alone and all that are read together can tell, which the empty quilt pays for
    low = max(smallest, 1 / scale / (1 + 2 * PRECISION))
    high = epsilon = min(largest, len(counted) / scale * (1 + PRECISION))
    if scale_at(high).scale > scale:
        return math.inf
    while high > low * (1 + PRECISION):
        scaled = scale_at(epsilon)
        low, high = (low, epsilon) if scaled.scale <= scale else (epsilon, high)
        card = len(counted.intersection(scaled.nearby))
        epsilon = (scaled.influence + card / scale) * (1 + PRECISION / 4)
        if epsilon >= high:  # as good as the best so far: is there a better one?
            epsilon = high / (1 + PRECISION)
        elif epsilon <= low * (1 + PRECISION):
            epsilon = math.sqrt(low) * math.sqrt(high)
    return high
