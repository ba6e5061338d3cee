"""ε-Pufferfish privacy of a hidden Markov model, decided exactly.

The model is private for e^ε = c up to length L if P(w | s) ≤ c·P(w | s') for every sequence w of at
most L observations and all pairs of secrets, in both directions. The search goes through the
sequences by length and keeps the vectors P(state, w | s) and P(state, w | s'), as integers up to a
common factor. It drops a prefix if

- no state is more likely by more than c under s after the next transition: no extension can exceed
  c, as its ratio is an average of those of the states;
- its two vectors occurred before: whatever follows occurred too.

In general the problem is NP-hard (Liu, Wang, Zhang, "Verifying Pufferfish Privacy in Hidden Markov
Models", 2020): at worst m^L prefixes are kept. If no prefix is left before L, the answer holds for
every length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from tqdm import tqdm

from pufferflow._checks import check_type
from pufferflow._numbers import Exact, written_number
from pufferflow._work import spend
from pufferflow.errors import ParameterError
from pufferflow.hmm.model import HiddenMarkovModel, Result, exact_text, requested_length, shortened

Integers: TypeAlias = tuple[int, ...]

MAX_ENTRIES = 2_000_000
"""Entries of vectors that a search keeps: prefixes of one length times states."""


@dataclass(frozen=True)
class Witness(Result):
    """A sequence of observations with its probabilities under two secrets, to check by hand."""

    secret: str
    other: str
    observations: tuple[str, ...]
    probability: Fraction
    """P(observations | secret)."""
    other_probability: Fraction
    """P(observations | other)."""

    @property
    def ratio(self) -> Fraction | float:
        """Exact ratio of the two, ``math.inf`` if the second is 0."""
        return self.probability / self.other_probability if self.other_probability else math.inf


@dataclass(frozen=True)
class Verdict(Result):
    """Whether a model is private for a factor e^ε up to a length."""

    holds: bool
    factor: Fraction
    length: int
    every_length: bool
    """Whether a verdict of "holds" was proved for every length."""
    witness: Witness | None
    """A shortest sequence whose ratio exceeds the factor; None if it holds."""


def check_factor(factor: Exact) -> Fraction:
    """Return the factor e^ε; raise ParameterError unless it is a positive exact number."""
    exact = written_number(factor, "factor")
    if exact <= 0:
        text = shortened(exact_text(exact))
        raise ParameterError(f'factor is {text}; give e^ε, a positive number such as 2 or "3/2"')
    return exact


def check(model: HiddenMarkovModel, factor: Exact, length: int | None = None) -> Verdict:
    """Return whether ``model`` is ε-Pufferfish private for observation sequences up to a length.

    A violation comes with a shortest sequence and its two exact probabilities.

    Parameters
    ----------
    model : HiddenMarkovModel
    factor : exact number
        e^ε, for example 2 for ε = ln 2. Below 1 nothing is private: some sequence is at least as
        likely under one secret as under the other.
    length : int, optional
        Longest observation sequence (default: that of the model).

    Raises
    ------
    ParameterError
        Factor or length are out of range, or more than :data:`MAX_ENTRIES` have to be kept.
    """
    check_type(model, "model", HiddenMarkovModel)
    limit, steps = check_factor(factor), requested_length(model, length)
    search, shortest, every_length = _Search(model), steps, True
    witness: Witness | None = None
    for secret, other in directions(model):
        word, finished = search.exceeding(secret, other, limit, shortest, first=True)
        every_length &= finished
        if word:
            witness = _witness(model, secret, other, word)
            shortest = len(word) - 1
    return Verdict(witness is None, limit, steps, witness is None and every_length, witness)


def largest_ratio(model: HiddenMarkovModel, length: int | None = None) -> Witness:
    """Return the sequence of at most ``length`` observations with the largest ratio.

    Its ``ratio`` is the exact maximum over all pairs in both directions, ``math.inf`` if a sequence
    is possible under one secret only. A model whose secrets are indistinguishable gives the ratio 1
    and no observations.

    Parameters
    ----------
    model : HiddenMarkovModel
    length : int, optional
        Longest observation sequence (default: that of the model).

    Raises
    ------
    ParameterError
        As :func:`check`.
    """
    check_type(model, "model", HiddenMarkovModel)
    steps, search = requested_length(model, length), _Search(model)
    best = Witness(*model.pairs[0], (), Fraction(1), Fraction(1))
    for secret, other in directions(model):
        if isinstance(best.ratio, Fraction):
            word, _ = search.exceeding(secret, other, best.ratio, steps, first=False)
            best = _witness(model, secret, other, word) if word else best
    return best


def directions(model: HiddenMarkovModel) -> Iterator[tuple[str, str]]:
    """Yield the pairs of secrets, each in both directions."""
    for first, second in model.pairs:
        yield from ((first, second), (second, first))


def _witness(model: HiddenMarkovModel, secret: str, other: str, word: Sequence[int]) -> Witness:
    names = tuple(model.observations[o] for o in word)
    probabilities = (model.probability(name, names) for name in (secret, other))
    return Witness(secret, other, names, *probabilities)


class _Found(NamedTuple):
    word: tuple[int, ...]
    """The sequence of the largest ratio above the factor, or the first one; or empty."""
    finished: bool
    """Whether no prefix was left to continue from."""


class _Search:
    """The model with every matrix times its common denominator, zero entries left out."""

    def __init__(self, model: HiddenMarkovModel) -> None:
        laws = model.initial_distributions
        self.laws = dict(zip(laws, _integers(list(laws.values())), strict=True))
        rows = _integers(model.observation_matrix)
        self.emitters = [
            [(i, row[o]) for i, row in enumerate(rows) if row[o]]
            for o in range(len(model.observations))
        ]
        self.successors = [
            [(j, p) for j, p in enumerate(row) if p] for row in _integers(model.transition_matrix)
        ]

    def exceeding(
        self, secret: str, other: str, factor: Fraction, length: int, *, first: bool
    ) -> _Found:
        """Search the sequences by length for ratios above ``factor``."""
        c, over = factor.as_integer_ratio()
        best: tuple[int, ...] = ()
        frontier: dict[tuple[Integers, ...], tuple[int, ...]]
        frontier = {(self.laws[secret], self.laws[other]): best}
        met = set(frontier)
        for _ in tqdm(range(length), desc="observations", delay=1, disable=None, leave=False):
            following: dict[tuple[Integers, ...], tuple[int, ...]] = {}
            for (ps, qs), word in frontier.items():
                for o, emitters in enumerate(self.emitters):
                    seen = [(i, ps[i] * w, qs[i] * w) for i, w in emitters if ps[i] or qs[i]]
                    p, q = sum(x for _, x, _ in seen), sum(y for _, _, y in seen)
                    if p * over > c * q:
                        best = (*word, o)
                        if first or not q:  # no ratio is above an infinite one
                            return _Found(best, False)
                        c, over = Fraction(p, q).as_integer_ratio()
                    after = self._predicted(seen)
                    if any(x * over > c * y for x, y in zip(*after, strict=True) if x):
                        divisor = math.gcd(*after[0], *after[1])
                        pair = tuple(tuple(x // divisor for x in vector) for vector in after)
                        if pair not in met:
                            met.add(pair)
                            following[pair] = (*word, o)
            frontier = following
            if not frontier:
                return _Found(best, True)
            if len(frontier) * len(self.successors) > MAX_ENTRIES:
                raise ParameterError(
                    f"the search keeps {len(frontier)} prefixes of {len(self.successors)} states; "
                    f"the problem is NP-hard, ask for sequences shorter than {length}"
                )
        return _Found(best, False)

    def _predicted(self, seen: list[tuple[int, int, int]]) -> tuple[list[int], list[int]]:
        """Return the two vectors after the next transition."""
        size = len(self.successors)
        bits = max((y.bit_length() for _, _, y in seen), default=0)
        spend(
            len(seen) * size * (500 + 30 * (bits / 64) ** 1.6),
            "the search for observations",
            "ask for a shorter length",
        )
        ps, qs = [0] * size, [0] * size
        for i, x, y in seen:
            for j, w in self.successors[i]:
                ps[j] += x * w
                qs[j] += y * w
        return ps, qs


def _integers(rows: Sequence[Sequence[Fraction]]) -> list[Integers]:
    """Return rows times their common denominator."""
    over = math.lcm(*{p.denominator for row in rows for p in row})
    return [tuple(p.numerator * (over // p.denominator) for p in row) for row in rows]
