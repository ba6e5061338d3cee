"""Loss of hidden chains: section 11 of ``docs/leakage.md``."""

from __future__ import annotations

import math

import numpy as np

from pufferflow._util.protection import NARROWEST, Protection
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.coupling._node_kernels import beyond_stationary
from pufferflow.coupling.calibration import ChainLeakage, Past, View
from pufferflow.coupling.sides import CouplingSide, costs_of
from pufferflow.models.hidden import HiddenChain


class HiddenLeakage(ChainLeakage):
    """Upper bounds of the loss over the nodes of a hidden chain.

    Both sides are those of the hidden chain, but a change of its state costs c only where the label changes. The secret
    of a node is its label: of the hidden states that have it the law counts, or the worst two states. Those count for
    windows, and for adversaries who know the observations of other records: these tell of hidden states what they may.
    """

    def __init__(
        self, family: HiddenChain, length: int, protection: Protection = NARROWEST, *, pairs: bool = True
    ) -> None:
        chain, labels = family.chain, family.observations
        if chain.start == "stationary":
            labels = labels[chain.initial_support]
            chain = chain.restricted(chain.initial_support)
        self._labels = labels
        differ = (labels[:, None] != labels[None, :]).astype(np.float64)
        super().__init__(chain, length, protection, pairs=pairs, differ=differ)
        self._laws_of: dict[int, CouplingSide | None] = {}

    def told(self, view: View, ahead: Floats, past: Past) -> float:
        """Loss of a node at the c of ``view``."""
        if self._window > 1:
            return super().told(view, ahead, past)
        costs = costs_of(ahead + past.leakages, view.costs)
        possible = past.secrets[:, None] & past.secrets[None, :] & (self._differ > 0)
        largest = float(costs[possible].max(initial=0.0))
        law, spread = self._law_of(past.node)
        if law is not None and self._pairs:
            more = beyond_stationary(spread, spread, float(costs.max()))
            largest = min(largest, float(law.apply(costs).max()) + more)
        return view.cost if largest <= view.cost else largest

    def _law_of(self, node: int) -> tuple[CouplingSide | None, float]:
        """Laws of the hidden state of a node given its label, and how far (in spread) those it has are from them."""
        start, later = self._chain.start, node > self._early
        if self._informed:
            return None, math.inf
        if start == "given" and not later:
            law, states = self._law(node)
            return self._side(node, law, states, 2 * node * (len(law) + 3) * UNIT_ROUNDOFF), 0.0
        if self._reversed is None and start != "stationary":
            return None, math.inf
        spread = 0.0
        if start == "any":
            spread = self.spread(min(node, self._early))
        elif start == "given":
            spread = self.spread(self._early)
        if spread == math.inf:
            return None, spread
        law = self._chain.stationary_distribution
        return self._side(0, law, law > 0, 2 * self._chain.stationary_error), spread

    def _side(self, node: int, law: Floats, states: Bools, error: float) -> CouplingSide | None:
        if node not in self._laws_of:
            rows = np.zeros_like(self._zeros)
            there = np.unique(self._labels[states])
            for row, label in zip(rows, there, strict=False):
                alike = states & (self._labels == label)
                row[alike] = law[alike]
            secret = np.arange(len(law)) < len(there)
            side = None
            if law[states].min() >= SAFE_MINIMUM:
                rows[secret] /= rows[secret].sum(axis=1, keepdims=True)
                if rows[rows > 0].min() >= SAFE_MINIMUM:
                    side = CouplingSide(rows, error + (len(law) + 4) * UNIT_ROUNDOFF, secret)
            self._laws_of[node] = side
        return self._laws_of[node]
