"""Sensitivity of a query, from all databases over a small domain and the neighbours of each.

A database is a tuple of records, a record a tuple of one value a column of a :class:`~pufferflow.dp.Domain`. What
neighbours are is a function from a database to those beside it: :func:`change_one`, :func:`add_or_remove_one`, or the
user's own.

>>> from pufferflow import dp
>>> person = dp.Domain({"age": range(20, 24), "smokes": [False, True]})
>>> def oldest(people):
...     return max(age for age, smokes in people)
>>> dp.sensitivity(oldest, dp.databases(person, 2), dp.change_one(person)).value
Fraction(3, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from pufferflow._checks import check_type, check_whole
from pufferflow._display import displayed
from pufferflow._numbers import held_number
from pufferflow._rounding import float_up
from pufferflow.errors import DataError, ParameterError
from pufferflow.related.dp.domains import Domain
from pufferflow.related.dp.finite import within_steps

Record: TypeAlias = tuple[Any, ...]
Database: TypeAlias = tuple[Record, ...]
Neighbours: TypeAlias = Callable[[Any], Iterable[Any]]

MOST_DATABASES = 10**6
"""Databases beyond which :func:`databases` refuses to list them all."""


@dataclass(frozen=True)
@displayed("value", "database", "neighbour")
class Sensitivity:
    """Most that a query changes between neighbours, in L1 norm.

    Attributes
    ----------
    value : Fraction
    database, neighbour : tuple
        Two that attain it; None where the query never changes. They are of the domain, not of anybody's data.
    """

    value: Fraction
    database: Hashable = None
    neighbour: Hashable = None

    @property
    def rounded_up(self) -> float:
        """The value as a float, never below it: what :class:`~pufferflow.dp.Laplace` takes."""
        return float_up(self.value)


def databases(domain: Domain, records: int) -> Iterator[Database]:
    """Return all databases of this many records, in every order, as the places of people matter.

    Raises
    ------
    ParameterError
        There are more than ``MOST_DATABASES``.
    """
    check_type(domain, "domain", Domain)
    records = check_whole(records, "records", 0)
    # 20 records of two values are too many already
    if domain.size > 1 and (records >= 64 or domain.size**records > MOST_DATABASES):
        raise ParameterError(
            f"{records} records of {domain.size} values each make more than {MOST_DATABASES} databases; "
            "declare a smaller domain or fewer records"
        )
    return product(_records(domain), repeat=records)


def change_one(domain: Domain) -> Neighbours:
    """Neighbours that differ in one record, whose place and number stay ("bounded" differential privacy)."""
    every = _records(domain)

    def neighbours(database: Database) -> Iterator[Database]:
        for place, old in enumerate(database):
            for new in every:
                if new != old:
                    yield (*database[:place], new, *database[place + 1 :])

    return neighbours


def add_or_remove_one(domain: Domain) -> Neighbours:
    """Neighbours that have one record more, at the end, or one less ("unbounded" differential privacy)."""
    every = _records(domain)

    def neighbours(database: Database) -> Iterator[Database]:
        for place in range(len(database)):
            yield (*database[:place], *database[place + 1 :])
        for new in every:
            yield (*database, new)

    return neighbours


def sensitivity(
    query: Callable[[Any], Any], databases: Iterable[Any], neighbours: Neighbours, *, group: int = 1
) -> Sensitivity:
    """Largest L1 change of a query, over ``databases`` and what is at most ``group`` steps from each.

    Every database is asked once; numbers are taken for the rationals they are.

    Parameters
    ----------
    query : callable
        Gives a number, or a sequence of numbers of one length, of a database or neighbour.
    databases : iterable
        All that may occur, hashable; for instance :func:`databases`.
    neighbours : callable
        Gives the neighbours of a database.
    group : int
        People who may act together.

    Raises
    ------
    ParameterError
        No database, or arguments that are none.
    DataError
        An answer that is neither a number nor a sequence of numbers of the length of the others.
    """
    for name, function in (("query", query), ("neighbours", neighbours)):
        if not callable(function):
            raise ParameterError(f"{name} must be a function of a database")
    group = check_whole(group, "group")
    answers: dict[Any, tuple[Fraction, ...]] = {}

    def answer(database: Any) -> tuple[Fraction, ...]:
        if database not in answers:
            answers[database] = _numbers(query(database))
        return answers[database]

    largest = None
    for database in _hashable(databases):
        largest = largest or Sensitivity(Fraction(0))
        for other in within_steps(database, neighbours, group):
            if (change := _distance(answer(database), answer(other))) > largest.value:
                largest = Sensitivity(change, database, other)
    if largest is None:
        raise ParameterError("there is no database; give at least one")
    return largest


def _hashable(databases: Iterable[Any]) -> Iterator[Any]:
    try:
        for database in databases:
            hash(database)
            yield database
    except TypeError:
        raise ParameterError("databases must be a sequence of hashable things; give tuples of records") from None


def _records(domain: Domain) -> list[Record]:
    check_type(domain, "domain", Domain)
    if domain.size > MOST_DATABASES:
        raise ParameterError(f"the domain has {domain.size} tuples, more than {MOST_DATABASES}; declare a smaller one")
    return list(product(*domain.columns.values()))


def _numbers(answer: Any) -> tuple[Fraction, ...]:
    several = isinstance(answer, Sequence | np.ndarray | pd.Series) and not isinstance(answer, str | bytes)
    entries = np.ravel(answer).tolist() if isinstance(answer, np.ndarray | pd.Series) else answer
    try:
        return tuple(held_number(entry, "an answer") for entry in (entries if several else (answer,)))
    except ParameterError:
        raise DataError("an answer of the query is neither a number nor a sequence of numbers") from None


def _distance(first: tuple[Fraction, ...], second: tuple[Fraction, ...]) -> Fraction:
    if len(first) != len(second):
        raise DataError(
            f"the query gives {len(first)} numbers and elsewhere {len(second)}; it must always give as many"
        )
    return sum((abs(a - b) for a, b in zip(first, second, strict=True)), Fraction(0))
