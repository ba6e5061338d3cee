"""Queries to the SMT solver z3, and the check of one model by such a query.

For a given prior the exact search of :mod:`pufferflow.hmm.checking` is faster, and the solver an
independent second opinion; for all priors of a family it is the source's method.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from flint import fmpq, fmpq_mpoly

from pufferflow._util.checks import check_type, shown
from pufferflow._util.numbers import Exact
from pufferflow._util.optional import load
from pufferflow.errors import ParameterError
from pufferflow.hmm.checking import Verdict, Witness, check_factor
from pufferflow.hmm.model import HiddenMarkovModel, requested_length

SECONDS = 60
"""Time limit of the solver for one query."""

_querying = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let one thread at a time use z3, whose expressions share a context."""
    with _querying:
        yield


def _solved(z3: Any, logic: str, constraints: Sequence[Any]) -> Any:
    """Return a model of the constraints, or None; raise ParameterError after the time limit."""
    solver = z3.SolverFor(logic)
    solver.set("timeout", 1000 * SECONDS)
    solver.add(*constraints)
    answer = solver.check()
    if answer == z3.unknown:
        raise ParameterError(
            f"z3 gave no answer within {SECONDS} s ({solver.reason_unknown()}); "
            "use shorter sequences or a smaller box"
        )
    return solver.model() if answer == z3.sat else None


@one_thread()
def point(
    box: Mapping[str, tuple[Fraction, Fraction]],
    compare: Callable[[Any, int], Any],
    polynomials: Sequence[fmpq_mpoly],
) -> dict[str, Fraction] | None:
    """Return a point of a box at which all polynomials satisfy a comparison with 0, or None.

    Raises ParameterError: the solver found irrational ones only, or none in time.
    """
    z3 = load("z3", "the solver")
    variables, constraints = [z3.Real(name) for name in box], []
    for variable, (low, high) in zip(variables, box.values(), strict=True):
        constraints += [variable >= z3.RealVal(str(low)), variable <= z3.RealVal(str(high))]
    for polynomial in polynomials:
        terms = []
        for powers, coefficient in polynomial.to_dict().items():
            factors = [v for v, n in zip(variables, powers, strict=True) for _ in range(n)]
            terms.append(z3.Product(z3.RealVal(str(coefficient)), *factors))
        constraints.append(compare(z3.Sum(terms), 0))
    answer = _solved(z3, "QF_NRA", constraints)
    if answer is None:
        return None
    values = (answer.eval(variable, model_completion=True) for variable in variables)
    near = (value.approx(60) if z3.is_algebraic_value(value) else value for value in values)
    at = dict(zip(box, (Fraction(value.as_string()) for value in near), strict=True))
    exact = [fmpq(value.numerator, value.denominator) for value in at.values()]
    if not all(compare(polynomial(*exact), 0) for polynomial in polynomials):
        what = f"only an irrational prior was found (near {assigned(at)})"
        raise ParameterError(f"{what}; change the factor")
    return at


def assigned(values: Mapping[str, Fraction]) -> str:
    """Return a prior for messages."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in values.items())


@one_thread()
def check_by_solver(model: HiddenMarkovModel, factor: Exact, length: int | None = None) -> Verdict:
    """Return the verdict of :func:`pufferflow.hmm.check`, by z3.

    The query is the forward recursion with unknown observations, in linear real arithmetic; every
    step multiplies the cases by the number of observations. The witness has the full length.
    Parameters and errors are those of :func:`pufferflow.hmm.check`; the solver may also give no
    answer in time.
    """
    check_type(model, "model", HiddenMarkovModel)
    limit, steps = check_factor(factor), requested_length(model, length)
    z3, rows = load("z3", "the solver"), model.observation_matrix
    # columns of the transition matrix without zeros, as numbers of z3
    into = [
        {i: z3.RealVal(str(p)) for i, p in enumerate(column) if p}
        for column in zip(*model.transition_matrix, strict=True)
    ]
    sequence = [z3.Real(f"observation_{t}") for t in range(steps)]
    for secret, other in model.directions():
        both = zip(*(model.initial_distributions[s] for s in (secret, other)), strict=True)
        # of the two forward vectors only the difference matters, where one is positive
        ahead = {i: z3.RealVal(str(p - limit * q)) for i, (p, q) in enumerate(both) if p or q}
        constraints = []
        for t, observed in enumerate(sequence):
            seen = {i: z3.Real(f"seen_{t}_{i}") for i in ahead}
            cases = (
                [seen[i] == z3.RealVal(str(rows[i][o])) * ahead[i] for i in seen]
                for o in range(len(model.observations))
            )
            constraints.append(z3.Or(*(z3.And(observed == o, *c) for o, c in enumerate(cases))))
            ahead = {
                j: z3.Sum([p * seen[i] for i, p in column.items() if i in seen])
                for j, column in enumerate(into)
                if column.keys() & seen.keys()
            }
        answer = _solved(z3, "QF_LRA", [*constraints, z3.Sum(list(seen.values())) > 0])
        if answer is not None:
            word = tuple(model.observations[answer.eval(o).as_long()] for o in sequence)
            return Verdict(False, limit, steps, False, Witness.of(model, secret, other, word))
    return Verdict(True, limit, steps, False, None)
