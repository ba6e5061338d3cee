"""One Markov chain: a validated transition matrix with an initial distribution."""

from __future__ import annotations

from bisect import bisect_right
from decimal import Context, localcontext
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._util.checks import check_type, check_whole, shown
from pufferflow._util.rounding import SAFE_MINIMUM, SUM_TOLERANCE, UNIT_ROUNDOFF, total
from pufferflow._util.types import Bools, Floats
from pufferflow._util.values import ByValue
from pufferflow.errors import ChainError, ParameterError

STATIONARY: Literal["stationary"] = "stationary"
ANY: Literal["any"] = "any"

LONGEST_PATH = 10**9
"""Records of a simulated path at most: they take 8 GB."""


class MarkovChain(ByValue):
    """A homogeneous Markov chain θ = (q, P) on k states, immutable.

    Parameters
    ----------
    transition_matrix : array_like, shape (k, k)
        P, each row a distribution. Rows within 1e-9 of 1 are divided by their sum.
    initial_distribution : {"stationary", "any"} or array_like, shape (k,)
        q, the law of X_1. ``"stationary"`` takes the stationary distribution, which must be
        unique; ``"any"`` stands for the family of all initial distributions (Song et al., C.4).

    Raises
    ------
    ChainError
        The matrix is not square or empty, an entry is negative, NaN or infinite, a row does not
        sum to 1, the initial distribution does not fit, or the states are labelled (as pandas does) in another order
        there or on the columns than on the rows.
    """

    def __init__(self, transition_matrix: ArrayLike, initial_distribution: str | ArrayLike = STATIONARY) -> None:
        _check_labels(transition_matrix, initial_distribution)
        self.transition_matrix: Floats = checked_distributions(transition_matrix, "transition matrix")
        """P, shape (k, k), read-only."""
        self.start: Literal["stationary", "any", "given"]
        """Which kind of initial distribution the chain has."""
        given: Floats | None = None
        if isinstance(initial_distribution, str):
            if initial_distribution == STATIONARY:
                self.start = "stationary"
            elif initial_distribution == ANY:
                self.start = "any"
            else:
                raise ChainError(
                    f"initial distribution {shown(initial_distribution)} is unknown; "
                    'give "stationary", "any" or a list of probabilities'
                )
        else:
            self.start = "given"
            rows: Any = [initial_distribution]
            given = checked_distributions(rows, "initial distribution")[0]
            if len(given) != self.states:
                raise ChainError(
                    f"the initial distribution has {len(given)} entries, the transition matrix {self.states} states; "
                    "give one probability a state"
                )
        self._given = given
        if self.start == "stationary":
            _ = self.stationary_distribution  # raises where it is not unique

    def __repr__(self) -> str:
        return f"MarkovChain({self.states} states, initial_distribution={self.start})"

    @property
    def states(self) -> int:
        """Number of states, k."""
        return int(self.transition_matrix.shape[0])

    @property
    def initial_distribution(self) -> Floats | None:
        """Law of X_1, shape (k,), or None where any initial distribution is meant."""
        return self.stationary_distribution if self.start == "stationary" else self._given

    def document(self) -> dict[str, Any]:
        """Return the chain as plain JSON types."""
        start = self.start if self._given is None else self._given.tolist()
        return {"transition_matrix": self.transition_matrix.tolist(), "initial_distribution": start}

    @cached_property
    def initial_support(self) -> Bools:
        """States X_1 may take, shape (k,)."""
        if self.start == "any":
            return np.ones(self.states, dtype=np.bool_)
        if self.start == "stationary":
            return self._closed_classes[0]
        assert self._given is not None
        return self._given > 0

    @cached_property
    def occurring(self) -> Bools:
        """States that can occur at some time, shape (k,)."""
        reached = self.initial_support.copy()
        edges = self.transition_matrix > 0
        fresh = np.flatnonzero(reached)
        while fresh.size:
            following = edges[fresh].any(axis=0) & ~reached
            reached |= following
            fresh = np.flatnonzero(following)
        return reached

    def simulate(self, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return a path X_1 … X_T, states 0 … k−1, shape (length,).

        Raises
        ------
        ParameterError
            The length is below 1, or any initial distribution is meant, so that there is none to draw from.
        """
        check_type(rng, "rng", np.random.Generator)
        length = check_whole(length, "length", most=LONGEST_PATH)
        if self.initial_distribution is None:
            raise ParameterError('a chain with initial_distribution="any" cannot be simulated; give a distribution')
        rows = np.cumsum(np.vstack([self.transition_matrix, self.initial_distribution]), axis=1)
        rows[:, -1] = 1.0
        ends, state = rows.tolist(), self.states
        path = rng.random(length)
        for t, draw in enumerate(path):
            path[t] = state = bisect_right(ends[state], draw)  # on lists that is ten times as fast as searchsorted
        return path.astype(np.int64)

    def restricted(self, states: Bools) -> MarkovChain:
        """The same chain on a closed set of states, in which it starts; its states are numbered anew.

        Parameters
        ----------
        states : bool array, shape (k,)

        Raises
        ------
        ChainError
            The chain may start outside or leave.
        """
        if states.all():
            return self
        if (self.start != "any" and self.initial_support[~states].any()) or (
            self.transition_matrix[states][:, ~states].any()
        ):
            raise ChainError("a chain can be restricted only to states in which it starts and which it never leaves")
        start = self.start if self._given is None else self._given[states]
        return MarkovChain(self.transition_matrix[np.ix_(states, states)], start)

    @cached_property
    def _classes(self) -> tuple[int, NDArray[np.int32]]:
        edges = self.transition_matrix > 0
        if edges.all():
            return 1, np.zeros(self.states, dtype=np.int32)
        # imported where it is needed: loading it takes longer than most noise scales
        from scipy.sparse.csgraph import connected_components

        count, labels = connected_components(edges, directed=True, connection="strong")
        return int(count), labels

    @cached_property
    def _closed_classes(self) -> tuple[Bools, ...]:
        """Communicating classes that are never left, each as a mask of states."""
        count, labels = self._classes
        edges = self.transition_matrix > 0
        masks = [labels == c for c in range(count)]
        return tuple(mask for mask in masks if not edges[mask][:, ~mask].any())

    @property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other."""
        return self._classes[0] == 1

    @cached_property
    def period(self) -> int:
        """Greatest common divisor of all cycle lengths; of an irreducible chain only.

        Raises
        ------
        ChainError
            The chain is reducible.
        """
        if not self.is_irreducible:
            raise ChainError("the period is defined for irreducible chains; this chain is reducible")
        if self.transition_matrix.diagonal().any():
            return 1
        from scipy.sparse.csgraph import breadth_first_order

        order, parents = breadth_first_order(self.transition_matrix > 0, 0)
        depth = np.zeros(self.states, dtype=np.int64)
        for node in order[1:]:
            depth[node] = depth[parents[node]] + 1
        rows, columns = np.nonzero(self.transition_matrix)
        return int(np.gcd.reduce(depth[rows] + 1 - depth[columns]))

    @property
    def is_aperiodic(self) -> bool:
        """Whether the chain is irreducible with period 1."""
        return self.is_irreducible and self.period == 1

    def require_ergodic(self, who: str) -> None:
        """Raise unless the chain is irreducible and aperiodic; ``who`` needs it.

        Raises
        ------
        ChainError
            Says which of the two fails.
        """
        if not self.is_irreducible:
            raise ChainError(
                f"{who} needs an irreducible chain; this one has {self._classes[0]} communicating classes. "
                "Fit it with smoothing > 0, drop the states that are never revisited, or use mqm-exact"
            )
        if self.period != 1:
            raise ChainError(
                f"{who} needs an aperiodic chain; this one has period {self.period}. "
                "Fit it with smoothing > 0, or use mqm-exact"
            )

    @cached_property
    def stationary_distribution(self) -> Floats:
        """π with πP = π, shape (k,), zero on transient states.

        By elimination after Grassmann, Taksar and Heyman: no subtraction, so every entry has a
        small relative error (:attr:`stationary_error`), however small it is, down to the range of
        floats: an entry below about 1e-308 loses digits or becomes 0.

        Raises
        ------
        ChainError
            There are several closed classes, so it is not unique.
        """
        if len(self._closed_classes) > 1:
            raise ChainError(
                f"the stationary distribution is not unique: the chain has {len(self._closed_classes)} closed classes "
                f"of states; give initial_distribution as a list of probabilities"
            )
        inside = np.flatnonzero(self._closed_classes[0])
        law = np.zeros(self.states)
        law[inside] = _gth(self.transition_matrix[np.ix_(inside, inside)])
        law.flags.writeable = False
        return law

    @property
    def stationary_error(self) -> float:
        """Bound on the relative error of each entry of :attr:`stationary_distribution`.

        Eliminating state n perturbs the off-diagonal entries of the chain on the states before it
        by at most (n + 3) roundings, and a relative perturbation η of the off-diagonal entries of an
        n-state chain moves each π(x) by at most about 2nη (O'Cinneide 1993); the sum over n stays
        below 8k³ roundings, the input's own rounding included.
        """
        return 8.0 * self.states**3 * UNIT_ROUNDOFF

    @cached_property
    def time_reversal(self) -> Floats:
        """P*(x, y) = π(y) P(y, x) / π(x), shape (k, k).

        Raises
        ------
        ChainError
            The chain is reducible (π would have zeros or not be unique), or π(x) leaves the range of floats.
        """
        if not self.is_irreducible:
            raise ChainError("the time reversal needs an irreducible chain; this one is reducible")
        law = self.stationary_distribution
        if law.min() < SAFE_MINIMUM:
            raise ChainError(
                f"the time reversal needs stationary probabilities of at least {SAFE_MINIMUM}; "
                f"state {law.argmin() + 1} has {law.min():.3g}"
            )
        with np.errstate(under="ignore"):
            reversal: Floats = self.transition_matrix.T * law[None, :] / law[:, None]
        return reversal

    @property
    def _balance_tolerance(self) -> float:
        """Relative difference of two opposite flows that counts as rounding."""
        return max(1e-12, 4 * self.stationary_error)

    @cached_property
    def is_reversible(self) -> bool:
        """Whether detailed balance π(x) P(x, y) = π(y) P(y, x) holds, up to rounding."""
        if not self.is_irreducible:
            return False
        flow = self.stationary_distribution[:, None] * self.transition_matrix
        return bool(np.all(np.abs(flow - flow.T) <= self._balance_tolerance * np.maximum(flow, flow.T)))

    def eigengap(self, kind: Literal["general", "reversible"]) -> float:
        """Gap g of Algorithm 4, rounded down, between 0 and 2.

        ``general``: 1 − λ₂(PP*), λ₂ the second largest eigenvalue **with multiplicity** (where PP*
        is reducible the gap is 0: leaving out all eigenvalues 1, as printed, would claim mixing that
        does not happen). ``reversible``: 2 (1 − |λ₂(P)|), for chains in detailed balance.

        Raises
        ------
        ChainError
            The chain is reducible or periodic, or not reversible where ``reversible`` is asked.
        """
        self.require_ergodic("the eigengap")
        if kind == "reversible" and not self.is_reversible:
            raise ChainError(
                'eigengap "reversible" needs detailed balance, which this chain lacks; use "general" or "auto"'
            )
        if self.states == 1:
            return 2.0 if kind == "reversible" else 1.0
        if self.stationary_distribution.min() < SAFE_MINIMUM:
            return 0.0
        root = np.sqrt(self.stationary_distribution)
        similar = root[:, None] * self.transition_matrix / root[None, :]
        slack = 16.0 * self.states * UNIT_ROUNDOFF + self.stationary_error
        if kind == "reversible":
            moduli = np.sort(np.abs(np.linalg.eigvalsh((similar + similar.T) / 2)))
            return max(0.0, 2.0 * (1.0 - float(moduli[-2]) - slack - self._balance_tolerance))
        singular = np.linalg.svd(similar, compute_uv=False)
        return max(0.0, 1.0 - float(singular[1]) ** 2 - slack)


def _gth(matrix: Floats) -> Floats:
    """Stationary law of an irreducible chain, shape (k,), without subtraction."""
    try:
        with np.errstate(all="raise"):
            return _eliminate(matrix)
    except FloatingPointError:
        # numbers that leave the range of floats midway: the same in decimals, whose exponents have room
        wide = Context(prec=30, Emin=-(10**9), Emax=10**9)
        exact = np.array([[wide.create_decimal_from_float(p) for p in row] for row in matrix.tolist()])
        with localcontext(wide):
            return _eliminate(exact).astype(np.float64)


def _eliminate(matrix: NDArray[Any]) -> NDArray[Any]:
    """Elimination after Grassmann, Taksar and Heyman, on floats or decimals."""
    work = matrix.copy()
    k = len(work)
    for n in range(k - 1, 0, -1):
        work[:n, n] /= work[n, :n].sum()
        work[:n, :n] += work[:n, n, None] * work[n, :n]
    law = np.full_like(work[0], type(work[0, 0])(1))
    for n in range(1, k):
        law[n] = (law[:n] * work[:n, n]).sum()
    return np.asarray(law / law.sum())


def _check_labels(matrix: object, start: object) -> None:
    """Refuse labelled states in several orders, for only positions are read; plain numbering is no labels."""
    rows, columns = getattr(matrix, "index", None), getattr(matrix, "columns", None)
    if rows is None or columns is None:
        return
    starts = getattr(start, "index", None)
    for other, what in ((columns, "its columns"), (starts, "the initial distribution")):
        if other is None or callable(other):
            continue
        first, second = list(rows), list(other)
        plain = [labels == list(range(len(labels))) for labels in (first, second)]
        if first != second and (set(first) == set(second) or not any(plain)):
            raise ChainError(
                f"the rows of the transition matrix are labelled {_listed(first)} and {what} {_listed(second)}; "
                "bring both into one order, for labels are not read"
            )


def _listed(labels: list[Any]) -> str:
    return ", ".join(map(str, labels[:6])) + (", …" if len(labels) > 6 else "")


def checked_distributions(values: ArrayLike, what: str) -> Floats:
    """Return ``values`` as a read-only matrix whose rows are distributions, or say what is wrong."""
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        why = " (one is too large)" if isinstance(error, OverflowError) else ""
        raise ChainError(f"the {what} must be numbers in rows of equal length{why}") from None
    if matrix.ndim != 2 or matrix.size == 0:
        raise ChainError(f"the {what} must be non-empty rows of numbers, not an array of shape {matrix.shape}")
    if what == "transition matrix" and matrix.shape[0] != matrix.shape[1]:
        raise ChainError(f"the {what} must be square, not {matrix.shape[0]} × {matrix.shape[1]}; one row a state")
    rows = what != "initial distribution"
    for i, j in np.argwhere(~(np.isfinite(matrix) & (matrix >= 0))):
        where = f"row {i + 1}, column {j + 1}" if rows else f"entry {j + 1}"
        raise ChainError(f"the {what} has {matrix[i, j]} in {where}; probabilities must lie between 0 and 1")
    for i, row in enumerate(matrix):
        mass = total(row)
        if not abs(mass - 1) <= SUM_TOLERANCE:
            where = f"row {i + 1} of the {what}" if rows else f"the {what}"
            raise ChainError(f"{where} sums to {mass:.12g}, not to 1; divide it by its sum or mend the entry")
        # what one division leaves of rounding stays, so that a chain read back is the same chain
        if abs(mass - 1) > 4 * UNIT_ROUNDOFF:
            row /= mass
    matrix.flags.writeable = False
    return matrix
