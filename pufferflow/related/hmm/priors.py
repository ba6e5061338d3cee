"""Priors with free parameters: one that violates, one that satisfies, the largest ratio of all.

The initial laws are polynomials in the parameters, each of which ranges over an interval. The probability of a
sequence of observations is then a polynomial too, so that "P(w | s) > c·P(w | s') for some prior of the box" is a
question about polynomial inequalities, which z3 decides. A parameter in which the difference is affine takes one of
its ends, without loss; where all are (independent counts with one parameter each), no solver is needed.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from pufferflow._checks import check_type
from pufferflow._display import displayed
from pufferflow._json import kind
from pufferflow._numbers import written_number
from pufferflow.errors import ModelError, ParameterError
from pufferflow.related.hmm import solver
from pufferflow.related.hmm.checking import Witness, check, check_factor, directions, largest_ratio, ratio_text
from pufferflow.related.hmm.model import (
    Exact,
    HiddenMarkovModel,
    Vector,
    asked_length,
    exact_text,
    shortened,
    shown,
)

if TYPE_CHECKING:
    from flint import fmpq, fmpq_mpoly

MOST_SEQUENCES = 5_000
"""Sequences of observations, up to those that tell the same, that one question goes through at most."""

_MOST_POWER = 64
_IRRATIONAL = "priors that {} exist, but the one found is irrational (near {}); {} the factor a little"


@displayed()
class PriorFamily:
    """Hidden Markov models that differ in their initial laws, polynomials in parameters of a box; immutable.

    Parameters
    ----------
    transition_matrix, observation_matrix : sequence of sequences
        As for :class:`pufferflow.hmm.HiddenMarkovModel`.
    initial_distributions : mapping of str to sequence, shape (k,)
        Entries are numbers or texts such as ``"2*p*(1 - p)"``: numbers, parameters, ``+ - * / **`` (``^`` too) and
        parentheses; divisors are numbers.
    parameters : mapping of str to pair
        Lowest and highest value of each parameter.
    states, observations, pairs, length : optional
        As for :class:`pufferflow.hmm.HiddenMarkovModel`.

    Raises
    ------
    ModelError
        An interval is empty, an entry is no polynomial in the parameters, a law does not sum to 1 identically or has
        a negative probability somewhere in the box, or the model is impossible otherwise.
    """

    def __init__(
        self,
        transition_matrix: Sequence[Sequence[Exact]],
        observation_matrix: Sequence[Sequence[Exact]],
        initial_distributions: Mapping[str, Sequence[Exact]],
        parameters: Mapping[str, Sequence[Exact]],
        *,
        states: Sequence[str] | None = None,
        observations: Sequence[str] | None = None,
        pairs: Sequence[tuple[str, str]] | None = None,
        length: int | None = None,
    ) -> None:
        from flint import Ordering, fmpq_mpoly_ctx

        self.box: dict[str, tuple[Fraction, Fraction]] = _box(parameters)
        """Lowest and highest value of each parameter."""
        self._context = fmpq_mpoly_ctx.get(tuple(self.box), Ordering.lex)
        if not isinstance(initial_distributions, Mapping):
            raise ModelError(
                f"initial_distributions must give one law a secret by its name, not {kind(initial_distributions)}"
            )
        self._laws = {name: self._law(name, law) for name, law in initial_distributions.items()}
        low = {name: ends[0] for name, ends in self.box.items()}
        self._model = HiddenMarkovModel(
            transition_matrix,
            observation_matrix,
            {name: self._values(name, low) for name in self._laws},
            states=states,
            observations=observations,
            pairs=pairs,
            length=length,
        )
        self.length = self._model.length
        self._likelihoods: dict[int, tuple[tuple[str, str, fmpq_mpoly, fmpq_mpoly], ...]] = {}
        for name, law in self._laws.items():
            for i, entry in enumerate(law, 1):
                at = self.positive_point(-entry)
                if at is not None:
                    raise ModelError(
                        f"initial distribution of {name!r}, entry {i} is negative at {_assigned(at)}; mend it or "
                        "narrow the parameters"
                    )

    def __repr__(self) -> str:
        box = ", ".join(f"{name} in [{low}, {high}]" for name, (low, high) in self.box.items())
        return f"PriorFamily({len(self._laws)} secrets, {box})"

    def at(self, **values: Exact) -> HiddenMarkovModel:
        """Return the model of one prior.

        Raises
        ------
        ParameterError
            A parameter is unknown, missing or outside its interval.
        """
        return self.model(self.checked(values))

    def model(self, values: Mapping[str, Fraction]) -> HiddenMarkovModel:
        """Return the model of one prior of the box, its values known to be good."""
        result = copy(self._model)  # all but the laws was checked once, and they were for the whole box
        result.initial_distributions = {name: self._values(name, values) for name in self._laws}
        return result

    # -- polynomials -----------------------------------------------------------------------------

    def _law(self, name: str, entries: object) -> list[fmpq_mpoly]:
        if isinstance(entries, str | Mapping) or not isinstance(entries, Sequence):
            raise ModelError(f"initial distribution of {name!r} must be a list of probabilities, not {kind(entries)}")
        law = [
            self._polynomial(entry, f"initial distribution of {name!r}, entry {i}")
            for i, entry in enumerate(entries, 1)
        ]
        total = sum(law, self._context.constant(0))
        if not (total - 1).is_zero():
            raise ModelError(
                f"initial distribution of {name!r} sums to {shortened(str(total), quoted=False)}, "
                "not to 1 for every prior"
            )
        return law

    def _constant(self, number: object, where: str) -> fmpq_mpoly:
        return self._context.constant(flint_number(written_number(number, where, ModelError)))

    def _polynomial(self, entry: object, where: str) -> fmpq_mpoly:
        if not isinstance(entry, str):
            return self._constant(entry, where)
        text = entry.replace("^", "**").strip()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd Python, which is refused below
                tree = ast.parse(text, mode="eval")
            return self._evaluated(tree.body, text, where)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"{where}: {shortened(entry)} is no polynomial; write it as 2*p*(1 - p)") from None

    def _evaluated(self, node: ast.expr, text: str, where: str) -> fmpq_mpoly:
        match node:
            case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
                # the number as it is written, not the binary float it would become
                return self._constant(ast.get_source_segment(text, node), where)
            case ast.Name(id=name) if name in self.box:
                return self._context.gen(list(self.box).index(name))
            case ast.Name(id=name):
                raise ModelError(f"{where}: {name!r} is no parameter; the parameters are {', '.join(self.box)}")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._evaluated(operand, text, where)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._evaluated(operand, text, where)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
                base = self._evaluated(left, text, where)
                if power >= 0 and power * max(1, base.total_degree(), _bits(base) // 64) <= _MOST_POWER:
                    return base**power
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self._evaluated(left, text, where), self._evaluated(right, text, where)
                if isinstance(op, ast.Add):
                    return a + b
                if isinstance(op, ast.Sub):
                    return a - b
                if isinstance(op, ast.Mult):
                    return a * b
                if isinstance(op, ast.Div) and b.is_constant() and not b.is_zero():
                    return a / b
        raise ModelError(
            f"{where}: {shortened(text)} is no polynomial in {', '.join(self.box)} of degree at most {_MOST_POWER}; "
            "use + - * ** and division by a number other than 0"
        )

    def _values(self, name: str, values: Mapping[str, Fraction]) -> Vector:
        return tuple(value_at(entry, [values[p] for p in self.box]) for entry in self._laws[name])

    def checked(self, values: Mapping[str, Exact]) -> dict[str, Fraction]:
        """Return the values of one prior as fractions, in the order of the parameters.

        Raises ParameterError: one is unknown, missing or outside its interval.
        """
        for name in values:
            if name not in self.box:
                raise ParameterError(f"{name!r} is no parameter; the parameters are {', '.join(self.box)}")
        result: dict[str, Fraction] = {}
        for name, (low, high) in self.box.items():
            if name not in values:
                raise ParameterError(f"the parameter {name} has no value; give one in [{low}, {high}]")
            result[name] = written_number(values[name], name)
            if not low <= result[name] <= high:
                raise ParameterError(f"{name} is {shown(result[name])}; give a value in [{low}, {high}]")
        return result

    # -- questions -------------------------------------------------------------------------------

    def likelihoods(self, length: int) -> tuple[tuple[str, str, fmpq_mpoly, fmpq_mpoly], ...]:
        """Return P(w | secret) and P(w | other) as polynomials, both directions, for the sequences of a length.

        Sequences whose likelihoods are proportional in the first state tell the same; one of them is kept. Shorter
        sequences need no check: their ratios are no larger.
        """
        if length not in self._likelihoods:
            vectors = [[flint_number(f) for f in vector] for vector in _backward_vectors(self._model, length)]
            zero = self._context.constant(0)
            of = {
                name: [sum((p * f for p, f in zip(law, vector, strict=True) if f), zero) for vector in vectors]
                for name, law in self._laws.items()
            }
            self._likelihoods[length] = tuple(
                (secret, other, p, q)
                for secret, other in directions(self._model)
                for p, q in zip(of[secret], of[other], strict=True)
            )
        return self._likelihoods[length]

    def corners(self) -> Iterator[dict[str, Fraction]]:
        """Yield the corners of the box, and its centre."""
        for ends in product(*(dict.fromkeys(interval) for interval in self.box.values())):
            yield dict(zip(self.box, ends, strict=True))
        yield {name: (low + high) / 2 for name, (low, high) in self.box.items()}

    def positive_point(
        self,
        polynomial: fmpq_mpoly,
        zero: fmpq_mpoly | None = None,
        timeout_seconds: float = solver.SECONDS,
    ) -> dict[str, Fraction] | None:
        """Return a prior at which ``polynomial`` > 0 (and ``zero``, which is nowhere negative, = 0), or None."""
        if polynomial.is_zero():
            return None
        degrees = [max(pair) for pair in zip(polynomial.degrees(), (zero or polynomial).degrees(), strict=True)]
        ends = [
            tuple(dict.fromkeys(interval)) if degree <= 1 else (None,)
            for degree, interval in zip(degrees, self.box.values(), strict=True)
        ]
        for fixed in product(*ends):
            at = self._solve(polynomial, zero, fixed, timeout_seconds)
            if at is not None:
                return at
        return None

    def _solve(
        self,
        polynomial: fmpq_mpoly,
        zero: fmpq_mpoly | None,
        fixed: Sequence[Fraction | None],
        timeout_seconds: float,
    ) -> dict[str, Fraction] | None:
        names = list(self.box)
        if None not in fixed:
            values = [value for value in fixed if value is not None]
            good = value_at(polynomial, values) > 0 and (zero is None or value_at(zero, values) == 0)
            return dict(zip(names, values, strict=True)) if good else None
        known: dict[str | int, fmpq] = {
            name: flint_number(value) for name, value in zip(names, fixed, strict=True) if value is not None
        }
        rest = polynomial.subs(known)
        if rest.is_constant() and rest.leading_coefficient() <= 0:
            return None
        variables = {name: _real(name) for name, value in zip(names, fixed, strict=True) if value is None}
        constraints = [*self._inside(variables), _z3(rest, names, variables) > 0]
        if zero is not None:
            constraints.append(_z3(zero.subs(known), names, variables) == 0)
        point = solver.point(constraints, list(variables.values()), timeout_seconds)
        if point is None:
            return None
        free = dict(zip(variables, self._rounded(point, variables, rest, zero is None), strict=True))
        return {name: free[name] if value is None else value for name, value in zip(names, fixed, strict=True)}

    def _rounded(
        self, values: Sequence[Any], variables: Mapping[str, Any], polynomial: fmpq_mpoly, open_condition: bool
    ) -> list[Fraction]:
        """Return z3's values as fractions near them at which the polynomial is still positive, simple ones first."""
        exact = [solver.rational(value) for value in values]
        if not open_condition:
            return exact
        for digits in (2, 4, 8, 16, 30, 60, 120):
            near = [
                min(
                    max(solver.rational(value, 2 * digits).limit_denominator(10**digits), self.box[name][0]),
                    self.box[name][1],
                )
                for name, value in zip(variables, values, strict=True)
            ]
            at = dict(zip(variables, near, strict=True))
            if value_at(polynomial, [at.get(name, low) for name, (low, _) in self.box.items()]) > 0:
                return near
        return exact

    def _inside(self, variables: Mapping[str, Any]) -> list[Any]:
        return [
            condition
            for name, variable in variables.items()
            for condition in (
                variable >= solver.number(self.box[name][0]),
                variable <= solver.number(self.box[name][1]),
            )
        ]


