"""Finite hidden Markov models with exact entries.

A secret has one of several values, each with its own initial distribution of the hidden chain; the
transitions are shared. There is one observation per step, the first of the first state.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias

from flint import fmpq

from pufferflow._util.checks import check_choice, check_list, check_type, check_whole, shown
from pufferflow._util.numbers import Exact, written_number
from pufferflow.errors import ModelError, ParameterError

Vector: TypeAlias = tuple[Fraction, ...]
Matrix: TypeAlias = tuple[Vector, ...]


class HiddenMarkovModel:
    """A hidden Markov chain whose initial distribution depends on a secret; immutable.

    Parameters
    ----------
    transition_matrix : sequence of sequences of exact numbers, shape (k, k)
        P(next state | state); rows sum exactly to 1.
    observation_matrix : sequence of sequences of exact numbers, shape (k, m)
        P(observation | state).
    initial_distributions : mapping of str to sequence of exact numbers, shape (k,)
        Distribution of the first state under each value of the secret; at least two.
    states, observations : sequence of str, optional
        Names (default: "0", "1", …).
    pairs : sequence of pairs of str, optional
        Values of the secret to keep indistinguishable, in both directions (default: all pairs).
    length : int, optional
        Default length of observation sequences.

    Raises ModelError or ParameterError: a distribution is impossible, or a name is unknown, missing
    or repeated.
    """

    def __init__(
        self,
        transition_matrix: Sequence[Sequence[Exact]],
        observation_matrix: Sequence[Sequence[Exact]],
        initial_distributions: Mapping[str, Sequence[Exact]],
        *,
        states: Sequence[str] | None = None,
        observations: Sequence[str] | None = None,
        pairs: Sequence[tuple[str, str]] | None = None,
        length: int | None = None,
    ) -> None:
        k = len(check_list(transition_matrix, "transition_matrix"))
        self.transition_matrix = stochastic_matrix(transition_matrix, "transition_matrix", k, k)
        self.observation_matrix = stochastic_matrix(observation_matrix, "observation_matrix", k)
        self.states = _names(states, k, "states")
        self.observations = _names(observations, len(self.observation_matrix[0]), "observations")
        self.initial_distributions = {
            name: distribution(values, f"initial distribution of {name!r}", k)
            for name, values in by_secret(initial_distributions).items()
        }
        self.pairs = _pairs(pairs, list(self.initial_distributions))
        self.length = None if length is None else check_whole(length, "length")

    def __repr__(self) -> str:
        sizes = len(self.states), len(self.observations), len(self.initial_distributions)
        return "HiddenMarkovModel({} states, {} observations, {} secrets)".format(*sizes)

    def probability(self, secret: str, sequence: Sequence[str]) -> Fraction:
        """Return P(observations start with ``sequence`` | secret)."""
        check_choice(secret, "secret", self.initial_distributions)
        state, probability = self.initial_distributions[secret], Fraction(1)
        for observation in check_list(sequence, "sequence"):
            if observation not in self.observations:
                raise ParameterError("an entry of sequence is not an observation of the model")
            o = self.observations.index(observation)
            seen = [p * row[o] for p, row in zip(state, self.observation_matrix, strict=True)]
            state, probability = step(seen, self.transition_matrix), sum(seen, Fraction(0))
        return probability

    def directions(self) -> Iterator[tuple[str, str]]:
        """Yield the pairs of secrets, each in both directions."""
        for first, second in self.pairs:
            yield from ((first, second), (second, first))


def distribution(values: object, where: str, size: int | None = None) -> Vector:
    """Return a distribution on ``size`` points; raise ModelError unless it sums exactly to 1."""
    given = [] if isinstance(values, str) else check_list(values, where)  # maybe a record
    if not given or len(given) != (size or len(given)):
        raise ModelError(f"{where} has {len(given)} probabilities; give {size or 'at least one'}")
    numbers = [written_number(p, f"{where}, entry {i}", ModelError) for i, p in enumerate(given, 1)]
    whole, over = integers(numbers)  # these are added and compared faster
    for i, p in enumerate(whole, 1):
        if not 0 <= p <= over:
            raise ModelError(f"{where}, entry {i} is not between 0 and 1; give probabilities")
    if sum(whole) != over:
        text = shown(Fraction(sum(whole), over))
        raise ModelError(f'{where} sums to {text}, not exactly to 1; write thirds as "1/3"')
    return tuple(numbers)


def stochastic_matrix(
    rows: object, name: str, size: int | None = None, columns: int | None = None
) -> Matrix:
    """Return a matrix of distributions; raise ModelError unless it is one of this shape."""
    given = check_list(rows, name)
    if not given or len(given) != (size or len(given)):
        raise ModelError(f"{name} has {len(given)} rows; give {size or 'at least one'}")
    matrix: list[Vector] = []
    for i, row in enumerate(given, 1):
        matrix.append(distribution(row, f"{name}, row {i}", columns))
        columns = len(matrix[0])
    return tuple(matrix)


def integers(numbers: Sequence[Fraction]) -> tuple[list[int], int]:
    """Return numbers times their common denominator, and that."""
    over = math.lcm(*{p.denominator for p in numbers})
    return [p.numerator * (over // p.denominator) for p in numbers], over


def step(weights: Sequence[Fraction], matrix: Matrix) -> Vector:
    """Return the row vector ``weights`` times ``matrix``."""
    total = [Fraction(0)] * len(matrix[0])
    for weight, row in zip(weights, matrix, strict=True):
        for j, p in enumerate(row):
            if weight and p:
                total[j] += weight * p
    return tuple(total)


def requested_length(model: Any, length: int | None) -> int:
    """Return ``length``, by default that of the model; raise ParameterError if there is none."""
    if length is None and model.length is None:
        raise ParameterError("no length of observation sequences is given; give a length")
    return check_whole(model.length if length is None else length, "length")


class Result:
    """A result with a JSON form."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, exact numbers as strings such as "911/550" or "infinite"."""
        kind = type(self)
        names = (n for n in dir(kind) if isinstance(getattr(kind, n), property))
        return {name: plain(getattr(self, name)) for name in (*vars(self), *names)}


