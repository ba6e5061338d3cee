"""Finite hidden Markov models with exact entries.

A secret is known to have one of several values; under each the hidden chain starts from another initial law,
and everything after that is shared. The observer sees one observation a step, the first from the initial state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import Any, TypeAlias

from pufferflow._checks import check_list, check_type, check_whole
from pufferflow._display import displayed
from pufferflow._json import kind
from pufferflow._numbers import written_number
from pufferflow.errors import ModelError, ParameterError

Exact: TypeAlias = Fraction | int | str | float
"""A number given exactly: a fraction, an integer or a text such as "1/3" or "0.2".

A float stands for its shortest decimal."""

Vector: TypeAlias = tuple[Fraction, ...]
Matrix: TypeAlias = tuple[Vector, ...]


def distribution(values: object, size: int | None, where: str, of: str) -> Vector:
    """Return a law on ``size`` points (None: any positive number of them), exactly summing to 1.

    Raises ModelError otherwise.
    """
    values = plain(values)
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
        raise ModelError(f"{where} must be a list of probabilities, not {kind(values)}")
    if not values or len(values) != (size or len(values)):
        need = "at least one" if size is None else str(size)
        raise ModelError(f"{where} has {len(values)} probabilities; give {need}, one a{of}")
    law = tuple(written_number(value, f"{where}, entry {i}", ModelError) for i, value in enumerate(values, 1))
    for i, p in enumerate(law, 1):
        if not 0 <= p.numerator <= p.denominator:
            raise ModelError(
                f"{where}, entry {i} is {'negative' if p < 0 else 'above 1'}; probabilities lie between 0 and 1"
            )
    over = lcm(*{p.denominator for p in law})  # sums of integers take a fraction of the time
    if (total := sum(p.numerator * (over // p.denominator) for p in law)) != over:
        raise ModelError(f'{where} sums to {shown(Fraction(total, over))}, not exactly to 1; write thirds as "1/3"')
    return law


def exact_text(number: Fraction) -> str:
    """Return the number as a text such as "911/550", of any length."""
    try:
        return str(number)
    except ValueError:  # more digits than Python converts unasked
        from flint import fmpq

        return str(fmpq(number.numerator, number.denominator))


def shown(number: Fraction) -> str:
    """Return the number for a message: its beginning where it is long."""
    return shortened(exact_text(number), quoted=False)


def shortened(text: str, quoted: bool = True) -> str:
    """Return a text for a message: its beginning where it is long."""
    if quoted and not (text.isprintable() and len(text) <= 40):
        return f"a text of {len(text)} letters"
    text = text if len(text) <= 40 else f"{text[:36]}…"
    return repr(text) if quoted else text


def plain(values: object) -> object:
    """Return a NumPy array as a list, anything else as it is."""
    return values.tolist() if hasattr(values, "tolist") else values


@displayed()
class HiddenMarkovModel:
    """A hidden Markov chain whose initial law depends on a secret; immutable, all entries exact.

    Parameters
    ----------
    transition_matrix : sequence of sequences, shape (k, k)
        P(next state | state), rows sum to 1 exactly. Entries as :data:`Exact`.
    observation_matrix : sequence of sequences, shape (k, m)
        P(observation | state).
    initial_distributions : mapping of str to sequence, shape (k,)
        Law of the first state under each value of the secret; at least two.
    states, observations : sequence of str, optional
        Names (default: "0", "1", …).
    pairs : sequence of pairs of str, optional
        Values of the secret that must not be told apart, each pair in both directions (default: all pairs).
    length : int, optional
        Length of the observation sequences the model is meant for, the default of the checks.

    Raises
    ------
    ModelError
        A law is impossible, or a name is unknown, missing or given twice.
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
        self.transition_matrix: Matrix = stochastic_matrix(transition_matrix, None, "transition_matrix", " state")
        k = len(self.transition_matrix)
        self.observation_matrix: Matrix = stochastic_matrix(
            observation_matrix, k, "observation_matrix", "n observation"
        )
        m = len(self.observation_matrix[0])
        self.states: tuple[str, ...] = _names(states, k, "states")
        self.observations: tuple[str, ...] = _names(observations, m, "observations")
        self.initial_distributions: dict[str, Vector] = {
            name: distribution(law, k, f"initial distribution of {name!r}", " state")
            for name, law in _secrets(initial_distributions).items()
        }
        self.pairs: tuple[tuple[str, str], ...] = _pairs(pairs, self.initial_distributions)
        self.length = None if length is None else check_whole(length, "length")

    def __repr__(self) -> str:
        return (
            f"HiddenMarkovModel({len(self.states)} states, {len(self.observations)} observations, "
            f"{len(self.initial_distributions)} secrets)"
        )

    def _law(self, secret: str) -> Vector:
        check_type(secret, "secret", str)
        if secret not in self.initial_distributions:
            raise ParameterError(
                f"{shortened(secret)} is no secret of the model; it has {_listed(self.initial_distributions)}"
            )
        return self.initial_distributions[secret]

    def probability(self, secret: str, sequence: Sequence[str]) -> Fraction:
        """Return P(observations start with ``sequence`` | secret), by the forward recursion.

        Raises
        ------
        ParameterError
            A name is unknown.
        """
        law = self._law(secret)
        probability = Fraction(1)
        for observation in check_list(sequence, "sequence"):
            if observation not in self.observations:
                raise ParameterError(
                    f"an entry of sequence is no observation of the model; it has {_listed(self.observations)}"
                )
            o = self.observations.index(observation)
            seen = [p * row[o] for p, row in zip(law, self.observation_matrix, strict=True)]
            probability = sum(seen, Fraction(0))
            law = step(seen, self.transition_matrix)
        return probability

    def observation_law(self, secret: str, length: int | None = None) -> dict[tuple[str, ...], Fraction]:
        """Return the law of the first ``length`` observations, sequences of probability 0 left out.

        Cost: the number of sequences, up to m^length, times k².

        Raises
        ------
        ParameterError
            The secret is unknown or the length out of range.
        """
        prefixes: dict[tuple[str, ...], Vector] = {(): self._law(secret)}
        law: dict[tuple[str, ...], Fraction] = {}
        for _ in range(asked_length(self, length)):
            law, following = {}, {}
            for prefix, predicted in prefixes.items():
                for o, name in enumerate(self.observations):
                    seen = [p * row[o] for p, row in zip(predicted, self.observation_matrix, strict=True)]
                    if any(seen):
                        law[(*prefix, name)] = sum(seen, Fraction(0))
                        following[(*prefix, name)] = step(seen, self.transition_matrix)
            prefixes = following
        return law

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types; ``parse_hidden_markov_model`` gives it back exactly."""
        return {
            "transition_matrix": [list(map(exact_text, row)) for row in self.transition_matrix],
            "observation_matrix": [list(map(exact_text, row)) for row in self.observation_matrix],
            "initial_distributions": {
                name: list(map(exact_text, law)) for name, law in self.initial_distributions.items()
            },
            "states": list(self.states),
            "observations": list(self.observations),
            "pairs": [list(pair) for pair in self.pairs],
        } | ({} if self.length is None else {"length": self.length})


def step(law: Sequence[Fraction], matrix: Matrix) -> Vector:
    """Return the row vector ``law`` times ``matrix``."""
    total = [Fraction(0)] * len(matrix[0])
    for weight, row in zip(law, matrix, strict=True):
        if weight:
            for j, p in enumerate(row):
                if p:
                    total[j] += weight * p
    return tuple(total)


def asked_length(model: Any, length: int | None) -> int:
    """Return ``length``, or that of the model where it is None.

    Raises ParameterError: neither is given: how long an observer looks on is part of the question.
    """
    if length is None and model.length is None:
        raise ParameterError("no length of observation sequences is given, nor has the model one; give a length")
    return check_whole(model.length if length is None else length, "length")


def stochastic_matrix(rows: object, size: int | None, name: str, of: str) -> Matrix:
    """Return an exact matrix with rows that sum to 1; a square one where ``size``, its number of rows, is None.

    Raises ModelError otherwise.
    """
    rows = plain(rows)
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence):
        raise ModelError(f"{name} must be a list of rows, not {kind(rows)}")
    if not rows:
        raise ModelError(f"{name} has no rows; give one a state")
    if size is not None and len(rows) != size:
        raise ModelError(f"{name} has {len(rows)} rows; give {size}, one a state")
    columns = len(rows) if size is None else None
    matrix: list[Vector] = []
    for i, row in enumerate(rows, 1):
        matrix.append(distribution(row, columns, f"{name}, row {i}", of))
        columns = len(matrix[0])
    return tuple(matrix)


def _names(names: object, size: int, what: str) -> tuple[str, ...]:
    if names is None:
        return tuple(map(str, range(size)))
    if isinstance(names, str | Mapping) or not isinstance(names, Sequence):
        raise ModelError(f"{what} must be a list of names, not {kind(names)}")
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"{what} must be texts, and one is {kind(name)}")
        if list(names).count(name) > 1:
            raise ModelError(f"{what} has the name {name!r} twice")
    if len(names) != size:
        raise ModelError(f"{what} has {len(names)} names for {size} of them; give one each")
    return tuple(names)


def _secrets(laws: object) -> Mapping[str, Any]:
    if not isinstance(laws, Mapping):
        raise ModelError(f"initial_distributions must give one law a secret by its name, not {kind(laws)}")
    if len(laws) < 2:
        raise ModelError(f"initial_distributions has {len(laws)} secrets; give at least two to tell apart")
    for name in laws:
        if not isinstance(name, str):
            raise ModelError(f"initial_distributions: the name {name!r} of a secret must be a text")
    return laws


def _pairs(pairs: object, secrets: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if pairs is None:
        return tuple(combinations(secrets, 2))
    if isinstance(pairs, str | Mapping) or not isinstance(pairs, Sequence) or not pairs:
        raise ModelError(f"pairs must be a list of pairs of secrets, not {kind(pairs) if pairs else 'empty'}")
    result: dict[tuple[str, str], None] = {}
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2 or pair[0] == pair[1]:
            raise ModelError(f"pairs: {pair!r} is not a pair of two secrets")
        for name in pair:
            if not isinstance(name, str) or name not in secrets:
                raise ModelError(f"pairs: {name!r} is no secret of the model; it has {_listed(secrets)}")
        first, second = pair
        if (second, first) not in result:
            result[first, second] = None
    return tuple(result)


def _listed(names: Any) -> str:
    quoted = [repr(name) for name in names]
    return ", ".join(quoted[:6]) + (f" and {len(quoted) - 6} more" if len(quoted) > 6 else "")
