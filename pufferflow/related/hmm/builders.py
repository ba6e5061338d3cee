"""Well-known discrete mechanisms as exact matrices and hidden Markov models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from pufferflow._checks import check_choice, check_list, check_type, check_whole
from pufferflow._numbers import written_number
from pufferflow.errors import ModelError, ParameterError
from pufferflow.related.hmm.model import (
    Exact,
    HiddenMarkovModel,
    Matrix,
    Vector,
    distribution,
    shown,
    stochastic_matrix,
)

if TYPE_CHECKING:
    from pufferflow.related.hmm.priors import PriorFamily

Release: TypeAlias = Literal["index", "value"]
"""What Noisy Max releases: the index of the largest noisy value, or that value."""

Ties: TypeAlias = Literal["first", "last", "uniform"]
"""Which of several largest values gives the index."""

SILENT = "⊥"
"""The observation of a state that shows nothing."""

MOST_VALUES = 2_000
"""Values of randomised response at most."""

MOST_BITS = 2 * 10**9
"""Bits of the numbers of a geometric mechanism at most."""

MOST_STATES = 2_000
"""States of a Noisy Max model at most."""


def truncated_geometric(largest: int, ratio: Exact = "1/2") -> Matrix:
    """Return the truncated geometric mechanism on {0, …, largest}: P(released z | value x).

    Two-sided geometric noise, P(noise = d) = (1 − a)/(1 + a)·a^|d|, and what falls outside goes to the nearest end
    (Ghosh, Roughgarden, Sundararajan 2009). Neighbouring values are released alike up to the factor 1/a.

    Parameters
    ----------
    largest : int
        m ≥ 1.
    ratio : exact number
        a in (0, 1); 1/2 for ε = ln 2.

    Raises
    ------
    ParameterError
        A number is out of range.
    """
    m, a = check_whole(largest, "largest value"), _inside(ratio, "ratio of the geometric mechanism")
    if (bits := m**3 * a.denominator.bit_length()) > MOST_BITS:
        raise ParameterError(
            f"the geometric mechanism up to {m} holds about {float(bits):.1e} bits, above "
            f"{MOST_BITS:.0e}; give a smaller largest value, or a ratio of fewer digits"
        )
    weight = (1 - a) / (1 + a)
    return tuple(
        (a**x / (1 + a), *(weight * a ** abs(x - z) for z in range(1, m)), a ** (m - x) / (1 + a)) for x in range(m + 1)
    )


def randomised_response(truth: Exact = "3/4", values: int = 2) -> Matrix:
    """Return randomised response: the true value with probability ``truth``, else any other one, all alike.

    With two values and truth 3/4, the classical coin of Warner, answers differ by a factor 3.

    Raises
    ------
    ParameterError
        ``truth`` is no probability or there are fewer than two values.
    """
    k = check_whole(values, "number of values", 2, MOST_VALUES)
    p = written_number(truth, "truth")
    if not 0 <= p <= 1:
        raise ParameterError(f"truth is {shown(p)}; give a probability between 0 and 1")
    lie = (1 - p) / (k - 1)
    return tuple(tuple(p if x == z else lie for z in range(k)) for x in range(k))


def mechanism_model(
    mechanism: Sequence[Sequence[Exact]],
    initial_distributions: Mapping[str, Sequence[Exact]] | None = None,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    outputs: Sequence[str] | None = None,
) -> HiddenMarkovModel:
    """Return the model of one release of a mechanism: its input is the hidden state.

    Parameters
    ----------
    mechanism : sequence of sequences, shape (k, m)
        P(output | input).
    initial_distributions : mapping, optional
        Law of the input under each secret (default: every input is a secret, named by its number, so that the
        check is that of differential privacy).
    pairs, outputs : optional
        As ``pairs`` and ``observations`` of :class:`HiddenMarkovModel`.

    Raises
    ------
    ModelError
        As :class:`HiddenMarkovModel`.
    """
    mechanism = check_list(mechanism, "mechanism")
    if not mechanism:
        raise ModelError("the mechanism has no rows; give one an input")
    unit = _identity(len(mechanism))
    laws = {str(x): row for x, row in enumerate(unit)} if initial_distributions is None else initial_distributions
    return HiddenMarkovModel(unit, mechanism, laws, observations=outputs, pairs=pairs, length=1)


def noisy_max(
    priors: Mapping[str, Sequence[Sequence[Exact]]],
    mechanism: Sequence[Sequence[Exact]] | None = None,
    *,
    release: Release = "index",
    ties: Ties = "first",
    pairs: Sequence[tuple[str, str]] | None = None,
) -> HiddenMarkovModel:
    """Return Noisy Max as a hidden Markov model: counts, then noisy counts, of which the largest is shown.

    Parameters
    ----------
    priors : mapping of str to sequence, shape (n, m + 1)
        Under each secret the laws of the n independent counts.
    mechanism : sequence of sequences, optional
        P(noisy value | count), shape (m + 1, values) (default: the truncated geometric mechanism, ratio 1/2).
    release : {"index", "value"}
        Observations are the indices "0" … "n − 1" of the queries, or the values.
    ties : {"first", "last", "uniform"}
        Whose index is released among equal values.
    pairs : sequence of pairs of str, optional
        As for :class:`HiddenMarkovModel`.

    Returns
    -------
    HiddenMarkovModel
        Its length is 2: the counts show nothing. It has (m + 1)^n + values^n states; where that is too much, the
        laws of :mod:`pufferflow.related.hmm.maxima` need no states.

    Raises
    ------
    ModelError
        A law is impossible or the numbers of counts differ.
    ParameterError
        An option is unknown or there would be more than :data:`MOST_STATES` states.
    """
    check_type(priors, "priors", Mapping)
    laws = {secret: count_laws(law, f"prior of {secret!r}") for secret, law in priors.items()}
    parts = _noisy_max_parts(laws, mechanism, release, ties)
    return HiddenMarkovModel(
        parts.transitions,
        parts.emissions,
        {secret: _product(law) + parts.rest for secret, law in laws.items()},
        states=parts.states,
        observations=parts.observations,
        pairs=pairs,
        length=2,
    )


def noisy_max_family(
    priors: Mapping[str, Sequence[Sequence[Exact]]],
    parameters: Mapping[str, Sequence[Exact]],
    mechanism: Sequence[Sequence[Exact]] | None = None,
    *,
    release: Release = "index",
    ties: Ties = "first",
    pairs: Sequence[tuple[str, str]] | None = None,
) -> PriorFamily:
    """Return Noisy Max under priors with free parameters.

    Parameters
    ----------
    priors : mapping of str to sequence, shape (n, m + 1)
        As for :func:`noisy_max`, entries may be polynomials such as ``"(1 - p)**2"``.
    parameters : mapping of str to pair
        Lowest and highest value of each parameter.
    mechanism, release, ties, pairs : optional
        As for :func:`noisy_max`.

    Raises
    ------
    ModelError, ParameterError
        As :func:`noisy_max` and :class:`pufferflow.hmm.PriorFamily`.
    """
    from pufferflow.related.hmm.priors import PriorFamily

    parts = _noisy_max_parts(priors, mechanism, release, ties)
    joint = {
        secret: ["*".join(f"({entry})" for entry in entries) for entries in product(*law)]
        for secret, law in priors.items()
    }
    return PriorFamily(
        parts.transitions,
        parts.emissions,
        {secret: [*law, *parts.rest] for secret, law in joint.items()},
        parameters,
        states=parts.states,
        observations=parts.observations,
        pairs=pairs,
        length=2,
    )


class _Parts(NamedTuple):
    """What the models of Noisy Max share."""

    transitions: list[Vector]
    emissions: list[Vector]
    states: list[str]
    observations: list[str]
    rest: Vector
    """Initial probabilities of the noisy states, all 0."""


def _noisy_max_parts(
    priors: Mapping[str, Sequence[Sequence[object]]],
    mechanism: Sequence[Sequence[Exact]] | None,
    release: Release,
    ties: Ties,
) -> _Parts:
    check_choice(release, "release", get_args(Release))
    check_choice(ties, "ties", get_args(Ties))
    check_type(priors, "priors", Mapping)
    shapes = {
        tuple(len(check_list(values, "the law of a count")) for values in check_list(law, "a prior"))
        for law in priors.values()
    }
    if not shapes or not all(shapes):
        raise ModelError("noisy max has no priors; give the laws of the counts under each secret")
    if len(shapes) > 1 or len(set(next(iter(shapes)))) > 1:
        raise ModelError("the priors have different numbers of counts or values; give the same everywhere")
    (shape,) = shapes
    n, inputs = len(shape), shape[0]
    rows = noise(mechanism, inputs)
    outputs = len(rows[0])
    if inputs**n + outputs**n > MOST_STATES:
        raise ParameterError(f"noisy max of {n} queries has {inputs**n + outputs**n} states, above {MOST_STATES}")
    counts, noisy = list(product(range(inputs), repeat=n)), list(product(range(outputs), repeat=n))
    kinds = n if release == "index" else outputs
    zero = Fraction(0)
    transitions = [(zero,) * len(counts) + _product([rows[x] for x in values]) for values in counts]
    transitions += [(zero,) * len(counts) + row for row in _identity(len(noisy))]
    emissions: list[Vector] = [(zero,) * kinds + (Fraction(1),)] * len(counts)
    for values in noisy:
        chosen = [i for i, value in enumerate(values) if value == max(values)]
        if release == "value":
            chosen = [max(values)]
        elif ties != "uniform":
            chosen = [chosen[0 if ties == "first" else -1]]
        row = [zero] * (kinds + 1)
        for i in chosen:
            row[i] = Fraction(1, len(chosen))
        emissions.append(tuple(row))
    names = [*(_label("counts", c) for c in counts), *(_label("noisy", z) for z in noisy)]
    return _Parts(transitions, emissions, names, [*map(str, range(kinds)), SILENT], (zero,) * len(noisy))


def count_laws(laws: Sequence[Sequence[Exact]], where: str = "law") -> Matrix:
    """Return laws of independent counts on the same values, checked.

    Raises ModelError: there is none, or one is no law.
    """
    laws = check_list(laws, where)
    if not laws:
        raise ModelError(f"{where} has no counts; give one law a query")
    size = len(distribution(laws[0], None, f"{where}, count 1", " value"))
    return tuple(distribution(law, size, f"{where}, count {i}", " value") for i, law in enumerate(laws, 1))


def noise(mechanism: Sequence[Sequence[Exact]] | None, inputs: int) -> Matrix:
    """Return the rows P(noisy value | count) for ``inputs`` counts, by default the truncated geometric mechanism's.

    Raises ModelError, ParameterError: the mechanism is no such matrix.
    """
    if mechanism is None:
        return truncated_geometric(inputs - 1)
    given = check_list(mechanism, "mechanism")
    rows = stochastic_matrix(given, len(given), "mechanism", " released value")
    if len(rows) != inputs:
        raise ModelError(f"the mechanism has {len(rows)} rows for counts 0 … {inputs - 1}; give {inputs}")
    return rows


def _product(laws: Iterable[Vector]) -> Vector:
    """Return the joint law of independent values, in the order of itertools.product."""
    zero = Fraction(0)
    joint: Vector = (Fraction(1),)
    for law in laws:
        joint = tuple(p * q if p and q else zero for p in joint for q in law)
    return joint


def _identity(size: int) -> Matrix:
    zero, one = Fraction(0), Fraction(1)
    return tuple(tuple(one if i == j else zero for j in range(size)) for i in range(size))


def _label(what: str, values: Iterable[int]) -> str:
    return f"{what} {','.join(map(str, values))}"


def _inside(value: Exact, what: str) -> Fraction:
    number = written_number(value, what)
    if not 0 < number < 1:
        raise ParameterError(f"{what} is {shown(number)}; give a number between 0 and 1, neither of them")
    return number
