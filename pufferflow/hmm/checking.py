"""ε-Pufferfish privacy of a hidden Markov model, decided exactly.

The model is private for e^ε = c up to length L if P(w | s) ≤ c·P(w | s') for every sequence w of at
most L observations and all pairs of secrets, in both directions. The search goes through the
sequences by length and keeps the vectors P(state, w | s) and P(state, w | s'), as integers up to a
common factor. It drops a prefix whose two vectors occurred before, and one after which no state is
more likely by more than c under s: the ratio of an extension is an average of those of the states.

In general the problem is NP-hard (Liu, Wang, Zhang, "Verifying Pufferfish Privacy in Hidden Markov
Models", 2020): at worst m^L prefixes are kept. If none is left, the answer holds for all lengths.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from pufferflow._util.checks import check_type, shown
from pufferflow._util.numbers import Exact, written_number
from pufferflow._util.work import spend
from pufferflow.errors import ParameterError
from pufferflow.hmm.model import HiddenMarkovModel, Result, Vector, integers, requested_length

MAX_ENTRIES = 2_000_000
"""Largest number of stored entries of a search: prefixes of one length times states."""


@dataclass(frozen=True)
class Witness(Result):
    """A sequence of observations with its probabilities under ``secret`` and ``other``."""

    secret: str
    other: str
    observations: tuple[str, ...]
    probability: Fraction
    other_probability: Fraction

    @classmethod
    def of(cls, model: HiddenMarkovModel, secret: str, other: str, word: tuple[str, ...]) -> Self:
        """Return the witness of a sequence, with its probabilities from the model."""
        return cls(secret, other, word, *(model.probability(s, word) for s in (secret, other)))

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
        raise ParameterError(f'factor is {shown(exact)}; give e^ε, positive as 2 or "3/2" are')
    return exact


def check(model: HiddenMarkovModel, factor: Exact, length: int | None = None) -> Verdict:
    """Return whether ``model`` is ε-Pufferfish private for observation sequences up to a length.

    Parameters
    ----------
    model : HiddenMarkovModel
    factor : exact number
        e^ε, for example 2 for ε = ln 2. Below 1 nothing is private.
    length : int, optional
        Longest observation sequence (default: that of the model).

    Raises ParameterError: factor or length are out of range, or the search stores more than
    :data:`MAX_ENTRIES`.
    """
    check_type(model, "model", HiddenMarkovModel)
    limit, steps = check_factor(factor), requested_length(model, length)
    search, witness, every_length, longest = _Search(model), None, True, steps
    for secret, other in model.directions():
        word, finished = search.exceeding(secret, other, limit, longest, first=True)
        every_length &= finished
        if word:
            witness, longest = Witness.of(model, secret, other, word), len(word) - 1
    return Verdict(witness is None, limit, steps, witness is None and every_length, witness)


def largest_ratio(model: HiddenMarkovModel, length: int | None = None) -> Witness:
    """Return a sequence of at most ``length`` observations with the largest ratio.

    Its ``ratio`` is the exact maximum over all pairs in both directions, ``math.inf`` if a sequence
    is possible under one secret only. A model whose secrets are indistinguishable gives the ratio 1
    and no observations. Parameters and errors are those of :func:`check`.
    """
    check_type(model, "model", HiddenMarkovModel)
    steps, search = requested_length(model, length), _Search(model)
    best = Witness(*model.pairs[0], (), Fraction(1), Fraction(1))
    for secret, other in model.directions():
        if isinstance(best.ratio, Fraction):
            word, _ = search.exceeding(secret, other, best.ratio, steps, first=False)
            best = Witness.of(model, secret, other, word) if word else best
    return best


class _Search:
    """The matrices of a model times their common denominators, zero entries left out."""

    def __init__(self, model: HiddenMarkovModel) -> None:
        self.initial = model.initial_distributions
        self.successors = _nonzero(model.transition_matrix)
        columns = _nonzero(zip(*model.observation_matrix, strict=True))
        self.emitters = dict(zip(model.observations, columns, strict=True))

    def exceeding(
        self, secret: str, other: str, factor: Fraction, length: int, *, first: bool
    ) -> tuple[tuple[str, ...], bool]:
        """Return the first sequence whose ratio exceeds ``factor``, or one of the largest ratio.

        It is empty if no ratio exceeds the factor. The second result is whether no prefix was left
        to extend.
        """
        c, over = factor.as_integer_ratio()
        best: tuple[str, ...] = ()
        k = len(self.successors)
        start = tuple(integers((*self.initial[secret], *self.initial[other]))[0])
        frontier, met = {start: best}, {start}
        for _ in range(length):
            following: dict[tuple[int, ...], tuple[str, ...]] = {}
            for both, word in frontier.items():
                for o, emitters in self.emitters.items():
                    seen = [(i, both[i] * w, both[k + i] * w) for i, w in emitters]
                    p, q = sum(x for _, x, _ in seen), sum(y for _, _, y in seen)
                    if p * over > c * q:
                        best = (*word, o)
                        if first or not q:  # no ratio is above an infinite one
                            return best, False
                        c, over = Fraction(p, q).as_integer_ratio()
                    after = self._predicted(seen)
                    if any(after[j] * over > c * after[k + j] for j in range(k)):
                        divisor = math.gcd(*after)
                        pair = tuple(x // divisor for x in after)
                        if pair not in met:
                            met.add(pair)
                            following[pair] = (*word, o)
            frontier = following
            if not frontier:
                return best, True
            if len(frontier) * k > MAX_ENTRIES:
                raise ParameterError(
                    f"the search keeps {len(frontier)} prefixes of {k} states; the problem is "
                    f"NP-hard, use sequences shorter than {length}"
                )
        return best, False

    def _predicted(self, seen: list[tuple[int, int, int]]) -> list[int]:
        """Return the two vectors after the next transition, concatenated."""
        k = len(self.successors)
        bits = max((y.bit_length() for _, _, y in seen), default=0)
        work = len(seen) * k * (500 + 30 * (bits / 64) ** 1.6)
        spend(work, "the search for observations", "use a shorter length")
        after = [0] * (2 * k)
        for i, x, y in seen:
            if x or y:
                for j, w in self.successors[i]:
                    after[j] += x * w
                    after[k + j] += y * w
        return after


def _nonzero(matrix: Iterable[Vector]) -> list[list[tuple[int, int]]]:
    """Return the rows, times their common denominator, as indices and entries other than 0."""
    rows = list(matrix)
    over = math.lcm(*{p.denominator for row in rows for p in row})
    return [
        [(j, p.numerator * (over // p.denominator)) for j, p in enumerate(row) if p] for row in rows
    ]
