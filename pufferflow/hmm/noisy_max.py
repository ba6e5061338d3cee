"""Noisy Max, as a hidden Markov model, as an exact distribution and as a sampler; mechanisms alone.

The largest of independent noisy counts is at most v if each is, so its distribution comes from
products of distribution functions: O(n) products per value, whatever the number of joint states.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, combinations_with_replacement, pairwise, product
from random import Random, SystemRandom
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pufferflow._checks import check_choice, check_list, check_type, check_whole
from pufferflow._numbers import Exact, written_number
from pufferflow.errors import ModelError, ParameterError
from pufferflow.hmm.checking import Witness
from pufferflow.hmm.model import (
    HiddenMarkovModel,
    Matrix,
    Vector,
    distribution,
    step,
    stochastic_matrix,
)
from pufferflow.hmm.priors import PriorFamily

Release: TypeAlias = Literal["index", "value"]
Ties: TypeAlias = Literal["first", "last", "uniform"]
Relation: TypeAlias = Literal["one-by-one", "all-by-one", "one-anywhere"]
"""Neighbours: one count changes by one; each changes by at most one; one takes another value."""

SILENT = "⊥"
"""The observation of a state that shows nothing."""

MAX_BITS, MAX_STATES = 2 * 10**9, 2_000
"""Bits of the numbers of a geometric mechanism, and states of a Noisy Max model."""


def truncated_geometric(largest: int, ratio: Exact = "1/2") -> Matrix:
    """Return the truncated geometric mechanism on {0, …, largest}: P(released z | value x).

    Noise has P(d) = (1 − a)/(1 + a)·a^|d|, and what falls outside goes to the nearest end (Ghosh,
    Roughgarden, Sundararajan 2009). Ratios for neighbouring values are at most 1/a.

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
    m, a = check_whole(largest, "largest value"), written_number(ratio, "ratio")
    if not 0 < a < 1:
        raise ParameterError("ratio of the geometric mechanism must lie between 0 and 1")
    if m**3 * a.denominator.bit_length() > MAX_BITS:
        raise ParameterError(f"largest value {m} is too large for a ratio of so many digits")
    weight = (1 - a) / (1 + a)
    middle = [[weight * a ** abs(x - z) for z in range(1, m)] for x in range(m + 1)]
    return tuple((a**x / (1 + a), *row, a ** (m - x) / (1 + a)) for x, row in enumerate(middle))


