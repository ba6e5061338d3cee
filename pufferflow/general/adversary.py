"""Theorem 2.4 of Song et al.: what is left of a guarantee against an adversary who believes something outside Θ."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from pufferflow._checks import check_positive
from pufferflow.divergences import Law, largest_log_ratio


@dataclass(frozen=True)
class Distance:
    """Distance Δ of an adversary's belief from Θ, and what it costs.

    Attributes
    ----------
    delta : float
        Δ of Theorem 2.4 in nats, rounded up; infinite where the adversary takes something for possible that nothing
        in Θ does, or the other way round.
    """

    delta: float

    def loss(self, epsilon: float) -> float:
        """Privacy loss ε + 2Δ against the adversary of a mechanism that is ε-private for Θ, rounded up."""
        budget = check_positive(epsilon, "epsilon")
        return math.nextafter(budget + 2 * self.delta, math.inf) if self.delta else budget


@dataclass(frozen=True)
class ScenarioDistance(Distance):
    """Distance from finitely many scenarios.

    Attributes
    ----------
    scenario : hashable
        The closest one.
    secret : hashable or None
        The secret that decides there; None where Δ is 0.
    """

    scenario: Hashable
    secret: Hashable | None


def closest_scenario(
    laws: Mapping[Hashable, Mapping[Hashable, Law]], belief: Mapping[Hashable, Law], secrets: Iterable[Hashable]
) -> ScenarioDistance:
    """Δ = inf over θ of max over s of max(D∞(θ̃|s ‖ θ|s), D∞(θ|s ‖ θ̃|s)), for the ``secrets``, all in ``belief``."""
    asked = tuple(secrets)
    return min(
        (_distance(scenario, given, belief, asked) for scenario, given in laws.items()), key=lambda one: one.delta
    )


def _distance(
    scenario: Hashable, given: Mapping[Hashable, Law], belief: Mapping[Hashable, Law], secrets: Iterable[Hashable]
) -> ScenarioDistance:
    worst = ScenarioDistance(0.0, scenario, None)
    for secret in secrets:
        if secret not in given:  # possible for the adversary alone, so the scenario protects nothing of it
            return ScenarioDistance(math.inf, scenario, secret)
        believed, assumed = belief[secret], given[secret]
        delta = max(largest_log_ratio(believed, assumed), largest_log_ratio(assumed, believed))
        if delta > worst.delta:
            worst = ScenarioDistance(delta, scenario, secret)
    return worst