@dataclass(frozen=True)
@displayed("prior", "witness")
class FoundPrior:
    """A prior of the box, and what it shows."""

    prior: dict[str, Fraction]
    """Value of each parameter."""
    witness: Witness | None
    """For a prior that violates, a sequence whose ratio exceeds the factor; None for one that satisfies."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "prior": {name: exact_text(value) for name, value in self.prior.items()},
            "witness": None if self.witness is None else self.witness.to_dict(),
        }


@dataclass(frozen=True)
@displayed("lower", "upper", "prior", "witness")
class Supremum:
    """Bounds of the largest ratio over all priors of a box."""

    lower: Fraction | float
    """Ratio of the witness, attained."""
    upper: Fraction | float
    """No prior exceeds it; ``math.inf`` where no bound was proved."""
    prior: dict[str, Fraction]
    """The prior that attains ``lower``."""
    witness: Witness

    @property
    def exact(self) -> bool:
        """Whether ``lower`` is the supremum itself, hence a maximum."""
        return self.lower == self.upper

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "lower": ratio_text(self.lower),
            "upper": ratio_text(self.upper),
            "exact": self.exact,
            "prior": {name: exact_text(value) for name, value in self.prior.items()},
            "witness": self.witness.to_dict(),
        }


def find_prior(
    family: PriorFamily,
    factor: Exact,
    length: int | None = None,
    *,
    violates: bool = True,
    timeout_seconds: float = solver.SECONDS,
) -> FoundPrior | None:
    """Return a prior of the box that violates (or satisfies) ε-Pufferfish privacy, or None: there is provably none.

    Parameters
    ----------
    family : PriorFamily
    factor : exact number
        e^ε.
    length : int, optional
        Longest observation sequence (default: that of the family).
    violates : bool
        Whether to look for a violation (default), or for a prior that satisfies.
    timeout_seconds : float
        Most time the solver may take for one sequence (violation), or altogether (satisfaction).

    Returns
    -------
    FoundPrior or None
        The prior is exact, and :func:`pufferflow.hmm.check` was asked about it.

    Raises
    ------
    ParameterError
        Factor or length are out of range, there are too many sequences, the solver gave no answer in time, or
        the only priors that satisfy are irrational.
    """
    check_type(family, "family", PriorFamily)
    limit, steps = check_factor(factor), asked_length(family, length)
    bound = flint_number(limit)
    for values in family.corners():
        verdict = check(family.model(values), limit, steps)
        if verdict.holds != violates:
            return FoundPrior(values, verdict.witness)
    if violates:
        for _, _, p, q in family.likelihoods(steps):
            at = family.positive_point(p - bound * q, timeout_seconds=timeout_seconds)
            if at is not None:
                witness = check(family.model(at), limit, steps).witness
                if witness is None:
                    raise ParameterError(_IRRATIONAL.format("violate", _assigned(at), "lower"))
                return FoundPrior(at, witness)
        return None
    names = list(family.box)
    variables = {name: _real(name) for name in names}
    constraints = [_z3(p - bound * q, names, variables) <= 0 for _, _, p, q in family.likelihoods(steps)]
    point = solver.point([*family._inside(variables), *constraints], list(variables.values()), timeout_seconds)
    if point is None:
        return None
    for digits in (2, 4, 8, 16, 30, 60):
        near = [solver.rational(value, 2 * digits).limit_denominator(10**digits) for value in point]
        at = dict(zip(names, near, strict=True))
        inside = all(low <= at[name] <= high for name, (low, high) in family.box.items())
        if inside and check(family.model(at), limit, steps).holds:
            return FoundPrior(at, None)
    about = ", ".join(f"{name} = {value}" for name, value in zip(names, point, strict=True))
    raise ParameterError(_IRRATIONAL.format("satisfy", about, "raise"))


def sup_ratio(
    family: PriorFamily,
    length: int | None = None,
    *,
    tolerance: Exact = "1e-9",
    timeout_seconds: float = solver.SECONDS,
) -> Supremum:
    """Return the largest ratio P(w | s) / P(w | s') over all priors of the box and all sequences.

    Where every parameter occurs linearly the maximum is at a corner. Otherwise the largest ratio found is raised,
    and proved by z3 to be exceeded nowhere, exactly or up to the tolerance.

    Parameters
    ----------
    family : PriorFamily
    length : int, optional
        Longest observation sequence (default: that of the family).
    tolerance : exact number
        Largest relative gap of the bounds where the supremum is not met exactly.
    timeout_seconds : float
        Most time the solver may take for one sequence.

    Raises
    ------
    ParameterError
        As :func:`find_prior`.
    """
    check_type(family, "family", PriorFamily)
    steps, gap = asked_length(family, length), check_factor(tolerance)
    for _, _, p, q in family.likelihoods(steps):
        at = family.positive_point(p, zero=q, timeout_seconds=timeout_seconds)
        if at is not None:
            worst = largest_ratio(family.model(at), steps)
            if worst.ratio == math.inf:
                return Supremum(math.inf, math.inf, at, worst)

    def at_prior(values: dict[str, Fraction]) -> Supremum:
        worst = largest_ratio(family.model(values), steps)
        return Supremum(worst.ratio, math.inf, values, worst)

    def above(ratio: Fraction) -> dict[str, Fraction] | None:
        larger = find_prior(family, ratio, steps, timeout_seconds=timeout_seconds)
        return None if larger is None else larger.prior

    def raised(best: Supremum, at: dict[str, Fraction]) -> Supremum:
        """The better one of the prior ``at`` and simple priors near it."""
        for digits in (1, 2, 3):
            near = {name: value.limit_denominator(10**digits) for name, value in at.items()}
            if all(low <= near[name] <= high for name, (low, high) in family.box.items()):
                best = max(best, at_prior(near), key=lambda supremum: supremum.lower)
        return max(best, at_prior(at), key=lambda supremum: supremum.lower)

    best = max(map(at_prior, family.corners()), key=lambda supremum: supremum.lower)
    upper: Fraction | float = math.inf
    while upper == math.inf or upper - best.lower > gap * Fraction(best.lower):
        lower = Fraction(best.lower)
        if lower > 2**64:
            break  # the ratio grows beyond all bounds where both probabilities vanish
        at = above(lower)
        if at is None:
            upper = lower
            break
        best = raised(best, at)
        lower = Fraction(best.lower)
        middle = _simple(lower, lower * 2 if upper == math.inf else Fraction(upper))
        at = above(middle)
        if at is None:
            upper = middle
        else:
            best = raised(best, at)
    return Supremum(best.lower, upper, best.prior, best.witness)


def _simple(low: Fraction, high: Fraction) -> Fraction:
    """A fraction about halfway between two others, of few digits."""
    middle, width = (low + high) / 2, (high - low) / 4
    return middle.limit_denominator(max(1, math.ceil(2 / width)))


def _backward_vectors(model: HiddenMarkovModel, length: int) -> list[Vector]:
    """Return P(w | first state) for all sequences of a length, one of those that are proportional, no zero vector."""
    k = range(len(model.states))
    vectors: list[Vector] = [(Fraction(1),) * len(model.states)]
    for t in range(length):
        following: dict[Vector, None] = {}
        for vector in vectors:
            # in the first round nothing follows the last observation
            after = [
                sum((p * vector[j] for j, p in enumerate(row) if p), Fraction(0)) for row in model.transition_matrix
            ]
            for o in range(len(model.observations)):
                likelihood = [model.observation_matrix[i][o] * (after[i] if t else 1) for i in k]
                total = sum(likelihood, Fraction(0))
                if total:
                    following[tuple(p / total for p in likelihood)] = None
        vectors = list(following)
        if len(vectors) > MOST_SEQUENCES:
            raise ParameterError(
                f"more than {MOST_SEQUENCES} sequences of {t + 1} observations tell different things; ask for a "
                f"length below {length}"
            )
    return vectors


def _box(parameters: object) -> dict[str, tuple[Fraction, Fraction]]:
    if not isinstance(parameters, Mapping) or not parameters:
        raise ModelError('parameters must give each free parameter its interval, as in {"p": [0, 1]}')
    box: dict[str, tuple[Fraction, Fraction]] = {}
    for name, interval in parameters.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ModelError(f"the parameter {name!r} is no name; use letters, digits and _")
        if isinstance(interval, str | Mapping) or not isinstance(interval, Sequence) or len(interval) != 2:
            raise ModelError(f"parameter {name} must have an interval, a list of its lowest and highest value")
        low, high = (written_number(end, f"parameter {name}", ModelError) for end in interval)
        if low > high:
            raise ModelError(f"parameter {name}: the lowest value {shown(low)} is above the highest, {shown(high)}")
        box[name] = (low, high)
    return box


def _assigned(values: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name} = {shown(value)}" for name, value in values.items())


def flint_number(value: Fraction) -> fmpq:
    """Return a fraction as a number of FLINT."""
    from flint import fmpq

    return fmpq(value.numerator, value.denominator)


def value_at(polynomial: fmpq_mpoly, values: Sequence[Fraction]) -> Fraction:
    """Return a polynomial at values of its parameters, in their order."""
    result = polynomial(*map(flint_number, values))
    return Fraction(int(result.p), int(result.q))


def _bits(polynomial: fmpq_mpoly) -> int:
    """Digits of the longest coefficient, in bits."""
    return max((int(c.p).bit_length() + int(c.q).bit_length() for c in polynomial.coeffs()), default=0)


def _real(name: str) -> Any:
    z3 = solver.z3_solver()

    return z3.Real(name)


def _z3(polynomial: fmpq_mpoly, names: Sequence[str], variables: Mapping[str, Any]) -> Any:
    z3 = solver.z3_solver()

    terms = []
    for powers, coefficient in polynomial.to_dict().items():
        term = solver.number(Fraction(int(coefficient.p), int(coefficient.q)))
        for name, power in zip(names, powers, strict=True):
            for _ in range(power):
                term = term * variables[name]
        terms.append(term)
    return z3.Sum(terms) if terms else z3.RealVal(0)
