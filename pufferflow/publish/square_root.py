"""Gaussian noise for running counts, by square-root factorisation.

R is the lower triangular matrix with binom(2j, j)/4^j on diagonal j; R² takes prefix sums. Its
entries are rounded to units of 2^-b. Counts are functions of R x + z, with z independent discrete
Gaussian noise in these units: docs/any_mechanism.md, Theorem Q.
"""

import math
from fractions import Fraction

import numpy as np
from flint import arb, arb_series, ctx

from pufferflow.publish.noise import Noise, deviation

MAX_READINGS = 2**21
"""Largest number of readings; noise for 10^6 is drawn in a minute, with 1 GB."""
WIDEST, BITS = 2.0**28, 50
"""Of σ, where R keeps 22 bits and z fits into 64; bits of σ in units."""


class SquareRootNoise:
    """Noise of the counts of the first 1, 2, … of ``length`` readings, of cost at most ``rho``.

    Attributes
    ----------
    scale : float
        σ of the noise on R x, in readings; infinite if there are too many, or it is too large.
    rho : Fraction
        The exact cost of one reading, at most the argument.
    error : float
        Root of the mean square error of all counts.
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
        length, bits, before = len(self._entries), 128, ctx.cap
        drawn = Noise(math.ldexp(self.scale, self._bits), gaussian=True)
        noise: list[int] = drawn.add(np.zeros(length, np.int64)).tolist()
        steps = np.diff(self._entries, prepend=0).tolist()  # R A⁻¹, in powers of the shift
        while True:
            try:
                ctx.cap = length
                with ctx.workprec(bits):
                    sums = arb_series(noise, length) / arb_series(steps, length)
                    # dyadic numbers plus a third are never integers, so finitely many bits decide
                    whole = [(parts * sums[t] + arb(1) / 3).floor() for t in range(length)]
                    found = [number.unique_fmpz() for number in whole]
            finally:
                ctx.cap = before
            rounded = [int(number) for number in found if number is not None]
            if len(rounded) == length:
                return rounded
            bits *= 2

    def half_width(self, readings: int, miss: float) -> float:
        """Return a bound on the error of a count, exceeded with probability at most ``miss``.

        A sum of discrete Gaussian variables is subgaussian (Canonne, Kamath and Steinke, 2020).
        """
        variance = self.scale**2 * float(self.squares[readings - 1])
        return math.sqrt(2 * variance * math.log(2 / miss))
