"""Running counts of a stream with correlated noise, for a budget per reading.

Every node of a tree of L levels over the readings 1 … T counts those below it, with independent
discrete Laplace noise of scale s: one reading costs c = L/s. A noisy count of the first t combines
nodes to the left of a path, or their parents less those to the right, for least variance. Why that
is private: docs/any_mechanism.md, Theorem S.

With a ρ noise may be Gaussian, by square-root factorisation. R is the lower triangular matrix with
binom(2j, j)/4^j on diagonal j; R² takes prefix sums. Its entries are rounded to units of 2^-b.
Counts are functions of R x + z, with z independent discrete Gaussian noise in these units: Theorem
Q there.
"""

from __future__ import annotations

import math
import os
import threading
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, product
from typing import Any, NoReturn

import numpy as np
from flint import arb, arb_series, ctx

from pufferflow._util.checks import check_confidence, check_positive, check_whole
from pufferflow._util.files import PathLike
from pufferflow.accounting.account import MAX_STEPS, Charge
from pufferflow.accounting.entries import Paid
from pufferflow.accounting.ledger import Ledger, reserved
from pufferflow.errors import ParameterError
from pufferflow.publish.noise import Noise, deviation, noise_scale, sum_margin
from pufferflow.publish.release import Agreement
from pufferflow.publish.request import RECORDS, Request, Theta
from pufferflow.records.options import takes_options
from pufferflow.records.read import Steps, parse_range

PARTS = 256  # weights are multiples of 1/256
LONGEST, COSTS = 2**40, (2.0**-28, math.inf)
"""Larger noise exceeds any count; smaller noise is far from the 64 bits of the sampler."""
RHOS = 1e-300, 1e300
_SERIES = threading.Lock()
"""Threads share flint's cap of series: with a lower one counts beyond it would have no noise."""
MAX_READINGS = 2**21
"""Largest number of readings; noise for 10^6 is drawn in a minute, with 1 GB."""
_SAME = "a copy of a running count, or one in a fork, has the same noise; begin another one"
WIDEST, BITS = 2.0**28, 50
"""Of σ, where R keeps 22 bits and z fits into 64; bits of σ in units."""
TAKEN = (
    "protect side_information delta fitted_to_others share limit alone first cohort new_values "
    "value participant step timezone states edges"
)


