"""ε-Pufferfish privacy of a hidden Markov model, decided exactly.

The model is private for e^ε = c up to length L when P(w | s) ≤ c·P(w | s') for every sequence w of at most L
observations and all pairs of secrets, in both directions. For one direction only the vector
d = P(state, w | s) − c·P(state, w | s') matters, up to a positive factor: w violates when its sum is positive, and
longer sequences continue from d. The search goes through the sequences by length and drops a prefix when

- no entry of d after the next transition is positive: no extension can violate;
- its d was met before: whatever follows was met too;
- another prefix dominates it, d ≤ t·d' for some t > 0: where it violates, so does the other one, no later.

With that the search of a model of two states keeps at most two prefixes a length. In general the problem
is NP-hard (Liu, Wang, Zhang, "Verifying Pufferfish Privacy in Hidden Markov Models", 2020): at worst m^L prefixes
are kept, each costs k·(k + m) products of integers of O(L) digits. When no prefix is left before L, the answer holds
for every length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from pufferflow._checks import check_type
from pufferflow._display import displayed
from pufferflow._numbers import written_number
from pufferflow._progress import progress
from pufferflow._work import spend
from pufferflow.errors import ParameterError
from pufferflow.related.hmm.model import Exact, HiddenMarkovModel, asked_length, exact_text, shown

MOST_PREFIXES = 200_000
"""Prefixes of one length a search keeps at most."""

_WINDOW = 256
"""Prefixes against which one is compared for dominance."""

Integers: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
@displayed("secret", "other", "observations", "probability", "other_probability")
class Witness:
    """A sequence of observations with its probabilities under two secrets: anyone can check it by hand."""

    secret: str
    other: str
    observations: tuple[str, ...]
    probability: Fraction
    """P(observations | secret)."""
    other_probability: Fraction
    """P(observations | other)."""

    @property
    def ratio(self) -> Fraction | float:
        """Exact ratio of the two, ``math.inf`` where the second is 0."""
        return self.probability / self.other_probability if self.other_probability else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, fractions as texts, an infinite ratio as "infinite"."""
        return {
            "secret": self.secret,
            "other": self.other,
            "observations": list(self.observations),
            "probability": exact_text(self.probability),
            "other_probability": exact_text(self.other_probability),
            "ratio": ratio_text(self.ratio),
        }


