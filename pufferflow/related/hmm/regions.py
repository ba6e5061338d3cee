"""The priors that preserve privacy: all values of the free parameters for which a factor e^ε holds, exactly.

For a family of priors every probability P(w | s) is a polynomial in the parameters, so the priors that preserve the
factor c are those at which no polynomial P(w | s) − c·P(w | s') is positive. Polynomials that are positive nowhere in
the box are left out; where a parameter occurs linearly in all others, its values form an interval for any values of
the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pufferflow._checks import check_choice, check_type
from pufferflow._display import displayed
from pufferflow.errors import ParameterError
from pufferflow.related.hmm import solver
from pufferflow.related.hmm.checking import check_factor
from pufferflow.related.hmm.model import Exact, asked_length
from pufferflow.related.hmm.priors import PriorFamily, flint_number, value_at

if TYPE_CHECKING:
    from flint import fmpq_mpoly


@dataclass(frozen=True)
@displayed("family", "factor", "length")
class PreservingRegion:
    """The priors of a box at which a factor holds: those at which none of the ``polynomials`` is positive."""

    family: PriorFamily
    factor: Fraction
    """e^ε."""
    length: int
    """Longest observation sequence."""
    polynomials: tuple[fmpq_mpoly, ...]
    """In the parameters, with integer coefficients without a common divisor; none where every prior preserves."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """The polynomials as texts such as ``"9*p1^2*p2 + 22*p1 - 7 <= 0"``, all of which have to hold."""
        return tuple(f"{polynomial} <= 0" for polynomial in self.polynomials)

    def contains(self, **values: Exact) -> bool:
        """Say whether one prior preserves.

        Raises
        ------
        ParameterError
            A parameter is unknown, missing or outside its interval.
        """
        at = list(self.family.checked(values).values())
        return all(value_at(polynomial, at) <= 0 for polynomial in self.polynomials)

    def interval(self, parameter: str, **others: Exact) -> tuple[Fraction, Fraction] | None:
        """Return the lowest and the highest value of a parameter that preserve, given those of all others.

        Parameters
        ----------
        parameter : str
            One that occurs in every polynomial linearly or not at all.
        **others : exact number
            Values of the other parameters.

        Returns
        -------
        tuple of two fractions, or None
            All values between them preserve, ends included, and no others do; None where no value does.

        Raises
        ------
        ParameterError
            A parameter is unknown, missing, outside its interval, or occurs with a higher power.
        """
        names = list(self.family.box)
        check_choice(parameter, "parameter", names)
        index, (low, high) = names.index(parameter), self.family.box[parameter]
        at = list(self.family.checked({**others, parameter: low}).values())
        for polynomial in self.polynomials:
            if polynomial.degrees()[index] > 1:
                raise ParameterError(
                    f"{parameter} occurs to a higher power, so the values that preserve need not form an interval; "
                    "ask for a parameter that occurs linearly"
                )
            here, slope = value_at(polynomial, at), value_at(polynomial.derivative(index), at)
            root = at[index] - here / slope if slope else None
            if root is None:
                if here > 0:
                    return None
            elif slope > 0:
                high = min(high, root)
            else:
                low = max(low, root)
        return (low, high) if low <= high else None


def preserving_region(
    family: PriorFamily, factor: Exact, length: int | None = None, *, timeout_seconds: float = solver.SECONDS
) -> PreservingRegion:
    """Return the region of all priors of the box that satisfy ε-Pufferfish privacy.

    Parameters
    ----------
    family : PriorFamily
    factor : exact number
        e^ε.
    length : int, optional
        Longest observation sequence (default: that of the family).
    timeout_seconds : float
        Most time the solver may take to decide whether a polynomial is positive anywhere in the box.

    Raises
    ------
    ParameterError
        Factor or length are out of range, there are too many sequences, or the solver gave no answer in time.
    """
    check_type(family, "family", PriorFamily)
    limit, steps = check_factor(factor), asked_length(family, length)
    bound = flint_number(limit)
    polynomials = (_primitive(p - bound * q) for _, _, p, q in family.likelihoods(steps))
    different = {str(f): f for f in polynomials}.values()
    binding = (f for f in different if family.positive_point(f, timeout_seconds=timeout_seconds) is not None)
    return PreservingRegion(family, limit, steps, tuple(binding))


def _primitive(polynomial: fmpq_mpoly) -> fmpq_mpoly:
    """Return the positive multiple with integer coefficients that have no common divisor."""
    coefficients = polynomial.coeffs()
    if not coefficients:
        return polynomial
    over = math.lcm(*(int(c.q) for c in coefficients))
    divisor = math.gcd(*(int(c.p) * (over // int(c.q)) for c in coefficients))
    return polynomial * flint_number(Fraction(over, divisor))
