"""Best quilts where the max-influence is bounded by a left term plus a right term, the same for all nodes.

Also for windows (see *Windows* in ``influence.search``), where ``length`` counts these.
"""

from __future__ import annotations

from typing import Protocol

from pufferflow._util.rounding import divide_up, quilt_score
from pufferflow.influence.search import Candidate, quilt_card, worst_alike


class AdditiveSide(Protocol):
    """Bounds on one side of a node, by the distance of the quilt node."""

    def term(self, distance: int) -> float:
        """Bound at ``distance``, rounded up; infinite at 0, which stands for no node."""

    def distance(self, weight: float, limit: int) -> int:
        """Distance t ≤ ``limit`` with the smallest t + weight · term(t); 0 if there is no node that far."""


def best_additive(
    node: int, length: int, epsilon: float, left: AdditiveSide, right: AdditiveSide, window: int = 1
) -> Candidate:
    """Best quilt of ``node`` where e(a, b) ≤ left(a) + right(b); a one-sided quilt has its own term alone.

    By Dinkelbach's method: min card − λ(ε − e) falls apart into a and b.
    """

    def candidate(a: int | None, b: int | None, influence: float) -> Candidate:
        return Candidate(node, a, b, influence, quilt_score(quilt_card(length, node, a, b, window), influence, epsilon))

    best = Candidate(node, None, None, 0.0, divide_up(length + window - 1, epsilon))
    while True:
        a = left.distance(best.score, node - 1)
        b = right.distance(best.score, length - node)
        behind, ahead = left.term(a), right.term(b)
        challenger = min(
            candidate(a, None, behind),
            candidate(None, b, ahead),
            candidate(a, b, behind + ahead),
            key=lambda quilt: quilt.score,
        )
        if challenger.score >= best.score:
            return best
        best = challenger


def worst_additive(length: int, epsilon: float, left: AdditiveSide, right: AdditiveSide, window: int = 1) -> Candidate:
    """Worst node with its best quilt, under the same bounds at all nodes."""
    return worst_alike(length, lambda node: best_additive(node, length, epsilon, left, right, window))
