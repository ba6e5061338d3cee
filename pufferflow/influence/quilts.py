"""Finding the worst node of a chain and its best quilt (Algorithm 3) without scanning all quilts.

``docs/leakage.md``, section 16, has the facts that keep the time independent of the length T and of
the size of quilts. A node is the first record of a window, so there are T − w + 1 of them.

Every table is an upper bound. P^n is a product of non-negative numbers, so each entry of a computed
power has a relative error of at most about n (k + 3) roundings, whatever the order of the products;
ratios, logarithms and the later sums of three tables are covered by a few more roundings relative
to the size of the entry. Probabilities that underflow are distinguished from zeros by the support
of P^n, kept with it.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, partial
from heapq import heappop, heappush
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from pufferflow._util.grids import shared
from pufferflow._util.jit import constant, most_threads
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF, divide_up
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.influence import _kernels
from pufferflow.influence._kernels import INFINITE
from pufferflow.models.chain import MarkovChain
from pufferflow.models.powers import Supports, followed, largest_after

Convention: TypeAlias = Literal["exact", "published"]

MASKED = -1e200
"""Marks a pair of states that are not both secrets; its size exceeds ``INFINITE``."""

CONVERGED = 1e-12
"""Largest distance of the first term from its limit (in nats) if nodes count as equal."""

KERNEL_WORK = 10**8
"""Table entries that a kernel reads between signals: tenths of a second."""

SPACES = 2**10
"""Number of searched distances of quilt nodes from a power of two to the next one."""

RANGE_LIMIT = 1000
"""Largest number of searched ranges of nodes, smaller for many states."""

_FIRST_WORK = 2**10  # doubled each time: kernels are interpreted until there is more work
_MAX_BYTES = 2**27
_ROWS_PER_THREAD = 100


class Candidate(NamedTuple):
    """A node (from 1) with its best quilt: distances of the quilt nodes, None for no quilt node.

    The influence and the score, card / (ε − influence), are upper bounds.
    """

    node: int
    left: int | None
    right: int | None
    influence: float
    score: float


class InfluenceTables:
    """The three terms of eq. 5 for one chain, as tables over pairs of secrets (x, x').

    The convention "published" includes all states of the left quilt node, as eq. 5 is printed,
    "exact" only its possible states (Definition 4.1). Secrets are of ``window`` records:
    pairs are of their first values, and the forward term is the largest over their last ones.
    """

    def __init__(self, chain: MarkovChain, convention: Convention, window: int = 1) -> None:
        self.chain, self.convention, self.window = chain, convention, window
        self.step_error = 2.0 * (chain.states + 3) * UNIT_ROUNDOFF
        self.everything = np.ones(chain.states, dtype=np.bool_)
        self.deciding = np.zeros((25, 2), dtype=np.int64)
        """Deciding pairs of secrets, their number in row 0 (``search_quilts``)."""
        self.quilts: list[tuple[int, int]] = []
        """The last best quilts, by the positions of their distances, as a start for searches."""
        alone = np.eye(chain.states, dtype=np.bool_)
        after = followed(alone, chain.transition_matrix > 0, window - 1)
        self._last = after if window > 1 else None
        self._begin()

    def _begin(self) -> None:
        matrix = self.chain.transition_matrix
        both = np.eye(len(matrix)), matrix
        self._powers = {n: (constant(power), power > 0) for n, power in enumerate(both)}
        self.stack = np.zeros((64, *matrix.shape))
        """All tables; the first one is zero and represents no quilt node."""
        self._known: dict[bytes, dict[int, int]] = {}
        self._used = 1

    def trim(self) -> None:
        """Reset the tables if they take much memory."""
        if 8 * self.chain.states**2 * (len(self._powers) + self._used) > _MAX_BYTES:
            self._begin()

    def power(self, n: int) -> tuple[Floats, Bools]:
        """Return P^n, which may underflow, and its exact support, as a product of two powers."""
        if n not in self._powers:
            low = n & -n
            parts = (n - low, low) if n != low else (n // 2, n // 2)
            (values, support), (others, edges) = map(self.power, parts)
            if not support.all():  # else no row of the other power is zero
                support = followed(support, edges, 1)
            # unlike @ it never warns of underflow, which is expected here
            self._powers[n] = constant(np.dot(values, others)), support
        return self._powers[n]

    def known(self, states: Bools | None) -> dict[int, int]:
        """Return indices in the stack of the existing tables, by distance, for these states."""
        return self._known.setdefault(b"" if states is None else states.tobytes(), {0: 0})

    def at(self, n: int, states: Bools | None = None) -> int:
        """Return the index in the stack of the table of a quilt node at distance n.

        To the right it is that of max over z of log P^n(x, z) / P^n(x', z), the largest over the
        last values of windows. To the left, with the ``states`` that the quilt node can take, it is
        that of max over z in ``states`` of log P^n(z, x) / P^n(z, x').
        """
        known = self.known(states)
        if n not in known:
            if self._used == len(self.stack):
                self.stack = np.concatenate([self.stack, np.empty_like(self.stack)])
            self._fill(self.stack[self._used], n, states)
            known[n] = self._used
            self._used += 1
        return known[n]

    def _fill(self, out: Floats, n: int, states: Bools | None) -> None:
        events, backward = (self.everything, False) if states is None else (states, True)
        margin = n * self.step_error + 4 * UNIT_ROUNDOFF
        fill = partial(_kernels.max_ratios, *self.power(n), events, backward, margin, out)
        k, parts = len(out), len(out) // _ROWS_PER_THREAD
        if parts < 2:
            fill((0, k))
        else:  # each entry is computed the same way on every thread
            with ThreadPoolExecutor(most_threads()) as pool:
                list(pool.map(fill, pairwise(k * i // parts for i in range(parts + 1))))
        if states is None and self._last is not None:
            out[:] = largest_after(out, self._last)

    def any_initial(self, n: int) -> Floats:
        """Return the table of max over z of log P^n(z, x') / P^n(z, x) (C.4).

        An upper bound of log m_i(x') / m_i(x) for every initial distribution and every i > n: both
        probabilities are mixtures of the rows of P^n, and a ratio of mixtures is at most the
        largest ratio.
        """
        index = self.at(n, self.everything)
        return self.stack[index].T if n else np.full_like(self.stack[0], INFINITE)


def masked(table: Floats, secrets: Bools) -> Floats:
    """Return a table in which pairs that are not both ``secrets`` are excluded."""
    return np.where(np.logical_and.outer(secrets, secrets), table, MASKED)


def initial_term(distribution: Floats, error: float) -> Floats:
    """Return the table of log m(x') / m(x) for m with relative entry error ``error``."""
    numerators = np.log(np.maximum(distribution, SAFE_MINIMUM))
    denominators = np.where(distribution >= SAFE_MINIMUM, numerators, -INFINITE)
    sizes = np.abs(numerators)[None, :] + np.abs(denominators)[:, None]
    table = numerators[None, :] - denominators[:, None]
    return np.asarray(table + 2.0 * error + 8 * UNIT_ROUNDOFF * (1 + sizes))


@cache
def distances_of(spaces: int) -> Ints:
    """Return the searched distances, increasing; 0 represents no quilt node."""
    octave = np.arange(spaces, 2 * spaces)
    octaves = [octave << n for n in range(64 - spaces.bit_length())]
    return np.concatenate([np.arange(spaces), *octaves])


_tables = shared(InfluenceTables)


class Nodes(NamedTuple):
    """The nodes first, first + stride, … last with a common bound on the first term of eq. 5."""

    first: int
    last: int
    initial: Floats  # first term with a left quilt node, shape (k, k)
    mask: Floats  # and without one
    reach: int  # largest distance of a left quilt node
    settled: bool  # whether the left quilt nodes of all nodes up to it take the same states
    uniform: bool  # whether the bound equals that of each node, up to rounding


class QuiltSearch:
    """Best quilts of the nodes of one chain."""

    def __init__(
        self,
        chain: MarkovChain,
        length: int,
        epsilon: float,
        convention: Convention = "exact",
        window: int = 1,
    ) -> None:
        self.tables = tables = _tables(chain, convention, window)
        self.chain, self.epsilon, self.window = chain, epsilon, min(window, length)
        self.length = length - self.window + 1  # nodes: windows by their first records
        self._trivial, self._distances = divide_up(length, epsilon), distances_of(SPACES)
        edges = tables.power(1)[1]
        self.supports = Supports(chain.initial_support, edges, self.length)
        self._horizon = self.length  # later nodes of equal support are equal

    # -- nodes -----------------------------------------------------------------------------------

    def worst_node(self) -> Candidate:
        """Return the node with the largest best score, σ_max of Algorithm 3, rounded up."""
        queue, worst = self._all_nodes(), Candidate(1, None, None, 0.0, 0.0)
        searched, settled = 0, self.supports.settled
        while queue and -queue[0][0] > worst.score:
            bound, first, last, stride = heappop(queue)
            nodes = self.nodes(first, last, stride)
            searched += max(1, self.chain.states**2 // 4000)
            if nodes.uniform:
                middle = first + (last - first) // stride // 2 * stride
                reach = nodes.reach + middle - first
                one = nodes._replace(first=middle, last=middle, reach=reach)
                best = self.best_quilt(one, worst.score)
                # farther away quilts that reach back before the supports settle do no better
                far = settled == 1 or first - settled >= self.epsilon * best.score
                if far or first == last:
                    worst = max(worst, best, key=lambda candidate: candidate.score)
                    if best.left is None and best.right is not None and middle < last:
                        heappush(queue, (bound, middle + stride, last, stride))
                    if best.right is None and best.left is not None and middle > first:
                        heappush(queue, (bound, first, middle - stride, stride))
                    continue
            best = self.best_quilt(nodes, worst.score)
            if best.score > worst.score and searched > RANGE_LIMIT:
                worst = best
            elif best.score > worst.score:
                cut = first + (_kernels.middle_of(first, last) - first) // stride * stride
                heappush(queue, (-best.score, first, cut, stride))
                heappush(queue, (-best.score, cut + stride, last, stride))
        return worst

    def _all_nodes(self) -> list[tuple[float, int, int, int]]:
        """Return ranges of all nodes, as a heap; ranges of equal nodes come first."""
        first, stride, end, early = self.supports.settled, self._stride, self.length, []
        if first > 1:
            early.append((-self._trivial, 1, min(first - 1, end), 1))
        while first <= end:
            last = min(max(2 * first - 2, first + stride - 1), end)
            starts = range(first, min(first + stride, end + 1))
            rest = [(n, end - (end - n) % stride, stride) for n in starts]
            if all(self.nodes(*nodes).uniform for nodes in rest):
                self._horizon = first - 1
                return [(-math.inf, *nodes) for nodes in rest] + early
            early += [(-self._trivial, n, last - (last - n) % stride, stride) for n in starts]
            first = last + 1
        return [(-math.inf, (end + 1) // 2, (end + 1) // 2, 1), *early]

    @cached_property
    def _stride(self) -> int:
        """Return the multiple of the period with the smallest moves of the distributions."""
        period = stride = self.supports.period
        if self.chain.start == "given" and self.length > self.supports.settled:
            node = self.supports.settled + 8 * period * self.chain.states
            distribution = self._distribution(node)
            multiples = range(period, 2 * period * self.chain.states + 1, period)
            moves = [self._moves(distribution, node, n, 1) for n in multiples]
            stride = multiples[np.maximum(moves, CONVERGED).argmin()]
        return stride

    def nodes(self, first: int, last: int = 0, stride: int = 1) -> Nodes:
        """Return every ``stride``-th of the nodes first..last; a single one by default."""
        tables, start, alone = self.tables, self.chain.start, last <= first
        settled, last = self.supports.settled, max(first, last)
        same = alone or (first >= settled and stride % self.supports.period == 0)
        secrets = self.supports.at(first) if same else tables.everything
        if start == "stationary":
            chain, uniform = self.chain, True
            initial = initial_term(chain.stationary_distribution, chain.stationary_error)
        elif start == "any" or not alone:
            n = min(first - 1, self._horizon)
            initial = masked(tables.any_initial(n), secrets)
            spread = float((initial + initial.T).max())
            uniform = alone or (same and spread <= CONVERGED + 3 * n * tables.step_error)
        if start == "given" and same and (alone or not uniform):
            distribution, error = self._distribution(first), first * tables.step_error / 2
            moves = self._moves(distribution, first, stride, (last - first) // stride)
            own = initial_term(distribution, error + 4 * UNIT_ROUNDOFF) + moves
            initial = own if alone else np.minimum(initial, own)
            uniform = alone or moves <= CONVERGED + 4 * error
        initial, mask = masked(initial, secrets), masked(np.zeros_like(initial), secrets)
        reach = first - (1 if alone or not same else settled)
        return Nodes(first, last, initial, mask, reach, same, uniform)

    def _distribution(self, node: int) -> Floats:
        """Return the distribution of X_node under a given start."""
        distribution = self.chain.initial_distribution
        assert distribution is not None
        for bit in range((node - 1).bit_length()):
            if (node - 1) >> bit & 1:
                distribution = np.dot(distribution, self.tables.power(1 << bit)[0])
        return distribution

    def _moves(self, distribution: Floats, node: int, stride: int, steps: int) -> float:
        """Return a bound of the move of log m_i(x')/m_i(x) in ``steps`` strides."""
        states, moves = self.supports.at(node), 0.0
        now, inside = distribution[states], np.ix_(states, states)
        for level in range(steps.bit_length()):
            n = stride << level
            later = np.dot(now, self.tables.power(n)[0][inside])
            if moves > self.epsilon or not min(now.min(), later.min()) >= SAFE_MINIMUM:
                return INFINITE
            rounding = n * self.tables.step_error + 2 * (len(states) + 8) * UNIT_ROUNDOFF
            moves += float(np.ptp(np.log(later / now))) * (1 + 16 * UNIT_ROUNDOFF) + rounding
        return moves

    # -- quilts ----------------------------------------------------------------------------------

    def influence(self, nodes: Nodes, a: int, b: int) -> float:
        """Return the max-influence of the quilt at ``a`` and ``b``, 0 for none on that side."""
        both = self.tables.at(a, self._states(nodes, a)), self.tables.at(b)
        tables = (self.tables.stack[index] for index in both)
        found = _kernels.max_influence(nodes.initial if a else nodes.mask, *tables)[0]
        return math.inf if found >= INFINITE / 2 else found

    def _states(self, nodes: Nodes, a: int) -> Bools:
        """Return the states that the left quilt node at distance ``a`` can take."""
        known = nodes.settled and self.tables.convention == "exact"
        return self.supports.at(nodes.first - a) if known else self.tables.everything

    def _at_hand(self, states: Bools | None, distances: Ints) -> Ints:
        """Return indices of the tables of increasing distances, −1 for missing ones."""
        indices, known = np.full(len(distances), -1), self.tables.known(states)
        given, at_hand = np.array(list(known)), np.array(list(known.values()))
        at = np.searchsorted(distances[:-1], given)
        fits = distances[at] == given
        indices[at[fits]] = at_hand[fits]
        return indices

    def best_quilt(self, nodes: Nodes, enough: float = 0.0) -> Candidate:
        """Return the best quilt of some nodes, or any whose score is at most ``enough``."""
        tables, distances, after = self.tables, self._distances, self.length - nodes.last
        best, quilt = np.array([self._trivial, 0.0]), np.zeros(2, int)
        tables.trim()
        ends = np.searchsorted(distances, (nodes.reach, after), "right") - 1
        left, right = (distances[: end + 1] for end in ends)
        # left quilt nodes up to this distance take the same states
        same = max(0, min(nodes.reach, nodes.first - self.supports.settled))
        same *= self.supports.period == 1
        lefts = np.where(left > same, -1, self._at_hand(self._states(nodes, same), left))
        rights = self._at_hand(None, right)

        def search(rectangles: list[tuple[int, int, int, int]]) -> None:
            top, work = np.array([len(rectangles)]), _FIRST_WORK
            stack = np.zeros((512, 4), dtype=np.int64), np.zeros(512), top
            stack[0][: len(rectangles)] = rectangles
            while top[0] and best[0] > enough:
                _kernels.search_quilts(
                    stack,
                    min(work, KERNEL_WORK),
                    (nodes.last, self.length - nodes.first + 1, self.window),
                    (self.epsilon, enough),
                    (nodes.initial, nodes.mask, tables.stack),
                    (distances, lefts, rights),
                    (tables.deciding, best, quilt),
                )
                if top[0]:  # a table or work is missing
                    _, i, _, j = stack[0][top[0] - 1]
                    if lefts[i] >= 0 and rights[j] >= 0:
                        work *= 2
                    if lefts[i] < 0:
                        a = int(distances[i])
                        lefts[i] = tables.at(a, self._states(nodes, a))
                    if rights[j] < 0:
                        rights[j] = tables.at(int(distances[j]))

        # a first good quilt bounds the others: a + b − 1 < ε · best
        powers = np.searchsorted(distances, 2 ** np.arange(62, 2, -1))
        tried = tables.quilts or np.stack([powers, powers], axis=1)
        search([(i, i, j, j) for i, j in np.minimum(tried, ends)])
        farthest = np.searchsorted(distances, 2 ** math.ceil(math.log2(self.epsilon * best[0] + 1)))
        i, j = np.minimum(ends, farthest)
        search([(1, i, 0, 0), (0, 0, 1, j), (1, i, 1, j)])
        i, j = quilt.tolist()
        if i or j:
            others = [known for known in tables.quilts if known != (i, j)]
            tables.quilts = [*others[-5:], (i, j)]
        a, b = distances[quilt].tolist()
        return Candidate(nodes.first, a or None, b or None, float(best[1]), float(best[0]))