def plain(value: Any) -> Any:
    """Return a value of a result as plain JSON types, exact numbers as strings."""
    if isinstance(value, Fraction):
        return str(fmpq(value.numerator, value.denominator))  # str(Fraction) has a limit of digits
    if isinstance(value, dict):
        return {name: plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Result):
        return value.to_dict()
    return "infinite" if value == math.inf else value


def by_secret(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the initial distributions; raise ModelError unless two or more secrets have one."""
    check_type(values, "initial_distributions", Mapping)
    if len(values) < 2 or not all(isinstance(name, str) for name in values):
        what = f"initial_distributions has {len(values)} secrets"
        raise ModelError(f"{what}; give names of at least two")
    return values


def _names(names: object, size: int, what: str) -> tuple[str, ...]:
    given = list(map(str, range(size))) if names is None else check_list(names, what)
    if not all(isinstance(n, str) for n in given) or not len(set(given)) == len(given) == size:
        raise ModelError(f"{what} must be {size} different strings")
    return tuple(given)


def _pairs(pairs: object, secrets: list[str]) -> tuple[tuple[str, str], ...]:
    if pairs is None:
        return tuple(combinations(secrets, 2))
    listed = [tuple(check_list(pair, "a pair")) for pair in check_list(pairs, "pairs")]
    if not listed:
        raise ModelError("pairs is empty; give pairs of secrets")
    for pair in listed:
        if len(pair) != 2 or pair[0] == pair[1] or not all(name in secrets for name in pair):
            raise ModelError("a pair is not two different secrets of the model")
    return tuple(listed)
