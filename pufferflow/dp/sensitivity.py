"""Sensitivity of a query, over all databases of a small domain and the neighbours of each.

A database is a tuple of records, a record a tuple with a value of every column of the domain.

>>> from pufferflow import dp
>>> person = dp.Domain({"age": range(20, 24), "smokes": [False, True]})
>>> oldest = lambda people: max(age for age, smokes in people)
>>> dp.sensitivity(oldest, dp.databases(person, 2), dp.change_one(person))
Fraction(3, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from pufferflow._checks import check_list, check_type, check_whole
from pufferflow._numbers import held_numbers
from pufferflow.dp.domains import Domain
from pufferflow.errors import DataError, ParameterError

Database: TypeAlias = tuple[tuple[Any, ...], ...]
Neighbours: TypeAlias = Callable[[Any], Iterable[Any]]


def databases(domain: Domain, records: int) -> Iterator[Database]:
    """Return all databases with ``records`` records, in every order, at most 10^6."""
    values, records = _records(domain), check_whole(records, "records", 0)
    if len(values) > 1 and (records >= 64 or len(values) ** records > 10**6):
        raise ParameterError("there are more than 10^6 databases; declare a smaller domain")
    return product(values, repeat=records)


def change_one(domain: Domain) -> Neighbours:
    """Return the neighbours that differ in the values of one record (bounded DP), as a function."""
    values = _records(domain)

    def neighbours(database: Database) -> Iterator[Database]:
        for i, new in product(range(len(database)), values):
            if new != database[i]:
                yield (*database[:i], new, *database[i + 1 :])

    return neighbours


def add_or_remove_one(domain: Domain) -> Neighbours:
    """Return the neighbours with a record more, at the end, or less (unbounded DP)."""
    values = _records(domain)

    def neighbours(database: Database) -> Iterator[Database]:
        yield from ((*database[:i], *database[i + 1 :]) for i in range(len(database)))
        yield from ((*database, new) for new in values)

    return neighbours


def sensitivity(
    query: Callable[[Any], Any], databases: Iterable[Any], neighbours: Neighbours
) -> Fraction:
    """Return the largest L1 change of a query between neighbours, exactly.

    Parameters
    ----------
    query : callable
        Returns a number, or a sequence of numbers of one length, for a database or a neighbour;
        anything else is a DataError.
    databases : iterable
        All that may occur, for instance :func:`databases`.
    neighbours : callable
        Returns the neighbours of a database: :func:`change_one`, or any other function.
    """
    if not (callable(query) and callable(neighbours)):
        raise ParameterError("query and neighbours must be functions of a database")
    largest = None
    for database in check_list(databases, "databases"):
        answer, largest = _numbers(query(database)), largest or Fraction(0)
        for neighbour in neighbours(database):
            other = _numbers(query(neighbour))
            if len(other) != len(answer):
                raise DataError("the query must always return the same number of numbers")
            change = sum((abs(a - b) for a, b in zip(answer, other, strict=True)), Fraction(0))
            largest = max(largest, change)
    if largest is None:
        raise ParameterError("there is no database; give at least one")
    return largest


def _records(domain: Domain) -> list[tuple[Any, ...]]:
    check_type(domain, "domain", Domain)
    if domain.size > 10**6:
        raise ParameterError("the domain has more than 10^6 tuples; declare a smaller one")
    return list(product(*domain.columns.values()))


def _numbers(answer: Any) -> list[Fraction]:
    plain = answer.tolist() if hasattr(answer, "tolist") else answer
    try:
        return held_numbers(plain if isinstance(plain, list | tuple) else [plain], "an answer")
    except ParameterError:
        raise DataError("an answer of the query must be a number or a list of numbers") from None