@dataclass(frozen=True)
@displayed("holds", "factor", "length", "every_length", "witness")
class Verdict:
    """Whether a model is private for a factor e^ε up to a length."""

    holds: bool
    factor: Fraction
    length: int
    every_length: bool
    """Whether a verdict of "holds" was proved for every length."""
    witness: Witness | None
    """A shortest sequence whose ratio exceeds the factor; None where it holds."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "holds": self.holds,
            "factor": exact_text(self.factor),
            "length": self.length,
            "every_length": self.every_length,
            "witness": None if self.witness is None else self.witness.to_dict(),
        }


def ratio_text(ratio: Fraction | float) -> str:
    """Return an exact ratio as a text."""
    return exact_text(ratio) if isinstance(ratio, Fraction) else "infinite"


def check_factor(factor: Exact) -> Fraction:
    """Return the factor e^ε as a fraction.

    Raises ParameterError: it is not a positive exact number.
    """
    exact = written_number(factor, "factor")
    if exact <= 0:
        raise ParameterError(f'factor is {shown(exact)}; give e^ε, a positive number such as 2 or "3/2"')
    return exact


def check(model: HiddenMarkovModel, factor: Exact, length: int | None = None) -> Verdict:
    """Decide whether ``model`` is ε-Pufferfish private for observation sequences up to a length.

    Parameters
    ----------
    model : HiddenMarkovModel
    factor : exact number
        e^ε, for example 2 for ε = ln 2. Below 1 nothing is private: some sequence is at least as likely under
        one secret as under the other.
    length : int, optional
        Longest observation sequence (default: that of the model).

    Returns
    -------
    Verdict
        Exact: a violation comes with a shortest sequence and its two probabilities, recomputed from the model.

    Raises
    ------
    ParameterError
        Factor or length are out of range, or more than :data:`MOST_PREFIXES` prefixes have to be kept.
    """
    check_type(model, "model", HiddenMarkovModel)
    limit, steps = check_factor(factor), asked_length(model, length)
    integers = _IntegerModel(model)
    shortest, every_length = steps, True
    witness: Witness | None = None
    for secret, other in directions(model):
        sequence, finished = integers.first_violation(secret, other, limit, shortest)
        every_length &= finished
        if sequence is not None:
            witness = _witness(model, secret, other, sequence)
            shortest = len(sequence) - 1
            if shortest == 0:
                break
    holds = witness is None
    return Verdict(holds, limit, steps, holds and every_length, witness)


def largest_ratio(model: HiddenMarkovModel, length: int | None = None) -> Witness:
    """Return the sequence of at most ``length`` observations with the largest ratio, in either direction.

    A prefix is a union of its extensions, so the ratio never falls with the length (mediant inequality). From a
    sequence found greedily the factor is raised to the ratio of a violation until there is none (Dinkelbach).

    Parameters
    ----------
    model : HiddenMarkovModel
    length : int, optional
        Longest observation sequence (default: that of the model).

    Returns
    -------
    Witness
        ``ratio`` is the exact maximum, ``math.inf`` where a sequence is possible under one secret only. A model
        whose secrets cannot be told apart gives the ratio 1 and no observations.

    Raises
    ------
    ParameterError
        The length is out of range, or more than :data:`MOST_PREFIXES` prefixes have to be kept.
    """
    check_type(model, "model", HiddenMarkovModel)
    steps = asked_length(model, length)
    integers = _IntegerModel(model)
    for secret, other in directions(model):
        sequence = integers.first_impossible(secret, other, steps)
        if sequence is not None:
            return _witness(model, secret, other, sequence)
    first, second = model.pairs[0]
    best = Witness(first, second, (), Fraction(1), Fraction(1))
    for secret, other in directions(model):
        while True:
            assert isinstance(best.ratio, Fraction)
            sequence, _ = integers.first_violation(secret, other, best.ratio, steps)
            if sequence is None:
                break
            best = _witness(model, secret, other, integers.extended(secret, other, sequence, steps))
    return best


def directions(model: HiddenMarkovModel) -> Iterator[tuple[str, str]]:
    """Yield the pairs of secrets, each in both directions."""
    for first, second in model.pairs:
        yield first, second
        yield second, first


def _witness(model: HiddenMarkovModel, secret: str, other: str, sequence: Sequence[int]) -> Witness:
    names = tuple(model.observations[o] for o in sequence)
    return Witness(secret, other, names, model.probability(secret, names), model.probability(other, names))


class _IntegerModel:
    """The model with every matrix multiplied by its common denominator, zero entries left out."""

    def __init__(self, model: HiddenMarkovModel) -> None:
        laws = model.initial_distributions
        self.laws = dict(zip(laws, _over_common_denominator(list(laws.values())), strict=True))
        transitions = _over_common_denominator(model.transition_matrix)
        emissions = _over_common_denominator(model.observation_matrix)
        self.successors = [[(j, p) for j, p in enumerate(row) if p] for row in transitions]
        self.emitters = [
            [(i, row[o]) for i, row in enumerate(emissions) if row[o]] for o in range(len(model.observations))
        ]

    def observe(self, vector: Sequence[int], o: int) -> list[tuple[int, int]]:
        """Return the entries of a predicted vector weighted by observation ``o``: (state, value)."""
        return [(i, vector[i] * p) for i, p in self.emitters[o] if vector[i]]

    def predict(self, seen: list[tuple[int, int]]) -> Integers:
        """Return the vector after the next transition."""
        following = [0] * len(self.successors)
        _spend(len(seen) * len(following), seen[0][1])
        for i, value in seen:
            for j, p in self.successors[i]:
                following[j] += value * p
        return tuple(following)

    def first_violation(
        self, secret: str, other: str, factor: Fraction, length: int
    ) -> tuple[tuple[int, ...] | None, bool]:
        """Return a shortest sequence of ratio above ``factor``, and whether the search ended by itself."""
        c, over = factor.as_integer_ratio()
        start = tuple(over * p - c * q for p, q in zip(self.laws[secret], self.laws[other], strict=True))

        def follow(vector: Integers) -> Iterator[tuple[int, bool, Integers | None]]:
            for o in range(len(self.emitters)):
                if not (seen := self.observe(vector, o)):
                    continue
                if sum(value for _, value in seen) > 0:
                    yield o, True, None
                following = self.predict(seen)
                if max(following) > 0:
                    divisor = math.gcd(*following)
                    yield o, False, tuple(value // divisor for value in following)

        if max(start) <= 0:
            return None, True
        return _breadth_first(start, follow, length, _Dominance())

    def first_impossible(self, secret: str, other: str, length: int) -> tuple[int, ...] | None:
        """Return a shortest sequence that is possible under ``secret`` only.

        Only the supports matter: an entry is 2 where ``secret`` reaches the state, plus 1 where ``other`` does.
        """

        def follow(support: Integers) -> Iterator[tuple[int, bool, Integers | None]]:
            for o, emitters in enumerate(self.emitters):
                seen = [(i, support[i]) for i, _ in emitters if support[i]]
                mark = 0
                following = [0] * len(support)
                for i, value in seen:
                    mark |= value
                    for j, _ in self.successors[i]:
                        following[j] |= value
                if mark == 2:
                    yield o, True, None
                if mark == 3:
                    yield o, False, tuple(following)

        start = tuple(2 * (p > 0) + (q > 0) for p, q in zip(self.laws[secret], self.laws[other], strict=True))
        return _breadth_first(start, follow, length, None)[0]

    def extended(self, secret: str, other: str, sequence: Sequence[int], length: int) -> tuple[int, ...]:
        """Return ``sequence``, extended step by step by the observation of largest ratio as long as that pays.

        All ratios on the way are finite.
        """
        vectors = [self.laws[secret], self.laws[other]]
        result, best, kept = list(sequence), Fraction(0), 0
        for at in range(length):
            options: list[tuple[Fraction, int]] = []
            for o in range(len(self.emitters)) if at >= len(sequence) else (sequence[at],):
                p, q = (sum(value for _, value in self.observe(vector, o)) for vector in vectors)
                if q:
                    options.append((Fraction(p, q), -o))
            ratio, negative = max(options)
            if at >= len(sequence):
                result.append(-negative)
            if ratio > best:
                best, kept = ratio, at + 1
            vectors = [self.predict(self.observe(vector, -negative)) for vector in vectors]
        return tuple(result[: max(kept, 1)])


def _over_common_denominator(rows: Sequence[Sequence[Fraction]]) -> list[Integers]:
    denominator = math.lcm(*{p.denominator for row in rows for p in row})
    return [tuple(p.numerator * (denominator // p.denominator) if p else 0 for p in row) for row in rows]


class _Dominance:
    """Tells whether a vector lies below a positive multiple of a recent one."""

    def __init__(self) -> None:
        self.recent: list[Integers] = []

    def strongest_first(self, vectors: list[Integers]) -> list[Integers]:
        """Sort so that a vector comes after those that dominate it."""

        def strength(vector: Integers) -> tuple[bool, Fraction]:
            positive = sum(value for value in vector if value > 0)
            negative = -sum(value for value in vector if value < 0)
            return negative == 0, Fraction(positive, negative or 1)

        return sorted(vectors, key=strength, reverse=True)

    def covers(self, vector: Integers) -> bool:
        """Whether a recent vector dominates ``vector``; if none does, it becomes one."""
        _spend(len(self.recent) * len(vector), vector[0])
        if any(_dominated(vector, by) for by in self.recent):
            return True
        # what an older one covers, one above it covers too
        self.recent = [by for by in self.recent[1 - _WINDOW :] if not _dominated(by, vector)]
        self.recent.append(vector)
        return False


def _spend(products: int, of: int) -> None:
    """Count products of numbers as long as one of them; raises ParameterError where they pass what is taken on."""
    spend(
        products * (500 + 30 * (of.bit_length() / 64) ** 1.6), "the search for observations", "ask for a shorter length"
    )


def _dominated(vector: Integers, by: Integers) -> bool:
    """Whether vector ≤ t·by for some t > 0; t must lie between vector/by where by > 0 and where by < 0."""
    low, low_over, high, high_over = 0, 1, 1, 0
    for u, v in zip(vector, by, strict=True):
        if v > 0:
            if u > 0 and u * low_over > low * v:
                low, low_over = u, v
        elif v < 0:
            if u >= 0:
                return False
            if u * high_over > high * v:  # u/v < high/high_over, both quotients of negatives
                high, high_over = -u, -v
        elif u > 0:
            return False
    return low * high_over <= high * low_over


def _breadth_first(
    start: Integers,
    follow: Callable[[Integers], Iterator[tuple[int, bool, Integers | None]]],
    length: int,
    dominance: _Dominance | None,
) -> tuple[tuple[int, ...] | None, bool]:
    """Search the sequences by length.

    ``follow`` yields what one more observation leads to: (observation, True, None) for a hit, (observation, False,
    vector) for something to continue from. Returns the first hit, and whether nothing was left to continue from.
    """
    frontier: list[tuple[Integers, Any]] = [(start, None)]
    met = {start}
    for steps in progress(range(1, length + 1), desc="observations", delay=1):
        following: dict[Integers, Any] = {}
        for vector, trail in frontier:
            for o, hit, after in follow(vector):
                if hit:
                    return _sequence((trail, o)), False
                if after is not None and after not in met:
                    met.add(after)
                    following[after] = (trail, o)
        if dominance is None:
            frontier = list(following.items())
        else:
            order = dominance.strongest_first(list(following))
            frontier = [(vector, following[vector]) for vector in order if not dominance.covers(vector)]
        if not frontier:
            return None, True
        if len(frontier) > MOST_PREFIXES:
            raise ParameterError(
                f"more than {MOST_PREFIXES} prefixes of {steps} observations have to be kept; the problem is "
                f"NP-hard, ask for sequences shorter than {length}"
            )
    return None, False


def _sequence(trail: Any) -> tuple[int, ...]:
    result: list[int] = []
    while trail is not None:
        trail, o = trail
        result.append(o)
    return tuple(reversed(result))


__all__ = ["Verdict", "Witness", "check", "check_factor", "largest_ratio", "ratio_text"]
