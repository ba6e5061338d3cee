"""Questions to the SMT solver z3, and the check of one model as such a question.

For a given prior the exact search of :mod:`pufferflow.hmm.checking` is faster, and the solver an
independent second opinion; for all priors of a family it is the source's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pufferflow._checks import check_type
from pufferflow._numbers import Exact
from pufferflow._optional import load
from pufferflow.errors import ParameterError
from pufferflow.hmm.checking import Verdict, Witness, check_factor, directions
from pufferflow.hmm.model import HiddenMarkovModel, requested_length

SECONDS = 60
"""Time that the solver may take for one question."""


def z3() -> Any:
    """Return the module of the solver."""
    return load("z3", "the solver")


def number(value: Fraction) -> Any:
    """Return a fraction as a constant of z3."""
    return z3().RealVal(f"{value.numerator}/{value.denominator}")


def satisfied(solver: Any) -> Any:
    """Return a model of the solver's assertions, or None; raise ParameterError if time is up."""
    solver.set("timeout", 1000 * SECONDS)
    answer = solver.check()
    if answer == z3().unknown:
        raise ParameterError(
            f"z3 gave no answer within {SECONDS} s ({solver.reason_unknown()}); ask for "
            " shorter sequences or a smaller box"
        )
    return solver.model() if answer == z3().sat else None


def point(
    constraints: Sequence[Any], variables: Sequence[Any]
) -> tuple[list[Fraction], bool] | None:
    """Return values of real ``variables`` that meet polynomial ``constraints``, or None.

    The flag tells whether they are exact; an irrational value is rounded to 60 decimals.
    """
    solver = z3().SolverFor("QF_NRA")
    solver.add(*constraints)
    model = satisfied(solver)
    if model is None:
        return None
    values = [model.eval(variable, model_completion=True) for variable in variables]
    exact = not any(map(z3().is_algebraic_value, values))
    near = [value.approx(60) if z3().is_algebraic_value(value) else value for value in values]
    return [Fraction(v.numerator_as_long(), v.denominator_as_long()) for v in near], exact


def check_by_solver(model: HiddenMarkovModel, factor: Exact, length: int | None = None) -> Verdict:
    """Return what :func:`pufferflow.hmm.check` returns, by z3.

    The question is the forward recursion with the observations unknown, in linear real arithmetic;
    every step multiplies the cases by the number of observations. The witness has the full length.

    Parameters
    ----------
    model, factor, length
        As for :func:`pufferflow.hmm.check`.

    Raises
    ------
    ParameterError
        Factor or length are out of range, or the solver gave no answer in time.
    """
    check_type(model, "model", HiddenMarkovModel)
    limit, steps = check_factor(factor), requested_length(model, length)
    for secret, other in directions(model):
        word = _violation(model, secret, other, limit, steps)
        if word is not None:
            probabilities = (model.probability(name, word) for name in (secret, other))
            return Verdict(False, limit, steps, False, Witness(secret, other, word, *probabilities))
    return Verdict(True, limit, steps, False, None)


def _violation(
    model: HiddenMarkovModel, secret: str, other: str, limit: Fraction, steps: int
) -> tuple[str, ...] | None:
    """Return a sequence of the full length that violates in one direction, or None."""
    smt, rows = z3(), model.observation_matrix
    laws = zip(model.initial_distributions[secret], model.initial_distributions[other], strict=True)
    # only the difference of the two forward vectors matters, where it can differ from 0
    predicted = {i: number(p - limit * q) for i, (p, q) in enumerate(laws) if p or q}
    solver, choices = smt.SolverFor("QF_LRA"), []
    for t in range(steps):
        seen = {i: smt.Real(f"seen_{t}_{i}") for i in predicted}
        choices.append([smt.Bool(f"choice_{t}_{o}") for o in range(len(model.observations))])
        for o, chosen in enumerate(choices[-1]):
            weighted = [
                seen[i] == (number(rows[i][o]) * value if rows[i][o] else 0)
                for i, value in predicted.items()
            ]
            solver.add(smt.Implies(chosen, smt.And(weighted)))
        solver.add(smt.PbEq([(chosen, 1) for chosen in choices[-1]], 1))
        terms: dict[int, list[Any]] = {}
        for i, value in seen.items():
            for j, p in enumerate(model.transition_matrix[i]):
                if p:
                    terms.setdefault(j, []).append(number(p) * value)
        predicted = {j: smt.Sum(of) for j, of in terms.items()}
    solver.add(smt.Sum(list(seen.values())) > 0)
    answer = satisfied(solver)
    if answer is None:
        return None
    taken = [[smt.is_true(answer.eval(one)) for one in choice].index(True) for choice in choices]
    return tuple(model.observations[o] for o in taken)
