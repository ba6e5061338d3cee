"""Scales below which no Laplace noise is private: theorem (d) of ``docs/leakage.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import Lengths, check_epsilon, longest
from pufferflow.coupling.sides import reached
from pufferflow.errors import ChainError
from pufferflow.markov.chain import SAFE_MINIMUM, UNIT_ROUNDOFF, Bools, Floats, MarkovChain
from pufferflow.markov.families import AnyFamily, as_family

_WINDOW = 20_000
"""Entries on either side of a node that are counted at most."""

_EVERY_NODE = 500
"""Longest chain of which every node is looked at."""

_SETTLED = 1e-10
_ALL_SUBSETS = 8
_EARLY_NODES = 48
_ODDS = np.logspace(-10, 10, 81)


@dataclass(frozen=True)
class LowerBound:
    """A scale that is too small, and why: Laplace noise of a smaller scale on a count of visits is not private.

    Attributes
    ----------
    epsilon : float
    length : int
        The segment length that decides.
    scale : float
        Every Laplace scale below it breaks ε for the count; rounded down.
    node : int
        The entry that leaks, 1-based.
    pair : tuple of int
        The two values, as indices of states, that can be told apart. Where no entry has two values ``scale`` is 0.
    states : tuple of int
        S: the query is the number of entries with a state in S, within ``window`` entries of the node.
    alternating : bool
        Whether S is replaced by its complement at odd distances from the node; the query still changes by at most 1
        with one entry.
    window : int
        How far from the node entries are counted.
    chain : int
        Index in the family, from 0, of the chain that decides.
    """

    epsilon: float
    length: int
    scale: float
    node: int
    pair: tuple[int, int]
    states: tuple[int, ...]
    alternating: bool
    window: int
    chain: int


class _Leak(NamedTuple):
    """What a count tells about a node: nats, rounded down; two values of the node; entries counted on either side."""

    value: float
    node: int
    pair: tuple[int, int]
    window: int


class _Counts(NamedTuple):
    """Queries: column j counts states in ``sets[:, j]``; where ``alternating[j]``, outside it at odd distances."""

    sets: Bools
    alternating: Bools


def lower_bound(family: AnyFamily, length: Lengths, epsilon: float, *, alternating: bool = True) -> LowerBound:
    """Largest scale found below which Laplace noise on a 1-Lipschitz count is not ε-Pufferfish private.

    Noise of scale σ on the number of visits to S leaks, for outputs beyond all counts, exactly the logarithm of
    E[e^(visits/σ) | X_i = x] / E[e^(visits/σ) | X_i = x'], a product of transfer matrices. Sets S are searched (all of
    them for few states, else thresholds, single states, levels of slow eigenvectors, then single changes); any set
    gives a valid bound. Beside :func:`pufferflow.leakage` it says how far that scale can be from the best one.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; some chain of it is enough, the worst one is reported.
    length : int or sequence of int
    epsilon : float
        ε > 0. Below about 1e-8, where rounding leaves little of the leaks, and above 200 the bound is 1/ε, the scale
        that a single entry needs.
    alternating : bool
        Whether to try counts that change to the complement of S at every other entry, too (chains of at most 8 states).

    Raises
    ------
    ParameterError
        ε or a length is out of range.
    ChainError
        The family is an interval family, which has no list of chains; give chains of it.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    found = [_chain_bound(chain, records, epsilon, i, alternating) for i, chain in enumerate(as_family(family).chains)]
    return max(found, key=lambda bound: bound.scale)


