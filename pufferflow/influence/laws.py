"""Laws m_i of the nodes of a chain with a given start, and bounds that hold for many nodes at once.

*Averages.* With reversed steps R(x, y) = m_i(y) P(y, x) / m_{i+1}(x), rows of which are distributions, and any
v_i = c_0 m_i + c_1 m_{i+s} + c_2 m_{i+2s} + … with fixed coefficients, v_{i+1}/m_{i+1} = R (v_i/m_i): an average of
what it was, if the nodes i, i + s, … can take the same states. So the largest of |v_i/m_i| never rises with i, nor does
the range of v_i/m_i. The same holds for m_i/π, with the reversed steps P*.

*Chords.* At the nodes i = f + n·s, 0 ≤ n < 2^p, let l be the straight line from m_f to m_{f + 2^p s}. Refining it at
the midpoints, p times, leads to m itself; the refinement with steps of t = 2^q s, q < p, moves it by half a second
difference m_j − 2 m_{j+t} + m_{j+2t}, which is at most D_q m_j, D_q = max |m_f − 2 m_{f+t} + m_{f+2t}|/m_f (averages).
And m_j ≤ e^G m_i with G the sum of the largest |log(m_{f+t}/m_f)|, as i and j differ by less than 2^p strides and each
stride's bound only falls. So |m_i − l_i| ≤ δ m_i, δ = e^G Σ D_q / 2, and as l_i is a mixture of its ends

    log m_i(x')/m_i(x) ≤ max over both ends of the same + log (1 + δ)/(1 − δ).

Every bound is rounded up: the computed laws and powers are off by relative errors that are known, and the bounds
hold for all values within them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.influence.tables import INFINITE, InfluenceTables

_LARGEST_ERROR = 1e-3  # beyond it products of errors would count


class Chord(NamedTuple):
    """Bound of log m_i(x')/m_i(x) over some nodes i, shape (k, k), and how far it exceeds that of any one at most.

    ∞ where a probability leaves the range of floats: the bound is then no more than that.
    """

    table: Floats
    excess: float


class GivenLaws:
    """Laws of the nodes of a chain with a given start."""

    def __init__(self, tables: InfluenceTables) -> None:
        self._tables = tables
        self._chain = tables.chain
        self._last: tuple[int, Floats] | None = None  # a node and its law

    def at(self, node: int) -> Floats:
        """Law of X_node, shape (k,)."""
        start = self._chain.initial_distribution
        assert start is not None
        with np.errstate(under="ignore"):
            if self._last is not None and 0 <= node - self._last[0] <= self._chain.states:
                before, law = self._last
                for _ in range(node - before):
                    law = law @ self._chain.transition_matrix
            else:
                law = start @ self._tables.power(node - 1).values
        self._last = (node, law)
        return law

    def error(self, node: int) -> float:
        """Bound on the relative error of each entry of :meth:`at`, with a margin for a few roundings."""
        return node * self._tables.step_error / 2 + 4 * UNIT_ROUNDOFF

    def table(self, node: int, support: Bools) -> Floats:
        """Table of log m(x')/m(x) for the law m of a node that takes the states of ``support``."""
        return self._tables.law(
            ("node", node), lambda: self._tables.law_given(self.at(node), support, self.error(node))
        )

    def unevenness(self, node: int) -> float:
        """Bound of the range of log(m_i/π) at every node i from ``node`` on; of irreducible chains only."""
        law, chain = self.at(node), self._chain
        if not min(law.min(), chain.stationary_distribution.min()) >= SAFE_MINIMUM:
            return INFINITE
        with np.errstate(over="ignore"):
            density = law / chain.stationary_distribution
            spread = float(np.log(density.max() / density.min()))
        return min(spread * (1 + 4 * UNIT_ROUNDOFF) + 2 * (self.error(node) + chain.stationary_error), INFINITE)

    def chord(self, first: int, levels: int, stride: int, support: Bools) -> Chord:
        """Bound for the nodes first + n · stride, 0 ≤ n < 2^levels; see *Chords* above.

        All of them, and all that follow at such distances, take the states of ``support``.
        """
        top = first + (stride << levels)
        low, high = self.table(first, support), self.table(top, support)
        bent = self._bent(first, levels, stride, support)
        apart = float(np.abs(high - low).max())
        return Chord(np.maximum(low, high) + min(bent, INFINITE), apart + 2 * bent)

    def _bent(self, first: int, levels: int, stride: int, support: Bools) -> float:
        """Bound of log (1 + δ)/(1 − δ)."""
        law = self.at(first)[support]
        if self.error(first + (stride << levels)) > _LARGEST_ERROR or not law.min() >= SAFE_MINIMUM:
            return math.inf
        bend = growth = 0.0
        for level in range(levels):
            added = self._second_difference(law, first, stride << level, support)
            bend, growth = bend + added[0] / 2, growth + added[1]
        delta = bend * math.exp(growth) if growth < 1 else math.inf
        return 2 * math.atanh(delta) * (1 + 8 * UNIT_ROUNDOFF) if delta < 0.5 else math.inf

    def _second_difference(self, law: Floats, node: int, t: int, support: Bools) -> tuple[float, float]:
        """Bounds of |m_i − 2 m_{i+t} + m_{i+2t}|/m_i and |log(m_{i+t}/m_i)| at node i, both rounded up."""
        inside = np.ix_(support, support)
        once, twice = (self._tables.power(n).values[inside] for n in (t, 2 * t))
        bend = np.eye(len(law)) - 2 * once + twice
        error, power_error = self.error(node), t * self._tables.step_error
        later = law @ once
        if not later.min() >= SAFE_MINIMUM:
            return math.inf, math.inf
        blur = (error + (len(law) + 4) * UNIT_ROUNDOFF) * (law @ np.abs(bend))
        blur += (2 * power_error + 8 * UNIT_ROUNDOFF) * (law + 2 * later + law @ twice)
        with np.errstate(over="ignore", divide="ignore"):  # ratios beyond floats are no bound
            second = float(((np.abs(law @ bend) + blur) / law).max()) * (1 + 8 * _LARGEST_ERROR)
            moved = float(np.abs(np.log(later / law)).max()) * (1 + 4 * UNIT_ROUNDOFF)
        return second, moved + 2 * error + power_error + 8 * UNIT_ROUNDOFF