class RunningCount:
    """Noisy counts of the readings equal to 1, after each one, with the system's randomness.

    It is of one process and cannot be copied, since two counts would have the same noise.

    Parameters
    ----------
    length : int
        T, the number of readings of the stream, at most 2^40.
    event_epsilon : float
        c in nats, the largest change of the distribution of the whole output by one reading;
        :func:`pufferflow.event_epsilon` finds it, and :meth:`in_ledger` charges it.
    rho : float, optional
        Budget for zero-concentrated noise (:func:`pufferflow.accounting.event_rho`): Gaussian noise
        is drawn if its mean square error is smaller.

    Attributes
    ----------
    gaussian : bool
    scale : float
        Scale of the noise on each node; σ of Gaussian noise.
    errors : dict of float
        Root of the mean square error over all counts: Laplace (approximate) and Gaussian.
    cost, rho : Fraction
        Exact change of the whole output by one reading, at most c, or ρ; the other one is 0.
    paid : Paid or None
        Its entry in the ledger.

    Raises ParameterError, as all methods: an argument is out of range.
    """

    def __init__(self, length: int, event_epsilon: float, rho: float | None = None) -> None:
        self.length = check_whole(length, "length", most=LONGEST)
        allowed = Fraction(check_positive(event_epsilon, "event_epsilon", COSTS))
        error, self.arities = tree(self.length)
        self.scale = noise_scale(allowed, len(self.arities))
        self.errors = {"laplace": math.sqrt(2 * error) / float(allowed)}
        self.cost, self.rho = len(self.arities) / Fraction(self.scale), Fraction(0)
        self.paid: Paid | None = None
        self._readings = self._count = 0
        self._process, self._adding = os.getpid(), threading.Lock()
        self.gaussian = False
        if rho is not None:
            self._root = SquareRootNoise(self.length, check_positive(rho, "rho", RHOS))
            self.errors["gaussian"] = self._root.error
            self.gaussian = self._root.error < self.errors["laplace"]
        if self.gaussian:
            self.cost, self.rho, self.scale = Fraction(0), self._root.rho, self._root.scale
            self._noise = self._root.drawn(PARTS)
        else:
            self._sums = [self._drawn(arity) for arity in self.arities]

    def __repr__(self) -> str:
        kind = ", gaussian" * self.gaussian
        return f"RunningCount(length={self.length}, scale={self.scale}{kind})"

    def __reduce__(self) -> NoReturn:
        raise ParameterError(_SAME)

    @classmethod
    @takes_options(*RECORDS, only=TAKEN)
    def in_ledger(
        cls,
        ledger: Ledger | PathLike,
        length: int,
        theta: Theta | None,
        epsilon: float = 1.0,
        **options: Any,
    ) -> RunningCount:
        """Reserve the cost of a whole stream in a ledger, as one row, and return its counter.

        The stream is of one participant and has ``length`` readings, one each step from ``first``
        on, or at any times. If Θ has states, whether a reading is 1 must depend on its state alone.

        Parameters
        ----------
        ledger, theta, epsilon
            As for :func:`pufferflow.release`.
        length : int
        {options}

        Raises BudgetError, LedgerError: the account does not allow it; nothing is released.
        """
        length = check_whole(length, "length", most=MAX_STEPS)  # noise is proved up to this length
        request = Request(theta, epsilon, options | {"ledger": ledger})
        schema = request.schema
        step, zone = schema.step_seconds, schema.timezone
        first, _ = parse_range(request.how.first, None, zone)
        if len({first is None, step is None, zone is None}) > 1:
            raise ParameterError("a stream in time needs all of `first`, `step` and `timezone`")
        facts = Steps.of((), states=schema.states, columns=vars(schema), where="a stream")
        if first is not None and step is not None:
            extent = first, first + length * step - 1
            facts = replace(facts, step_seconds=step, time_base="utc", extent=extent)
        agreed = Agreement(request, facts, ())
        cost, rho = map(float, agreed.promise.allowed(length, request.share))
        counter = cls(length, cost, rho or None)
        period, words = facts.extent or (None, None), f"running count of {length} readings"
        charge = Charge.of(counter.cost, counter.rho, length, period)
        with reserved(ledger, agreed.terms(charge, words)) as counter.paid:
            return counter

    def add(self, value: int) -> float:
        """Return the noisy count including the next reading, 0 or 1; it may be negative."""
        value = check_whole(value, "value", 0, 1)
        if os.getpid() != self._process:
            raise ParameterError(_SAME)
        with self._adding:
            if self._readings == self.length:
                problem = f"all {self.length} readings were counted"
                raise ParameterError(f"{problem}; begin another count")
            now = self._readings + 1
            noise = self._noise[now - 1] if self.gaussian else self._of_tree(now)
            # only now: a reading whose noise was not drawn may be given again
            self._count, self._readings = self._count + value, now
            return (PARTS * self._count + noise) / PARTS

    def _of_tree(self, readings: int) -> int:
        """Return the noise of the count of so many readings from the nodes, in parts."""
        noise, begins = 0, True
        for level, (left, weight, below) in enumerate(self._path(readings)):
            if begins := begins and left == 0:  # a node that gets children
                self._sums[level] = self._drawn(self.arities[level])
            sums = self._sums[level]
            noise += PARTS * sums[left] - weight * sums[-1]
            if below:  # the next child is the parent on the level below
                noise += below * (sums[left + 1] - sums[left])
        return noise

    def half_width(self, readings: int, confidence: float = 0.95) -> float:
        """Return a bound on the error of the count of ``readings`` with this confidence."""
        miss = 1 - check_confidence(confidence, "confidence")
        if self.gaussian:
            readings = check_whole(readings, "readings", most=self.length)
            return self._root.half_width(readings, miss) + 1 / PARTS  # rounding
        return sum_margin(self.scale, self._squares(readings), miss)

    def _squares(self, readings: int) -> float:
        """Return the exact sum of the squares of the weights of all nodes in a count."""
        path, total = self._path(check_whole(readings, "readings", most=self.length)), 0
        for arity, (left, weight, below) in zip(self.arities, path, strict=True):
            total += left * (PARTS - weight) ** 2 + (below - weight) ** 2
            total += max(arity - 1 - left, 0) * weight**2
        return total / PARTS**2

    def _drawn(self, arity: int) -> list[int]:
        """Return sums of the noise of the first 0, 1, … children of a node."""
        drawn = Noise(self.scale).add(np.zeros(arity, np.int64))
        return list(accumulate(drawn.tolist(), initial=0))

    def _path(self, readings: int) -> list[tuple[int, int, int]]:
        """Return for each level children to the left, weight in 256ths, that of the level below."""
        path, below = [], 0
        for arity in self.arities[:-1]:
            readings, left = divmod(readings, arity)
            weight = (2 * PARTS * left + arity + 1) // (2 * (arity + 1))
            path.append((left, weight, below))
            below = weight
        return [*path, (readings, 0, below)]  # the root has no noise of its own


