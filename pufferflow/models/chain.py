"""One Markov chain: a validated transition matrix with an initial distribution."""

from __future__ import annotations

import marshal
from bisect import bisect_right
from decimal import Context, localcontext
from functools import cached_property
from itertools import combinations
from math import fsum
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._util.checks import check_numbers, check_whole, shown
from pufferflow._util.rounding import SAFE_MINIMUM, SUM_TOLERANCE, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.powers import followed

STATIONARY: Literal["stationary"] = "stationary"
ANY: Literal["any"] = "any"
GapKind: TypeAlias = Literal["auto", "general", "reversible"]


class ByValue:
    """Objects of a class are equal if their :meth:`document` is; subclasses are immutable."""

    fields: ClassVar[tuple[str, ...]]
    """The fields of its value in model files; ``?`` marks optional ones."""

    def document(self) -> dict[str, Any]:
        """Return the object as plain JSON types."""
        raise NotImplementedError

    @cached_property
    def _value(self) -> bytes:
        return marshal.dumps(self.document(), 2)  # version 2: equal numbers give equal bytes

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():  # NumPy's copies are writable
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        vars(self).update(state)


class MarkovChain(ByValue):
    """A homogeneous Markov chain θ = (q, P) on k states, immutable.

    Parameters
    ----------
    transition_matrix : array_like, shape (k, k)
        P, each row a distribution. Rows within 1e-9 of 1 are divided by their sum.
    initial_distribution : {"stationary", "any"} or array_like, shape (k,)
        q, the distribution of X_1. ``"stationary"`` is the stationary distribution, which must be
        unique; ``"any"`` stands for the family of all initial distributions (Song et al., C.4).
    """

    fields = ("transition_matrix", "initial_distribution?")

    def __init__(
        self, transition_matrix: ArrayLike, initial_distribution: str | ArrayLike = STATIONARY
    ) -> None:
        _check_labels(transition_matrix, initial_distribution)
        matrix = checked_distributions(transition_matrix, "transition matrix")
        self.transition_matrix: Floats = matrix
        """P, shape (k, k), read-only."""
        self.states = len(matrix)
        """Number of states, k."""
        self.stationary_error = 8.0 * self.states**3 * UNIT_ROUNDOFF
        """Bound on the relative error of each entry of :attr:`stationary_distribution`.

        Eliminating state n perturbs the off-diagonal entries of the chain before it by at most
        n + 3 roundings, and a relative perturbation η of those of an n-state chain moves each π(x)
        by at most about 2nη (O'Cinneide 1993): below 8k³ roundings with the input's own.
        """
        self._balance_tolerance = max(1e-12, 4 * self.stationary_error)
        """Relative difference of two opposite flows that counts as rounding."""
        self.start: Literal["stationary", "any", "given"] = "given"
        """Kind of initial distribution: given, stationary or any."""
        self.given: Floats | None = None
        """The initial distribution if it is given, shape (k,), read-only; otherwise None."""
        self.initial_distribution: Floats | None = None
        """Distribution of X_1, shape (k,), or None for any initial distribution."""
        self.initial_support: Bools = np.ones(self.states, dtype=np.bool_)
        """States X_1 may take, shape (k,)."""
        if not isinstance(initial_distribution, str):
            self.given = checked_start(initial_distribution, (self.states,))
            self.initial_distribution, self.initial_support = self.given, self.given > 0
        elif initial_distribution == ANY:
            self.start = "any"
        elif initial_distribution == STATIONARY:
            self.start, self.initial_distribution = "stationary", self.stationary_distribution
            self.initial_support = self._closed_classes[0]
        else:
            fault = f"initial distribution {shown(initial_distribution)} is unknown"
            raise ChainError(f'{fault}; give "stationary", "any" or a list of probabilities')

    def __repr__(self) -> str:
        return f"MarkovChain({self.states} states, initial_distribution={self.start})"

    def document(self) -> dict[str, Any]:
        """Return the chain as plain JSON types."""
        start = self.start if self.given is None else self.given.tolist()
        return {"transition_matrix": self.transition_matrix.tolist(), "initial_distribution": start}

    @cached_property
    def _reached(self) -> Bools:
        """Mask of the states that can be reached from each, itself included, shape (k, k)."""
        edges = np.eye(self.states, dtype=np.bool_) | (self.transition_matrix > 0)
        return edges if edges.all() else followed(edges, edges, 1 << self.states.bit_length())

    @property
    def occurring(self) -> Bools:
        """States that can occur at some time, shape (k,)."""
        return np.asarray(self._reached[self.initial_support].any(axis=0))

    def simulate(self, length: int, rng: np.random.Generator | int) -> NDArray[np.int64]:
        """Return a path X_1 … X_T, states 0 … k−1, shape (length,); ``rng`` may be a seed.

        Raises ParameterError: the initial distribution is "any", so there is none to draw from.
        """
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(check_whole(rng, "rng", 0, None))
        length = check_whole(length, "length", most=10**9)
        if self.initial_distribution is None:
            fault = 'a chain with initial_distribution="any" cannot be simulated'
            raise ParameterError(f"{fault}; give a distribution")
        rows = np.cumsum(np.vstack([self.transition_matrix, self.initial_distribution]), axis=1)
        rows[:, -1] = 1.0
        ends, state = rows.tolist(), self.states
        path = rng.random(length)
        for t, draw in enumerate(path):
            # on lists that is ten times as fast as searchsorted
            path[t] = state = bisect_right(ends[state], draw)
        return path.astype(np.int64)

    @property
    def recurrent(self) -> MarkovChain:
        """The chain on its recurrent states if its start is stationary, otherwise itself."""
        inside = self.initial_support
        if self.start != "stationary" or inside.all():
            return self
        return MarkovChain(self.transition_matrix[np.ix_(inside, inside)])

    @property
    def _closed_classes(self) -> list[Bools]:
        """Communicating classes that are never left, each a mask of states."""
        stays = (self._reached <= self._reached.T).all(axis=1)
        return list(np.unique(self._reached[stays], axis=0))

    @property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other."""
        return bool(self._reached.all())

    @cached_property
    def period(self) -> int:
        """Greatest common divisor of all cycle lengths; ChainError if the chain is reducible."""
        if not self.is_irreducible:
            raise ChainError("the period is defined for irreducible chains, not for this one")
        edges, n = self.transition_matrix > 0, 0
        steps = np.where(np.arange(self.states) == 0, 0, self.states)  # from the first state
        while (now := steps == n).any():
            n += 1
            steps[edges[now].any(axis=0) & (steps > n)] = n
        rows, columns = np.nonzero(edges)
        return int(np.gcd.reduce(steps[rows] + 1 - steps[columns]))

    @property
    def is_aperiodic(self) -> bool:
        """Whether the chain is irreducible with period 1."""
        return self.is_irreducible and self.period == 1

    @cached_property
    def stationary_distribution(self) -> Floats:
        """π with πP = π, shape (k,), zero on transient states.

        It is computed by the elimination of Grassmann, Taksar and Heyman, without subtraction, so
        every entry has a small relative error (:attr:`stationary_error`) down to the range of
        floats: an entry below about 1e-308 loses digits or becomes 0.

        Raises ChainError: there are several closed classes, so it is not unique.
        """
        inside, *others = self._closed_classes
        if others:
            fault = f"the chain has {1 + len(others)} closed classes of states"
            advice = 'give another initial_distribution, such as "any"'
            raise ChainError(f"the stationary distribution is not unique: {fault}; {advice}")
        distribution = np.zeros(self.states)
        distribution[inside] = _stationary(self.transition_matrix[np.ix_(inside, inside)])
        distribution.flags.writeable = False
        return distribution

    @cached_property
    def time_reversal(self) -> Floats:
        """P*(x, y) = π(y) P(y, x) / π(x), shape (k, k).

        Raises ChainError: the chain is reducible (π would have zeros or not be unique), or π(x)
        leaves the range of floats.
        """
        if not self.is_irreducible:
            raise ChainError("the time reversal needs an irreducible chain; this one is reducible")
        pi = self.stationary_distribution
        if pi.min() < SAFE_MINIMUM:
            needs = f"the time reversal needs stationary probabilities of at least {SAFE_MINIMUM}"
            raise ChainError(f"{needs}, not {pi.min():.3g}")
        reversal: Floats = self.transition_matrix.T * pi / pi[:, None]
        reversal.flags.writeable = False
        return reversal

    @cached_property
    def is_reversible(self) -> bool:
        """Whether detailed balance π(x) P(x, y) = π(y) P(y, x) holds, up to rounding."""
        if not self.is_irreducible:
            return False
        flow = self.stationary_distribution[:, None] * self.transition_matrix
        tolerance = self._balance_tolerance * np.maximum(flow, flow.T)
        return bool(np.all(np.abs(flow - flow.T) <= tolerance))

    def eigengap(self, kind: GapKind) -> float:
        """Return the gap g of Algorithm 4, rounded down, between 0 and 2.

        ``general``: 1 − λ₂(PP*), λ₂ the second largest eigenvalue **with multiplicity** (if PP* is
        reducible the gap is 0: without all eigenvalues 1, as printed, the gap would not bound the
        mixing). ``reversible``: 2 (1 − |λ₂(P)|), for chains in detailed balance. ``auto``: the
        latter for these, the former for others.

        Raises ChainError: the chain is reducible or periodic, or not reversible if required.
        """
        if not self.is_aperiodic:
            one = f"has period {self.period}" if self.is_irreducible else "is reducible"
            fault = f"the eigengap needs an irreducible aperiodic chain, this one {one}"
            raise ChainError(f"{fault}; fit it with smoothing > 0, or use mqm-exact")
        if kind == "auto":
            kind = "reversible" if self.is_reversible else "general"
        if kind == "reversible" and not self.is_reversible:
            advice = 'lacking here; use "general" or "auto"'
            raise ChainError(f'eigengap "reversible" needs detailed balance, {advice}')
        pi = self.stationary_distribution
        if pi.min() < SAFE_MINIMUM:
            return 0.0
        similar = np.sqrt(pi)[:, None] * self.transition_matrix / np.sqrt(pi)
        error = 16.0 * self.states * UNIT_ROUNDOFF + self.stationary_error
        singular = [*np.linalg.svd(similar, compute_uv=False), 0.0]  # of one state, too
        second = float(singular[1])
        if kind == "reversible":  # singular values are absolute eigenvalues
            return max(0.0, 2.0 * (1.0 - second - error - self._balance_tolerance))
        return max(0.0, 1.0 - second**2 - error)


def _stationary(matrix: Floats) -> Floats:
    """Return the stationary distribution of an irreducible chain, without subtraction."""
    try:
        with np.errstate(all="raise"):
            return _eliminate(matrix)
    except FloatingPointError:
        # numbers leave the range of floats: repeat in decimals with wide exponents
        wide = Context(prec=30, Emin=-(10**9), Emax=10**9)
        exact = np.vectorize(wide.create_decimal_from_float, otypes=[object])(matrix)
        with localcontext(wide):
            return _eliminate(exact).astype(np.float64)


def _eliminate(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return π by the elimination of Grassmann, Taksar and Heyman, on floats or decimals."""
    work = matrix.copy()
    k = len(work)
    for n in range(k - 1, 0, -1):
        work[:n, n] /= work[n, :n].sum()
        work[:n, :n] += work[:n, n, None] * work[n, :n]
    weights = np.full_like(work[0], type(work[0, 0])(1))
    for n in range(1, k):
        weights[n] = (weights[:n] * work[:n, n]).sum()
    return np.asarray(weights / weights.sum())


