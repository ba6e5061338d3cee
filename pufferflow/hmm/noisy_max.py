"""Noisy Max: as a hidden Markov model, as an exact distribution and as a sampler."""

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

from pufferflow._util.checks import check_choice, check_list, check_type, check_whole
from pufferflow._util.numbers import Exact, written_number
from pufferflow.errors import ModelError, ParameterError
from pufferflow.hmm.checking import Witness
from pufferflow.hmm.model import (
    HiddenMarkovModel,
    Matrix,
    Vector,
    distribution,
    integers,
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

MAX_BITS, MAX_STATES, MAX_VALUES = 2 * 10**9, 2_000, 100_000
"""Bits of a geometric mechanism, states of a model, joint noisy values of a distribution."""


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
    def cumulative(self) -> tuple[int, list[list[int]]]:
        """The common denominator, and the cumulative sums of every row times it."""
        whole, over = integers([p for row in self.rows for p in row])
        size = len(self.rows[0])
        starts = range(0, len(whole), size)
        return over, [list(accumulate(whole[at : at + size])) for at in starts]

    @property
    def factor(self) -> Fraction | float:
        """Largest ratio of a noisy value's probabilities under counts that differ by one.

        A bound on e^ε of one release if one count changes by one; ``math.inf`` if there is none.
        """
        neighbours = [both for rows in pairwise(self.rows) for both in (rows, rows[::-1])]
        pairs = [pair for one, other in neighbours for pair in zip(one, other, strict=True)]
        return max(p / q if q else math.inf for p, q in pairs if p)

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
        initial = {
            secret: (*_joint(distribution(of, f"prior of {secret!r}") for of in counts), *rest)
            for secret, counts in priors.items()
        }
        return HiddenMarkovModel(**parts, initial_distributions=initial, pairs=pairs)

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
        initial = {
            secret: ["*".join(f"({p})" for p in entries) for entries in product(*counts)] + rest
            for secret, counts in priors.items()
        }
        return PriorFamily(
            **parts, initial_distributions=initial, parameters=parameters, pairs=pairs
        )

    def distribution(self, counts: Sequence[int | Sequence[Exact]]) -> Vector:
        """Return the exact distribution of what is released: of the indices, or of the values.

        Parameters
        ----------
        counts : sequence, shape (n,)
            Each is a count, or the distribution of one on 0, …, m.

        Raises
        ------
        ModelError, ParameterError
            There is no count, one is impossible, or there are too many.
        """
        noisy = [
            step(distribution(count, "a count", self.largest + 1), self.rows)
            if hasattr(count, "__len__") and not isinstance(count, str)
            else self.rows[self._counts([count])[0]]
            for count in check_list(counts, "counts")
        ]
        n, values = len(noisy), range(len(self.rows[0]))
        if not n:
            raise ParameterError("there are no counts; give one per query")
        if len(values) ** n > MAX_VALUES:
            raise ParameterError(f"{n} counts have more than {MAX_VALUES} joint noisy values")
        total = [Fraction(0)] * (n if self.release == "index" else len(values))
        for drawn, p in zip(product(values, repeat=n), _joint(noisy), strict=True):
            released = self._released(drawn)
            for outcome in released if p else ():
                total[outcome] += p / len(released)
        return tuple(total)

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
        released = self._released(noisy)
        return released[source.randrange(len(released)) if len(released) > 1 else 0]

    def _released(self, noisy: Sequence[int]) -> list[int]:
        """Return what may be released of noisy counts, each with the same probability."""
        highest = max(noisy)
        if self.release == "value":
            return [highest]
        tied = [index for index, value in enumerate(noisy) if value == highest]
        return tied if self.ties == "uniform" else [tied[0 if self.ties == "first" else -1]]

    def _counts(self, counts: Sequence[Any]) -> list[int]:
        entries = check_list(counts, "counts")
        for position, count in enumerate(entries, 1):
            try:
                check_whole(count, "count", 0, self.largest)
            except ParameterError:  # it shows the count, which is private
                raise ParameterError(
                    f"count {position} is not a whole number from 0 to {self.largest}"
                ) from None
        if not entries:
            raise ParameterError("there are no counts; give one per query")
        return list(map(int, entries))

    def _parts(self, priors: Any) -> tuple[dict[str, Any], list[Fraction]]:
        """Return the matrices and names of the model, and the zeros of the noisy states."""
        check_type(priors, "priors", Mapping)
        shapes = {
            tuple(len(check_list(of, "a distribution")) for of in check_list(counts, "a prior"))
            for counts in priors.values()
        }
        n, inputs, outputs = len(next(iter(shapes), ())), self.largest + 1, len(self.rows[0])
        if not n or shapes != {(inputs,) * n}:
            raise ModelError(
                f"each prior needs as many counts, distributions on 0 to {self.largest}"
            )
        if inputs**n + outputs**n > MAX_STATES:
            raise ParameterError(f"noisy max of {n} counts has more than {MAX_STATES} states")
        counts, noisy = (list(product(range(of), repeat=n)) for of in (inputs, outputs))
        shown = n if self.release == "index" else outputs
        emissions: list[list[Exact]] = [[*[0] * shown, 1]] * len(counts)
        for values in noisy:
            released = self._released(values)
            share = Fraction(1, len(released))
            emissions.append([share if i in released else 0 for i in range(shown + 1)])
        none, zeros = [Fraction(0)] * len(counts), [Fraction(0)] * len(noisy)
        moves = [[*none, *_joint(self.rows[x] for x in values)] for values in counts]
        for i in range(len(noisy)):
            moves.append([*none, *zeros])  # a noisy state stays
            moves[-1][len(counts) + i] = Fraction(1)
        names = [f"counts {','.join(map(str, c))}" for c in counts]
        return {
            "transition_matrix": moves,
            "observation_matrix": emissions,
            "states": names + [f"noisy {','.join(map(str, z))}" for z in noisy],
            "observations": [*map(str, range(shown)), SILENT],
            "length": 2,
        }, zeros


def largest_value_ratio(
    queries: int,
    relation: Relation,
    *,
    largest: int = 2,
    mechanism: Sequence[Sequence[Exact]] | None = None,
) -> Witness:
    """Return the largest ratio P(maximum | counts) / P(maximum | neighbour) over all neighbours.

    Secrets of the witness are lists of counts such as "0 2 1", its observation is the maximum. The
    maximum is at most v if each noisy count is, whatever the order of the counts: pairs of
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
    def weights(counts: tuple[int, ...]) -> list[int]:
        """P(maximum = v) times over^n."""
        at_most = [math.prod(column) for column in zip(*(levels[x] for x in counts), strict=True)]
        return [p - q for p, q in zip(at_most, [0, *at_most], strict=False)]

    best: tuple[int, int, tuple[int, ...], tuple[int, ...], int] = 0, 1, (), (), 0
    for counts in combinations_with_replacement(range(largest + 1), n):
        for neighbour in dict.fromkeys(_neighbours(counts, relation, largest)):
            ratios = zip(weights(counts), weights(tuple(sorted(neighbour))), strict=True)
            for v, (p, q) in enumerate(ratios):
                if p * best[1] > best[0] * q:
                    best = p, q, counts, neighbour, v
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
            if y != x:
                yield (*counts[:i], y, *counts[i + 1 :])


def _joint(independent: Iterable[Vector]) -> Vector:
    """Return the joint distribution of independent values, in the order of itertools.product."""
    none = Fraction(0)
    joint: Vector = (Fraction(1),)
    for of in independent:
        joint = tuple(p * q if p and q else none for p in joint for q in of)
    return joint