class CountLeaks:
    """What counts of visits tell about the entries of one chain.

    Parameters
    ----------
    chain : MarkovChain
    length : int
        T.
    """

    def __init__(self, chain: MarkovChain, length: int) -> None:
        self.names = np.arange(chain.states)
        if chain.start == "stationary":
            self.names = np.flatnonzero(chain.initial_support)
            if len(self.names) < chain.states:
                chain = MarkovChain(chain.transition_matrix[np.ix_(self.names, self.names)])
        self.chain, self.length = chain, length
        self.reversal: Floats | None = None
        self.error = 16.0 * (chain.states + 8) * UNIT_ROUNDOFF  # of the logarithm of a profile, for each step
        if chain.start != "given" and chain.is_irreducible:
            try:
                self.reversal = chain.time_reversal
                self.error += 4 * chain.stationary_error
            except ChainError:  # stationary probabilities too small to divide by
                pass

    def leaks(self, counts: _Counts, cost: float) -> list[_Leak]:
        """Largest leak of each query among the nodes that matter most."""
        ahead = self._profiles(self.chain.transition_matrix, counts, cost, self.length - 1)
        found = [self._first(ahead, counts, cost)]
        if self.reversal is not None:
            found.append(self._middle(counts, cost))
        elif self.chain.start == "given":
            found.append(self._given(ahead, counts, cost))
        return [max(leaks, key=lambda leak: leak.value) for leaks in zip(*found, strict=True)]

    def closer_look(self, sets: Bools, alternating: bool, cost: float) -> _Leak:
        """Largest leak of one query, at more nodes and under more initial distributions."""
        counts = _Counts(sets[:, None], np.array([alternating]))
        best = self.leaks(counts, cost)[0]
        ahead = self._profiles(self.chain.transition_matrix, counts, cost, self.length - 1)
        if self.reversal is not None and self.length <= _EVERY_NODE:
            behind = self._profiles(self.reversal, counts, cost, self.length - 1)
            for node in range(1, self.length + 1):
                n, m = min(self.length - node, len(ahead) - 1), min(node - 1, len(behind) - 1)
                leak = self._leak(ahead[n] + behind[m], counts, cost, node, n, m)[0]
                best = max(best, leak, key=lambda found: found.value)
        if self.chain.start == "any":
            leak = self._any(ahead, counts, cost)
            best = max(best, leak, key=lambda found: found.value)
        return best

    def _profiles(self, rows: Floats, counts: _Counts, cost: float, steps: int) -> list[Floats]:
        """Log E[e^(c · count of the next n entries) | x] up to a constant, shape (k, columns), for n from 0 on.

        It ends early where nothing changes any more: further entries are then left out of the query.
        """
        sets, growth, partner = _paired(counts, cost)
        profile = np.ones(growth.shape)
        logs = [np.zeros(sets.shape)]
        for n in range(min(steps, _WINDOW)):
            following = rows @ (growth * profile[:, partner])
            following /= following.max(axis=0)
            if following.min() < SAFE_MINIMUM:
                break
            logs.append(np.log(following[:, : sets.shape[1]]))
            if n % 16 == 15 and np.abs(logs[-1] - logs[-2]).max() < _SETTLED * min(cost, 1.0):
                break
            profile = following
            if sets.shape[1] > 1 and n > 2:
                logs[-3] = logs[-1]  # a search looks at the last ones only; do not keep them all
        return logs

    def _leak(
        self,
        profile: Floats,
        counts: _Counts,
        cost: float,
        node: int,
        ahead: int,
        behind: int,
        secrets: Bools | None = None,
    ) -> list[_Leak]:
        """Leaks of the columns from the sum of their profiles."""
        values = profile + cost * counts.sets
        if secrets is not None:
            values = values[secrets]
        names = self.names if secrets is None else self.names[secrets]
        high, low = values.argmax(axis=0), values.argmin(axis=0)
        columns = np.arange(values.shape[1])
        error = self.error * (ahead + behind + 2) + 8 * UNIT_ROUNDOFF * float(np.abs(values).max())
        return [
            _Leak(float(values[x, j] - values[y, j]) - error, node, (int(names[x]), int(names[y])), max(ahead, behind))
            for x, y, j in zip(high, low, columns, strict=True)
        ]

    def _first(self, ahead: list[Floats], counts: _Counts, cost: float) -> list[_Leak]:
        return self._leak(ahead[-1], counts, cost, 1, len(ahead) - 1, 0, self.chain.initial_support)

    def _middle(self, counts: _Counts, cost: float) -> list[_Leak]:
        """Of the middle node under the stationary law."""
        assert self.reversal is not None
        node = (self.length + 1) // 2
        ahead = self._profiles(self.chain.transition_matrix, counts, cost, self.length - node)
        behind = self._profiles(self.reversal, counts, cost, node - 1)
        return self._leak(ahead[-1] + behind[-1], counts, cost, node, len(ahead) - 1, len(behind) - 1)

    def _given(self, ahead: list[Floats], counts: _Counts, cost: float) -> list[_Leak]:
        """Of the early nodes under a given initial distribution."""
        matrix = self.chain.transition_matrix
        law = self.chain.initial_distribution
        assert law is not None
        sets, growth, partner = _paired(counts, cost)
        weighted = np.repeat(law[:, None], growth.shape[1], axis=1)
        best: list[_Leak] | None = None
        every = sets.shape[1] == 1
        limit = min(self.length, _EVERY_NODE if every else _EARLY_NODES)
        for node in range(2, limit + 1):
            weighted = matrix.T @ (growth * weighted[:, partner])
            weighted /= weighted.max(axis=0)
            law = law @ matrix
            # profiles of a search are kept for the last n only
            n = min(self.length - node, len(ahead) - 1) if every else len(ahead) - 1
            secrets = law > 0
            if n > self.length - node or weighted[secrets].min() < SAFE_MINIMUM or law[secrets].min() < SAFE_MINIMUM:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                behind = np.log(weighted[:, : sets.shape[1]] / law[:, None])
            leaks = self._leak(ahead[n] + behind, counts, cost, node, n, 2 * node, secrets)
            best = (
                leaks if best is None else [max(p, key=lambda leak: leak.value) for p in zip(best, leaks, strict=True)]
            )
        return best or [_Leak(0.0, 1, (0, 0), 0)] * sets.shape[1]

    def _any(self, ahead: list[Floats], counts: _Counts, cost: float) -> _Leak:
        """Of the early nodes under initial distributions on two states."""
        matrix, k = self.chain.transition_matrix, self.chain.states
        _, growth, partner = _paired(counts, cost)
        weighted = np.stack([np.eye(k)] * growth.shape[1])  # from X_1 (rows) to the node, for each column
        plain = np.eye(k)
        best = _Leak(0.0, 1, (0, 0), 0)
        pairs = [(x, y) for x in range(k) for y in range(x)] if k <= 12 else [(0, y) for y in range(1, k)]
        for node in range(2, min(self.length, _EARLY_NODES) + 1):
            weighted = (weighted[partner] * growth.T[:, None, :]) @ matrix
            weighted /= weighted.max()
            plain = plain @ matrix
            n = min(self.length - node, len(ahead) - 1)
            for x, y in pairs:
                over = weighted[0, x] + _ODDS[:, None] * weighted[0, y]
                under = plain[x] + _ODDS[:, None] * plain[y]
                secrets = under.min(axis=0) > 1e-200
                if not secrets.any():
                    continue
                behind = np.log(over[:, secrets]) - np.log(under[:, secrets])
                values = behind + ahead[n][secrets, 0] + cost * counts.sets[secrets, 0]
                spread = values.max(axis=1) - values.min(axis=1)
                at = int(spread.argmax())
                value = (
                    float(spread[at])
                    - self.error * (n + 2 * node + 2)
                    - 64 * UNIT_ROUNDOFF * float(np.abs(values).max())
                )
                if value > best.value:
                    names = self.names[secrets]
                    pair = int(names[values[at].argmax()]), int(names[values[at].argmin()])
                    best = _Leak(value, node, pair, max(n, node - 1))
        return best


