"""The differencing attack: two counts that differ in one person, and what noise leaves of it.

The attacker asks how many people have a property, and how many without one of them. Exact answers give that person away
by subtraction. With noise Pr ∝ r^|z| on the integers, independent in both answers (r = e^(−ε/Δ) makes each ε-DP), the
difference is the person's bit plus the difference D of two such noises. The law of D is symmetric and falls away from
0, so 1 is the likelier bit where the answers differ by 1 or more. A guess about a bit that is 1 as often as 0 is then
right with probability ½ + ½·(Pr[D ≥ 0] − Pr[D ≥ 1]) = ½ + ½·Pr[D = 0] = ½ + (1−r)(1+r²)/(2(1+r)³). Both answers are
2ε-DP together, which allows e^(2ε)/(1 + e^(2ε)).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

import numpy as np

from pufferflow._checks import shown
from pufferflow._numbers import written_number
from pufferflow.errors import ParameterError
from pufferflow.related.dp.finite import Exact

Answer = TypeVar("Answer", int, "np.ndarray[tuple[int, ...], np.dtype[np.int64]]")


def difference_guess(everybody: Answer, without: Answer) -> Answer:
    """Attacker's best guess of a person's bit, 0 or 1, from the counts with and without that person."""
    return (everybody - without >= 1) * 1


def differencing_success(ratio: Exact) -> Fraction:
    """Probability that the guess is right for an even bit and noise Pr ∝ ratio^|z| on both answers; exact.

    Raises
    ------
    ParameterError
        ``ratio`` is not in [0, 1): 0 is no noise.
    """
    r = Fraction(-1) if isinstance(ratio, bool) else written_number(ratio, "ratio")
    if not 0 <= r < 1:
        raise ParameterError(f"ratio is {shown(ratio)}; it must be a number from 0 to below 1")
    return Fraction(1, 2) + (1 - r) * (1 + r**2) / (2 * (1 + r) ** 3)
