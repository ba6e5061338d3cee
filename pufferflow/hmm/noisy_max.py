"""Noisy Max: as a hidden Markov model, as an exact distribution and as a sampler."""

import math
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations_with_replacement, pairwise, product
from typing import Any, Literal, TypeAlias, get_args

from pufferflow._util.checks import check_choice, check_list, check_type, check_whole
from pufferflow._util.json import only_keys, read_json
from pufferflow._util.noise import randomness
from pufferflow._util.numbers import Exact, written_number
from pufferflow.errors import ModelError, ParameterError
from pufferflow.hmm import model as models
from pufferflow.hmm.checking import Witness
from pufferflow.hmm.model import HiddenMarkovModel, Matrix, Vector, distribution
from pufferflow.hmm.priors import PriorFamily

Counts: TypeAlias = Sequence[int | Sequence[Exact]]
Release: TypeAlias = Literal["index", "value"]
Ties: TypeAlias = Literal["first", "last", "uniform"]
Relation: TypeAlias = Literal["one-by-one", "all-by-one", "one-anywhere"]

SILENT = "⊥"  # the observation of a state before the release

MAX_BITS, MAX_STATES, MAX_VALUES = 2 * 10**9, 2_000, 100_000
"""Limits: bits of a geometric mechanism, states of a model, joint noisy values."""


