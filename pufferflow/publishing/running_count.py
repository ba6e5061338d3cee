"""Running counts of a stream: a tree of noisy counts, for a budget per record.

The records 1 … T are the leaves of a tree of L levels. Every node counts the records below it, and has independent
discrete Laplace noise Z of scale s = L/c. One record counts in one node of every level, so changing it by at most 1
changes all the node counts together by at most L in L1 norm, and the law of the noisy ones by at most e^c: they are
c-differentially private at event level, and all that is computed from them is, too.

The count of the first t records is a sum of node counts: on every level, of the children on the left of the node that
record t + 1 is below; or, the same number, of their parent less the children on the right. With a weight q for the
latter, of d left children out of r, the noise has variance (1 − q)² d + q² (1 + r − d) times that of one node, least at
q = d/(r + 1). The weights are rounded to 256ths and the sums are exact, so for every t

    count of the first t records + Σ weight · Z

is that combination of noisy node counts exactly, whatever nodes it has that are not complete at t: the noise may be
drawn before. So what is put out at all times is a function of the noisy node counts of the whole stream. This holds for
streams that do not depend on what was put out, as those of Pufferfish do: Θ says what the records' law is.

The arity of the tree is chosen for the least error; a binary one has three times as much for T = 10^6.

*How far off.* The error of a count is Σ w_j Z_j with |w_j| ≤ 1. K(λ) = log E e^(λZ) = Σ_n 2 (pⁿ/n) (cosh nλ − 1) is a
power series in λ² without negative coefficients and without a constant, so K(wλ) ≤ w² K(λ), and by Markov's inequality
for every λ between 0 and 1/s

    P(|Σ w_j Z_j| ≥ h) ≤ 2 exp(K(λ) Σ w_j² − λh).
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import check_confidence, check_positive, check_type, check_whole
from pufferflow._display import displayed
from pufferflow._rounding import divide_up
from pufferflow.errors import ParameterError
from pufferflow.publishing.noise import add_noise, add_seeded_noise

PARTS = 256
"""Weights are multiples of 1/256."""

_FINENESS = 64

LONGEST_STREAM = 2**40
LARGEST_SCALE = 2.0**30
"""Noise beyond it hides any count of a stream, and sums of its products stay exact far below 64 bits."""


@displayed()
class RunningCount:
    """How many records so far were 1, after every record, with exact noise from the operating system's randomness.

    Parameters
    ----------
    length : int
        T, the number of records of the stream, at most 2^40; memory is in proportion to its logarithm.
    event_epsilon : float
        c, by how much, in nats, the law of all that is put out may change with one record; for correlated records
        :func:`pufferflow.entry_epsilon` says which c keeps a Pufferfish guarantee.
    rng : numpy.random.Generator, optional
        Draws the noise instead: for planning, **not private**.

    Raises
    ------
    ParameterError
        An argument is out of range, or the noise would hide any count.

    Examples
    --------
    >>> import numpy as np
    >>> import pufferflow as pf
    >>> c = pf.entry_epsilon(pf.ForgettingFamily(60, 0.4), 10**6, epsilon=1.0)
    >>> counter = pf.RunningCount(10**6, c, rng=np.random.default_rng(1))  # without rng: private
    >>> noisy = [counter.add(value) for value in (1, 0, 1, 1)]
    """

    def __init__(self, length: int, event_epsilon: float, *, rng: np.random.Generator | None = None) -> None:
        self.length = check_whole(length, "length", most=LONGEST_STREAM)
        self.event_epsilon = check_positive(event_epsilon, "event_epsilon")
        if rng is not None:
            check_type(rng, "rng", np.random.Generator)
        self._rng = rng
        self.arities = tree(self.length)
        self.scale = divide_up(len(self.arities), self.event_epsilon)
        if self.scale > LARGEST_SCALE:
            raise ParameterError(
                f"the noise would have scale {self.scale:.3g}, which hides every count; raise event_epsilon"
            )
        self._sums = [self._drawn(arity) for arity in self.arities]
        self._records = self._count = 0
        self._widths: dict[tuple[int, float], float] = {}

    def __repr__(self) -> str:
        private = "" if self._rng is None else "NOT PRIVATE: "
        return f"{private}RunningCount({self.length} records, event_epsilon={self.event_epsilon:g})"

    def add(self, value: int) -> float:
        """Count the next record and return the noisy count of all so far, which may be negative.

        Parameters
        ----------
        value : int
            0 or 1.

        Raises
        ------
        ParameterError
            It is something else, or all T records were counted.
        """
        value = check_whole(value, "value", 0, 1)
        if self._records == self.length:
            raise ParameterError(f"all {self.length} records were counted; make a new RunningCount")
        self._records += 1
        self._count += value
        step = self._records
        for level, arity in enumerate(self.arities[:-1]):  # nodes that begin here get children
            if step % arity:
                break
            self._sums[level] = self._drawn(arity)
            step //= arity
        return self._count + self._noise() / PARTS

    def standard_error(self, records: int) -> float:
        """Root of the mean square of the error of the count of so many records, exactly from the law of the noise.

        Raises
        ------
        ParameterError
            ``records`` is not a number from 1 to T.
        """
        return math.sqrt(self._squares(records)) * self._deviation

    def half_width(self, records: int, confidence: float = 0.95) -> float:
        """How far off the count of so many records is at most, with a probability of at least ``confidence``.

        A bound: some 1.4 times the quantile of a normal law with the same :meth:`standard_error`, for few nodes twice.

        Raises
        ------
        ParameterError
            ``records`` is not a number from 1 to T, or ``confidence`` no probability below 1.
        """
        confidence = check_confidence(confidence, "confidence")
        # rounded up to one of few, as a stream asks again and again
        finer = math.ceil(_FINENESS * math.log2(self._squares(records)))
        if (finer, confidence) not in self._widths:
            rates, growth = self._moments
            exponents = math.log(2 / (1 - confidence)) + 2 ** (finer / _FINENESS) * growth
            self._widths[finer, confidence] = float((exponents / rates).min()) * (1 + 1e-9)
        return self._widths[finer, confidence]

    @cached_property
    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of λ and K(λ), shape (n,) each."""
        parts = np.linspace(0.01, 0.995, 198)  # of 1/s
        ends = [np.log(-np.expm1((sign * parts - 1) / self.scale)) for sign in (1, -1)]
        return parts / self.scale, 2 * math.log(-math.expm1(-1 / self.scale)) - ends[0] - ends[1]

    def _squares(self, records: int) -> float:
        """Sum of the squares of the weights of all nodes in a count, exactly."""
        digits = self._digits(check_whole(records, "records", most=self.length))
        finer, total = 0, 0
        for arity, digit, weight in zip(self.arities, digits, self._weights(digits), strict=True):
            total += digit * (PARTS - weight) ** 2 + (finer - weight) ** 2
            total += max(arity - 1 - digit, 0) * weight**2
            finer = weight
        return total / PARTS**2

    @cached_property
    def _deviation(self) -> float:
        """Standard deviation of the noise on one node: variance 2p/(1 − p)², p = e^(−1/s)."""
        return 1 / (math.sqrt(2) * math.sinh(0.5 / self.scale))

    def _drawn(self, arity: int) -> list[int]:
        """Sums of the noise of the first 0, 1, … children of a node."""
        zeros = [0] * arity
        noise = add_noise(zeros, self.scale) if self._rng is None else add_seeded_noise(zeros, self.scale, self._rng)
        sums = [0]
        for z in noise:
            sums.append(sums[-1] + z)
        return sums

    def _digits(self, records: int) -> list[int]:
        """How many children on the left there are, by levels from the leaves up."""
        digits = []
        for arity in self.arities[:-1]:
            records, digit = divmod(records, arity)
            digits.append(digit)
        return [*digits, records]

    def _weights(self, digits: list[int]) -> list[int]:
        """Weights of the parents less the children on the right, in 256ths; the root has no noise of its own."""
        pairs = zip(self.arities[:-1], digits[:-1], strict=True)
        return [(2 * PARTS * digit + arity + 1) // (2 * (arity + 1)) for arity, digit in pairs] + [0]

    def _noise(self) -> int:
        """Noise of the present count, in 256ths."""
        digits = self._digits(self._records)
        weights = self._weights(digits)
        noise = 0
        for level, (digit, weight) in enumerate(zip(digits, weights, strict=True)):
            left = self._sums[level][digit]
            noise += (PARTS - weight) * left
            if weight:
                above = self._sums[level + 1]
                parent = above[digits[level + 1] + 1] - above[digits[level + 1]]
                noise += weight * (parent - (self._sums[level][-1] - left))
        return noise


def tree(length: int) -> tuple[int, ...]:
    """Numbers of children of the nodes of each level, from the leaves up, of the tree with the least error on average.

    All levels have the same but the top one, whose parent, the root, is no node: with many levels the noise of each is
    large, with few there are many children to add.
    """
    best: tuple[float, tuple[int, ...]] = (math.inf, (length,))
    for levels in range(1, length.bit_length() + 1):
        for top in range(1, 65) if levels > 1 else (length,):
            arity = _root(-(-length // top), levels - 1) if levels > 1 else 1
            best = min(best, (levels**2 * _variance(length, arity, levels), (*[arity] * (levels - 1), top)))
    return best[1]


def _variance(length: int, arity: int, levels: int) -> float:
    """Nodes' variances in the count of the first t records, about, on average over t."""
    top = (length / float(arity) ** (levels - 1) - 1) / 2
    weight = (arity - 1) / (2 * (arity + 1))  # the mean of q = d/(r + 1)
    both = 2 * weight**2 * (levels - 2)  # a node is the parent of a level and on the right of the next, which cancels
    return top + (levels - 1) * (arity - 1) * (arity + 4) / (6 * (arity + 1)) - (both if levels > 1 else 0.0)


def _root(number: int, power: int) -> int:
    """Smallest integer of at least 2 whose power is at least ``number``."""
    root: int = max(2, math.ceil(number ** (1 / power)) - 1)
    while math.prod([root] * power) < number:
        root += 1
    return root