def _check_labels(*arrays: Any) -> None:
    """Raise if labels, as of pandas, have two orders: only positions are read."""
    named = [getattr(array, axis, None) for array in arrays for axis in ("index", "columns")]
    orders = [list(labels) for labels in named if labels is not None and not callable(labels)]
    for one, other in combinations(orders, 2):
        numbered = list(range(len(one))) in (one, other)
        if one != other and (set(one) == set(other) or not numbered):
            advice = "bring rows, columns and the initial distribution into one order"
            raise ChainError(f"the states have two orders of labels, which are not read; {advice}")


def checked_start(values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return an initial distribution of a shape, as a read-only vector; raises ChainError."""
    name = "initial distribution"
    start = check_numbers(values, f"the {name}", ChainError)
    if start.shape != shape:
        raise ChainError(f"the {name} has shape {start.shape}; give one of shape {shape}")
    return np.asarray(checked_distributions(start.reshape(1, -1), name, 1)[0])


def checked_matrix(
    values: ArrayLike, name: str, states: int | None = None, most: float = 1.0
) -> Floats:
    """Return numbers from 0 to ``most``, a row per state (default: square); raises ChainError."""
    matrix = check_numbers(values, name, ChainError) + 0.0  # no negative zeros
    if matrix.ndim != 2 or matrix.size == 0:
        wrong = f"not an array of shape {matrix.shape}"
        raise ChainError(f"{name} must be non-empty rows of numbers, {wrong}")
    if len(matrix) != (states := matrix.shape[1] if states is None else states):
        raise ChainError(f"{name} has {len(matrix)} rows for {states} states; give one per state")
    for i, j in np.argwhere(~((matrix >= 0) & (matrix <= most))):
        # without the number, which may be a count
        where = f"row {i + 1}, column {j + 1}" if len(matrix) > 1 else f"entry {j + 1}"
        raise ChainError(f"{name} has no probability in {where}; each must lie between 0 and 1")
    return matrix


def checked_distributions(values: ArrayLike, name: str, states: int | None = None) -> Floats:
    """Return a read-only matrix of distributions, as :func:`checked_matrix`."""
    matrix = checked_matrix(values, f"the {name}", states, most=1 + SUM_TOLERANCE)
    for i, row in enumerate(matrix, 1):
        mass = fsum(row)
        if not abs(mass - 1) <= SUM_TOLERANCE:
            where = f"row {i} of the {name}" if len(matrix) > 1 else f"the {name}"
            advice = "divide it by its sum or correct the entry"
            raise ChainError(f"{where} sums to {mass:.12g}, not to 1; {advice}")
        # rows are divided once, so that a chain read back from a file is the same chain
        if abs(mass - 1) > 4 * UNIT_ROUNDOFF:
            row /= mass
    matrix.flags.writeable = False
    return matrix