def tree(length: int) -> tuple[float, tuple[int, ...]]:
    """Return the numbers of children, from the leaves up, with the smallest mean error.

    The root is not a node. Before them comes the approximate mean of squared weights, times L².
    """
    best: tuple[float, tuple[int, ...]] = ((length - 1) / 2, (length,))
    for lower, top in product(range(1, length.bit_length()), range(1, 65)):
        nodes = -(-length // top)
        arity = max(2, math.ceil(nodes ** (1 / lower)) - 1)
        while arity**lower < nodes:
            arity += 1
        # nodes' variances in a count, about, on average over time and thus over q = d/(r + 1)
        each = (arity - 1) * (arity + 4) / (6 * (arity + 1))
        q = (arity - 1) / (2 * (arity + 1))  # a node is a parent and a right child: that cancels
        nodes_of_top = (length / float(arity) ** lower - 1) / 2
        error = (lower + 1) ** 2 * (nodes_of_top + lower * each - 2 * q**2 * (lower - 1))
        best = min(best, (error, (*[arity] * lower, top)))
    return best


class SquareRootNoise:
    """Noise of the counts of the first 1, 2, … of ``length`` readings, of cost at most ``rho``.

    ``scale`` is σ of the noise on R x, in readings, infinite if there are too many or it is too
    large; ``rho`` becomes the exact cost of one; ``error`` is the root of the mean square error.
    """

    def __init__(self, length: int, rho: float) -> None:
        self.scale = self.error = math.inf
        if length > MAX_READINGS:
            return
        odd = 2 * np.arange(1.0, length) - 1
        column = np.cumprod(np.concatenate([[1.0], odd / (odd + 1)]))
        squares = np.cumsum(column**2)
        if (about := math.sqrt(squares[-1] / (2 * rho))) > WIDEST:
            return
        self._bits = BITS - math.frexp(about)[1]
        self._entries = [int(x) for x in np.rint(np.ldexp(column, self._bits))]
        square = Fraction(sum(x * x for x in self._entries), 4**self._bits)
        self.scale = deviation(float(square), rho)
        self.rho = square / 2 / Fraction(self.scale) ** 2
        self.error = self.scale * math.sqrt(squares.mean())
        # entries of A R⁻¹ differ from those of the column by at most 2^-b and its rounding
        margin = 4 * math.sqrt(length) * (2.0**-self._bits + 1e-12)
        self.squares = squares * (1 + margin)

    def drawn(self, parts: int) -> list[int]:
        """Return A R⁻¹ z in parts of a reading, rounded; A takes prefix sums."""
        length, bits = len(self._entries), 128
        drawn = Noise(math.ldexp(self.scale, self._bits), gaussian=True)
        noise: list[int] = drawn.add(np.zeros(length, np.int64)).tolist()
        steps = np.diff(self._entries, prepend=0).tolist()  # R A⁻¹, in powers of the shift
        while True:
            with _SERIES, ctx.workprec(bits):
                before, ctx.cap = ctx.cap, length
                sums = arb_series(noise, length) / arb_series(steps, length)
                ctx.cap = before
                # dyadic numbers plus a third are never integers, so finitely many bits decide
                whole = [(parts * sums[t] + arb(1) / 3).floor() for t in range(length)]
                found = [number.unique_fmpz() for number in whole]
            rounded = [int(number) for number in found if number is not None]
            if len(rounded) == length <= sums.prec:
                return rounded
            bits *= 2

    def half_width(self, readings: int, miss: float) -> float:
        """Return a bound on the error of a count, exceeded with probability at most ``miss``.

        A sum of discrete Gaussian variables is subgaussian (Canonne, Kamath and Steinke, 2020).
        """
        variance = self.scale**2 * float(self.squares[readings - 1])
        return math.sqrt(2 * variance * math.log(2 / miss))
