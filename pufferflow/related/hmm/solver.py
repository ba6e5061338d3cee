"""Questions to the SMT solver z3, and the check of one model as such a question.

Exact search (:mod:`pufferflow.related.hmm.checking`) is faster for a given prior; the solver is an independent second
opinion there, and the way to answers about all priors of a family (:mod:`pufferflow.related.hmm.priors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pufferflow._checks import check_positive, check_type
from pufferflow._optional import load
from pufferflow.errors import ParameterError
from pufferflow.related.hmm.checking import Verdict, Witness, check_factor, directions
from pufferflow.related.hmm.model import Exact, HiddenMarkovModel, asked_length

SECONDS = 60.0
"""Time the solver may take for one question, unless told otherwise."""


def z3_solver() -> Any:
    """The module of the solver."""
    return load("z3", "the solver")


def check_by_solver(
    model: HiddenMarkovModel, factor: Exact, length: int | None = None, *, timeout_seconds: float = SECONDS
) -> Verdict:
    """Decide what :func:`pufferflow.hmm.check` decides, by z3: the forward recursion with the observations unknown.

    Linear real arithmetic; every step multiplies the cases by the number of observations. The witness has the
    full length.

    Parameters
    ----------
    model, factor, length
        As for :func:`pufferflow.hmm.check`.
    timeout_seconds : float
        Most time for each pair of secrets and direction.

    Raises
    ------
    ParameterError
        Factor or length are out of range, or the solver gave no answer in time.
    """
    check_type(model, "model", HiddenMarkovModel)
    limit, steps = check_factor(factor), asked_length(model, length)
    for secret, other in directions(model):
        sequence = _violation(model, secret, other, limit, steps, timeout_seconds)
        if sequence is not None:
            probabilities = (model.probability(name, sequence) for name in (secret, other))
            return Verdict(False, limit, steps, False, Witness(secret, other, sequence, *probabilities))
    return Verdict(True, limit, steps, False, None)


def _violation(
    model: HiddenMarkovModel, secret: str, other: str, limit: Fraction, steps: int, timeout_seconds: float
) -> tuple[str, ...] | None:
    """Return a sequence of the full length that violates in one direction, or None."""
    z3 = z3_solver()

    laws = zip(model.initial_distributions[secret], model.initial_distributions[other], strict=True)
    # only the difference of the two forward vectors matters, see pufferflow.related.hmm.checking; of it only the
    # entries that can differ from 0
    predicted: dict[int, Any] = {i: number(p - limit * q) for i, (p, q) in enumerate(laws) if p or q}
    rows = model.observation_matrix
    solver = z3.SolverFor("QF_LRA")
    choices = []
    for t in range(steps):
        seen = {i: z3.Real(f"seen_{t}_{i}") for i in predicted}
        choice = [z3.Bool(f"choice_{t}_{o}") for o in range(len(model.observations))]
        for o, chosen in enumerate(choice):
            weighted = [seen[i] == (number(rows[i][o]) * value if rows[i][o] else 0) for i, value in predicted.items()]
            solver.add(z3.Implies(chosen, z3.And(weighted)))
        solver.add(z3.PbEq([(chosen, 1) for chosen in choice], 1))
        choices.append(choice)
        terms: dict[int, list[Any]] = {}
        for i, value in seen.items():
            for j, p in enumerate(model.transition_matrix[i]):
                if p:
                    terms.setdefault(j, []).append(number(p) * value)
        predicted = {j: z3.Sum(of) for j, of in terms.items()}
    solver.add(z3.Sum(list(seen.values())) > 0)
    answer = satisfied(solver, timeout_seconds)
    if answer is None:
        return None
    return tuple(
        name
        for choice in choices
        for name, chosen in zip(model.observations, choice, strict=True)
        if z3.is_true(answer.eval(chosen))
    )


def number(value: Fraction) -> Any:
    """Return a fraction as a constant of z3."""
    z3 = z3_solver()

    return z3.RealVal(f"{value.numerator}/{value.denominator}")


def satisfied(solver: Any, timeout_seconds: float) -> Any:
    """Return a model of the solver's assertions, or None if there is none.

    Raises ParameterError: there was no answer in time.
    """
    z3 = z3_solver()

    timeout_seconds = check_positive(timeout_seconds, "timeout_seconds")
    solver.set("timeout", min(int(1000 * timeout_seconds) + 1, 2**31))
    answer = solver.check()
    if answer == z3.unknown:
        raise ParameterError(
            f"z3 gave no answer within {timeout_seconds:g} s ({solver.reason_unknown()}); allow more time, or ask for "
            "shorter sequences or a smaller box"
        )
    return solver.model() if answer == z3.sat else None


def point(constraints: Sequence[Any], variables: Sequence[Any], timeout_seconds: float) -> list[Any] | None:
    """Return values of real ``variables`` that meet polynomial ``constraints`` (z3 numbers), or None."""
    z3 = z3_solver()

    solver = z3.SolverFor("QF_NRA")
    solver.add(*constraints)
    model = satisfied(solver, timeout_seconds)
    return None if model is None else [model.eval(variable, model_completion=True) for variable in variables]


def rational(value: Any, decimals: int = 30) -> Fraction:
    """Return a number of z3 as a fraction; an irrational one rounded to ``decimals`` decimals."""
    z3 = z3_solver()

    if z3.is_algebraic_value(value):
        value = value.approx(decimals)
    return Fraction(value.numerator_as_long(), value.denominator_as_long())
