"""Priors with free parameters: those that violate or preserve a factor, and the largest ratio.

The initial distributions are polynomials in parameters, each in an interval. The probability of a
sequence of observations is then a polynomial too, so that z3 decides "P(w | s) > c·P(w | s') for
some prior of the box" as a system of polynomial inequalities.
"""

import ast
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from operator import add, gt, le, lt, mul, sub, truediv
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly, fmpq_mpoly_ctx
from flint.utils.flint_exceptions import DomainError

from pufferflow._util.checks import check_choice, check_list, check_type
from pufferflow._util.numbers import Exact, written_number
from pufferflow.errors import ModelError, ParameterError
from pufferflow.hmm import model as models
from pufferflow.hmm import smt
from pufferflow.hmm.checking import Witness, check, check_factor, largest_ratio
from pufferflow.hmm.model import HiddenMarkovModel, Vector, requested_length

MAX_SEQUENCES, MAX_POWER = 5_000, 64
"""Limits: sequences of observations with different likelihoods, powers in an entry."""

_OPERATORS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}
_INVALID = ArithmeticError, DomainError, MemoryError, RecursionError, SyntaxError, ValueError


class PriorFamily:
    """Hidden Markov models whose initial distributions are polynomials in parameters; immutable.

    Parameters
    ----------
    transition_matrix, observation_matrix : sequence of sequences
        As for :class:`pufferflow.hmm.HiddenMarkovModel`.
    initial_distributions : mapping of str to sequence, shape (k,)
        Entries are numbers or strings such as ``"2*p*(1 - p)"``: numbers, parameters,
        ``+ - * / **`` (or ``^``) and parentheses; divisors are numbers.
    parameters : mapping of str to pair
        Lowest and highest value of each parameter.
    options
        ``states``, ``observations``, ``pairs`` and ``length`` of the model.

    Raises ModelError or ParameterError: an interval is empty, an entry is not a polynomial in the
    parameters, a distribution does not sum to 1 identically or is negative in the box, or the model
    is impossible otherwise.
    """

    def __init__(
        self,
        transition_matrix: Sequence[Sequence[Exact]],
        observation_matrix: Sequence[Sequence[Exact]],
        initial_distributions: Mapping[str, Sequence[Exact]],
        parameters: Mapping[str, Sequence[Exact]],
        **options: Any,
    ) -> None:
        self.box = _box(parameters)
        """Lowest and highest value of each parameter."""
        self._context = fmpq_mpoly_ctx.get(tuple(self.box), Ordering.lex)
        self._initial = {
            name: self._polynomials(f"initial distribution of {name!r}", entries)
            for name, entries in models.by_secret(initial_distributions).items()
        }
        initial = self._initial_at(next(self.corners()))
        self._model = HiddenMarkovModel(transition_matrix, observation_matrix, initial, **options)
        self.length = self._model.length
        for name, entries in self._initial.items():
            for i, entry in enumerate(entries, 1):
                if not entry.is_constant() and (at := smt.point(self.box, lt, [entry])):
                    raise ModelError(
                        f"initial distribution of {name!r}, entry {i} is negative at "
                        f"{smt.assigned(at)}; correct it or narrow the parameters"
                    )

    def __repr__(self) -> str:
        box = ", ".join(f"{name} in [{low}, {high}]" for name, (low, high) in self.box.items())
        return f"PriorFamily({len(self._initial)} secrets, {box})"

    def at(self, **values: Exact) -> HiddenMarkovModel:
        """Return the model of one prior.

        Raises ParameterError: a parameter is unknown, missing or outside its interval.
        """
        result = copy(self._model)
        result.initial_distributions = self._initial_at(self.checked(values))
        return result

    def checked(self, values: Mapping[str, Exact]) -> dict[str, Fraction]:
        """Return the values of one prior, in order; raise ParameterError if they are invalid."""
        for name in values:
            check_choice(name, "a parameter", self.box)
        prior = {}
        for name, (low, high) in self.box.items():
            prior[name] = written_number(values.get(name), name)
            if not low <= prior[name] <= high:
                raise ParameterError(f"{name} is outside its interval [{low}, {high}]")
        return prior

    def corners(self) -> Iterator[dict[str, Fraction]]:
        """Yield the corners of the box, and its centre."""
        for ends in product(*(dict.fromkeys(interval) for interval in self.box.values())):
            yield dict(zip(self.box, ends, strict=True))
        yield {name: (low + high) / 2 for name, (low, high) in self.box.items()}

    def excesses(self, sequences: Iterable[Vector], ratio: Fraction) -> Iterator[fmpq_mpoly]:
        """Yield P(w | secret) − ratio·P(w | other) for the sequences, in both directions."""
        zero = self._context.constant(0)
        for secret, other in self._model.directions():
            both = zip(self._initial[secret], self._initial[other], strict=True)
            entries = [p - _flint(ratio) * q for p, q in both]
            for vector in sequences:
                yield sum(map(mul, entries, map(_flint, vector)), zero)

    def exceeding(self, sequences: Iterable[Vector], ratio: Fraction) -> dict[str, Fraction] | None:
        """Return a prior at which a ratio of sequences exceeds ``ratio``, or None."""
        excesses = self.excesses(sequences, ratio)
        points = (smt.point(self.box, gt, [excess]) for excess in excesses)
        return next(filter(None, points), None)

    def sequences(self, length: int) -> list[Vector]:
        """Return P(w | first state) for the sequences w of a length, up to positive factors.

        Of equal vectors one is kept. Ratios of shorter sequences are no larger.
        """
        matrices = self._model.transition_matrix, self._model.observation_matrix
        back, columns = (tuple(zip(*matrix, strict=True)) for matrix in matrices)
        vectors: list[Vector] = [(Fraction(1),) * len(back)]
        for t in range(length):
            stepped = [models.step(vector, back) for vector in vectors]
            seen = [tuple(map(mul, column, v)) for v in stepped for column in columns]
            vectors = list(dict.fromkeys(tuple(p / sum(v) for p in v) for v in seen if any(v)))
            if len(vectors) > MAX_SEQUENCES:
                raise ParameterError(
                    f"more than {MAX_SEQUENCES} sequences of {t + 1} observations have different "
                    f"likelihoods; use a length below {length}"
                )
        return vectors

    def _initial_at(self, prior: Mapping[str, Fraction]) -> dict[str, Vector]:
        return {name: tuple(_value(f, prior) for f in of) for name, of in self._initial.items()}

    def _polynomials(self, where: str, entries: object) -> list[fmpq_mpoly]:
        polynomials = []
        for i, entry in enumerate(check_list(entries, where), 1):
            try:
                text = str(entry).replace("^", "**").strip()
                with warnings.catch_warnings(action="ignore"):  # of odd Python, refused below
                    node = ast.parse(text, mode="eval").body
                polynomials.append(self._polynomial(node, text))
            except _INVALID:
                raise ModelError(
                    f"{where}, entry {i} is not a polynomial in {', '.join(self.box)} of powers "
                    f"up to {MAX_POWER}; write it as 2*p*(1 - p)"
                ) from None
        total = sum(polynomials, self._context.constant(0))
        if not (total - 1).is_zero():
            raise ModelError(f"{where} sums to {str(total)[:80]}, not to 1 for every prior")
        return polynomials

    def _polynomial(self, node: ast.expr, text: str) -> Any:
        """Return the polynomial of an expression; raise ValueError or similar if it is invalid."""
        match node:
            case ast.Constant(value=int() | float()):
                # the decimal, not its binary float
                number = written_number(ast.get_source_segment(text, node), "an entry", ModelError)
                return self._context.constant(_flint(number))
            case ast.Name(id=name):
                return self._context.gen(list(self.box).index(name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._polynomial(operand, text)
            case ast.BinOp(left=base, op=ast.Pow(), right=ast.Constant(value=int() as power)):
                nested = any(isinstance(inner, ast.Pow) for inner in ast.walk(base))
                if 0 <= power <= MAX_POWER and not nested:
                    return self._polynomial(base, text) ** power
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                both = self._polynomial(left, text), self._polynomial(right, text)
                return _OPERATORS[type(op)](*both)
        raise ValueError


@dataclass(frozen=True)
class Supremum(models.Result):
    """Bounds of the largest ratio over all priors of a box."""

    lower: Fraction | float
    """Ratio of the witness, which ``prior`` attains."""
    upper: Fraction | float
    """No prior exceeds it; ``math.inf`` if no bound was proved."""
    prior: dict[str, Fraction]
    witness: Witness

    @property
    def exact(self) -> bool:
        """Whether ``lower`` is the supremum itself, hence a maximum."""
        return self.lower == self.upper


@dataclass(frozen=True)
class PreservingRegion:
    """The priors of a box at which a factor holds: those at which no polynomial is positive."""

    family: PriorFamily
    polynomials: tuple[fmpq_mpoly, ...] = field(repr=False)
    """Polynomials in the parameters with coprime integer coefficients; empty if all preserve."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """The polynomials as strings such as ``"9*p1^2*p2 + 22*p1 - 7 <= 0"``; all have to hold."""
        return tuple(f"{polynomial} <= 0" for polynomial in self.polynomials)

    def interval(self, parameter: str, **others: Exact) -> tuple[Fraction, Fraction] | None:
        """Return the lowest and highest value of a parameter that preserve, given all others.

        The values between them are exactly those that preserve; None if no value does. Raises
        ParameterError: a parameter is unknown, missing, outside its interval, or ``parameter``
        occurs in a polynomial with a higher power than 1.
        """
        check_choice(parameter, "parameter", self.family.box)
        index, (low, high) = list(self.family.box).index(parameter), self.family.box[parameter]
        at = self.family.checked({**others, parameter: low})
        for polynomial in self.polynomials:
            if polynomial.degrees()[index] > 1:
                raise ParameterError(f"{parameter} occurs to a higher power; choose another one")
            here, slope = _value(polynomial, at), _value(polynomial.derivative(index), at)
            root = at[parameter] - here / slope if slope else low
            if slope > 0:
                high = min(high, root)
            elif slope < 0:
                low = max(low, root)
            elif here > 0:
                return None
        return (low, high) if low <= high else None


def find_prior(
    family: PriorFamily, factor: Exact, length: int | None = None, *, violates: bool = True
) -> dict[str, Fraction] | None:
    """Return a prior that violates (or satisfies) ε-Pufferfish privacy; None if there is none.

    ``violates`` is whether to search for a violation (default), or for a prior that satisfies.
    Other parameters are those of :func:`check`. Raises ParameterError, too, if there are too many
    sequences, or the solver gave no answer in time or found only an irrational prior.
    """
    check_type(family, "family", PriorFamily)
    limit, steps = check_factor(factor), requested_length(family, length)
    for values in family.corners():
        if check(family.at(**values), limit, steps).holds != violates:
            return values
    sequences = family.sequences(steps)
    if violates:
        return family.exceeding(sequences, limit)
    return smt.point(family.box, le, list(family.excesses(sequences, limit)))


def sup_ratio(
    family: PriorFamily, length: int | None = None, *, tolerance: Exact = "1e-9"
) -> Supremum:
    """Return the largest ratio P(w | s) / P(w | s') over all priors of the box and all sequences.

    It is exact if a corner attains it, for example if every parameter occurs linearly. Otherwise z3
    bisects an interval that contains it, until its relative width is at most ``tolerance``. Other
    parameters are those of :func:`find_prior`.
    """
    check_type(family, "family", PriorFamily)
    steps, gap = requested_length(family, length), check_factor(tolerance)
    sequences = family.sequences(steps)

    def at_prior(values: dict[str, Fraction]) -> Supremum:
        worst = largest_ratio(family.at(**values), steps)
        return Supremum(worst.ratio, math.inf, values, worst)

    best = max(map(at_prior, family.corners()), key=lambda found: found.lower)
    trial: Fraction | float = best.lower
    upper: Fraction | float = math.inf
    # beyond 2^64 the ratio is infinite, or grows without bound as both probabilities vanish
    while best.lower <= 2**64 and upper - best.lower > gap * Fraction(best.lower):
        if (at := family.exceeding(sequences, Fraction(trial))) is None:
            upper = trial
        else:
            best = at_prior(at)
        trial = 2 * best.lower
        if best.lower < upper < math.inf:
            trial = (Fraction(best.lower) + Fraction(upper)) / 2
            trial = trial.limit_denominator(math.ceil(8 / (upper - best.lower)))
    return Supremum(best.lower, upper, best.prior, best.witness)


def preserving_region(
    family: PriorFamily, factor: Exact, length: int | None = None
) -> PreservingRegion:
    """Return the region of all priors of the box that satisfy ε-Pufferfish privacy.

    Polynomials that are never positive in the box are left out. Parameters and errors are those
    of :func:`find_prior`.
    """
    check_type(family, "family", PriorFamily)
    limit, steps = check_factor(factor), requested_length(family, length)
    excesses = family.excesses(family.sequences(steps), limit)
    different = {str(f): f for f in map(_coprime, excesses)}
    binding = (f for f in different.values() if smt.point(family.box, gt, [f]))
    return PreservingRegion(family, tuple(binding))


def _box(parameters: object) -> dict[str, tuple[Fraction, Fraction]]:
    if not isinstance(parameters, Mapping) or not parameters:
        raise ModelError('parameters must give each an interval, as in {"p": [0, 1]}')
    box: dict[str, tuple[Fraction, Fraction]] = {}
    for name, interval in parameters.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ModelError("a parameter has an impossible name; use letters, digits and _")
        ends = [written_number(end, f"parameter {name}") for end in check_list(interval, name)]
        if len(ends) != 2 or ends[0] > ends[1]:
            raise ModelError(f"parameter {name} must have an interval [lowest, highest]")
        box[name] = ends[0], ends[1]
    return box


def _coprime(polynomial: fmpq_mpoly) -> fmpq_mpoly:
    """Return the positive multiple with integer coefficients without a common divisor."""
    listed = [Fraction(int(c.p), int(c.q)) for c in polynomial.coeffs()]
    coefficients, over = models.integers(listed)
    return polynomial * fmpq(over, math.gcd(*coefficients) or 1)


def _value(polynomial: fmpq_mpoly, at: Mapping[str, Fraction]) -> Fraction:
    value = polynomial(*map(_flint, at.values()))
    return Fraction(int(value.p), int(value.q))


def _flint(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)