@dataclass(frozen=True)
class NoisyMax:
    """Noisy Max: every count gets noise of its own, and the largest noisy count is released.

    Parameters
    ----------
    release : {"index", "value"}
        The index of the largest noisy count, from 0, or that noisy count itself.
    largest : int
        Counts are 0, …, m (default 2).
    mechanism : sequence of sequences, optional
        P(noisy value | count), shape (m + 1, values) (default: :func:`truncated_geometric`).
    ties : {"first", "last", "uniform"}
        Whose index is released among equal noisy counts.

    Raises
    ------
    ModelError, ParameterError
        An option is unknown, or the mechanism is not a matrix for these counts.

    Examples
    --------
    >>> NoisyMax().distribution([0, 2, 1])
    (Fraction(13, 54), Fraction(17, 27), Fraction(7, 54))
    >>> NoisyMax("value").sample([0, 2, 1]) in (0, 1, 2)
    True
    """

    release: Release = "index"
    largest: int = 2
    mechanism: Sequence[Sequence[Exact]] | None = None
    ties: Ties = "first"
    rows: Matrix = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice(self.release, "release", get_args(Release))
        check_choice(self.ties, "ties", get_args(Ties))
        size = check_whole(self.largest, "largest value") + 1
        rows = truncated_geometric(self.largest) if self.mechanism is None else self.mechanism
        object.__setattr__(self, "rows", stochastic_matrix(rows, "mechanism", size))

    @cached_property
    def cumulative(self) -> tuple[int, tuple[tuple[int, ...], ...]]:
        """The common denominator, and the cumulative sums of every row times it."""
        over = math.lcm(*{p.denominator for row in self.rows for p in row})
        return over, tuple(tuple(accumulate(int(p * over) for p in row)) for row in self.rows)

    @property
    def factor(self) -> Fraction | float:
        """Largest ratio of a noisy value's probabilities under counts that differ by one.

        A bound on e^ε of one release if one count changes by one; ``math.inf`` if there is none.
        """
        pairs = [
            (p, q)
            for rows in pairwise(self.rows)
            for first, second in (rows, rows[::-1])
            for p, q in zip(first, second, strict=True)
            if p
        ]
        return max(p / q if q else math.inf for p, q in pairs)

    def model(
        self,
        priors: Mapping[str, Sequence[Sequence[Exact]]],
        *,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> HiddenMarkovModel:
        """Return the hidden Markov model: counts, which show nothing, then what is released.

        Parameters
        ----------
        priors : mapping of str to sequence, shape (n, m + 1)
            Under each secret the distributions of the n independent counts.
        pairs : sequence of pairs of str, optional
            As for :class:`HiddenMarkovModel`.

        Raises
        ------
        ModelError, ParameterError
            A distribution is impossible, the numbers of counts differ, or there would be more than
            :data:`MAX_STATES` states.
        """
        parts, rest = self._parts(priors)
        joint = {
            secret: _product([distribution(law, f"prior of {secret!r}") for law in laws])
            for secret, laws in priors.items()
        }
        laws = {secret: (*law, *rest) for secret, law in joint.items()}
        return HiddenMarkovModel(**parts, initial_distributions=laws, pairs=pairs)

    def family(
        self,
        priors: Mapping[str, Sequence[Sequence[Exact]]],
        parameters: Mapping[str, Sequence[Exact]],
        *,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> PriorFamily:
        """Return the models of priors whose entries may be polynomials such as ``"(1 - p)**2"``.

        ``parameters`` gives each its lowest and highest value; otherwise as :meth:`model`.
        """
        parts, rest = self._parts(priors)
        laws = {
            secret: ["*".join(f"({entry})" for entry in entries) for entries in product(*law)]
            + rest
            for secret, law in priors.items()
        }
        return PriorFamily(**parts, initial_distributions=laws, parameters=parameters, pairs=pairs)

    def distribution(self, counts: Sequence[int | Sequence[Exact]]) -> Vector:
        """Return the exact distribution of what is released: of the indices, or of the values.

        Parameters
        ----------
        counts : sequence, shape (n,)
            Each is a count, or the distribution of one on 0, …, m.

        Raises
        ------
        ModelError, ParameterError
            There is no count, or one is impossible.
        """
        laws = [
            step(distribution(count, "a count", self.largest + 1), self.rows)
            if hasattr(count, "__len__") and not isinstance(count, str)
            else self.rows[self._counts([count])[0]]
            for count in check_list(counts, "counts")
        ]
        if not laws:
            raise ParameterError("there are no counts; give one per query")
        return _largest_value(laws) if self.release == "value" else _largest_index(laws, self.ties)

    def sample(self, counts: Sequence[int], *, rng: np.random.Generator | None = None) -> int:
        """Return a draw from :meth:`distribution`, exactly: no float is between bits and result.

        Parameters
        ----------
        counts : sequence of int, shape (n,)
        rng : numpy.random.Generator, optional
            For experiments: its state reveals the noise (default: the operating system's bits).

        Raises
        ------
        ParameterError
            There is no count, one is outside 0, …, m, or ``rng`` is not a generator.
        """
        if rng is not None:
            check_type(rng, "rng", np.random.Generator)
        source = SystemRandom() if rng is None else Random(int.from_bytes(rng.bytes(32)))
        return self._drawn(self._counts(counts), source)

    def _drawn(self, counts: Sequence[int], source: Random) -> int:
        over, below = self.cumulative
        noisy = [bisect_right(below[count], source.randrange(over)) for count in counts]
        highest = max(noisy)
        if self.release == "value":
            return highest
        tied = [index for index, value in enumerate(noisy) if value == highest]
        if self.ties == "uniform":
            return tied[source.randrange(len(tied))]
        return tied[0 if self.ties == "first" else -1]

    def _counts(self, counts: Sequence[Any]) -> list[int]:
        entries, known = check_list(counts, "counts"), []
        for position, count in enumerate(entries, 1):
            try:
                known.append(check_whole(count, "count", 0, self.largest))
            except ParameterError:  # it shows the count, which is private
                raise ParameterError(
                    f"count {position} is not a whole number from 0 to {self.largest}"
                ) from None
        if not known:
            raise ParameterError("there are no counts; give one per query")
        return known

    def _parts(self, priors: Any) -> tuple[dict[str, Any], list[Fraction]]:
        """Return the matrices and names of the model, and the zeros of the noisy states."""
        check_type(priors, "priors", Mapping)
        shapes = {
            tuple(len(check_list(law, "a distribution")) for law in check_list(laws, "a prior"))
            for laws in priors.values()
        }
        n, inputs, outputs = len(next(iter(shapes), ())), self.largest + 1, len(self.rows[0])
        if not n or shapes != {(inputs,) * n}:
            raise ModelError(
                f"each prior needs as many counts, distributions on 0 to {self.largest}"
            )
        if inputs**n + outputs**n > MAX_STATES:
            raise ParameterError(f"noisy max of {n} counts has more than {MAX_STATES} states")
        counts, noisy = (list(product(range(of), repeat=n)) for of in (inputs, outputs))
        none, rest = [Fraction(0)] * len(counts), [Fraction(0)] * len(noisy)
        shown = n if self.release == "index" else outputs
        silent: list[Fraction | int] = [*[0] * shown, 1]
        emissions = [silent] * len(counts)
        for values in noisy:
            chosen = [i for i, value in enumerate(values) if value == max(values)]
            if self.release == "value":
                chosen = [max(values)]
            elif self.ties != "uniform":
                chosen = [chosen[0 if self.ties == "first" else -1]]
            share = Fraction(1, len(chosen))
            emissions.append([share if i in chosen else 0 for i in range(shown + 1)])
        before = [[*none, *_product([self.rows[x] for x in values])] for values in counts]
        names = [f"counts {','.join(map(str, c))}" for c in counts]
        return {
            "transition_matrix": before + [[*none, *row] for row in _identity(len(noisy))],
            "observation_matrix": emissions,
            "states": names + [f"noisy {','.join(map(str, z))}" for z in noisy],
            "observations": [*map(str, range(shown)), SILENT],
            "length": 2,
        }, rest


def largest_value_ratio(
    queries: int,
    relation: Relation,
    *,
    largest: int = 2,
    mechanism: Sequence[Sequence[Exact]] | None = None,
) -> Witness:
    """Return the largest ratio P(maximum | counts) / P(maximum | neighbour) over all neighbours.

    Secrets of the witness are lists of counts such as "0 2 1", its observation is the maximum. The
    distribution of the maximum does not depend on the order of the counts, so pairs of
    frequencies that some matching makes neighbours are enough.

    Parameters
    ----------
    queries : int
        n ≥ 1 counts.
    relation : {"one-by-one", "all-by-one", "one-anywhere"}
        Which counts are neighbours: see :data:`Relation`.
    largest, mechanism : optional
        As for :class:`NoisyMax`.

    Raises
    ------
    ModelError, ParameterError
        A number is out of range, the relation unknown, or the mechanism impossible.
    """
    n = check_whole(queries, "number of queries")
    check_choice(relation, "relation", get_args(Relation))
    over, levels = NoisyMax("value", largest, mechanism).cumulative

    @cache
    def law(counts: tuple[int, ...]) -> tuple[int, ...]:
        """P(maximum = v) times over^n."""
        at_most = [math.prod(column) for column in zip(*(levels[x] for x in counts), strict=True)]
        return tuple(p - q for p, q in zip(at_most, [0, *at_most], strict=False))

    best: tuple[int, int, tuple[int, ...], tuple[int, ...], int] | None = None
    for counts in combinations_with_replacement(range(largest + 1), n):
        for neighbour in dict.fromkeys(_neighbours(counts, relation, largest)):
            ratios = zip(law(counts), law(tuple(sorted(neighbour))), strict=True)
            for v, (p, q) in enumerate(ratios):
                if p and (best is None or p * best[1] > best[0] * q):
                    best = p, q, counts, neighbour, v
    assert best is not None
    p, q, *_, value = best
    one, other = (" ".join(map(str, of)) for of in best[2:4])
    return Witness(one, other, (str(value),), Fraction(p, over**n), Fraction(q, over**n))


def _neighbours(
    counts: tuple[int, ...], relation: Relation, largest: int
) -> Iterator[tuple[int, ...]]:
    """Yield the neighbours of sorted counts, up to the order of those that are equal."""
    values = range(largest + 1)
    near = {x: [y for y in (x - 1, x, x + 1) if y in values] for x in values}
    if relation == "all-by-one":
        options = (combinations_with_replacement(near[x], counts.count(x)) for x in values)
        for chosen in product(*options):
            yield sum(chosen, ())
        return
    for i, x in enumerate(counts):
        for y in near[x] if relation == "one-by-one" else values:
            if y != x and counts[i - 1 : i] != (x,):
                yield (*counts[:i], y, *counts[i + 1 :])


def _largest_value(laws: Sequence[Vector]) -> Vector:
    levels = [tuple(accumulate(law)) for law in laws]
    at_most = [math.prod(column, start=Fraction(1)) for column in zip(*levels, strict=True)]
    return tuple(p - q for p, q in zip(at_most, [Fraction(0), *at_most], strict=False))


def _largest_index(laws: Sequence[Vector], ties: Ties) -> Vector:
    none = Fraction(0)
    total = [none] * len(laws)
    for v in range(len(laws[0])):
        less = [sum(law[:v], Fraction(0)) for law in laws]
        for i, law in enumerate(laws):
            # probabilities that 0, 1, … others are equal, all the rest below
            equal = [law[v]]
            for j, other in enumerate(laws):
                if j != i:
                    tied = other[v] if ties == "uniform" or (j < i) == (ties == "last") else none
                    pairs = zip([*equal, none], [none, *equal], strict=True)
                    equal = [same * less[j] + one * tied for same, one in pairs]
            for others, p in enumerate(equal):
                total[i] += p / (others + 1) if ties == "uniform" else p
    return tuple(total)


def _product(laws: Iterable[Vector]) -> Vector:
    """Return the joint distribution of independent values, in the order of itertools.product."""
    none = Fraction(0)
    joint: Vector = (Fraction(1),)
    for law in laws:
        joint = tuple(p * q if p and q else none for p in joint for q in law)
    return joint


def _identity(size: int) -> Matrix:
    return tuple(tuple(Fraction(int(i == j)) for j in range(size)) for i in range(size))
