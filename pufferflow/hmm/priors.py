"""Priors with free parameters: those that violate or preserve a factor, and the largest ratio.

The initial distributions are polynomials in parameters, each in an interval. The probability of a
sequence of observations is then a polynomial too, so that "P(w | s) > c·P(w | s') for some prior of
the box" is a question about polynomial inequalities, which z3 decides.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from pufferflow._checks import check_choice, check_list, check_type
from pufferflow._numbers import Exact, written_number
from pufferflow.errors import ModelError, ParameterError
from pufferflow.hmm import smt
from pufferflow.hmm.checking import Witness, check, check_factor, directions, largest_ratio
from pufferflow.hmm.model import (
    HiddenMarkovModel,
    Result,
    Vector,
    by_secret,
    requested_length,
    shortened,
)

if TYPE_CHECKING:
    from flint import fmpq, fmpq_mpoly

MAX_SEQUENCES = 5_000
"""Sequences of observations with different likelihoods that one question goes through."""

MAX_DEGREE = 64
"""Of a power in an entry, and words of 64 bits in its coefficients."""

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_IRRATIONAL = "priors that {} exist, but only an irrational one was found (near {}); {} the factor"


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

    Raises
    ------
    ModelError, ParameterError
        An interval is empty, an entry is not a polynomial in the parameters, a distribution does
        not sum to 1 identically or is negative in the box, or the model is impossible otherwise.
    """

    def __init__(
        self,
        transition_matrix: Sequence[Sequence[Exact]],
        observation_matrix: Sequence[Sequence[Exact]],
        initial_distributions: Mapping[str, Sequence[Exact]],
        parameters: Mapping[str, Sequence[Exact]],
        **options: Any,
    ) -> None:
        from flint import Ordering, fmpq_mpoly_ctx

        self.box = _box(parameters)
        """Lowest and highest value of each parameter."""
        self._context = fmpq_mpoly_ctx.get(tuple(self.box), Ordering.lex)
        self._laws = {
            name: self._polynomials(f"initial distribution of {name!r}", law)
            for name, law in by_secret(initial_distributions).items()
        }
        low = {name: ends[0] for name, ends in self.box.items()}
        laws = {name: _values(law, low) for name, law in self._laws.items()}
        self._model = HiddenMarkovModel(transition_matrix, observation_matrix, laws, **options)
        self.length = self._model.length
        for name, law in self._laws.items():
            for i, entry in enumerate(law, 1):
                if (at := self.positive_point(-entry)) is not None:
                    raise ModelError(
                        f"initial distribution of {name!r}, entry {i} is negative at "
                        f"{_assigned(at)}; correct it or narrow the parameters"
                    )

    def __repr__(self) -> str:
        box = ", ".join(f"{name} in [{low}, {high}]" for name, (low, high) in self.box.items())
        return f"PriorFamily({len(self._laws)} secrets, {box})"

    def at(self, **values: Exact) -> HiddenMarkovModel:
        """Return the model of one prior.

        Raises ParameterError: a parameter is unknown, missing or outside its interval.
        """
        prior, result = self.checked(values), copy(self._model)
        result.initial_distributions = {n: _values(law, prior) for n, law in self._laws.items()}
        return result

    def checked(self, values: Mapping[str, Exact]) -> dict[str, Fraction]:
        """Return the values of one prior as fractions; raise ParameterError if they are none."""
        if unknown := values.keys() - self.box:
            raise ParameterError(f"{sorted(unknown)[0]!r} is not one of {', '.join(self.box)}")
        result: dict[str, Fraction] = {}
        for name, (low, high) in self.box.items():
            if name not in values:
                raise ParameterError(f"the parameter {name} has no value; give one")
            result[name] = written_number(values[name], name)
            if not low <= result[name] <= high:
                raise ParameterError(f"{name} is outside its interval [{low}, {high}]")
        return result

    def likelihoods(self, length: int) -> Iterator[tuple[fmpq_mpoly, fmpq_mpoly]]:
        """Yield P(w | secret) and P(w | other) as polynomials, both directions, of a length.

        Of sequences whose likelihoods are proportional in the first state one is kept. Ratios of
        shorter sequences are no larger.
        """
        vectors = [[flint_number(f) for f in v] for v in _backward_vectors(self._model, length)]
        zero = self._context.constant(0)
        of = {
            name: [sum((p * f for p, f in zip(law, v, strict=True) if f), zero) for v in vectors]
            for name, law in self._laws.items()
        }
        for secret, other in directions(self._model):
            yield from zip(of[secret], of[other], strict=True)

    def corners(self) -> Iterator[dict[str, Fraction]]:
        """Yield the corners of the box, and its centre."""
        for ends in product(*(dict.fromkeys(interval) for interval in self.box.values())):
            yield dict(zip(self.box, ends, strict=True))
        yield {name: (low + high) / 2 for name, (low, high) in self.box.items()}

    def positive_point(
        self, polynomial: fmpq_mpoly, zero: fmpq_mpoly | None = None
    ) -> dict[str, Fraction] | None:
        """Return a prior at which ``polynomial`` > 0 and ``zero``, never negative, is 0."""
        if polynomial.is_constant() and zero is None:
            return next(self.corners()) if polynomial.leading_coefficient() > 0 else None
        conditions = [(polynomial, operator.gt)]
        found = self.point(conditions + ([] if zero is None else [(zero, operator.eq)]))
        return None if found is None else found[0]

    def point(
        self, conditions: Sequence[tuple[fmpq_mpoly, Any]]
    ) -> tuple[dict[str, Fraction], bool] | None:
        """Return a prior at which polynomials compare to 0 so, and whether it is exact."""
        z3 = smt.z3()
        variables = {name: z3.Real(name) for name in self.box}

        def term(powers: Sequence[int], coefficient: fmpq) -> Any:
            value = smt.number(_fraction(coefficient))
            for name, power in zip(self.box, powers, strict=True):
                for _ in range(power):
                    value = value * variables[name]
            return value

        constraints = []
        for name, variable in variables.items():
            low, high = map(smt.number, self.box[name])
            constraints += [variable >= low, variable <= high]
        for polynomial, compare in conditions:
            terms = [term(*pair) for pair in polynomial.to_dict().items()]
            constraints.append(compare(z3.Sum([smt.number(Fraction(0)), *terms]), 0))
        found = smt.point(constraints, list(variables.values()))
        return None if found is None else (dict(zip(self.box, found[0], strict=True)), found[1])

    def _polynomials(self, where: str, entries: object) -> list[fmpq_mpoly]:
        law = []
        for i, entry in enumerate(check_list(entries, where), 1):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of odd Python, which is refused below
                    text = entry.replace("^", "**").strip() if isinstance(entry, str) else ""
                    law.append(
                        self._evaluated(ast.parse(text, mode="eval").body, text)
                        if text
                        else self._constant(entry)
                    )
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                raise ModelError(
                    f"{where}, entry {i} is not a polynomial in {', '.join(self.box)} of degree "
                    f"up to {MAX_DEGREE}; write it as 2*p*(1 - p)"
                ) from None
        total = sum(law, self._context.constant(0))
        if not (total - 1).is_zero():
            raise ModelError(f"{where} sums to {shortened(str(total))}, not to 1 for every prior")
        return law

    def _constant(self, value: object) -> fmpq_mpoly:
        return self._context.constant(flint_number(written_number(value, "an entry", ModelError)))

    def _evaluated(self, node: ast.expr, text: str) -> fmpq_mpoly:
        """Return the polynomial of an expression; raise ValueError and the like if it is none."""
        match node:
            case ast.Constant(value=int() | float()):
                # the number as it is written, not the binary float it would become
                return self._constant(ast.get_source_segment(text, node))
            case ast.Name(id=name):
                return self._context.gen(list(self.box).index(name))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                value = self._evaluated(operand, text)
                return -value if isinstance(sign, ast.USub) else value
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
                base = self._evaluated(left, text)
                sizes = (int(c.p).bit_length() + int(c.q).bit_length() for c in base.coeffs())
                if (
                    0
                    <= power * max(1, base.total_degree(), *(n // 64 for n in sizes))
                    <= MAX_DEGREE
                ):
                    return base**power
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                a, b = self._evaluated(left, text), self._evaluated(right, text)
                if not isinstance(op, ast.Div) or (b.is_constant() and not b.is_zero()):
                    result: fmpq_mpoly = _OPERATORS[type(op)](a, b)
                    return result
        raise ValueError


@dataclass(frozen=True)
class FoundPrior(Result):
    """A prior of the box, and what it shows."""

    prior: dict[str, Fraction]
    """Value of each parameter."""
    witness: Witness | None
    """For a prior that violates, a sequence whose ratio exceeds the factor; else None."""


@dataclass(frozen=True)
class Supremum(Result):
    """Bounds of the largest ratio over all priors of a box."""

    lower: Fraction | float
    """Ratio of the witness, attained."""
    upper: Fraction | float
    """No prior exceeds it; ``math.inf`` if no bound was proved."""
    prior: dict[str, Fraction]
    """The prior that attains ``lower``."""
    witness: Witness

    @property
    def exact(self) -> bool:
        """Whether ``lower`` is the supremum itself, hence a maximum."""
        return self.lower == self.upper


@dataclass(frozen=True)
class PreservingRegion:
    """The priors of a box at which a factor holds: those at which no polynomial is positive."""

    family: PriorFamily
    factor: Fraction
    """e^ε."""
    length: int
    """Longest observation sequence."""
    polynomials: tuple[fmpq_mpoly, ...] = field(repr=False)
    """In the parameters, with coprime integer coefficients; none if every prior preserves."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """The polynomials as strings such as ``"9*p1^2*p2 + 22*p1 - 7 <= 0"``; all have to hold."""
        return tuple(f"{polynomial} <= 0" for polynomial in self.polynomials)

    def contains(self, **values: Exact) -> bool:
        """Return whether one prior preserves.

        Raises ParameterError: a parameter is unknown, missing or outside its interval.
        """
        at = list(self.family.checked(values).values())
        return all(value_at(polynomial, at) <= 0 for polynomial in self.polynomials)

    def interval(self, parameter: str, **others: Exact) -> tuple[Fraction, Fraction] | None:
        """Return the lowest and highest value of a parameter that preserve, given all others.

        All values between them preserve and no others do; None if no value does. Raises
        ParameterError: a parameter is unknown, missing, outside its interval, or ``parameter``
        occurs in a polynomial with a higher power than 1.
        """
        names = list(self.family.box)
        check_choice(parameter, "parameter", names)
        index, (low, high) = names.index(parameter), self.family.box[parameter]
        at = list(self.family.checked({**others, parameter: low}).values())
        for polynomial in self.polynomials:
            if polynomial.degrees()[index] > 1:
                raise ParameterError(f"{parameter} occurs to a higher power; ask for another one")
            here, slope = value_at(polynomial, at), value_at(polynomial.derivative(index), at)
            if slope > 0:
                high = min(high, at[index] - here / slope)
            elif slope < 0:
                low = max(low, at[index] - here / slope)
            elif here > 0:
                return None
        return (low, high) if low <= high else None


def find_prior(
    family: PriorFamily, factor: Exact, length: int | None = None, *, violates: bool = True
) -> FoundPrior | None:
    """Return a prior that violates (or satisfies) ε-Pufferfish privacy; None if provably none does.

    Parameters
    ----------
    family : PriorFamily
    factor : exact number
        e^ε.
    length : int, optional
        Longest observation sequence (default: that of the family).
    violates : bool
        Whether to look for a violation (default), or for a prior that satisfies.

    Raises
    ------
    ParameterError
        Factor or length are out of range, there are too many sequences, the solver gave no answer
        within :data:`pufferflow.hmm.smt.SECONDS`, or only an irrational prior was found.
    """
    check_type(family, "family", PriorFamily)
    limit, steps = check_factor(factor), requested_length(family, length)
    for values in family.corners():
        verdict = check(family.at(**values), limit, steps)
        if verdict.holds != violates:
            return FoundPrior(values, verdict.witness)
    likelihoods = list(family.likelihoods(steps))
    if violates:
        at = _exceeding(family, likelihoods, limit)
        return None if at is None else FoundPrior(at, check(family.at(**at), limit, steps).witness)
    bound = flint_number(limit)
    conditions = [(p - bound * q, operator.le) for p, q in likelihoods]
    found = family.point(conditions)
    if found is not None and not check(family.at(**found[0]), limit, steps).holds:
        raise ParameterError(_IRRATIONAL.format("satisfy", _assigned(found[0]), "raise"))
    return None if found is None else FoundPrior(found[0], None)


def sup_ratio(
    family: PriorFamily, length: int | None = None, *, tolerance: Exact = "1e-9"
) -> Supremum:
    """Return the largest ratio P(w | s) / P(w | s') over all priors of the box and all sequences.

    If every parameter occurs linearly the maximum is at a corner. Otherwise the largest ratio found
    is raised, and proved by z3 to be exceeded nowhere, exactly or up to the tolerance.

    Parameters
    ----------
    family : PriorFamily
    length : int, optional
        Longest observation sequence (default: that of the family).
    tolerance : exact number
        Largest relative gap of the bounds if the supremum is not met exactly.

    Raises
    ------
    ParameterError
        As :func:`find_prior`.
    """
    check_type(family, "family", PriorFamily)
    steps, gap = requested_length(family, length), check_factor(tolerance)
    likelihoods = list(family.likelihoods(steps))

    def at_prior(values: dict[str, Fraction]) -> Supremum:
        worst = largest_ratio(family.at(**values), steps)
        return Supremum(worst.ratio, math.inf, values, worst)

    def better(best: Supremum, at: dict[str, Fraction]) -> Supremum:
        """Return the largest ratio at ``at`` and at simple priors near it, or ``best``."""
        near = [{n: v.limit_denominator(10**d) for n, v in at.items()} for d in (1, 2, 3)]
        inside = [prior for prior in near if all(low <= prior[n] <= high for n, low, high in box)]
        return max([best, *map(at_prior, [*inside, at])], key=lambda found: found.lower)

    box = [(name, *interval) for name, interval in family.box.items()]
    for p, q in likelihoods:
        at = family.positive_point(p, zero=q)
        if at is not None and (impossible := at_prior(at)).lower == math.inf:
            return impossible
    best = max(map(at_prior, family.corners()), key=lambda found: found.lower)
    upper: Fraction | float = math.inf
    # beyond 2^64 the ratio grows without bound, as both probabilities vanish
    while best.lower <= 2**64 and upper - best.lower > gap * Fraction(best.lower):
        low = Fraction(best.lower)
        if (at := _exceeding(family, likelihoods, low)) is None:
            upper = low
            break
        best = better(best, at)
        low = Fraction(best.lower)
        high = 2 * low if upper == math.inf else Fraction(upper)
        middle = ((low + high) / 2).limit_denominator(max(1, math.ceil(8 / (high - low))))
        if (at := _exceeding(family, likelihoods, middle)) is None:
            upper = middle
        else:
            best = better(best, at)
    return Supremum(best.lower, upper, best.prior, best.witness)


def preserving_region(
    family: PriorFamily, factor: Exact, length: int | None = None
) -> PreservingRegion:
    """Return the region of all priors of the box that satisfy ε-Pufferfish privacy.

    Polynomials that are positive nowhere in the box are left out. Parameters and errors are those
    of :func:`find_prior`.
    """
    check_type(family, "family", PriorFamily)
    limit, steps = check_factor(factor), requested_length(family, length)
    bound = flint_number(limit)
    different = {str(f): f for f in (_coprime(p - bound * q) for p, q in family.likelihoods(steps))}
    binding = (f for f in different.values() if family.positive_point(f) is not None)
    return PreservingRegion(family, limit, steps, tuple(binding))


def _exceeding(
    family: PriorFamily, likelihoods: Sequence[tuple[fmpq_mpoly, fmpq_mpoly]], ratio: Fraction
) -> dict[str, Fraction] | None:
    """Return a prior at which a ratio of likelihoods exceeds ``ratio``, or None."""
    for p, q in likelihoods:
        polynomial = p - flint_number(ratio) * q
        at = family.positive_point(polynomial)
        if at is not None:
            if value_at(polynomial, list(at.values())) <= 0:
                raise ParameterError(_IRRATIONAL.format("violate", _assigned(at), "lower"))
            return at
    return None


def _coprime(polynomial: fmpq_mpoly) -> fmpq_mpoly:
    """Return the positive multiple with integer coefficients without a common divisor."""
    coefficients = list(map(_fraction, polynomial.coeffs())) or [Fraction(1)]
    over = math.lcm(*(c.denominator for c in coefficients))
    divisor = math.gcd(*(int(c * over) for c in coefficients))
    return polynomial * flint_number(Fraction(over, divisor))


def _backward_vectors(model: HiddenMarkovModel, length: int) -> list[Vector]:
    """Return P(w | first state) for the sequences of a length, up to positive factors."""
    vectors: list[Vector] = [(Fraction(1),) * len(model.states)]
    for t in range(length):
        following: dict[Vector, None] = {}
        for vector in vectors:
            # nothing follows the last observation
            after = (
                vector
                if t == 0
                else [
                    sum((p * vector[j] for j, p in enumerate(row) if p), Fraction(0))
                    for row in model.transition_matrix
                ]
            )
            for column in zip(*model.observation_matrix, strict=True):
                likelihood = [p * f for p, f in zip(column, after, strict=True)]
                if total := sum(likelihood, Fraction(0)):
                    following[tuple(p / total for p in likelihood)] = None
        vectors = list(following)
        if len(vectors) > MAX_SEQUENCES:
            raise ParameterError(
                f"more than {MAX_SEQUENCES} sequences of {t + 1} observations have different "
                f"likelihoods; ask for a length below {length}"
            )
    return vectors


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


def _assigned(values: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name} = {shortened(str(value))}" for name, value in values.items())


def flint_number(value: Fraction) -> fmpq:
    """Return a fraction as a number of FLINT."""
    from flint import fmpq

    return fmpq(value.numerator, value.denominator)


def value_at(polynomial: fmpq_mpoly, values: Sequence[Fraction]) -> Fraction:
    """Return a polynomial at values of its parameters, in their order."""
    return _fraction(polynomial(*map(flint_number, values)))


def _values(law: Sequence[fmpq_mpoly], prior: Mapping[str, Fraction]) -> Vector:
    return tuple(value_at(entry, list(prior.values())) for entry in law)


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))