def _paired(counts: _Counts, cost: float) -> tuple[Bools, Floats, NDArray[np.intp]]:
    """Growth e^c or 1 at an odd distance for every column, then at an even one where the column alternates.

    Also the column that holds what lies one entry further.
    """
    sets, alternating = counts
    n = sets.shape[1]
    turned = np.flatnonzero(alternating)
    odd = sets ^ alternating[None, :]
    growth = np.exp(cost * np.concatenate([odd, sets[:, turned]], axis=1))
    partner = np.arange(n + len(turned))
    partner[turned] = n + np.arange(len(turned))
    partner[n:] = turned
    return sets, growth, partner


def _own_entry(chain: MarkovChain, length: int) -> tuple[int, tuple[int, int]] | None:
    """A node with two possible values: a count of that entry alone leaks c. None where there is nothing to hide."""
    states = chain.initial_support
    for node in range(1, min(length, chain.states**2 + 1) + 1):
        names = np.flatnonzero(states)
        if len(names) > 1:
            return node, (int(names[0]), int(names[1]))
        states = reached(states, chain.transition_matrix)
    return None


def _candidates(leaks: CountLeaks, both: bool) -> _Counts:
    """Sets of states to begin with, each also alternating with its complement if ``both``."""
    chain = leaks.chain
    k = chain.states
    found: list[Bools] = []
    if k <= _ALL_SUBSETS:
        found = [np.array([bool(mask >> x & 1) for x in range(k)]) for mask in range(1, 2**k - 1)]
    else:
        orders = [np.arange(k)]
        values, vectors = np.linalg.eig(chain.transition_matrix)
        for j in np.argsort(-np.abs(values))[1:4]:
            orders += [np.argsort(vectors[:, j].real), np.argsort(vectors[:, j].imag)]
        for order in orders:
            for size in range(1, k):
                first = np.zeros(k, dtype=np.bool_)
                first[order[:size]] = True
                found += [first, ~first]
        found += [np.arange(k) == x for x in range(k)]
    unique = list({s.tobytes(): s for s in found}.values()) or [np.ones(k, dtype=np.bool_)]
    sets = np.array(unique).T
    if both and k <= _ALL_SUBSETS:
        return _Counts(np.concatenate([sets, sets], axis=1), np.arange(2 * len(unique)) >= len(unique))
    return _Counts(sets, np.zeros(len(unique), dtype=np.bool_))