def truncated_geometric(largest: int, ratio: Exact = "1/2") -> Matrix:
    """Return the truncated geometric mechanism on {0, …, largest}: P(released z | value x).

    Noise has P(d) = (1 − a)/(1 + a)·a^|d| with the ratio a in (0, 1), and sums are clamped to the
    range (Ghosh, Roughgarden, Sundararajan 2009). Ratios for neighbouring values are
    at most 1/a. Raises ParameterError: a number is out of range.
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
        The released index among equal noisy counts.

    Examples
    --------
    >>> NoisyMax().distribution([0, 2, 1])
    (Fraction(13, 54), Fraction(17, 27), Fraction(7, 54))
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
        object.__setattr__(self, "rows", models.stochastic_matrix(rows, "mechanism", size))

    @property
    def factor(self) -> Fraction | float:
        """Largest ratio of a noisy value's probabilities under counts that differ by one.

        It bounds e^ε of one release if one count changes by one; ``math.inf`` without a bound.
        """
        columns = [pair for rows in pairwise(self.rows) for pair in zip(*rows, strict=True)]
        both = [pair for p, q in columns for pair in ((p, q), (q, p))]
        return max(p / q if q else math.inf for p, q in both if p)

    def model(
        self,
        priors: Mapping[str, Sequence[Sequence[Exact]]],
        *,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> HiddenMarkovModel:
        """Return the hidden Markov model: states of counts without observation, then of releases.

        ``priors`` has for each secret the distributions of the n independent counts, shape
        (n, m + 1); ``pairs`` are those of :class:`HiddenMarkovModel`. Raises ModelError or
        ParameterError: a distribution is impossible, the numbers of counts differ, or there would
        be more than :data:`MAX_STATES` states.
        """

        def joint(counts: Sequence[Sequence[Exact]]) -> Vector:
            return _joint(distribution(of, "the prior of a count") for of in counts)

        return HiddenMarkovModel(**self._parts(priors, joint), pairs=pairs)

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

        def joint(counts: Sequence[Sequence[Exact]]) -> list[str]:
            return ["*".join(f"({p})" for p in entries) for entries in product(*counts)]

        return PriorFamily(**self._parts(priors, joint), parameters=parameters, pairs=pairs)

    def distribution(self, counts: Counts) -> Vector:
        """Return the exact distribution of the release, over indices or values.

        Each of the counts is a number, or a distribution on 0, …, m. Raises ModelError or
        ParameterError: there is none, one is impossible, or there are too many.
        """
        noisy, values = self._noisy(counts), range(len(self.rows[0]))
        n = len(noisy)
        if self.release == "value":  # at most v if each of them is
            columns = zip(*map(accumulate, noisy), strict=True)
            at_most = [math.prod(column, start=Fraction(1)) for column in columns]
            return tuple(p - q for p, q in zip(at_most, [Fraction(0), *at_most], strict=False))
        if len(values) ** n > MAX_VALUES:
            raise ParameterError(f"{n} counts have more than {MAX_VALUES} joint noisy values")
        total = [Fraction(0)] * n
        for drawn, p in zip(product(values, repeat=n), _joint(noisy), strict=True):
            released = self._released(drawn)
            for outcome in released if p else ():
                total[outcome] += p / len(released)
        return tuple(total)

    def sample(self, counts: Counts, *, insecure_seed: int | None = None) -> int:
        """Return an exact draw from :meth:`distribution`, without floats.

        A seed is for experiments: it reveals the noise (default: the operating system's bits).
        """
        source, drawn = randomness(insecure_seed), []
        for weights, over in map(models.integers, self._noisy(counts)):
            drawn.append(bisect_right(list(accumulate(weights)), source.randrange(over)))
        released = self._released(drawn)
        return released[source.randrange(len(released)) if len(released) > 1 else 0]

    def _noisy(self, counts: Counts) -> list[Vector]:
        """Return the distributions of the noisy counts."""
        noisy, most = [], self.largest
        for i, count in enumerate(check_list(counts, "counts"), 1):
            try:
                if hasattr(count, "__len__"):
                    noisy.append(models.step(distribution(count, "", most + 1), self.rows))
                else:
                    noisy.append(self.rows[check_whole(count, "count", 0, most)])
            except (ModelError, ParameterError):  # the message may show the count, which is private
                wanted = f"a whole number from 0 to {most}, nor a distribution on them"
                raise ParameterError(f"count {i} is not {wanted}") from None
        if not noisy:
            raise ParameterError("there are no counts; give one per query")
        return noisy

    def _released(self, noisy: Sequence[int]) -> list[int]:
        """Return the possible releases of noisy counts, all with the same probability."""
        highest = max(noisy)
        if self.release == "value":
            return [highest]
        tied = [index for index, value in enumerate(noisy) if value == highest]
        return tied if self.ties == "uniform" else [tied[0 if self.ties == "first" else -1]]

    def _parts(self, priors: Any, joint: Callable[[Any], Sequence[Exact]]) -> dict[str, Any]:
        """Return the arguments of a model with ``joint`` of each prior as the counts' entries."""
        check_type(priors, "priors", Mapping)
        numbers = {len(check_list(counts, "a prior")) for counts in priors.values()}
        given = [of for counts in priors.values() for of in counts]
        sizes, inputs = {len(check_list(of, "a distribution")) for of in given}, self.largest + 1
        if len(numbers) != 1 or sizes != {inputs}:
            wanted = f"distributions on 0 to {self.largest}"
            raise ModelError(f"each prior needs as many counts, {wanted}")
        n = numbers.pop()
        if inputs**n > MAX_STATES:
            raise ParameterError(f"noisy max of {n} counts has more than {MAX_STATES} states")
        every = list(product(range(inputs), repeat=n))
        moves = [self.distribution(counts) for counts in every]
        names = [str(i) for i in range(len(moves[0]))]
        unit = [[Fraction(name == other) for other in names] for name in names]
        silent, hidden = [Fraction(0)] * len(every), [*[Fraction(0)] * len(names), Fraction(1)]
        return {
            "transition_matrix": [[*silent, *row] for row in (*moves, *unit)],  # a release stays
            "observation_matrix": [*[hidden] * len(every), *([*row, 0] for row in unit)],
            "initial_distributions": {s: [*joint(of), *hidden[:-1]] for s, of in priors.items()},
            "states": [*(f"counts {','.join(map(str, of))}" for of in every), *names],
            "observations": [*names, SILENT],
            "length": 2,
        }


def largest_value_ratio(
    queries: int,
    relation: Relation,
    *,
    largest: int = 2,
    mechanism: Sequence[Sequence[Exact]] | None = None,
) -> Witness:
    """Return the largest ratio P(maximum | counts) / P(maximum | neighbour) over all neighbours.

    Secrets of the witness are lists of counts such as "2 1 0", its observation is the maximum. Of
    two neighbours one count differs by one ("one-by-one"), each by at most one ("all-by-one"), or
    one in any way ("one-anywhere"). ``largest`` and ``mechanism`` are those of :class:`NoisyMax`.
    """
    n = check_whole(queries, "number of queries")  # their order does not matter
    check_choice(relation, "relation", get_args(Relation))
    of = cache(NoisyMax("value", largest, mechanism).distribution)
    best = Witness("", "", (), Fraction(0), Fraction(1))
    every = combinations_with_replacement(range(largest + 1), n)
    for one, other in product(every, repeat=2):
        if _are_neighbours(one, other, relation):
            for v, (p, q) in enumerate(zip(of(one), of(other), strict=True)):
                if p * best.other_probability > best.probability * q:
                    secret, neighbour = (" ".join(map(str, c[::-1])) for c in (one, other))
                    best = Witness(secret, neighbour, (str(v),), p, q)
    return best


def read_hidden_markov_model(path: str | os.PathLike[str]) -> HiddenMarkovModel | PriorFamily:
    """Return the model of a JSON file, with or without free parameters; ``"-"`` is standard input.

    The file is one object (0.1 is one tenth; ``"1/3"`` is a third)::

        {"transition_matrix": [[…]], "observation_matrix": [[…]],
         "initial_distributions": {"ill": ["0", "1/2", "1/2"], "healthy": ["1/2", "1/2", "0"]},
         "states": […], "observations": […], "pairs": [["ill", "healthy"]], "length": 2}

    The last line is optional. With the key ``parameters`` it is a :class:`PriorFamily`. The key
    ``noisy_max`` replaces the matrices; all but its ``priors`` are optional::

        {"noisy_max": {"priors": {"ill": [["(1 - p)**2", "2*p*(1 - p)", "p**2"], [0, "1/2", "1/2"]],
                       "healthy": …}, "release": "index", "largest": 2, "ties": "first",
                       "mechanism": [[…]]},
         "parameters": {"p": [0, 1]}, "pairs": […]}

    Raises ModelError: the file cannot be read, is not JSON or does not describe a model.
    """
    return read_json(path, _parse, '{"transition_matrix": [[…]], …}', number=str)


def _parse(document: object) -> HiddenMarkovModel | PriorFamily:
    free = isinstance(document, dict) and "parameters" in document
    if isinstance(document, dict) and "noisy_max" in document:
        options = dict(only_keys(document, ("noisy_max", "parameters", "pairs"), "the model"))
        names = ("priors", "largest", "mechanism", "release", "ties")
        described = dict(only_keys(options.pop("noisy_max"), names, "noisy_max"))
        priors = described.pop("priors", None)
        noisy_max = NoisyMax(**described)
        return (noisy_max.family if free else noisy_max.model)(priors, **options)
    needed = ("transition_matrix", "observation_matrix", "initial_distributions")
    known = (*needed, "states", "observations", "pairs", "length", "parameters")
    parts = only_keys(document, known, "the model", needed)
    return (PriorFamily if free else HiddenMarkovModel)(**parts)


def _are_neighbours(one: tuple[int, ...], other: tuple[int, ...], relation: Relation) -> bool:
    """Return whether two sorted lists of counts are neighbours, one of them in some order."""
    if relation == "one-anywhere":
        return (Counter(one) - Counter(other)).total() == 1
    moved = [abs(x - y) for x, y in zip(one, other, strict=True)]  # the smallest over all orders
    return (sum(moved) if relation == "one-by-one" else max(moved)) == 1


def _joint(independent: Iterable[Vector]) -> Vector:
    """Return the joint distribution of independent values, in the order of itertools.product."""
    joint: Vector = (Fraction(1),)
    for of in independent:
        joint = tuple(p * q for p in joint for q in of)
    return joint
