"""Noisy Max as a mechanism to run: one exact draw of the index of the largest noisy count, or of its value.

Every probability of the mechanism's table is a fraction, so a noisy count is a uniform integer below their common
denominator, looked up in the row of its count: no float stands between the random bits and the law.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import get_args

import numpy as np

from pufferflow._checks import check_choice, check_list, check_type, check_whole
from pufferflow._display import displayed
from pufferflow._randomness import GeneratorRandomness, Randomness, SystemRandomness, integer_below
from pufferflow.errors import ParameterError
from pufferflow.related.hmm.builders import Release, Ties, noise
from pufferflow.related.hmm.maxima import index_law, value_law
from pufferflow.related.hmm.model import Exact, Matrix, Vector


@dataclass(frozen=True)
@displayed("release", "largest", "ties")
class NoisyMax:
    """Noisy Max: every count gets noise of its own, and of the noisy counts the largest is told, by index or value.

    Parameters
    ----------
    release : {"index", "value"}
        What is released: the index of the largest noisy count, from 0, or that noisy count itself.
    largest : int
        Counts are 0, …, m (default 2).
    mechanism : sequence of sequences, optional
        P(noisy value | count), shape (m + 1, values) (default: the truncated geometric mechanism, ratio 1/2, of
        which neighbouring counts differ by the factor 2).
    ties : {"first", "last", "uniform"}
        Whose index is released among equal noisy counts.

    Raises
    ------
    ModelError, ParameterError
        An option is unknown, or the mechanism is no matrix for these counts.

    Notes
    -----
    What is released is computed from the noisy counts alone, so it tells no two lists of counts apart better than they
    do: if one count changes by one, at most by :attr:`factor`. What it says of correlated counts is for
    :func:`pufferflow.hmm.check` to decide, on the model that :func:`pufferflow.hmm.noisy_max` returns.

    Examples
    --------
    >>> from pufferflow import hmm
    >>> hmm.NoisyMax().law([0, 2, 1])
    (Fraction(13, 54), Fraction(17, 27), Fraction(7, 54))
    >>> hmm.NoisyMax("value").draw([0, 2, 1]) in (0, 1, 2)
    True
    """

    release: Release = "index"
    largest: int = 2
    mechanism: Sequence[Sequence[Exact]] | None = None
    ties: Ties = "first"
    _rows: Matrix = field(init=False, repr=False, compare=False)
    _over: int = field(init=False, repr=False, compare=False)
    _below: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice(self.release, "release", get_args(Release))
        check_choice(self.ties, "ties", get_args(Ties))
        rows = noise(self.mechanism, check_whole(self.largest, "largest value") + 1)
        over = math.lcm(*{p.denominator for row in rows for p in row})
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_over", over)
        object.__setattr__(self, "_below", tuple(tuple(accumulate(int(p * over) for p in row)) for row in rows))

    @property
    def factor(self) -> Fraction | float:
        """Largest ratio of the noisy values' probabilities under two counts that differ by one, a bound on e^ε.

        ``math.inf`` where one of them can have a value that the other cannot.
        """
        neighbours = [pair for first, second in pairwise(self._rows) for pair in ((first, second), (second, first))]
        ratios = [(p, q) for first, second in neighbours for p, q in zip(first, second, strict=True) if p]
        return math.inf if any(not q for _, q in ratios) else max(p / q for p, q in ratios)

    def law(self, counts: Sequence[int]) -> Vector:
        """Return the exact law of what is released for known counts.

        Parameters
        ----------
        counts : sequence of int, shape (n,)

        Returns
        -------
        tuple of fractions
            Probabilities of the indices 0, …, n − 1, or of the values.

        Raises
        ------
        ParameterError
            There is no count, or one is outside 0, …, m.
        """
        noisy = [self._rows[count] for count in self._counts(counts)]
        return index_law(noisy, self.ties) if self.release == "index" else value_law(noisy)

    def draw(self, counts: Sequence[int], *, rng: np.random.Generator | None = None) -> int:
        """Draw the index, or the value, of the largest noisy count: exactly from :meth:`law`.

        Parameters
        ----------
        counts : sequence of int, shape (n,)
        rng : numpy.random.Generator, optional
            For experiments: whoever knows its state knows the noise (default: the operating system's randomness).

        Raises
        ------
        ParameterError
            There is no count, one is outside 0, …, m, or ``rng`` is no generator.
        """
        if rng is not None:
            check_type(rng, "rng", np.random.Generator)
        return self._drawn(self._counts(counts), SystemRandomness() if rng is None else GeneratorRandomness(rng))

    def _counts(self, counts: Sequence[int]) -> list[int]:
        entries, known = check_list(counts, "counts"), []
        if not entries:
            raise ParameterError("there are no counts; give one a query")
        for place, count in enumerate(entries, 1):
            try:
                known.append(check_whole(count, "count", 0, self.largest))
            except ParameterError:  # which says what it is instead, and that is private
                raise ParameterError(f"count {place} is no whole number from 0 to {self.largest}; mend it") from None
        return known

    def _drawn(self, counts: Sequence[int], source: Randomness) -> int:
        noisy = [bisect_right(self._below[count], integer_below(source, self._over)) for count in counts]
        highest = max(noisy)
        if self.release == "value":
            return highest
        tied = [index for index, value in enumerate(noisy) if value == highest]
        chosen = {"first": 0, "last": -1}.get(self.ties)
        return tied[integer_below(source, len(tied)) if chosen is None else chosen]