def _chain_bound(chain: MarkovChain, length: int, epsilon: float, index: int, both: bool) -> LowerBound:
    leaks = CountLeaks(chain, length)
    counts = _candidates(leaks, both)
    cost = epsilon
    own = _own_entry(chain, length)
    if own is None:
        return LowerBound(epsilon, length, 0.0, 1, (0, 0), (), False, 0, index)
    node, pair = own
    if not 1e-8 < epsilon <= 200:
        return LowerBound(epsilon, length, _below(1 / epsilon), node, pair, pair[:1], False, 0, index)
    # the best set depends on c, and c on the best set
    chosen = 0
    for _ in range(8):
        found = leaks.leaks(counts, cost)
        chosen = max(range(len(found)), key=lambda j: found[j].value)
        following = _needed_cost(leaks, counts, chosen, epsilon, cost)
        if following >= cost * (1 - 1e-6):
            break
        cost = following
    sets, alternating = counts.sets[:, chosen].copy(), bool(counts.alternating[chosen])
    if leaks.chain.states > _ALL_SUBSETS:
        sets = _improved(leaks, sets, alternating, cost)
    cost, leak = _final_cost(leaks, sets, alternating, epsilon, cost)
    if not cost < epsilon:
        return LowerBound(epsilon, length, _below(1 / epsilon), node, pair, pair[:1], False, 0, index)
    states = tuple(int(s) for s in leaks.names[sets])
    return LowerBound(epsilon, length, _below(1 / cost), leak.node, leak.pair, states, alternating, leak.window, index)


def _needed_cost(leaks: CountLeaks, counts: _Counts, chosen: int, epsilon: float, cost: float) -> float:
    """About the c at which one query leaks ε."""
    one = _Counts(counts.sets[:, [chosen]], counts.alternating[[chosen]])
    for _ in range(12):
        value = leaks.leaks(one, cost)[0].value
        if not value > 0:
            return cost
        if abs(value / epsilon - 1) < 1e-4:
            break
        cost = min(cost * epsilon / value, epsilon)
    return cost


def _improved(leaks: CountLeaks, sets: Bools, alternating: bool, cost: float) -> Bools:
    """Change single states as long as that leaks more."""
    value = -math.inf
    while True:
        trials = np.repeat(sets[:, None], len(sets) + 1, axis=1)
        trials[np.arange(len(sets)), np.arange(len(sets))] ^= True
        found = leaks.leaks(_Counts(trials, np.full(len(sets) + 1, alternating)), cost)
        best = max(range(len(found)), key=lambda j: found[j].value)
        if not found[best].value > value * (1 + 1e-6) or best == len(sets):
            return sets
        sets, value = trials[:, best].copy(), found[best].value


def _final_cost(leaks: CountLeaks, sets: Bools, alternating: bool, epsilon: float, cost: float) -> tuple[float, _Leak]:
    """A c, close to the least one, at which the query is known to leak more than ε; at least c = ε does, nearly."""
    below, above, at_above = 0.0, epsilon, None
    for _ in range(60):
        leak = leaks.closer_look(sets, alternating, cost)
        if leak.value > epsilon:
            above, at_above = cost, leak
        else:
            below = cost
        if above <= below * (1 + 1e-8) or (at_above is not None and at_above.value <= epsilon * (1 + 1e-8)):
            break
        guess = cost * epsilon / leak.value * (1 + 2e-9) if leak.value > 0 else math.inf
        if not below < guess < above:
            guess = math.sqrt(below * above) if below > 0 else above / 2
        cost = guess
    return above, at_above or leak


def _below(scale: float) -> float:
    return math.nextafter(math.nextafter(scale, 0.0), 0.0)
